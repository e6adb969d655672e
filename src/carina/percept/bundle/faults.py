"""What can be wrong with a bundle as a whole, and with one of its records."""

from typing import Final, Literal

from carina.errors import BenchmarkError

Reason = Literal["json", "type", "missing", "path", "image", "options", "answer", "point", "case"]
"""What kind of fault a record has: malformed, a field of the wrong type or absent, a path that leads astray, a picture
that cannot be read, options or answers that contradict each other, a point beside its image, a case that cannot be
asked."""


_LONGEST_SENTENCE: Final = 500
"""Characters; two values, or a path, and what is wrong with them."""


def told(text: str, *, longest: int = 100) -> str:
    """A text of unknown origin as messages tell it: one line without control codes, and not for ever."""
    # Cut twice: a megabyte need not be escaped first, and an escaped character is longer.
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


class BundleError(BenchmarkError):
    """A bundle that cannot be read or written at all."""


class RecordError(BundleError):
    """One record that cannot be used; the others may be."""

    def __init__(self, reason: Reason, field: str, sentence: str) -> None:
        field = told(field)
        sentence = told(sentence, longest=_LONGEST_SENTENCE)
        super().__init__(f"{field}: {sentence}" if field else sentence)
        self.reason: Reason = reason
        self.field = field
