"""The pointing game: does the highest pixel lie in the truth? What ties mean is the variant's choice."""

import math
from collections.abc import Sequence
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from carina.ground.score.onepass import Pair
from carina.ground.score.rules import Ties, Within
from carina.ground.score.variants import Empty
from carina.studies import Region
from carina.studies.region import Mask

Box = tuple[float, float, float, float]
"""x, y, width and height in the image's pixels."""


def hit(pair: Pair, rule: Ties | Within, empty: Empty | None) -> float:
    """Whether, or how probably, the map points into the truth. A map that says nothing of pixels that count misses."""
    if not pair.pixels:
        return math.nan
    if not pair.true:
        return 1.0 if empty == "empty_is_hit" else math.nan
    if not pair.known:
        return 0.0
    if isinstance(rule, Within):
        return float(_near(pair.truth, _first(pair), rule.radius))
    if rule.how == "first_argmax":
        return float(pair.truth[_first(pair)])
    inside, outside = pair.peaks
    return _tied(rule, inside, outside)


def weighted_hit(pair: Pair, rule: Ties | Within, empty: Empty | None) -> float:
    """`hit`, less the easier it is: times 1 - the truth's share of the pixels."""
    return hit(pair, rule, empty) * (1 - pair.true / pair.pixels) if pair.pixels else math.nan


def box_hit(pair: Pair, rule: Ties, empty: Empty | None, boxes: Sequence[Box]) -> float:
    """`hit` with boxes as truth: column x to x + w and row y to y + h, both ends included, counted from 0."""
    if not pair.pixels:
        return math.nan
    if not boxes:
        return 1.0 if empty == "empty_is_hit" else math.nan
    if not pair.known:
        return 0.0
    rows, columns = _peaks(pair)
    if rule.how == "first_argmax":
        rows, columns = rows[:1], columns[:1]
    within = np.zeros(len(rows), bool)
    for x, y, w, h in boxes:
        within |= (columns >= x) & (columns <= x + w) & (rows >= y) & (rows <= y + h)
    inside = int(np.count_nonzero(within))
    return _tied(rule, inside, len(rows) - inside)


def piece_boxes(truth: Mask) -> list[Box]:
    """The boxes of a truth's connected pieces, so that their edges are its outermost pixels."""
    pieces = Region.from_mask(truth).components()
    return [(x, y, w - 1, h - 1) for piece in pieces if piece.bbox for x, y, w, h in (piece.bbox,)]


def points_hit(points: Sequence[tuple[float, float]], truth: Region) -> float:
    """Whether any of a reader's or model's points (x, y) lies in the truth; none given misses; NaN without truth."""
    if truth.is_empty:
        return math.nan
    return float(any(truth.contains(x, y) for x, y in points))


def _tied(rule: Ties, inside: int, outside: int) -> float:
    match rule.how:
        case "any_max" | "first_argmax":
            return float(inside > 0)
        case "all_max":
            return float(outside == 0)
        case "expected":
            return inside / (inside + outside)
        case how:
            assert_never(how)


def _first(pair: Pair) -> tuple[int, int]:
    """Row and column of the first highest pixel."""
    values = pair.placed.values
    known = values if pair.seen is None else np.where(pair.seen, values, -np.inf)
    row, column = np.unravel_index(int(known.argmax()), values.shape)
    return int(row), int(column)


def _peaks(pair: Pair) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of all highest pixels, row by row."""
    highest = pair.placed.values == pair.bounds[1]
    rows, columns = np.nonzero(highest if pair.seen is None else highest & pair.seen)
    return rows, columns


def _near(truth: Mask, at: tuple[int, int], radius: int) -> bool:
    """Whether a true pixel lies nearer than `radius`, centre to centre."""
    row, column = at
    top, left = max(row - radius, 0), max(column - radius, 0)
    window = truth[top : row + radius + 1, left : column + radius + 1]
    rows, columns = np.nonzero(window)
    return bool(((rows + top - row) ** 2 + (columns + left - column) ** 2 < radius**2).any())
