"""Metrics that are computed from pixel counts: overlaps of two masks, and areas under curves over all thresholds.

Unseen pixels that count lie below all others and are tied among themselves: one more level at the bottom of a curve.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.maps.metrics import Empty
from carina.maps.pair import IntArray, Pair, ValueSteps
from carina.stats.resampling import ratio

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

OVERLAPS: Final[frozenset[str]] = frozenset(
    {"iou", "dice", "precision", "recall", "specificity", "accuracy", "image_specificity"}
)
"""Metrics that compare a predicted mask with the truth."""


# ---- overlaps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MaskCounts:
    """Pixel counts of a predicted mask against the truth, at one threshold or at several."""

    true_positives: NDArray[Any]
    false_positives: NDArray[Any]
    n_true: int | Floats
    """Pixels inside the truth: one number for all thresholds, or one for each."""
    n_other: int | Floats
    """Pixels outside the truth."""

    def at(self, index: int) -> "MaskCounts":
        """The counts at one of the thresholds."""
        one = slice(index, index + 1)
        return MaskCounts(self.true_positives[one], self.false_positives[one], self.n_true, self.n_other)


def overlap(metric: str, counts: MaskCounts, empty: Empty | None = None) -> Floats:
    """Compute a metric of `OVERLAPS` at each threshold; NaN where it is undefined.

    Args:
        metric: Name of the metric.
        counts: Pixel counts of the prediction against the truth.
        empty: Which empty masks leave the metric undefined; None for none beyond a division by zero.
    """
    hit, false = counts.true_positives.astype(np.float64), counts.false_positives.astype(np.float64)
    true, other = (np.broadcast_to(np.float64(n), hit.shape) for n in (counts.n_true, counts.n_other))
    is_empty = hit + false == 0
    if metric == "image_specificity":
        return np.where((true > 0) | (other == 0), np.nan, np.where(is_empty, 1.0, 0.0))
    value = _overlap_value(metric, hit, false, true, other)
    return np.where(_is_undefined(empty, is_empty, true == 0), np.nan, value)


def _overlap_value(metric: str, hit: Floats, false: Floats, true: Floats, other: Floats) -> Floats:
    match metric:
        case "iou":
            return ratio(hit, true + false)
        case "dice":
            return ratio(2 * hit, true + hit + false)
        case "precision":
            return ratio(hit, hit + false)
        case "recall":
            return ratio(hit, true)
        case "specificity":
            return ratio(other - false, other)
        case _:
            return ratio(hit + other - false, true + other)


def _is_undefined(empty: Empty | None, is_empty_prediction: Flags, is_empty_truth: Flags) -> Flags:
    """Values that the rule for empty masks excludes, although they can be computed."""
    match empty:
        case "positives":
            return is_empty_truth
        case "tp_only":
            return is_empty_prediction | is_empty_truth
        case "any_mask" | "gated":
            return is_empty_prediction & is_empty_truth
        case _:
            return np.zeros(len(is_empty_prediction), bool)


# ---- areas under curves ---------------------------------------------------------------------------------------------


def auroc_of_levels(inside: IntArray, outside: IntArray) -> float:
    """Area under the ROC curve: chance that a pixel inside the truth is higher than one outside, ties as one half.

    Args:
        inside: Number of pixels inside the truth at each level, levels ascending.
        outside: Number of pixels outside the truth at each level.

    Returns:
        The area; NaN where there are no pixels inside or none outside.
    """
    n_true, n_other = int(inside.sum()), int(outside.sum())
    if not n_true or not n_other:
        return np.nan
    # In double precision: products of pixel counts of a whole set exceed 64 bits.
    below = np.cumsum(outside) - outside / 2
    return float((inside * below).sum()) / (n_true * n_other)


def auprc_of_levels(inside: IntArray, outside: IntArray) -> float:
    """Average precision: sum over levels from the top of (rise in recall) x precision; NaN for an empty truth."""
    n_true = int(inside.sum())
    if not n_true:
        return np.nan
    hit = np.cumsum(inside[::-1])
    predicted = hit + np.cumsum(outside[::-1])
    rise = inside[::-1]
    rises = rise > 0
    return float((rise[rises] / n_true * (hit[rises] / predicted[rises])).sum())


def exact_levels(pair: Pair) -> tuple[IntArray, IntArray]:
    """Numbers of pixels inside and outside the truth at levels that separate all values, so that areas are exact."""
    return levels_of_steps(pair.steps, len(pair.outside), pair.unseen_inside, pair.unseen_outside)


def levels_of_steps(
    steps: ValueSteps, n_outside: int, unseen_inside: int = 0, unseen_outside: int = 0
) -> tuple[IntArray, IntArray]:
    """Levels in ascending order: unseen pixels, then alternately those below and those equal to a value of the truth.

    Values that occur only outside the truth are merged: neither area depends on the order among them.
    """
    inside = np.zeros(2 * len(steps.n_inside) + 2, np.int64)
    outside = np.zeros_like(inside)
    inside[0], outside[0] = unseen_inside, unseen_outside
    inside[2::2] = steps.n_inside
    outside[2::2] = steps.outside_up_to - steps.outside_below
    outside[1::2] = np.append(steps.outside_below, n_outside) - np.append(0, steps.outside_up_to)
    return inside, outside


def binned_levels(pair: Pair) -> tuple[IntArray, IntArray]:
    """The levels of the map's histogram, with one level below them for unseen pixels."""
    tally = pair.tally
    return (
        np.append(np.int64(pair.unseen_inside), tally.inside),
        np.append(np.int64(pair.unseen_outside), tally.outside),
    )
