"""What most metrics need of a map and a truth, counted in one pass over the pixels.

Values are scaled from 0 at the lowest to 1 at the highest pixel and rounded up to whole `LEVELS`ths: level c holds
values above (c - 1)/4096 up to c/4096, level 0 the lowest alone. So the numbers of pixels above any threshold k/4096
are exact; what is computed of the levels otherwise (AUROC, AUPRC) is that of the rounded map, and called binned.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.ground.score.placed import Placed
from carina.ground.score.variants import Margin
from carina.models.frame import Map

Values = NDArray[np.float32]
Numbers = NDArray[np.int64]

LEVELS: Final = 4096
_HIGHEST: Final = float(np.finfo(np.float32).max)
_FLOAT_COUNTS: Final = 1 << 24
"""Up to so many pixels OpenCV's histogram, which counts in float32, is exact."""


@dataclass(frozen=True)
class Moments:
    """Number, sum, mean and variance (of the population) of some values."""

    n: int
    total: float
    mean: float
    variance: float
    positive: float
    """Sum of those above 0."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of one pass; `inside` and `outside` the truth, unseen pixels left out."""

    low: float
    high: float
    inside: Numbers
    """Pixels at each of the 4,097 levels."""
    outside: Numbers
    peak_inside: int
    """Pixels that have the highest value."""
    peak_outside: int
    of_inside: Moments
    of_outside: Moments


@dataclass(frozen=True, eq=False)
class Steps:
    """At each distinct value of true pixels, ascending: how many of them have it, and how many others are below."""

    true: Numbers
    below: Numbers
    up_to: Numbers
    """Others that are below or have it."""


def steps_of(inside: Values, outside: Values) -> Steps:
    """Of values inside and outside the truth, each in ascending order."""
    if not len(inside):
        none = np.zeros(0, np.int64)
        return Steps(none, none, none)
    starts = np.append(0, np.flatnonzero(inside[1:] != inside[:-1]) + 1)
    distinct = inside[starts]
    return Steps(
        np.diff(np.append(starts, len(inside))),
        np.searchsorted(outside, distinct, side="left"),
        np.searchsorted(outside, distinct, side="right"),
    )


class Pair:
    """A placed map and truth under one margin rule, with what several metrics share computed once."""

    def __init__(self, placed: Placed, margin: Margin | None) -> None:
        self.placed = placed
        values = placed.values
        seen = placed.seen
        if np.isnan(cv2.sumElems(values)[0]):
            known = ~np.isnan(values)
            seen = known if seen is None else seen & known
        self.seen = seen
        truth = placed.truth
        if seen is None:
            self.inside: Values = values[truth]
            self.outside: Values = values[~truth]
            self.unseen_inside = self.unseen_outside = 0
        else:
            shown, hidden = truth & seen, truth & ~seen
            self.inside = values[shown]
            self.outside = values[seen & ~truth]
            counted = margin == "full_image"
            self.unseen_inside = int(np.count_nonzero(hidden)) if counted else 0
            unseen = values.size - len(self.inside) - len(self.outside)
            self.unseen_outside = unseen - self.unseen_inside if counted else 0
            if not counted and hidden.any():
                truth = shown
        self.truth = truth
        """The truth that counts: without what is not seen, where that is left out."""

    @property
    def true(self) -> int:
        """Pixels of the truth."""
        return len(self.inside) + self.unseen_inside

    @property
    def other(self) -> int:
        """Pixels that count and are not of the truth."""
        return len(self.outside) + self.unseen_outside

    @property
    def pixels(self) -> int:
        """Pixels that count."""
        return self.true + self.other

    @property
    def known(self) -> int:
        """Pixels of which the map says something."""
        return len(self.inside) + len(self.outside)

    @cached_property
    def bounds(self) -> tuple[np.float32, np.float32]:
        """The lowest and the highest value; NaN where there is none."""
        parts = [part for part in (self.inside, self.outside) if len(part)]
        if not parts:
            return np.float32(np.nan), np.float32(np.nan)
        return min(part.min() for part in parts), max(part.max() for part in parts)

    @property
    def constant(self) -> bool:
        """Whether the map tells no two pixels apart."""
        low, high = self.bounds
        return not high > low

    def scaled(self, values: Values) -> Values:
        """From 0 at the lowest to 1 at the highest; only where the map is not constant."""
        low, high = self.bounds
        if float(high) - float(low) > _HIGHEST:  # float32 does not hold the difference; halves are exact
            half = np.float32(0.5)
            low, high, values = low * half, high * half, values * half
        shifted = values - low
        shifted /= high - low
        return shifted

    @cached_property
    def ranked(self) -> tuple[Values, Values]:
        """Values inside and outside the truth in ascending order."""
        return np.sort(self.inside), np.sort(self.outside)

    @cached_property
    def steps(self) -> Steps:
        """The distinct values of true pixels."""
        return steps_of(*self.ranked)

    @cached_property
    def peaks(self) -> tuple[int, int]:
        """Pixels inside and outside the truth that have the highest value."""
        high = self.bounds[1]
        return int(np.count_nonzero(self.inside == high)), int(np.count_nonzero(self.outside == high))

    @cached_property
    def tally(self) -> Tally:
        """The one pass."""
        low, high = self.bounds
        return Tally(
            float(low),
            float(high),
            self._levels(self.inside),
            self._levels(self.outside),
            *self.peaks,
            _moments(self.inside, negative=bool(low < 0)),
            _moments(self.outside, negative=bool(low < 0)),
        )

    def _levels(self, values: Values) -> Numbers:
        if self.constant or not len(values):
            made = np.zeros(LEVELS + 1, np.int64)
            made[0] = len(values)
            return made
        codes = self.scaled(values)
        codes *= LEVELS
        np.ceil(codes, out=codes)
        whole = codes.astype(np.uint16)
        if len(whole) >= _FLOAT_COUNTS:
            return np.bincount(whole, minlength=LEVELS + 1).astype(np.int64)
        counted = cv2.calcHist([whole.reshape(1, -1)], [0], None, [LEVELS + 1], [0, LEVELS + 1])
        return counted.ravel().astype(np.int64)


def _moments(values: Values, *, negative: bool) -> Moments:
    """Of the values in double precision, the variance about the mean: no digits are lost to a large offset."""
    n = len(values)
    if n == 0:
        return Moments(0, 0.0, np.nan, np.nan, 0.0)
    wide = values.astype(np.float64)
    total = float(wide.sum())
    positive = float(np.maximum(wide, 0).sum()) if negative else total
    mean = total / n
    wide -= mean
    np.multiply(wide, wide, out=wide)  # not a dot product, for which BLAS would wake its threads
    return Moments(n, total, mean, float(wide.sum()) / n, positive)


def one_pass(values: Map, truth: NDArray[np.bool_]) -> Tally:
    """The tally of a map that lies on the truth pixel by pixel."""
    return Pair(Placed(values, truth, None), "full_image").tally
