"""Masks against masks, from their counts: IoU, Dice and what goes with them, with a stated outcome for empty masks."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.ground.score.variants import Empty, Metric
from carina.stats.resampling import ratio

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

OVERLAPS: Final[frozenset[Metric]] = frozenset(
    {"iou", "dice", "precision", "recall", "specificity", "accuracy", "image_specificity"}
)


@dataclass(frozen=True, eq=False)
class Counts:
    """Pixels that are predicted and true, or predicted only, at one threshold or many; and all that are true or not."""

    hit: NDArray[Any]
    false: NDArray[Any]
    true: int | Floats
    """The same for all thresholds, or one for each."""
    other: int | Floats

    def at(self, index: int) -> "Counts":
        """At one of the thresholds of an image."""
        return Counts(self.hit[index : index + 1], self.false[index : index + 1], self.true, self.other)


def overlap(metric: Metric, counts: Counts, empty: Empty | None = None) -> Floats:
    """The metric at each threshold; NaN where it has no meaning."""
    hit, false = counts.hit.astype(np.float64), counts.false.astype(np.float64)
    true, other = (np.broadcast_to(np.float64(of), hit.shape) for of in (counts.true, counts.other))
    nothing = hit + false == 0
    if metric == "image_specificity":
        return np.where((true > 0) | (other == 0), np.nan, np.where(nothing, 1.0, 0.0))
    value = _value(metric, hit, false, true, other)
    return np.where(_undefined(empty, nothing, true == 0), np.nan, value)


def _value(metric: Metric, hit: Floats, false: Floats, true: Floats, other: Floats) -> Floats:
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


def _undefined(empty: Empty | None, nothing: Flags, untrue: Flags) -> Flags:
    """Where a value is left out although it may have been computed."""
    match empty:
        case "positives":
            return untrue
        case "tp_only":
            return nothing | untrue
        case "any_mask" | "gated":
            return nothing & untrue
        case _:
            return np.zeros(len(nothing), bool)
