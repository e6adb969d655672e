"""Report the progress of a function to its caller, whether or not it is shown.

A function that works in phases takes `progress: Progress = no_progress` and opens one block a phase:

    with progress("Maps", total=120) as advance:
        advance(1)
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Advance(Protocol):
    """Called when so many more items are done; `asked` and `failed` count requests to a model."""

    def __call__(self, done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None: ...


class Progress(Protocol):
    """Opens a progress display for one phase; `total` is None where the number of items is unknown."""

    def __call__(self, title: str, total: int | None) -> AbstractContextManager[Advance]: ...


def _ignore(_done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
    del asked, failed


@contextmanager
def no_progress(title: str, total: int | None) -> Iterator[Advance]:
    """A display that shows nothing."""
    del title, total
    yield _ignore


def call_on_advance(callback: Callable[[int], object]) -> Progress:
    """A display that calls a function with the number of items that were done since the last call.

    Example:
        >>> with call_on_advance(print)("Cases", total=2) as advance:
        ...     advance(1)
        1
    """

    @contextmanager
    def display(title: str, total: int | None) -> Iterator[Advance]:
        del title, total

        def advance(done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
            del asked, failed
            callback(done)

        yield advance

    return display
