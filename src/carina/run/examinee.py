"""Whoever answers in this process: a model that takes many turns at once."""

from collections.abc import Callable, Sequence
from typing import Protocol

from carina.models.served import Reply
from carina.run.records import Turn

Pictures = Callable[[str, str], bytes]
"""The PNG of a view, by ids of case and view; made once."""


class Examinee(Protocol):
    """A model that is examined in this process."""

    name: str
    batch: int
    """How many turns it likes to get at once."""

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """One reply a turn, in order. A turn that cannot be answered has a reply with an error."""
        ...
