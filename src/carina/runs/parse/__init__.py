"""From the text of a reply to an answer in the terms of its step.

One parser for every caller: `parse`. A reply is read whole, in time proportional to its length.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from carina.cases import Step
from carina.runs.parse.boxes import parse_boxes
from carina.runs.parse.chexpercept import parse_chexpercept
from carina.runs.parse.choice import parse_choice
from carina.runs.parse.choices import choices_of
from carina.runs.parse.labels import parse_label
from carina.runs.parse.normalise import ends, spoken
from carina.runs.parse.words import parse_words
from carina.runs.records import Parsed

__all__ = ["parse", "parse_chexpercept"]

_NO_IMAGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({})


def parse(
    step: Step, text: str, *, stop: str = "stop", images: Mapping[str, tuple[int, int]] = _NO_IMAGES
) -> Parsed:
    """Parse the reply of a model to a step.

    Args:
        step: The step that was asked.
        text: The reply. Of a reply of hundreds of kilobytes only the beginning and the end are searched.
        stop: Why the model stopped; a reply that was cut off by length before its answer is "truncated".
        images: Width and height of the step's images by key, the image that is asked about first; needed for boxes.

    Returns:
        The answer, or the class of its failure.
    """
    reply = spoken(text)
    if step.format == "choice":
        return parse_choice(choices_of(step.options, step.multiple), ends(reply), stop)
    if step.format == "yes_no":
        return parse_label(step.question, ends(reply), stop)
    if step.format == "boxes":
        return parse_boxes(step, ends(reply), stop, images)
    return parse_words(reply, stop)
