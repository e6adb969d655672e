"""Faults of what others wrote: of a file, and of one record in it, in messages that are safe to print."""

from collections.abc import Mapping
from typing import Final

from carina.store.errors import CarinaError

_LONGEST_REASON: Final = 500
"""Characters; two values, or a path, and what is wrong with them."""


class SourceError(CarinaError):
    """Files of a source that cannot be read at all."""


class RecordError(SourceError):
    """One record that cannot be used; the others may be.

    Args:
        field: Full name of the field that is wrong, or an empty text.
        reason: What is wrong with it.
        kind: A word by which such faults are counted.
    """

    def __init__(self, field: str, reason: str, *, kind: str = "") -> None:
        self.field = printable(field)
        self.reason = printable(reason, longest=_LONGEST_REASON)
        self.kind = kind
        super().__init__(f"{self.field}: {self.reason}" if self.field else self.reason)


def printable(text: str, *, longest: int = 100) -> str:
    """A text of unknown origin for a message: one line without control codes, shortened to `longest` characters."""
    # Shortened twice: before escaping, so that a megabyte is not escaped, and after it, since it lengthens the text.
    escaped = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text[: longest + 1])
    return escaped if len(escaped) <= longest else f"{escaped[: longest - 3]}..."


def describe(value: object) -> str:
    """A JSON value for a message, shortened because records can be large."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    return printable(repr(value), longest=60)
