"""Text from elsewhere (servers, file names, data) made safe to show to a person."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

_JOINERS: Final = "\u200c\u200d"
"""Invisible, but part of the spelling of some languages."""
_UNUSUAL: Final = re.compile(r"[^ -~]")


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
    return replace_commands(text, lambda sign: sign if sign in keep else repr(sign)[1:-1])


def replace_commands(text: str, replacement: Callable[[str], str]) -> str:
    """Replace every sign that a terminal obeys by what a function makes of it; see `make_printable`.

    Example:
        >>> replace_commands("all\\twell", lambda sign: f"<{ord(sign)}>")
        'all<9>well'
    """
    return _UNUSUAL.sub(lambda found: found[0] if _is_shown(found[0]) else replacement(found[0]), text)


def _is_shown(sign: str) -> bool:
    """Whether a terminal shows a character, or leaves room for it, and does nothing else."""
    return sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs"
