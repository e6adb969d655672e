"""A case as a conversation: who says what, and which pictures enter with which message.

The one place that decides what is sent and what a good answer reads like; layouts, runners and trainers take it from
here. Pictures are named by view and stand apart from the text: `inline` puts a placeholder for each before it.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

from carina.cases.model import Box, Case, Key, Step
from carina.errors import BenchmarkError
from carina.studies.model import Record

PLACEHOLDER: Final = "<image>"
"""What stands for a picture in the text of LLaVA and ms-swift."""
_MEDIA: Final = re.compile(r"<(image|video|audio)>", re.IGNORECASE)
"""What trainers take for a picture, a film or a sound, wherever it stands."""
_LABELS: Final = {"yes": "Yes.", "no": "No.", "uncertain": "Uncertain."}
_UNITS: Final = {"pixel": "", "percent": "%", "unit": "", "thousand": ""}


class Message(Record, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    step: str
    """Id of the step that it asks or answers."""
    text: str
    """Words alone; pictures are in `shows`."""
    shows: tuple[str, ...] = ()
    """Ids of the views that enter with it, before its text."""


def messages(case: Case, *, answers: bool = True) -> list[Message]:
    """The conversation of a case: its steps in order, each with the answer that is right.

    Without answers, the questions alone.
    """
    said: list[Message] = []
    for step in case.steps:
        said.append(Message(role="user", step=step.id, text=asked(step), shows=step.shows))
        if answers:
            said.append(Message(role="assistant", step=step.id, text=answer(case, step)))
    return said


def asked(step: Step) -> str:
    """What is sent for a step: what is said before the question, and the question."""
    return f"{step.context}\n{step.question}" if step.context else step.question


def answer(case: Case, step: Step) -> str:
    """The right answer in words: as the key puts it, or else made from the key.

    Options get the label that the question gives them. `BenchmarkError` where the key holds nothing that can be said.
    """
    key = step.key
    if key.text is not None:
        return key.text
    if key.options:
        return ", ".join(_option(step, number) for number in step.right)
    if key.label is not None:
        return _LABELS[key.label]
    boxes = key.boxes or _around(case, key)
    if boxes:
        return "\n".join(box_text(box) for box in boxes)
    if key.sections:
        return "\n".join(f"{section.name.capitalize()}: {section.text}" for section in key.sections)
    raise BenchmarkError(f"case {case.id!r}, step {step.id!r}: has no answer that can be put in words")


def box_text(box: Box) -> str:
    """A box in words: `heart: [31.25%, 40%, 80%, 90.5%]`, corners as x1, y1, x2, y2 in the frame of the box."""
    unit = _UNITS[box.frame]
    corners = ", ".join(f"{number:g}{unit}" for number in (round(value, 4) for value in box.xyxy))
    return f"{box.name}: [{corners}]" if box.name else f"[{corners}]"


def inline(message: Message, *, placeholder: str = PLACEHOLDER) -> str:
    """The message as one text: a line with a placeholder for each picture, then the words.

    Words that look like a placeholder are put in square brackets, so that placeholders and pictures are as many.
    """
    return "\n".join([*(placeholder for _ in message.shows), plain(message.text)])


def plain(text: str) -> str:
    """A text in which nothing will be taken for a picture, a film or a sound."""
    return _MEDIA.sub(r"[\1]", text)


def shown(said: Sequence[Message]) -> list[str]:
    """Ids of the views of a conversation, in the order in which they enter."""
    return [view for message in said for view in message.shows]


def _option(step: Step, number: int) -> str:
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


def _around(case: Case, key: Key) -> tuple[Box, ...]:
    """Boxes around the regions of a key: the most that words can say of them."""
    found = []
    for name in key.regions:
        region = case.region(name)
        bounds = region.region.bbox
        if bounds is not None:
            x, y, width, height = bounds
            found.append(Box(image=region.image, xyxy=(x, y, x + width, y + height)))
    return tuple(found)
