"""Names in studies that are not known: how `carina check` and `carina import` print them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from carina.cli.console import print_line

if TYPE_CHECKING:
    from carina.studies.terms import UnknownName


def print_unknown_names(
    names: Sequence["UnknownName"], *, limit: int | None = None, more: str = "", remedy: str = ""
) -> None:
    """Print one line a name to standard error.

    Args:
        names: The names.
        limit: Largest number of lines; None for all.
        more: Where the others are listed.
        remedy: What to do about them, for a last line.
    """
    for unknown in names[:limit]:
        print_line(f"Notice: {unknown.message}", err=True)
    if limit is not None and len(names) > limit:
        print_line(f"... and {len(names) - limit} more names that are not known, listed in {more}", err=True)
    if names and remedy:
        print_line(f"Notice: {remedy}", err=True)


def describe_unknown_names(names: Sequence["UnknownName"]) -> list[dict[str, object]]:
    """The names for JSON, each with the nearest known name."""
    return [
        {"kind": one.kind, "name": one.name, "studies": one.studies, "nearest": one.nearest} for one in names
    ]
