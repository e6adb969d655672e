"""Text from elsewhere (servers, file names, data) made safe to show to a person."""

import unicodedata
from typing import Final

_JOINERS: Final = "\u200c\u200d"
"""Invisible, but part of the spelling of some languages."""


def make_printable(text: str, *, keep: str = "") -> str:
    """Replace every sign that a terminal obeys instead of showing it by its escape, such as `\\x1b`.

    These are control characters (escape sequences, carriage returns, C1 codes), signs that change the direction of
    writing, line separators, and halves of a character that cannot be encoded.

    Args:
        text: What to show.
        keep: Control characters that stay as they are, such as a newline.

    Returns:
        The text; the same text where nothing needs an escape.

    Example:
        >>> print(make_printable("all well\\x1b[2J\\rgone"))
        all well\\x1b[2J\\rgone
    """
    if text.isprintable():
        return text
    return "".join(sign if sign in keep or is_shown(sign) else repr(sign)[1:-1] for sign in text)


def is_shown(sign: str) -> bool:
    """Whether a terminal shows a character, or leaves room for it, and does nothing else."""
    return sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs"
