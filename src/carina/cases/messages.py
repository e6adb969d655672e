"""A case as a conversation: the messages of user and assistant, and which images enter with which message.

The one place that decides what text is sent and how a right answer is worded; export layouts, runners and trainers use
it. Images are named by view and are kept apart from the text: `inline` puts a placeholder for each before the text.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

from carina.cases.model import Box, Case, Key, Step
from carina.store.errors import BenchmarkError
from carina.studies.model import Record

PLACEHOLDER: Final = "<image>"
"""Placeholder for an image in the text of LLaVA and ms-swift."""
_MEDIA: Final = re.compile(r"<(image|video|audio)>", re.IGNORECASE)
"""Text that trainers take for an image, a video or a sound, wherever it occurs."""
_LABELS: Final = {"yes": "Yes.", "no": "No.", "uncertain": "Uncertain."}
_UNITS: Final = {"pixel": "", "percent": "%", "unit": "", "thousand": ""}


class Message(Record, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    step: str
    """Id of the step that it asks or answers."""
    text: str
    """Text alone; images are in `shows`."""
    shows: tuple[str, ...] = ()
    """Ids of the views that enter with it, before its text."""


def messages(case: Case, *, answers: bool = True) -> list[Message]:
    """The conversation of a case: its steps in order, each with the right answer.

    Args:
        case: The case.
        answers: Whether to include the right answers; without them, only the questions.
    """
    conversation: list[Message] = []
    for step in case.steps:
        conversation.append(Message(role="user", step=step.id, text=prompt_text(step), shows=step.shows))
        if answers:
            conversation.append(Message(role="assistant", step=step.id, text=answer(case, step)))
    return conversation


def prompt_text(step: Step) -> str:
    """The text that is sent for a step: its context, if it has one, and its question."""
    return f"{step.context}\n{step.question}" if step.context else step.question


def answer(case: Case, step: Step) -> str:
    """The right answer in words: the text of the key, or else worded from the key.

    Options get the label that the question gives them.

    Raises:
        BenchmarkError: The key holds nothing that can be put in words.
    """
    key = step.key
    if key.text is not None:
        return key.text
    if key.options:
        return ", ".join(_option_text(step, number) for number in step.right)
    if key.label is not None:
        return _LABELS[key.label]
    boxes = key.boxes or _region_boxes(case, key)
    if boxes:
        return "\n".join(box_text(box) for box in boxes)
    if key.sections:
        return "\n".join(f"{section.name.capitalize()}: {section.text}" for section in key.sections)
    raise BenchmarkError(
        f"case {case.id!r}, step {step.id!r}: the key has no answer that can be put in words"
    )


def box_text(box: Box) -> str:
    """A box in words, corners as x1, y1, x2, y2 in the frame of the box.

    Example:
        >>> box_text(Box(image="a.png", xyxy=(31.25, 40, 80, 90.5), frame="percent", name="heart"))
        'heart: [31.25%, 40%, 80%, 90.5%]'
    """
    unit = _UNITS[box.frame]
    corners = ", ".join(f"{number:g}{unit}" for number in (round(value, 4) for value in box.xyxy))
    return f"{box.name}: [{corners}]" if box.name else f"[{corners}]"


def inline(message: Message, *, placeholder: str = PLACEHOLDER) -> str:
    """The message as one text: a line with a placeholder for each image, then the text.

    Text that looks like a placeholder is put in square brackets, so that there are as many placeholders as images.
    """
    return "\n".join([*(placeholder for _ in message.shows), escape_media(message.text)])


def escape_media(text: str) -> str:
    """Escape a text so that no part of it is read as an image, a video or a sound."""
    return _MEDIA.sub(r"[\1]", text)


def view_ids(conversation: Sequence[Message]) -> list[str]:
    """Ids of the views of a conversation, in the order in which they enter."""
    return [view for message in conversation for view in message.shows]


def _option_text(step: Step, number: int) -> str:
    """An option by number, with the label that the question gives it."""
    option = step.options[number - 1]
    for label in (
        f"({number})",
        f"{number})",
        f"{option.id}.",
        f"{number}.",
        f"({option.id})",
        f"{option.id})",
    ):
        if f"{label} {option.text}" in step.question:
            return f"{label} {option.text}"
    return option.text


def _region_boxes(case: Case, key: Key) -> tuple[Box, ...]:
    """Boxes around the regions of a key, for a key that has regions only."""
    found = []
    for name in key.regions:
        region = case.region(name)
        bounds = region.region.bbox
        if bounds is not None:
            x, y, width, height = bounds
            found.append(Box(image=region.image, xyxy=(x, y, x + width, y + height)))
    return tuple(found)
