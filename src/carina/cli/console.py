"""What commands print: JSON for machines, a table on a terminal, tab-separated lines into a pipe."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec
import typer


class Advance(Protocol):
    """Tells a progress bar that so many more are done."""

    def __call__(self, done: int = 1, /) -> None: ...


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
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar on standard error while a command works at a terminal; nothing elsewhere."""
    if quiet or not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield lambda _done=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done=1: bar.advance(task, done)
