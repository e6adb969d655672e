"""A map and a truth in the same pixels, with the counts that most metrics need, computed once.

The histogram of a map (`Tally`) is computed in one pass over the pixels. Values are scaled from 0 at the lowest pixel
to 1 at the highest and rounded up to multiples of 1/4096: level c holds the values above (c - 1)/4096 up to c/4096,
level 0 holds the lowest value alone. The numbers of pixels above any threshold k/4096 are therefore exact. Areas under
curves that are computed from the levels are those of the rounded map and are called binned.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.maps.alignment import AlignedMap
from carina.maps.metrics import Margin
from carina.models.frame import Map

Values = NDArray[np.float32]
IntArray = NDArray[np.int64]

LEVELS: Final = 4096
_MAX_FLOAT32: Final = float(np.finfo(np.float32).max)
_MAX_FLOAT_COUNT: Final = 1 << 24
"""Number of pixels up to which the histogram of OpenCV, which counts in float32, is exact."""


@dataclass(frozen=True)
class Moments:
    """Number, sum, mean and population variance of some values."""

    n: int
    total: float
    mean: float
    variance: float
    positive: float
    """Sum of the values above 0."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Histogram and moments of a map inside and outside the truth. Unseen pixels are left out."""

    low: float
    """Lowest value."""
    high: float
    """Highest value."""
    inside: IntArray
    """Number of pixels inside the truth at each of the 4,097 levels."""
    outside: IntArray
    """Number of pixels outside the truth at each of the 4,097 levels."""
    inside_moments: Moments
    outside_moments: Moments


@dataclass(frozen=True, eq=False)
class ValueSteps:
    """Pixel counts at each distinct value that occurs inside the truth, in ascending order of the values."""

    n_inside: IntArray
    """Pixels inside the truth that have the value."""
    outside_below: IntArray
    """Pixels outside the truth with a lower value."""
    outside_up_to: IntArray
    """Pixels outside the truth with this or a lower value."""


def count_value_steps(inside: Values, outside: Values) -> ValueSteps:
    """Count pixels at the distinct values inside the truth; both arrays are sorted in ascending order."""
    if not len(inside):
        empty = np.zeros(0, np.int64)
        return ValueSteps(empty, empty, empty)
    starts = np.append(0, np.flatnonzero(inside[1:] != inside[:-1]) + 1)
    distinct = inside[starts]
    return ValueSteps(
        np.diff(np.append(starts, len(inside))),
        np.searchsorted(outside, distinct, side="left"),
        np.searchsorted(outside, distinct, side="right"),
    )


