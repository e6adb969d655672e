"""Cells of a table of one's own: certainties, labels, dates, boxes, polygons and masks."""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.sources._image_sets import is_number
from carina.sources._json import decode_checked
from carina.sources._record import RecordError, describe
from carina.sources._tables import BLANK
from carina.sources.table.columns import Dialect
from carina.sources.table.images import ImageFinder
from carina.store.errors import CarinaError, RegionError
from carina.studies.image_files import inside
from carina.studies.pixels import read_pixels
from carina.studies.region import Region
from carina.studies.vocabulary import Certainty

CERTAINTIES: Final[Mapping[str, Certainty]] = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "present", "positive", "pos"), "present"),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "absent", "negative", "neg"), "absent"),
    **dict.fromkeys(("-1", "-1.0", "uncertain", "unsure", "possible", "equivocal", "?"), "uncertain"),
}
"""How tables write that a finding is present, absent or uncertain, in small letters."""
_DATE: Final = re.compile(
    r"(\d{4})([-/.]?)(\d{2})\2(\d{2})(?:[T ](\d{2}):?(\d{2})(?::?(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)


_DECIMAL_COMMA: Final = re.compile(r"\s*([+-]?\d*),(\d+)\s*")


def has_decimal_comma(text: str) -> bool:
    """Whether a cell may be a number with a decimal comma."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def use_decimal_point(text: str) -> str:
    """A number with a point instead of its decimal comma; any other text as it is."""
    return _DECIMAL_COMMA.sub(r"\1.\2", text) if has_decimal_comma(text) else text


def is_blank(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.strip().lower() in BLANK


def read_word(text: str, field: str) -> Certainty | None:
    """The certainty that a cell states; None for an empty cell.

    Raises:
        RecordError: The cell holds another word.
    """
    if is_blank(text):
        return None
    word = text.strip().lower()
    if word not in CERTAINTIES:
        expected = "1, 0, -1, yes, no, true, false, present, absent, uncertain or nothing"
        raise RecordError(field, f"is {describe(text)}, expected {expected}", kind="label")
    return CERTAINTIES[word]


def split_labels(text: str, separator: str | None) -> list[str]:
    """The labels in a cell.

    A cell that holds a JSON list of texts is read as such.
    """
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        found = _decode_list(stripped)
        if found is not None:
            return _clean_labels(found)
    pieces = stripped.split(separator) if separator else re.split(r"[|;]", stripped)
    return _clean_labels(pieces)


def _decode_list(text: str) -> list[str] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else None


def _clean_labels(labels: Sequence[str]) -> list[str]:
    cleaned = (label.strip() for label in labels)
    return list(dict.fromkeys(label for label in cleaned if not is_blank(label)))


def read_date(text: str, date_format: str | None) -> datetime.datetime | None:
    """The date, and the time where there is one; None where the text is none.

    Without a format only dates that begin with the year are read: 01/02/2020 can be two days.
    """
    try:
        if date_format is not None:
            return datetime.datetime.strptime(text.strip(), date_format).replace(tzinfo=None)
        match = _DATE.fullmatch(text.strip())
        if match is None:
            return None
        numbers = [int(match[group] or 0) for group in (1, 3, 4, 5, 6, 7)]
        return datetime.datetime(*numbers)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None


# ---- regions --------------------------------------------------------------------------------------------------------


def read_boxes(text: str) -> list[list[float]]:
    """Boxes of one cell: four numbers, or a list of lists of four.

    Raises:
        RegionError: The cell holds something else.
    """
    numbers = (
        re.split(r"[\s,;]+", text.strip().strip("[]()").strip()) if "[[" not in text.replace(" ", "") else []
    )
    if len(numbers) == 4:
        try:
            return [[float(number) for number in numbers]]
        except ValueError as error:
            raise RegionError(f"{describe(text)}: expected four numbers") from error
    found = _decode(text)
    boxes = found if isinstance(found, list) and found and isinstance(found[0], list) else [found]
    if not all(isinstance(box, list) and len(box) == 4 and all(map(is_number, box)) for box in boxes):
        raise RegionError(f"{describe(text)}: expected four numbers, or a list of lists of four numbers")
    return boxes


def read_polygons(text: str) -> list[NDArray[np.float64]]:
    """Rings of points: [[x, y], ...], [x, y, x, y, ...], or a list of these.

    Raises:
        RegionError: The cell holds something else.
    """
    found = _decode(text)
    rings = found if _depth(found) == 3 or (_depth(found) == 2 and not _is_ring(found)) else [found]
    result = []
    for ring in rings:
        flat = (
            ring
            if _depth(ring) == 1
            else [number for point in ring for number in point]
            if _is_ring(ring)
            else []
        )
        if not flat or len(flat) % 2 or not all(map(is_number, flat)):
            raise RegionError(f"{describe(text)}: expected rings of points (x, y)")
        result.append(np.array(flat, dtype=np.float64).reshape(-1, 2))
    return result


def _is_ring(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, list) and all(isinstance(point, list) and len(point) == 2 for point in value)


def _depth(value: Any) -> int:  # noqa: ANN401 - JSON
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth


def _decode(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return decode_checked(text.encode("utf-8", "replace"))
    except RecordError as error:
        raise RegionError(str(error)) from error


class MissingMaskError(RegionError):
    """The file of a mask is not in its folder."""


def find_mask_file(folders: Sequence[Path], text: str) -> Path:
    """The file of a mask, in the first of several folders that has it.

    Raises:
        MissingMaskError: No folder has it.
    """
    for folder in folders:
        try:
            path = inside(folder.resolve(), ImageFinder(folder, "path").find(text))
        except (RecordError, ValueError):
            continue  # the path leads out of this folder
        if path.exists():
            return path
    raise MissingMaskError(f"{describe(text)} is missing")


def read_mask_file(folders: Sequence[Path], text: str) -> Region:
    """The pixels of an image file that are not black.

    Raises:
        MissingMaskError: No folder has the file.
        RegionError: The file cannot be read, or is a JPEG, whose values change at every edge when it is stored.
    """
    path = find_mask_file(folders, text)
    try:
        pixels = read_pixels(path)
    except (CarinaError, ValueError) as error:
        raise RegionError(str(error)) from error
    if path.suffix.lower() in (".jpg", ".jpeg"):
        raise RegionError(f"{path}: a mask cannot be a JPEG")
    return Region.from_mask(pixels > 0)


def read_runs(text: str, dialect: Dialect, *, width: int, height: int) -> Region:
    """A mask from run lengths of a dialect, for an image of this size.

    Raises:
        RegionError: They are none, or state another size.
    """
    if dialect == "siim":
        return Region.from_siim(text, height=height, width=width)
    if dialect == "chexmask":
        return Region.from_chexmask(text, height=height, width=width)
    if not text.lstrip().startswith("{"):
        return Region.from_coco({"size": [height, width], "counts": text.strip()})
    encoded = _decode(text)
    region = Region.from_coco(encoded)
    if (region.width, region.height) != (width, height):
        raise RegionError(f"a mask of {region.width} x {region.height}, expected {width} x {height}")
    return region
