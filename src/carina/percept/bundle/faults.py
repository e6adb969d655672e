"""What can be wrong with a bundle as a whole, and with one of its records."""

from typing import Literal

from carina.errors import BenchmarkError

Reason = Literal["json", "type", "missing", "path", "image", "options", "answer", "point", "case"]
"""What kind of fault a record has: malformed, a field of the wrong type or absent, a path that leads astray, a picture
that cannot be read, options or answers that contradict each other, a point beside its image, a case that cannot be
asked."""


class BundleError(BenchmarkError):
    """A bundle that cannot be read or written at all."""


class RecordError(BundleError):
    """One record that cannot be used; the others may be."""

    def __init__(self, reason: Reason, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}" if field else sentence)
        self.reason: Reason = reason
        self.field = field