class Pair:
    """A map and a truth in the same pixels, under one rule for the pixels that the model did not see.

    Args:
        aligned: The map and the truth in the same pixels.
        margin: "full_image" counts unseen pixels as lower than all others, "visible_only" leaves them out. None where
            the resampling has no choice; unseen pixels are then left out.

    Attributes:
        inside: Values of the map inside the truth, unseen pixels left out.
        outside: Values of the map outside the truth, unseen pixels left out.
        unseen_inside: Number of unseen pixels inside the truth that count.
        unseen_outside: Number of unseen pixels outside the truth that count.
        seen: Mask of the pixels for which the map has a value; None where it has one for all.
        truth: Mask of the truth, without unseen pixels where these are left out.
    """

    def __init__(self, aligned: AlignedMap, margin: Margin | None) -> None:
        self.aligned = aligned
        values = aligned.values
        seen = aligned.seen
        if np.isnan(cv2.sumElems(values)[0]):
            has_value = ~np.isnan(values)
            seen = has_value if seen is None else seen & has_value
        self.seen = seen
        truth = aligned.truth
        if seen is None:
            self.inside: Values = values[truth]
            self.outside: Values = values[~truth]
            self.unseen_inside = self.unseen_outside = 0
        else:
            seen_truth, unseen_truth = truth & seen, truth & ~seen
            self.inside = values[seen_truth]
            self.outside = values[seen & ~truth]
            counts_unseen = margin == "full_image"
            self.unseen_inside = int(np.count_nonzero(unseen_truth)) if counts_unseen else 0
            n_unseen = values.size - len(self.inside) - len(self.outside)
            self.unseen_outside = n_unseen - self.unseen_inside if counts_unseen else 0
            if not counts_unseen and unseen_truth.any():
                truth = seen_truth
        self.truth = truth

    @property
    def n_true(self) -> int:
        """Number of pixels inside the truth that count."""
        return len(self.inside) + self.unseen_inside

    @property
    def n_other(self) -> int:
        """Number of pixels outside the truth that count."""
        return len(self.outside) + self.unseen_outside

    @property
    def n_pixels(self) -> int:
        """Number of pixels that count."""
        return self.n_true + self.n_other

    @property
    def n_seen(self) -> int:
        """Number of pixels for which the map has a value."""
        return len(self.inside) + len(self.outside)

    @cached_property
    def bounds(self) -> tuple[np.float32, np.float32]:
        """The lowest and the highest value; NaN where the map has no value."""
        parts = [part for part in (self.inside, self.outside) if len(part)]
        if not parts:
            return np.float32(np.nan), np.float32(np.nan)
        return min(part.min() for part in parts), max(part.max() for part in parts)

    @property
    def is_constant(self) -> bool:
        """Whether all pixels have the same value, or none has a value."""
        low, high = self.bounds
        return not high > low

    def scale(self, values: Values) -> Values:
        """Scale values from 0 at the lowest of the map to 1 at the highest; the map must not be constant."""
        low, high = self.bounds
        if float(high) - float(low) > _MAX_FLOAT32:  # the difference overflows float32; halving is exact
            half = np.float32(0.5)
            low, high, values = low * half, high * half, values * half
        shifted = values - low
        shifted /= high - low
        return shifted

    @cached_property
    def sorted_values(self) -> tuple[Values, Values]:
        """Values inside and outside the truth, each in ascending order."""
        return np.sort(self.inside), np.sort(self.outside)

    @cached_property
    def steps(self) -> ValueSteps:
        """Pixel counts at the distinct values inside the truth."""
        return count_value_steps(*self.sorted_values)

    @cached_property
    def n_peaks(self) -> tuple[int, int]:
        """Numbers of pixels inside and outside the truth that have the highest value."""
        high = self.bounds[1]
        return int(np.count_nonzero(self.inside == high)), int(np.count_nonzero(self.outside == high))

    @cached_property
    def tally(self) -> Tally:
        """Histogram and moments of the map inside and outside the truth."""
        low, high = self.bounds
        return Tally(
            float(low),
            float(high),
            self._count_levels(self.inside),
            self._count_levels(self.outside),
            _moments(self.inside, has_negative=bool(low < 0)),
            _moments(self.outside, has_negative=bool(low < 0)),
        )

    def _count_levels(self, values: Values) -> IntArray:
        if self.is_constant or not len(values):
            counts = np.zeros(LEVELS + 1, np.int64)
            counts[0] = len(values)
            return counts
        scaled = self.scale(values)
        scaled *= LEVELS
        np.ceil(scaled, out=scaled)
        levels = scaled.astype(np.uint16)
        if len(levels) >= _MAX_FLOAT_COUNT:
            return np.bincount(levels, minlength=LEVELS + 1).astype(np.int64)
        histogram = cv2.calcHist([levels.reshape(1, -1)], [0], None, [LEVELS + 1], [0, LEVELS + 1])
        return histogram.ravel().astype(np.int64)


def _moments(values: Values, *, has_negative: bool) -> Moments:
    """Moments in double precision, the variance about the mean, so that a large offset costs no digits."""
    n = len(values)
    if n == 0:
        return Moments(0, 0.0, np.nan, np.nan, 0.0)
    wide = values.astype(np.float64)
    total = float(wide.sum())
    positive = float(np.maximum(wide, 0).sum()) if has_negative else total
    mean = total / n
    wide -= mean
    np.multiply(wide, wide, out=wide)  # not a dot product, which would start the threads of BLAS
    return Moments(n, total, mean, float(wide.sum()) / n, positive)


def tally_pixels(values: Map, truth: NDArray[np.bool_]) -> Tally:
    """Count a map inside and outside a truth of the same shape.

    Args:
        values: The map, float32, (height, width); NaN where it has no value.
        truth: Mask of the truth, (height, width).

    Returns:
        Histogram and moments on both sides.

    Example:
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.5], [1.0, 1.0]], np.float32)
        >>> tally = tally_pixels(values, values > 0.7)
        >>> tally.inside_moments.mean, tally.outside_moments.mean
        (1.0, 0.25)
    """
    return Pair(AlignedMap(values, truth, None), "full_image").tally
