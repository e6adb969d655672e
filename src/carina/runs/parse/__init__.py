"""Parse the reply of a model into an answer: options, a label, boxes or text.

`parse` is the parser for every caller. It takes time proportional to the length of a reply.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from carina.cases import Step
from carina.runs.parse.boxes import parse_boxes
from carina.runs.parse.chexpercept import parse_chexpercept
from carina.runs.parse.choice import parse_choice
from carina.runs.parse.choices import make_choices
from carina.runs.parse.failure import classify_failure, is_refusal, is_unfinished
from carina.runs.parse.labels import parse_label
from carina.runs.parse.languages import translate
from carina.runs.parse.normalise import (
    VisibleReply,
    make_storable,
    normalise_text,
    remove_reasoning,
    shorten_reply,
)
from carina.runs.records import ParsedAnswer

__all__ = ["parse", "parse_chexpercept"]

_NO_IMAGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({})
_SHORT_REPLY: Final = 600
"""Characters up to which a text with a refusal is nothing but a refusal."""


def parse(
    step: Step, text: str, *, stop: str = "stop", images: Mapping[str, tuple[int, int]] = _NO_IMAGES
) -> ParsedAnswer:
    """Parse the reply of a model to a step.

    Args:
        step: The step that was asked.
        text: The reply. Of a reply of hundreds of kilobytes only the beginning and the end are searched.
        stop: Why the model stopped; a reply that was cut off by length before its answer is "truncated".
        images: Width and height of the step's images by key, the image that is asked about first; needed for boxes.

    Returns:
        The answer, or the class of its failure.
    """
    reply = remove_reasoning(text)
    if step.format == "choice":
        return parse_choice(
            make_choices(step.options, step.multiple, step.question), shorten_reply(reply), stop
        )
    if step.format == "yes_no":
        return parse_label(step.question, shorten_reply(reply), stop)
    if step.format == "boxes":
        return parse_boxes(step, shorten_reply(reply), stop, images)
    return _parse_free_text(reply, stop)


def _parse_free_text(reply: VisibleReply, stop: str) -> ParsedAnswer:
    """The text of a reply without its reasoning. A text that was cut off by length is still an answer."""
    text = reply.text
    if not text:
        return classify_failure("", reply, stop)
    if reply.ends_in_reasoning and is_unfinished(reply, stop):
        return ParsedAnswer(status="truncated", text=make_storable(text))
    if len(text) <= _SHORT_REPLY:
        words = normalise_text(text)
        if is_refusal(words) or is_refusal(translate(words)):
            return ParsedAnswer(status="refusal", text=make_storable(text))
    return ParsedAnswer(status="ok", text=make_storable(text))
