"""Answers: what a model's words say, in the terms of the step."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from carina.cases import Step
from carina.run.parse.boxes import parse_boxes
from carina.run.parse.chexpercept import parse_chexpercept
from carina.run.parse.choice import parse_choice
from carina.run.parse.labels import parse_label
from carina.run.parse.normalise import LONG, ends, spoken
from carina.run.parse.words import parse_words
from carina.run.records import Parsed

__all__ = ["parse", "parse_chexpercept"]

_SEARCHED: Final = frozenset(("choice", "yes_no", "boxes"))
_NO_IMAGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({})


def parse(
    step: Step, text: str, *, stop: str = "stop", images: Mapping[str, tuple[int, int]] = _NO_IMAGES
) -> Parsed:
    """What a reply says, or the class of its failure. Takes any text, in time proportional to its length; of one that
    is hundreds of kilobytes long the beginning and the end are searched.

    `stop` is why the model stopped: a reply that ended by length before its answer is `truncated`. `images` gives
    width and height of the images of the step by key, the one that is asked about first; boxes need them.
    """
    said = spoken(text)
    if len(said.text) > LONG and step.format in _SEARCHED:
        said = ends(said)
    if step.format == "choice":
        return parse_choice(step, said, stop)
    if step.format == "yes_no":
        return parse_label(step, said, stop)
    if step.format == "boxes":
        return parse_boxes(step, said, stop, images)
    return parse_words(said, stop)
