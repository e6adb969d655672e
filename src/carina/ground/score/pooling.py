"""Figures over the pixels of a whole set: masks by their counts, curves of values of all images on one scale.

Binned counts are of values cut to 11 significant bits, on whatever scale they are, so that no range need be known
before, and a map that was stored as float16 loses nothing. Only codes that occur are kept of an image, so a set of
thousands fits in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.ground.score.curves import auprc_of_levels, auroc_of_levels, levels_of
from carina.ground.score.onepass import Numbers, Pair, Values, steps_of
from carina.ground.score.overlap import Counts, overlap
from carina.ground.score.variants import Metric
from carina.stats import Interval
from carina.stats.interval import interval_of, statistic_interval
from carina.stats.resampling import (
    Clusters,
    FloatArray,
    cluster_codes,
    cluster_sums,
    ratio,
    resampled_sums,
    total,
)

_CUT: Final = 13
"""Of float32's 24 significant bits."""
CODES: Final = 1 << (32 - _CUT)
BANDS: Final = 256
"""Bands of values by which the replicates of an interval are counted."""


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """An image's pixels by code; 0 is below all values and holds unseen pixels that count."""

    codes: NDArray[np.uint32]
    inside: NDArray[np.uint32]
    outside: NDArray[np.uint32]
    values: tuple[Values, Values, int, int] | None
    """Sorted values inside and outside and the numbers of unseen pixels, where curves must be exact."""


def pixel_counts(pair: Pair, *, exact: bool) -> PixelCounts:
    """What a pooled curve needs of one image."""
    unseen = (pair.unseen_inside, pair.unseen_outside)
    coded = [_coded(part, below) for part, below in zip(pair.ranked, unseen, strict=True)]
    codes = np.union1d(coded[0][0], coded[1][0])
    counts = np.zeros((2, len(codes)), np.uint32)
    for row, (own, times) in zip(counts, coded, strict=True):
        row[np.searchsorted(codes, own)] = times
    return PixelCounts(codes, counts[0], counts[1], (*pair.ranked, *unseen) if exact else None)


def _coded(values: Values, unseen: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Codes of ascending values, each one above its value's place in order, and how many pixels have each."""
    bits = (values + np.float32(0)).view(np.uint32)  # -0 is 0
    # As unsigned numbers, floats from 0 up are in order; those below 0 in reverse.
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    codes = np.asarray((ordered >> _CUT) + 1, np.uint32)
    starts = np.flatnonzero(np.diff(codes, prepend=np.uint32(0)))
    levels, times = codes[starts], np.diff(np.append(starts, len(codes)))
    if unseen:
        levels, times = np.insert(levels, 0, 0), np.insert(times, 0, unseen)
    return levels, times


def pooled_levels(images: Sequence[PixelCounts], *, exact: bool) -> tuple[Numbers, Numbers]:
    """Counts over all images, levels ascending."""
    if exact:
        kept = [image.values for image in images if image.values is not None]
        inside, outside = (
            np.sort(np.concatenate([np.zeros(0, np.float32), *(one[part] for one in kept)]))
            for part in (0, 1)
        )
        unseen = sum(one[2] for one in kept), sum(one[3] for one in kept)
        return levels_of(steps_of(inside, outside), len(outside), *unseen)
    made = np.zeros((2, CODES + 1), np.int64)
    for image in images:
        made[0, image.codes] += image.inside
        made[1, image.codes] += image.outside
    return made[0], made[1]


def pooled_curve(
    images: Sequence[PixelCounts],
    patients: Clusters,
    *,
    metric: str,
    exact: bool,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, int]:
    """AUROC or AUPRC over all pixels, with an interval of patients drawn with replacement, and usable replicates.

    The replicates are counted in 256 bands of values, so placed that true and other pixels are both resolved, and moved
    by as much as the bands change the value itself.
    """
    roc = metric.startswith("auroc")
    of_levels = auroc_of_levels if roc else auprc_of_levels
    value = of_levels(*pooled_levels(images, exact=exact))
    codes = cluster_codes(patients, len(images))
    owners = len(np.unique(codes))
    if np.isnan(value) or owners < 2:
        return interval_of(value, np.zeros(0), level=level, n=len(images), clusters=owners), 0
    sums = cluster_sums(_banded(images), codes)
    statistic = _auroc_of_sums if roc else _auprc_of_sums
    banded = float(statistic(total(sums)[None, :])[0])
    replicated = statistic(resampled_sums(sums, replicates=replicates, seed=seed)) + (value - banded)
    found = interval_of(value, np.clip(replicated, 0, 1), level=level, n=len(images), clusters=owners)
    return found, int(np.count_nonzero(~np.isnan(replicated)))


def pooled_overlap(
    counts: Sequence[Counts],
    patients: Sequence[str],
    *,
    metric: Metric,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, int]:
    """An overlap of counts summed over images, with its interval and usable replicates."""
    table = np.array([[c.hit[0], c.false[0], c.true, c.other] for c in counts], np.float64)
    usable = 0

    def figure(totals: FloatArray) -> FloatArray:
        nonlocal usable
        made = overlap(metric, Counts(*totals.T))
        usable = int(np.count_nonzero(~np.isnan(made)))
        return made

    sums = cluster_sums(table, cluster_codes(patients, len(table)))
    found = statistic_interval(sums, figure, n=len(table), level=level, replicates=replicates, seed=seed)
    return found, usable if found.low is not None else 0


def _banded(images: Sequence[PixelCounts]) -> FloatArray:
    """A row for each image: its pixels inside, then outside the truth, in each band."""
    inside, outside = pooled_levels(images, exact=False)
    height = np.cumsum(inside) / max(1, inside.sum()) + np.cumsum(outside) / max(1, outside.sum())
    bands = np.minimum((height * (BANDS / 2)).astype(np.intp), BANDS - 1)
    made = np.zeros((len(images), 2 * BANDS))
    for row, image in zip(made, images, strict=True):
        at = bands[image.codes]
        row[:BANDS] = np.bincount(at, image.inside, BANDS)
        row[BANDS:] = np.bincount(at, image.outside, BANDS)
    return made


def _auroc_of_sums(totals: FloatArray) -> FloatArray:
    inside, outside = totals[:, :BANDS], totals[:, BANDS:]
    below = np.cumsum(outside, axis=1) - outside / 2
    return ratio((inside * below).sum(axis=1), inside.sum(axis=1) * outside.sum(axis=1))


def _auprc_of_sums(totals: FloatArray) -> FloatArray:
    inside, outside = totals[:, BANDS - 1 :: -1], totals[:, : BANDS - 1 : -1]
    hit = np.cumsum(inside, axis=1)
    predicted = hit + np.cumsum(outside, axis=1)
    precision = np.divide(hit, predicted, out=np.zeros_like(hit), where=predicted > 0)
    return ratio((inside * precision).sum(axis=1), inside.sum(axis=1))
