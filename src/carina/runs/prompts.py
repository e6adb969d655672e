"""System prompts by protocol, and the texts that Carina adds to a conversation: hints, and answer keys as answers.

What is said after CheXpercept is worded anew; `docs/how-to/chexpercept.md` lists every difference.
"""

import re
from collections.abc import Sequence
from typing import Final

from carina.cases import Case, Step
from carina.cases.messages import answer
from carina.runs.parse.choices import says_none
from carina.runs.records import Profile, Prompts, PromptStyle

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
AFTER_CHEXPERCEPT: Final = (
    "Act as an expert radiologist who is asked about a chest X-ray. End your reply with 'Answer:' and nothing after it "
    "but the number of the right option; where several are right, put commas between their numbers, as in "
    "'Answer: 2,4'."
)
"""System prompt of percept with the profile chexpercept."""

_LISTED_OPTIONS: Final[dict[PromptStyle, str]] = {
    "reasoning": "Reason step by step before you answer: say what you see in the images that bears on the question, "
    "weigh every option against it, and give the answer last.",
    "answer": "Write no reasoning and no explanation: reply with the line of the answer alone.",
}
_ANY_FORMAT: Final[dict[PromptStyle, str]] = {
    "reasoning": "Before each answer, reason step by step between <think> and </think>. What follows </think> is the "
    "answer alone, in the form and of the length that the question asks for.",
    "answer": "Write no reasoning and no explanation: reply with the answer alone.",
}
_NEXT_CASE: Final = "The examples end here. What follows is about another patient, and you answer it."
_EXAMPLE: Final = "Example {number}, of another patient, with the right answers."

_HINT: Final = (
    "For your information: the right answer to the question “{question}” is: {answer} "
    "Disregard what was said about it before."
)
_HINT_PATTERN: Final = re.compile(
    re.escape(_HINT).replace(re.escape("{question}"), "([^“”]*)").replace(re.escape("{answer}"), r"([^\n]*?)")
    + r"\n?"
)


def system_prompt(protocol: str, prompts: Prompts | None = None, profile: Profile = "carina") -> str:
    """The system prompt of a run for a protocol: the user's, or else the protocol's, with what the style adds."""
    given = None if prompts is None else prompts.system
    if given is None:
        is_original = profile == "chexpercept" and protocol == "percept"
        given = AFTER_CHEXPERCEPT if is_original else _BY_PROTOCOL.get(protocol, CONVERSATION)
    added = "" if prompts is None else style_text(protocol, prompts.style)
    # A style goes on its own line after a text of several lines, and on the same line after a single one.
    return (f"{given}\n{added}" if "\n" in given else f"{given} {added}").strip() if added else given


def style_text(protocol: str, style: PromptStyle) -> str:
    """What a style adds to the end of the system prompt of a protocol; nothing for `plain`."""
    return (_LISTED_OPTIONS if protocol in _BY_PROTOCOL else _ANY_FORMAT).get(style, "")


def introduce_example(number: int) -> str:
    """The line before the first question of an example."""
    return _EXAMPLE.format(number=number)


def introduce_case() -> str:
    """The line before the first question after examples."""
    return _NEXT_CASE


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


def write_key_as_answer(case: Case, step: Step, profile: Profile = "carina") -> str:
    """Write an answer key as an answer; options by number after "Answer:" where the key has no text."""
    if step.format == "choice" and step.key.text is None:
        separator = "," if profile == "chexpercept" else ", "
        return f"Answer: {separator.join(map(str, step.right))}"
    return answer(case, step)


# ---- after CheXpercept ----------------------------------------------------------------------------------------------

OPERATIONS: Final = {"expansion": ("expanded", "towards"), "contraction": ("contracted", "at")}
"""Tasks of percept about points: the verb of the operation, and the word before the points."""
_FACT: Final = "Established fact: "
_CONCLUSION: Final = "Your earlier answer does not count; answer what follows by what is stated here."
_YES_OR_NO: Final = {
    "detection": {
        "Yes": "the lesion is visible on this X-ray.",
        "No": "the lesion is not visible on this X-ray.",
    },
    "contour evaluation": {
        "Yes": "the mask needs a major revision.",
        "No": "the mask needs no major revision.",
    },
}
_MASK: Final = "after the right changes, it is the {mask} that fits."
_POINTS: Final = "the mask has to be {verb} {where} {points}."
_NO_POINTS: Final = "the mask does not have to be {verb}."
_FACTS_PATTERN: Final = re.compile(rf"((?:{re.escape(_FACT)}[^\n]*\n)+){re.escape(_CONCLUSION)}(?:\n\n)?")


def original_prompt(step: Step) -> str:
    """The text of a step with a blank line after its context, as the published runner joins the two."""
    return f"{step.context}\n\n{step.question}" if step.context else step.question


def state_facts(steps: Sequence[Step]) -> str:
    """State the right answers to steps of percept as facts, as the published setting "explicit" does."""
    return "\n".join([*(f"{_FACT}{_write_fact(step)}" for step in steps), _CONCLUSION])


def split_facts(text: str) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """A message without what `state_facts` has written, and the task and the right options of each fact."""
    lines = [line for found in _FACTS_PATTERN.finditer(text) for line in found[1].splitlines()]
    facts = tuple(_read_fact(line.removeprefix(_FACT)) for line in lines)
    return _FACTS_PATTERN.sub("", text), facts


def _write_fact(step: Step) -> str:
    right = [option.text for option in step.options if option.id in step.key.options]
    if step.task in OPERATIONS:
        verb, where = OPERATIONS[step.task]
        points = " and ".join(f"the {text}" for text in right if not says_none(text))
        return (
            _POINTS.format(verb=verb, where=where, points=points) if points else _NO_POINTS.format(verb=verb)
        )
    if step.task in _YES_OR_NO:
        return _YES_OR_NO[step.task][right[0].strip().capitalize()]
    return _MASK.format(mask=right[0])


def _read_fact(fact: str) -> tuple[str, tuple[str, ...]]:
    for task, (verb, where) in OPERATIONS.items():
        if fact == _NO_POINTS.format(verb=verb):
            return task, ()
        before, after = _POINTS.format(verb=verb, where=where, points="\n").split("\n")
        if fact.startswith(before):
            return task, tuple(
                name.removeprefix("the ")
                for name in fact.removeprefix(before).removesuffix(after).split(" and ")
            )
    for task, sentences in _YES_OR_NO.items():
        for label, sentence in sentences.items():
            if fact == sentence:
                return task, (label,)
    before, after = _MASK.format(mask="\n").split("\n")
    return "revision", (fact.removeprefix(before).removesuffix(after),)


# ---- other texts ----------------------------------------------------------------------------------------------------


def describe_images(current: int, reference: int) -> str:
    """State which of the images that come together belong to which study."""
    first = "The first image is" if current == 1 else f"The first {current} images are"
    rest = "the other one" if reference == 1 else f"the other {reference}"
    return f"{first} of the current study, {rest} of the reference study."
