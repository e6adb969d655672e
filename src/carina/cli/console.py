"""What commands print: JSON for machines, a table on a terminal, tab-separated lines into a pipe; how far they are."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
import typer

from carina.store.progress import Advance, no_progress, progress_bar


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


def progress(title: str, total: int | None, *, quiet: bool = False) -> AbstractContextManager[Advance]:
    """The progress display of a command, or none where it prints JSON."""
    return no_progress(title, total) if quiet else progress_bar(title, total)
