"""How large a lesion is, how it is shaped, and what its size alone forbids a coarse map to reach."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.studies import Region
from carina.studies.region import Mask

SIZE_EDGES: Final = (0.01, 0.05)
"""Shares of the image that divide lesions into small, middle and large."""


def size_bin(share: float, edges: tuple[float, ...] = SIZE_EDGES) -> str:
    """The bin of a lesion that covers such a share of the image: `< 1%`, `1-5%` or `> 5%`; `none` for a share of 0.

    A share on an edge is in the bin above it, on the last edge in that below it.
    """
    if share <= 0:
        return "none"
    bins = size_bins(edges)
    if share == edges[-1]:
        return bins[-2]
    return bins[sum(share >= edge for edge in edges)]


def size_bins(edges: tuple[float, ...] = SIZE_EDGES) -> list[str]:
    """All bins, from small to large."""
    if len(edges) < 2 or list(edges) != sorted(set(edges)) or edges[0] <= 0 or edges[-1] >= 1:
        raise CarinaError(f"size edges: expected two or more rising shares between 0 and 1, not {edges}")
    middles = [f"{_percent(low)}-{_percent(high)}%" for low, high in pairwise(edges)]
    return [f"< {_percent(edges[0])}%", *middles, f"> {_percent(edges[-1])}%"]


def _percent(share: float) -> str:
    return f"{100 * share:g}"


@dataclass(frozen=True)
class Shape:
    """What cheXlocalize relates to localisation: of the pieces, and of the one with the longest contour."""

    pieces: int
    share: float
    """Of the image."""
    elongation: float
    """Longer over shorter side of the smallest rectangle, turned as need be, about the longest contour."""
    irrectangularity: float
    """1 - area within that contour / area of that rectangle."""


def shape_of(truth: Region) -> Shape | None:
    """The truth's shape; None where it is empty. A contour without area has no side ratio: NaN."""
    if truth.is_empty:
        return None
    mask = truth.to_mask().view(np.uint8)
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    longest = max(contours, key=len)
    _, sides, _ = cv2.minAreaRect(longest)
    shorter, longer = min(sides), max(sides)
    box = shorter * longer
    return Shape(
        len(contours),
        truth.area / (truth.height * truth.width),
        longer / shorter if shorter > 0 else float("nan"),
        1 - cv2.contourArea(longest) / box if box > 0 else float("nan"),
    )


def best_cells(truth: Mask, cells: NDArray[np.intp], counted: Mask | None, true: int) -> tuple[int, int]:
    """True and other pixels in the set of whole cells that reaches the highest IoU of all sets of cells.

    `cells` has each pixel's cell; pixels outside `counted` are in none, though they may be among the `true` pixels. The
    best set takes cells in order of their share of truth: were a cell in it that has less than one that is not,
    exchanging them would do no harm.
    """
    if counted is not None:
        truth, cells = truth[counted], cells[counted]
    inside = np.bincount(cells[truth].ravel())
    kept = np.flatnonzero(inside)
    if not len(kept):
        return 0, 0
    hit, size = inside[kept], np.bincount(cells.ravel())[kept]
    order = np.argsort(-hit / size, kind="stable")
    hit, size = np.cumsum(hit[order]), np.cumsum(size[order])
    best = int(np.argmax(hit / (true + size - hit)))
    return int(hit[best]), int(size[best] - hit[best])
