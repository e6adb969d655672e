"""Look at the first rows of a table for regions that would be lost or misread, before it is imported."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from carina.sources._frames import box_corners
from carina.sources._record import RecordError, describe
from carina.sources._tables import Row
from carina.sources.table.cells import MissingMaskError, find_mask_file, is_blank, read_boxes
from carina.sources.table.columns import ColumnMap
from carina.sources.table.images import ImageFinder
from carina.sources.table.rows import Table
from carina.sources.table.study import join_box_cells
from carina.store.errors import CarinaError, RegionError
from carina.studies.image_files import inside
from carina.studies.pixels import read_header

_FILES: Final = 50
"""Cells whose files are looked for."""
_HEADERS: Final = 5
"""Images whose size is read."""
_PERCENT: Final = 100
_LARGE: Final = 400
"""Pixels of the shorter side from which on boxes that all lie within 0 to 100 are probably percent."""


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


def check_box_numbers(
    rows: Iterable[Row], found: ColumnMap, finder: ImageFinder, images: Path
) -> Iterator[str]:
    """Say so where boxes that are taken for pixels all lie within 0 to 100 on large images."""
    if found.box is None or found.box.frame != "pixels":
        return
    keys: dict[str, None] = {}
    for row in rows:
        try:
            boxes = read_boxes(text) if (text := join_box_cells(row, found)) else []
        except RegionError:
            continue
        corners = [number for box in boxes for point in box_corners(box, found.box.form) for number in point]
        if not all(0 <= number <= _PERCENT for number in corners):
            return
        if corners and len(keys) < _HEADERS:
            with suppress(RecordError):
                keys[finder.find(row.text(found.image))] = None
    sizes = [size for key in keys if (size := _read_size(images, key)) is not None]
    if sizes and min(map(min, sizes)) > _LARGE:
        width, height = sizes[0]
        yield (
            f"box: all numbers are 0 to {_PERCENT}, on images such as one of {width} x {height} pixels; if they are "
            "percent, say so with --box-frame percent"
        )


def _read_size(images: Path, key: str) -> tuple[int, int] | None:
    try:
        header = read_header(inside(images.resolve(), key))
    except (CarinaError, OSError, ValueError):
        return None
    return header.width, header.height


def _is_missing(cell: str, folders: Sequence[Path]) -> bool:
    try:
        find_mask_file(folders, cell)
    except MissingMaskError:
        return True
    return False
