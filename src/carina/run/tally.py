"""What a run tells of its progress while it is at work."""

from collections.abc import Callable
from typing import NamedTuple


class Tally(NamedTuple):
    """What has happened since it was last told."""

    cases: int = 0
    """That have ended."""
    asked: int = 0
    """Questions that were asked in this call, whatever came back."""
    failed: int = 0
    """Of those, the ones that failed on the way."""


Told = Callable[[Tally], object]
