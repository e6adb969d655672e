"""Look at the first rows of a table for regions that would be lost or misread, before it is imported."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from carina.sources._record import describe
from carina.sources.table.cells import MissingMaskError, find_mask_file, is_blank
from carina.sources.table.columns import ColumnMap
from carina.sources.table.rows import Table

_FILES: Final = 50
"""Cells whose files are looked for."""


def check_masks(table: Table, found: ColumnMap, folders: Sequence[Path]) -> Iterator[str]:
    """Say how many of the first masks are missing, with an example and where it was looked for."""
    if found.mask is None or found.mask.dialect != "path":
        return
    column = found.mask.column
    cells = (row.values.get(column, "") for row in table.rows())
    first = list(islice((cell for cell in cells if not is_blank(cell)), _FILES))
    missing = [cell for cell in first if _is_missing(cell, folders)]
    if missing:
        places = " and ".join(map(str, folders))
        yield (
            f"mask: {len(missing)} of the first {len(first)} mask files in {column} are missing, such as "
            f"{describe(missing[0])}, looked for in {places}; name their folder with --masks"
        )


def _is_missing(cell: str, folders: Sequence[Path]) -> bool:
    try:
        find_mask_file(folders, cell)
    except MissingMaskError:
        return True
    return False
