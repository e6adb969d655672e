"""Parts of the lungs, and where a lesion lies in them, from the masks of the two lung fields.

The same definitions serve the phantom and the percept protocol. Every rule is written once, for a lung whose
lateral side is on the left of its array, as the patient's right lung is in a frontal image; the left lung is
mirrored, taken apart and mirrored back, so mirroring an image and swapping sides mirrors every part exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.store.errors import RegionError
from carina.studies.model import Location
from carina.studies.rle import Mask
from carina.studies.vocabulary import COSTOPHRENIC_ANGLES, LUNG_PARTS, SIDES, ZONES, Side

ANGLE_TOP_IN_QUARTERS: Final = 3
"""The costophrenic angle lies below three quarters of the lung's height (CheXpercept's reference code)."""
ZONE_COVERED: Final = 0.20
"""A zone or part is stated when the lesion covers this share of it (CheXpercept's reference code)."""
LESION_WITHIN: Final = 0.25
"""Or when this share of the lesion in the lungs lies in it: our choice, so that small lesions have a zone."""
BILATERAL_SHARE: Final = 0.15
"""A lesion is bilateral when each lung holds at least this share of it: our choice."""

_PART_NAMES: Final = {
    side: (
        *(f"{side} {level} zone" for level in ("upper", "mid", "lower")),
        *(f"{side} {part} lung" for part in ("medial", "lateral", "peripheral")),
        f"{side} costophrenic angle",
    )
    for side in SIDES
}


def lung_parts(right: Mask, left: Mask) -> dict[str, Mask]:
    """Masks of `ZONES`, `LUNG_PARTS` and `COSTOPHRENIC_ANGLES`, by name, in that order.

    | part | pixels of one lung, whose bounding box is h rows of w columns |
    |---|---|
    | upper, mid, lower zone | centre in the first, second, last third of h; on a cut: the lower one |
    | lateral, medial | centre in the outer, inner half of w; on the cut: lateral |
    | peripheral | lateral to the core: see `core`; above and below it, lateral to its first and last row |
    | costophrenic angle | of the peripheral part, centre in the lowest quarter of h |

    All parts of an empty lung are empty.
    """
    _check_masks(right=right, left=left)
    parts = _parts_of(right, "right", mirrored=False) | _parts_of(left, "left", mirrored=True)
    return {name: parts[name] for name in (*ZONES, *LUNG_PARTS, *COSTOPHRENIC_ANGLES)}


def core(lung: Mask) -> Mask:
    """What is left of a lung, lateral side on the left, after erosion by a square of half its mean width.

    The mean is of the numbers of lung pixels in the rows at 1/3 and 2/3 of its height, and the side of the
    square is the floor of its half. The largest remaining piece is the core, the first in reading order if
    equal. Where nothing remains, the side is halved until something does. The core of an empty lung is empty.
    """
    rows = np.flatnonzero(lung.any(axis=1))
    if not rows.size:
        return lung.copy()
    top, height = int(rows[0]), int(rows[-1] - rows[0]) + 1
    widths = [_area(lung[top + height * third // 3]) for third in (1, 2)]
    side = max(1, sum(widths) // 4)
    eroded = erode(lung, side)
    while not eroded.any():
        side //= 2
        eroded = erode(lung, side)
    return _largest_piece(eroded)


def erode(mask: Mask, side: int) -> Mask:
    """Pixels whose square of `side` x `side` lies wholly in the mask; beyond the array nothing is set.

    The square has side // 2 pixels left of and above the pixel, so an even one reaches further to that side.
    """
    # A box sum costs the same for every side, and equals side^2 exactly where all pixels are set.
    total = cv2.boxFilter(
        np.ascontiguousarray(mask).view(np.uint8),
        cv2.CV_32S,
        (side, side),
        anchor=(side // 2, side // 2),
        normalize=False,
        borderType=cv2.BORDER_CONSTANT,
    )
    return np.asarray(total == side * side)


def locate(lesion: Mask, parts: Mapping[str, Mask], right: Mask, left: Mask) -> Location:
    """Side, zones and parts of a lesion, by its pixels within the lung fields alone.

    A zone or part of a stated side is named when the lesion covers `ZONE_COVERED` of it or `LESION_WITHIN` of
    the lesion lies in it; where none of a stated side does, the one that holds most of the lesion is (all
    that do, if equal). A lesion that touches no lung has no location.
    """
    _check_masks(right=right, left=left, lesion=lesion)
    window = _bounding_box(lesion)
    if window is None:
        return Location()
    within = lesion[window]
    held = {name: _area(within & lung[window]) for name, lung in (("right", right), ("left", left))}
    total = sum(held.values())
    if not total:
        return Location()
    sides = [side for side in SIDES if held[side] / total >= BILATERAL_SHARE]
    side: Side = "bilateral" if len(sides) == 2 else "right" if sides == ["right"] else "left"

    def stated(names: Iterable[str]) -> tuple[str, ...]:
        shares = {name: _share(within & parts[name][window], parts[name], total) for name in names}
        chosen = {name for side in sides for name in _select_parts(shares, side)}
        return tuple(name for name in shares if name in chosen)

    return Location(side=side, zones=stated(ZONES), parts=stated((*LUNG_PARTS, *COSTOPHRENIC_ANGLES)))


class _Share(NamedTuple):
    """Overlap of a lesion and a part."""

    of_part: float
    of_lesion: float


def _share(overlap: Mask, part: Mask, lesion_area: int) -> _Share:
    area = _area(overlap)
    return _Share(of_part=area / _area(part) if area else 0.0, of_lesion=area / lesion_area)


def _select_parts(shares: Mapping[str, _Share], side: str) -> list[str]:
    """Parts of one side that pass either rule, else those that contain most of the lesion."""
    own = {name: share for name, share in shares.items() if name.startswith(side)}
    passed = [name for name, s in own.items() if s.of_part >= ZONE_COVERED or s.of_lesion >= LESION_WITHIN]
    most = max(share.of_lesion for share in own.values())
    return passed or [name for name, share in own.items() if share.of_lesion == most > 0]


def _parts_of(lung: Mask, side: str, *, mirrored: bool) -> dict[str, Mask]:
    names = _PART_NAMES[side]
    parts = {name: np.zeros_like(lung) for name in names}
    window = _bounding_box(lung)
    if window is not None:
        inner = lung[window]
        for name, part in zip(names, _divide_lung(inner[:, ::-1] if mirrored else inner), strict=True):
            parts[name][window] = part[:, ::-1] if mirrored else part
    return parts


def _divide_lung(lung: Mask) -> list[Mask]:
    """The parts, in the order of `_PART_NAMES`, of a lung that fills its array, lateral side on the left."""
    height, width = lung.shape
    # Twice the coordinates of pixel centres, so that every comparison is between whole numbers.
    y, x = 2 * np.arange(height)[:, None] + 1, 2 * np.arange(width) + 1
    third = 3 * y // (2 * height)
    lateral = lung & (x <= width)
    peripheral = lung & (np.arange(width) < _lateral_edge(core(lung))[:, None])
    angle = peripheral & (4 * y >= ANGLE_TOP_IN_QUARTERS * 2 * height)
    return [*(lung & (third == n) for n in range(3)), lung & ~lateral, lateral, peripheral, angle]


def _lateral_edge(piece: Mask) -> NDArray[np.intp]:
    """First column of the piece in each row; above and below it, that of its first and last row.

    The piece is connected, so it has a pixel in every row between.
    """
    rows = np.flatnonzero(piece.any(axis=1))
    nearest = np.clip(np.arange(piece.shape[0]), rows[0], rows[-1])
    return np.asarray(piece.argmax(axis=1)[nearest])


def _largest_piece(mask: Mask) -> Mask:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=8)
    areas = stats[1:, cv2.CC_STAT_AREA]
    largest = 1 + np.flatnonzero(areas == areas.max())
    # Labels need not follow reading order, and OpenCV's order must not decide between equal pieces.
    first = labels.ravel()[np.isin(labels, largest).argmax()] if largest.size > 1 else largest[0]
    return np.asarray(labels == first)


def _area(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _bounding_box(mask: Mask) -> tuple[slice, slice] | None:
    rows = np.flatnonzero(mask.any(axis=1))
    if not rows.size:
        return None
    band = slice(int(rows[0]), int(rows[-1]) + 1)
    columns = np.flatnonzero(mask[band].any(axis=0))
    return band, slice(int(columns[0]), int(columns[-1]) + 1)


def _check_masks(**masks: Mask) -> None:
    shapes = {mask.shape for mask in masks.values()}
    if len(shapes) > 1 or any(mask.ndim != 2 or mask.dtype != np.bool_ for mask in masks.values()):
        found = ", ".join(f"{name} {mask.dtype} {mask.shape}" for name, mask in masks.items())
        raise RegionError(f"expected boolean masks of one shape (height, width), got {found}")
