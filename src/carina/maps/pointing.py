"""The pointing game: does the highest pixel of a map lie in the truth? A variant's rule says how ties count."""

import math
from collections.abc import Sequence
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from carina.maps.metrics import Empty
from carina.maps.pair import Pair
from carina.maps.rules import PeakNeighbourhood, PeakPixel
from carina.studies import Region
from carina.studies.region import Mask

Box = tuple[float, float, float, float]
"""x, y, width and height in the pixels of the image."""


def score_hit(pair: Pair, rule: PeakPixel | PeakNeighbourhood, empty: Empty | None) -> float:
    """Whether the map points into the truth, or with which probability.

    NaN where no pixel counts. A map without a value misses a truth that is not empty.
    """
    if not pair.n_pixels:
        return math.nan
    if not pair.n_true:
        return 1.0 if empty == "empty_is_hit" else math.nan
    if not pair.n_seen:
        return 0.0
    if isinstance(rule, PeakNeighbourhood):
        return float(_has_true_pixel_near(pair.truth, _first_peak(pair), rule.radius))
    if rule.ties == "first_argmax":
        return float(pair.truth[_first_peak(pair)])
    return _score_ties(rule, *pair.n_peaks)


def score_weighted_hit(pair: Pair, rule: PeakPixel | PeakNeighbourhood, empty: Empty | None) -> float:
    """`score_hit` times 1 - the truth's share of the pixels: a large truth is easier to hit and counts less."""
    return score_hit(pair, rule, empty) * (1 - pair.n_true / pair.n_pixels) if pair.n_pixels else math.nan


def score_box_hit(pair: Pair, rule: PeakPixel, empty: Empty | None, boxes: Sequence[Box]) -> float:
    """`score_hit` with boxes as truth: columns x to x + w and rows y to y + h, both ends included, counted from 0."""
    if not pair.n_pixels:
        return math.nan
    if not boxes:
        return 1.0 if empty == "empty_is_hit" else math.nan
    if not pair.n_seen:
        return 0.0
    rows, columns = _all_peaks(pair)
    if rule.ties == "first_argmax":
        rows, columns = rows[:1], columns[:1]
    is_inside = np.zeros(len(rows), bool)
    for x, y, w, h in boxes:
        is_inside |= (columns >= x) & (columns <= x + w) & (rows >= y) & (rows <= y + h)
    n_inside = int(np.count_nonzero(is_inside))
    return _score_ties(rule, n_inside, len(rows) - n_inside)


def component_boxes(truth: Mask) -> list[Box]:
    """Boxes of the connected components of a truth, whose edges lie on its outermost pixels."""
    components = Region.from_mask(truth).components()
    return [
        (x, y, w - 1, h - 1) for component in components if component.bbox for x, y, w, h in (component.bbox,)
    ]


def score_points(points: Sequence[tuple[float, float]], truth: Region) -> float:
    """Score the points that a reader or a model names against a region.

    Args:
        points: Points (x, y) in the pixels of the image.
        truth: The region.

    Returns:
        1 where any point lies in the region, 0 where none does, NaN where the region is empty.

    Example:
        >>> from carina.studies import Region
        >>> score_points([(3, 4)], Region.from_box(2, 2, 5, 5, height=20, width=20))
        1.0
    """
    if truth.is_empty:
        return math.nan
    return float(any(truth.contains(x, y) for x, y in points))


def _score_ties(rule: PeakPixel, n_inside: int, n_outside: int) -> float:
    match rule.ties:
        case "any_max" | "first_argmax":
            return float(n_inside > 0)
        case "all_max":
            return float(n_outside == 0)
        case "expected":
            return n_inside / (n_inside + n_outside)
        case ties:
            assert_never(ties)


def _first_peak(pair: Pair) -> tuple[int, int]:
    """Row and column of the first pixel with the highest value, row by row."""
    values = pair.aligned.values
    seen_values = values if pair.seen is None else np.where(pair.seen, values, -np.inf)
    row, column = np.unravel_index(int(seen_values.argmax()), values.shape)
    return int(row), int(column)


def _all_peaks(pair: Pair) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of all pixels with the highest value, row by row."""
    is_peak = pair.aligned.values == pair.bounds[1]
    rows, columns = np.nonzero(is_peak if pair.seen is None else is_peak & pair.seen)
    return rows, columns


def _has_true_pixel_near(truth: Mask, position: tuple[int, int], radius: int) -> bool:
    """Whether a pixel of the truth lies nearer than `radius` pixels, centre to centre."""
    row, column = position
    top, left = max(row - radius, 0), max(column - radius, 0)
    window = truth[top : row + radius + 1, left : column + radius + 1]
    rows, columns = np.nonzero(window)
    return bool(((rows + top - row) ** 2 + (columns + left - column) ** 2 < radius**2).any())
