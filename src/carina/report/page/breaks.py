"""Where names may be broken in narrow columns."""

from typing import Final

from markupsafe import Markup, escape

_LONG: Final = 24
"""Letters of a word from which it may be broken after a slash; shorter ones, such as builtin/asymmetry, stay whole."""
_BREAK: Final = Markup("/<wbr>")


def breakable(text: str) -> Markup:
    """The text, escaped, with places to break in long words."""
    words = text.split(" ")
    return Markup(" ").join(
        escape(word).replace("/", _BREAK) if len(word) > _LONG else escape(word) for word in words
    )
