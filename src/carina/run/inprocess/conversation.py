"""Turns as conversations in the form that the chat templates of transformers take."""

import io

from PIL import Image

from carina.models.chat.template import Said, Template, message
from carina.run.examinee import Pictures
from carina.run.records import Turn


def conversation(turn: Turn, pictures: Pictures, template: Template) -> Said:
    """The whole conversation; each picture stands before the words of the message that shows it."""
    said = [
        message(
            told.role,
            template.plain(told.text),
            [_opened(pictures(turn.case, view)) for view in told.shows],
        )
        for told in turn.messages
    ]
    if not turn.system:
        return said
    system = template.plain(turn.system)
    if template.takes_system:
        return [message("system", system), *said]
    first = said[0]["content"][-1]
    first["text"] = f"{system}\n\n{first['text']}"
    return said


def _opened(png: bytes) -> Image.Image:
    with Image.open(io.BytesIO(png)) as picture:
        # Not all processors take a grey picture for one.
        return picture.convert("RGB")
