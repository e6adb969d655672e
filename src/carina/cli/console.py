"""What commands print: JSON for machines, a table on a terminal, tab-separated lines into a pipe; how far they are.

Everything that a command prints goes through this module. Text from servers, file names and data may hold signs that a
terminal obeys instead of showing them (escape sequences, carriage returns, changes of direction): they are replaced by
their escapes here, so that no command has to think of it.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
import typer

from carina.store.progress import Advance, no_progress, progress_bar
from carina.store.text import make_printable, replace_commands


def print_line(text: object = "", *, err: bool = False, fg: str | None = None) -> None:
    """Print text and a line end.

    Args:
        text: What to print; it may have several lines.
        err: Whether to print to standard error instead of standard output.
        fg: Colour on a terminal.
    """
    typer.secho(make_printable(str(text), keep="\n\t"), err=err, fg=fg)


def print_json(value: object) -> None:
    """One JSON document and nothing else."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    # JSON has escapes for control characters below 32; the others are written in the same way.
    typer.echo(replace_commands(text, lambda sign: sign if sign == "\n" else _escape_in_json(sign)))


def _escape_in_json(sign: str) -> str:
    # A pair of code units where the character is beyond the first 65,536.
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows below headings."""
    rows = [[make_printable(cell) for cell in row] for row in rows]
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


def format_share(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A share with three decimals and its interval; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if low is None else f" ({low:.3f} to {high:.3f})")


def progress(title: str, total: int | None, *, quiet: bool = False) -> AbstractContextManager[Advance]:
    """The progress display of a command, or none where it prints JSON."""
    return no_progress(title, total) if quiet else progress_bar(title, total)
