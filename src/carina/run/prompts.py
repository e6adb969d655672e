"""What a model is told before the first question, by protocol, and how the truth of a step is told."""

import re
from typing import Final

from carina.cases import Case, Step
from carina.cases.chat import answer

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
_HINTED: Final = re.compile(
    re.escape(_HINT).replace(re.escape("{question}"), "([^“”]*)").replace(re.escape("{answer}"), r"([^\n]*?)")
    + r"\n?"
)


def system_prompt(protocol: str) -> str:
    """What stands before the conversation."""
    return _BY_PROTOCOL.get(protocol, CONVERSATION)


def hint(question: str, answer: str) -> str:
    """The truth of an earlier step, as a fact."""
    told = answer if answer.rstrip().endswith((".", "!", "?")) else f"{answer}."
    return _HINT.format(question=" ".join(question.split()), answer=told)


def hints_in(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A message without what it tells of earlier steps, and the questions and answers that it tells."""
    return _HINTED.sub("", text), tuple((found[1], found[2]) for found in _HINTED.finditer(text))


NO_ANSWER: Final = "(no answer)"
"""Stands in the history for an answer without words, which some services refuse."""


def as_answer(case: Case, step: Step) -> str:
    """A key in the words of an answer: options by number behind the marker where the key has no words of its own."""
    if step.format == "choice" and step.key.text is None:
        return f"Answer: {', '.join(map(str, step.right))}"
    return answer(case, step)


def which_images(current: int, reference: int) -> str:
    """Which of the pictures that come together are of which study."""
    first = "The first image is" if current == 1 else f"The first {current} images are"
    rest = "the other one" if reference == 1 else f"the other {reference}"
    return f"{first} of the current study, {rest} of the reference study."
