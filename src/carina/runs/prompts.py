"""System prompts by protocol, and the texts that Carina adds to a conversation: hints, and answer keys as answers."""

import re
from typing import Final

from carina.cases import Case, Step
from carina.cases.messages import answer

PERCEPT: Final = (
    "You are an expert thoracic radiologist who is examined on chest X-rays. Every question has numbered options. "
    "Look at the images, think as long as you need, and end each reply with a line that starts with 'Answer:' and "
    "holds nothing else but the number of the right option, or all right numbers separated by commas."
)
CONVERSATION: Final = (
    "You are an expert thoracic radiologist who reads chest X-rays step by step. Answer each question from the images "
    "and from what was said before, and keep to the form and the length that the question asks for. Where options are "
    "listed, reply with the right one as it stands there, its letter or number first."
)
_BY_PROTOCOL: Final = {"percept": PERCEPT}

_HINT: Final = (
    "For your information: the right answer to the question “{question}” is: {answer} "
    "Disregard what was said about it before."
)
_HINT_PATTERN: Final = re.compile(
    re.escape(_HINT).replace(re.escape("{question}"), "([^“”]*)").replace(re.escape("{answer}"), r"([^\n]*?)")
    + r"\n?"
)


def system_prompt(protocol: str) -> str:
    """The system prompt of a protocol."""
    return _BY_PROTOCOL.get(protocol, CONVERSATION)


def write_hint(question: str, answer: str) -> str:
    """State the truth of an earlier step."""
    sentence = answer if answer.rstrip().endswith((".", "!", "?")) else f"{answer}."
    return _HINT.format(question=" ".join(question.split()), answer=sentence)


def split_hints(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A message without its hints, and the questions and answers of the hints."""
    return _HINT_PATTERN.sub("", text), tuple((found[1], found[2]) for found in _HINT_PATTERN.finditer(text))


NO_ANSWER: Final = "(no answer)"
"""Replaces an empty answer in the history, because some services refuse empty messages."""
SPOKEN_LABELS: Final[dict[str, str]] = {"yes": "Yes.", "no": "No.", "uncertain": "Uncertain."}
"""How built-in models state a label."""
NORMAL_REPORT: Final = "No acute cardiopulmonary abnormality."
"""Answer of built-in models to a free-text question that they cannot answer."""


def write_key_as_answer(case: Case, step: Step) -> str:
    """Write an answer key as an answer; options by number after "Answer:" where the key has no text."""
    if step.format == "choice" and step.key.text is None:
        return f"Answer: {', '.join(map(str, step.right))}"
    return answer(case, step)


def describe_images(current: int, reference: int) -> str:
    """State which of the images that come together belong to which study."""
    first = "The first image is" if current == 1 else f"The first {current} images are"
    rest = "the other one" if reference == 1 else f"the other {reference}"
    return f"{first} of the current study, {rest} of the reference study."
