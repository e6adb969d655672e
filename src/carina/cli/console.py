"""What commands print: JSON for machines, a table on a terminal, tab-separated lines into a pipe; how far they are."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import msgspec
import typer

_EVERY: Final = 30.0
"""Seconds between two lines about the progress of a command, where nobody sees a bar."""


class Advance(Protocol):
    """Tells how far a command is: so many more are done, so many questions asked, so many of them in vain."""

    def __call__(self, done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None: ...


def print_json(value: object) -> None:
    """One JSON document and nothing else."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode())


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows below headings."""
    if not sys.stdout.isatty():
        for row in (headings, *rows):
            typer.echo("\t".join(row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=box.SIMPLE_HEAD, header_style="bold")
    for row in rows:
        # Text, not markup: square brackets in a licence are not styles.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


@contextmanager
def progress(title: str, total: int | None, *, quiet: bool = False) -> Iterator[Advance]:
    """On standard error while a command works: a bar on a terminal, a line now and then in a log.

    `total` is None where nobody knows how many there are.
    """
    if quiet:
        yield _silent
    elif not sys.stderr.isatty():
        yield _Lines(title, total)
    else:
        with _bar(title, total) as advance:
            yield advance


def _silent(_done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
    pass


@contextmanager
def _bar(title: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        in_vain = 0

        def advance(done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
            del asked  # a bar moves as fast as it does
            nonlocal in_vain
            if failed:
                in_vain += failed
                bar.update(task, description=f"{title}, {in_vain} failed")
            bar.advance(task, done)

        yield advance


class _Lines:
    """At most every 30 seconds `Cases: 120 of 2100, 3.4 questions/s, 2 failed`; a quick command says nothing."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._done = self._asked = self._failed = 0
        self._began = self._told = time.monotonic()

    def __call__(self, done: int = 1, /, *, asked: int = 0, failed: int = 0) -> None:
        self._done += done
        self._asked += asked
        self._failed += failed
        now = time.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            typer.echo(self._line(now - self._began), err=True)

    def _line(self, seconds: float) -> str:
        of = "" if self._total is None else f" of {self._total}"
        words = [f"{self._title}: {self._done}{of}"]
        if self._asked:
            words.append(f"{self._asked / seconds:.1f} questions/s")
        if self._failed:
            words.append(f"{self._failed} failed")
        return ", ".join(words)
