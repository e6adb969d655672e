"""Metrics of a map's values inside and outside the truth: contrast, mass, and the share of the highest pixels."""

import math
from bisect import bisect_left

import numpy as np

from carina.maps.metrics import map_metric
from carina.maps.pair import Pair, Values


@map_metric(
    name="cnr",
    definition="contrast-to-noise ratio, (mean inside - mean outside) / sqrt(variance inside + variance outside); 0 "
    "where both variances are 0",
    margins=("visible_only",),
)
def cnr(pair: Pair) -> float:
    """Contrast-to-noise ratio with population variances; NaN where no seen pixel lies inside, or none outside."""
    inside, outside = pair.tally.inside_moments, pair.tally.outside_moments
    if not inside.n or not outside.n:
        return math.nan
    noise = inside.variance + outside.variance
    return (inside.mean - outside.mean) / math.sqrt(noise) if noise > 0 else 0.0


@map_metric(name="cnr_abs", definition="absolute value of cnr (BioViL)", margins=("visible_only",))
def absolute_cnr(pair: Pair) -> float:
    """The absolute value of `cnr`."""
    return abs(cnr(pair))


@map_metric(
    name="mass",
    definition="share of the sum of the map that lies inside the truth; values below 0 count as 0",
)
def positive_mass(pair: Pair) -> float:
    """Share of the sum of the positive values that lies inside the truth."""
    tally = pair.tally
    return _share_inside(pair, tally.inside_moments.positive, tally.outside_moments.positive)


@map_metric(
    name="mass_signed",
    definition="share of the sum of the map that lies inside the truth; values below 0 count as they are",
)
def signed_mass(pair: Pair) -> float:
    """Share of the sum of all values that lies inside the truth."""
    return _share_inside(pair, pair.tally.inside_moments.total, pair.tally.outside_moments.total)


def _share_inside(pair: Pair, inside: float, outside: float) -> float:
    """NaN for an empty truth or where the sum is 0; 0 where the map has no value."""
    if not pair.n_true:
        return math.nan
    if inside + outside == 0:
        return math.nan if pair.n_seen else 0.0
    return inside / (inside + outside)


@map_metric(
    name="rank",
    definition="share of the K highest pixels that lies inside the truth, K the number of pixels of the truth; pixels "
    "that tie for the last place count by their mean",
)
def rank(pair: Pair) -> float:
    """Share of the highest pixels that lies inside the truth, for as many pixels as the truth has."""
    return top_share(pair, pair.n_true)


def top_share(pair: Pair, k: int) -> float:
    """Share of the k highest pixels that lies inside the truth; pixels that tie for the last place count by their mean.

    Unseen pixels come after all others. NaN for an empty truth, or where there are fewer than k pixels.
    """
    if not pair.n_true or k > pair.n_pixels or k < 1:
        return math.nan
    if k > pair.n_seen:
        n_unseen = pair.unseen_inside + pair.unseen_outside
        return (len(pair.inside) + (k - pair.n_seen) * pair.unseen_inside / n_unseen) / k
    last = kth_highest(pair, k)
    inside_above = int(np.count_nonzero(pair.inside > last))
    inside_tied = int(np.count_nonzero(pair.inside == last))
    all_above = inside_above + int(np.count_nonzero(pair.outside > last))
    all_tied = inside_tied + int(np.count_nonzero(pair.outside == last))
    return (inside_above + (k - all_above) * inside_tied / all_tied) / k


def kth_highest(pair: Pair, k: int) -> np.float32:
    """The k-th highest value; k runs from 1 to the number of pixels with a value.

    It is the highest value that at least k pixels reach. Both sides are sorted already for the curves; selecting from
    unsorted values takes several times as long where many of them tie.
    """
    inside, outside = pair.sorted_values
    found = (_highest_reached(inside, outside, k), _highest_reached(outside, inside, k))
    return np.float32(max(value for value in found if value is not None))


def _highest_reached(own: Values, other: Values, k: int) -> np.float32 | None:
    """The highest of the own values that at least k pixels of both sides reach; both are in ascending order."""

    def is_reached_by_fewer(at: int) -> bool:
        value = own[at]
        reaching = len(own) - np.searchsorted(own, value) + len(other) - np.searchsorted(other, value)
        return bool(reaching < k)

    # The number of pixels that reach a value falls with the value, so its position is found by halving.
    end = bisect_left(range(len(own)), x=True, key=is_reached_by_fewer)
    return own[end - 1] if end else None
