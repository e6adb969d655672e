"""Answers: what a model's words say, in the terms of the step."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeVar

from carina.cases import Step
from carina.run.parse.boxes import parse_boxes
from carina.run.parse.chexpercept import parse_chexpercept
from carina.run.parse.choice import parse_choice
from carina.run.parse.choices import Choices, choices_of
from carina.run.parse.labels import parse_label
from carina.run.parse.normalise import Spoken, ends, spoken
from carina.run.parse.quick import quick_choice, quick_label
from carina.run.parse.words import parse_words
from carina.run.records import Parsed

__all__ = ["parse", "parse_chexpercept", "parse_fully"]

Asked = TypeVar("Asked", Choices, str)

_NO_IMAGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({})
_SHORT: Final = 80
"""Characters of a reply that is remembered: a model says "Answer: 2" a thousand times."""
_KEPT: Final = 256
"""Replies that are remembered for the same options, or for the same question."""


def parse(
    step: Step, text: str, *, stop: str = "stop", images: Mapping[str, tuple[int, int]] = _NO_IMAGES
) -> Parsed:
    """What a reply says, or the class of its failure. Takes any text, in time proportional to its length; of one that
    is hundreds of kilobytes long the beginning and the end are searched.

    `stop` is why the model stopped: a reply that ended by length before its answer is `truncated`. `images` gives
    width and height of the images of the step by key, the one that is asked about first; boxes need them.
    """
    said = spoken(text)
    if step.format == "choice":
        return _remembered(_choice, said, choices_of(step.options, step.multiple), stop)
    if step.format == "yes_no":
        return _remembered(_label, said, step.question, stop)
    return _fully(step, said, stop, images)


def parse_fully(
    step: Step, text: str, *, stop: str = "stop", images: Mapping[str, tuple[int, int]] = _NO_IMAGES
) -> Parsed:
    """What `parse` gives, always from all of the reply: the definition of what an answer is, without short cuts."""
    return _fully(step, spoken(text), stop, images)


def _fully(step: Step, said: Spoken, stop: str, images: Mapping[str, tuple[int, int]]) -> Parsed:
    if step.format == "choice":
        return parse_choice(choices_of(step.options, step.multiple), ends(said), stop)
    if step.format == "yes_no":
        return parse_label(step.question, ends(said), stop)
    if step.format == "boxes":
        return parse_boxes(step, ends(said), stop, images)
    return parse_words(said, stop)


def _choice(said: Spoken, options: Choices, stop: str) -> Parsed:
    found = quick_choice(said.text, options)
    return parse_choice(options, ends(said), stop) if found is None else found


def _label(said: Spoken, question: str, stop: str) -> Parsed:
    found = quick_label(said.text)
    return parse_label(question, ends(said), stop) if found is None else found


def _remembered(
    read: Callable[[Spoken, Asked, str], Parsed], said: Spoken, asked: Asked, stop: str
) -> Parsed:
    """What is read, once for all short replies that say the same."""
    if not 0 < len(said.text) <= _SHORT:
        return read(said, asked, stop)
    known = _known(asked, stop, said.cut)
    found = known.get(said.text)
    if found is None:
        found = read(said, asked, stop)
        if len(known) >= _KEPT:
            known.clear()
        known[said.text] = found
    return found


@lru_cache(maxsize=4096)
def _known(asked: Choices | str, stop: str, cut: bool) -> dict[str, Parsed]:  # noqa: ARG001, FBT001 - what it is kept by
    return {}
