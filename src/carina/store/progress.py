"""Report the progress of a function to its caller, whether or not it is shown.

A function that works in phases takes `progress: Progress = no_progress` and opens one block a phase:

    with progress("Maps", total=120) as advance:
        advance(1)
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from carina.store.text import make_printable

_LINE_INTERVAL: Final = 30.0
"""Seconds between two lines about progress, where there is no terminal for a bar."""


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


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Advance]:
    """A progress bar on standard error; without a terminal, as in a log or a notebook, a line every 30 seconds.

    Pass it as `progress` to any function that takes long.

    Args:
        title: What is counted, such as "Studies".
        total: Number of items; None where it is unknown.

    Returns:
        A context manager of a function that is called with the number of items that were done.

    Example:
        >>> with progress_bar("Studies", total=2) as advance:
        ...     advance(2)
    """
    title = make_printable(title)
    if sys.stderr.isatty():
        with _bar(title, total) as advance:
            yield advance
    else:
        lines = _Lines(title, total)
        yield lines
        lines.finish()


@contextmanager
def _bar(title: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415 - slow to import
    from rich.progress import (  # noqa: PLC0415 - slow to import
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        all_failed = 0

        def advance(done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
            del asked  # a bar shows its speed by itself
            nonlocal all_failed
            if failed:
                all_failed += failed
                bar.update(task, description=f"{title}, {all_failed} failed")
            bar.advance(task, done)

        yield advance


class _Lines:
    """At most every 30 seconds `Cases: 120 of 2100, 3.4 questions/s, 2 failed`; a quick function prints nothing.

    A function that has printed a line prints another one when it is done, so that no log ends in the middle.
    """

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._done = self._asked = self._failed = 0
        self._start = self._last_line = time.monotonic()
        self._printed: int | None = None
        """Number of items in the last line."""

    def __call__(self, done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
        self._done += done
        self._asked += asked
        self._failed += failed
        now = time.monotonic()
        if now - self._last_line >= _LINE_INTERVAL:
            self._last_line = now
            self._print_line(now)

    def finish(self) -> None:
        """Print how many items were done, where an earlier line says another number."""
        if self._printed not in (None, self._done):
            self._print_line(time.monotonic())

    def _print_line(self, now: float) -> None:
        self._printed = self._done
        print(self._format_line(now - self._start), file=sys.stderr)

    def _format_line(self, seconds: float) -> str:
        of = "" if self._total is None else f" of {self._total}"
        words = [f"{self._title}: {self._done}{of}"]
        if self._asked:
            words.append(f"{self._asked / seconds:.1f} questions/s")
        if self._failed:
            words.append(f"{self._failed} failed")
        return ", ".join(words)
