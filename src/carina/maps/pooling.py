"""Metrics over the pixels of all images together: overlaps of summed counts, and curves over all values.

For binned curves, values are cut to 11 significant bits, so that the range of the values need not be known in advance
and maps that were stored as float16 lose nothing. Only the codes that occur in an image are kept, so that a set of
thousands of images fits in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.maps.counts import MaskCounts, auprc_of_levels, auroc_of_levels, levels_of_steps, overlap
from carina.maps.pair import IntArray, Pair, Values, count_value_steps
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

_DROPPED_BITS: Final = 13
"""Bits of a float32 that are dropped, of 24 significant ones."""
CODES: Final = 1 << (32 - _DROPPED_BITS)
BANDS: Final = 256
"""Bands of values in which the replicates of an interval are counted."""


@dataclass(frozen=True, eq=False)
class CodedPixels:
    """Numbers of an image's pixels by the code of their value; code 0 holds the unseen pixels that count."""

    codes: NDArray[np.uint32]
    inside: NDArray[np.uint32]
    outside: NDArray[np.uint32]
    exact: tuple[Values, Values, int, int] | None
    """Sorted values inside and outside the truth, and the numbers of unseen pixels; None where curves are binned."""


def encode_pixels(pair: Pair, *, exact: bool) -> CodedPixels:
    """Count the pixels of one image for pooled curves."""
    unseen = (pair.unseen_inside, pair.unseen_outside)
    sides = [_count_codes(values, n) for values, n in zip(pair.sorted_values, unseen, strict=True)]
    codes = np.union1d(sides[0][0], sides[1][0])
    counts = np.zeros((2, len(codes)), np.uint32)
    for row, (side_codes, n) in zip(counts, sides, strict=True):
        row[np.searchsorted(codes, side_codes)] = n
    return CodedPixels(codes, counts[0], counts[1], (*pair.sorted_values, *unseen) if exact else None)


def _count_codes(values: Values, n_unseen: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Codes of ascending values, ascending from 1, and the number of pixels that have each."""
    bits = (values + np.float32(0)).view(np.uint32)  # -0 becomes 0
    # Read as unsigned integers, floats from 0 up are in ascending order, and those below 0 in descending order.
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    all_codes = np.asarray((ordered >> _DROPPED_BITS) + 1, np.uint32)
    starts = np.flatnonzero(np.diff(all_codes, prepend=np.uint32(0)))
    codes, counts = all_codes[starts], np.diff(np.append(starts, len(all_codes)))
    if n_unseen:
        codes, counts = np.insert(codes, 0, 0), np.insert(counts, 0, n_unseen)
    return codes, counts


def pooled_levels(images: Sequence[CodedPixels], *, exact: bool) -> tuple[IntArray, IntArray]:
    """Numbers of pixels of all images inside and outside the truth, levels ascending."""
    if exact:
        values = [image.exact for image in images if image.exact is not None]
        inside, outside = (
            np.sort(np.concatenate([np.zeros(0, np.float32), *(image[side] for image in values)]))
            for side in (0, 1)
        )
        unseen = sum(image[2] for image in values), sum(image[3] for image in values)
        return levels_of_steps(count_value_steps(inside, outside), len(outside), *unseen)
    counts = np.zeros((2, CODES + 1), np.int64)
    for image in images:
        counts[0, image.codes] += image.inside
        counts[1, image.codes] += image.outside
    return counts[0], counts[1]


def pooled_curve(
    images: Sequence[CodedPixels],
    patients: Clusters,
    *,
    metric: str,
    exact: bool,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, int]:
    """AUROC or AUPRC over all pixels, with a bootstrap interval over patients, and the number of usable replicates.

    Replicates are counted in 256 bands of values. The bands are chosen so that they resolve the pixels inside and those
    outside the truth, and the replicates are shifted by the difference that the bands make to the value itself.
    """
    is_roc = metric.startswith("auroc")
    of_levels = auroc_of_levels if is_roc else auprc_of_levels
    value = of_levels(*pooled_levels(images, exact=exact))
    codes = cluster_codes(patients, len(images))
    n_patients = len(np.unique(codes))
    if np.isnan(value) or n_patients < 2:
        return interval_of(value, np.zeros(0), level=level, n=len(images), clusters=n_patients), 0
    sums = cluster_sums(_count_bands(images), codes)
    statistic = _auroc_of_bands if is_roc else _auprc_of_bands
    banded = float(statistic(total(sums)[None, :])[0])
    replicated = statistic(resampled_sums(sums, replicates=replicates, seed=seed)) + (value - banded)
    interval = interval_of(value, np.clip(replicated, 0, 1), level=level, n=len(images), clusters=n_patients)
    return interval, int(np.count_nonzero(~np.isnan(replicated)))


def pooled_overlap(
    counts: Sequence[MaskCounts],
    patients: Sequence[str],
    *,
    metric: str,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, int]:
    """An overlap of counts summed over images, with a bootstrap interval over patients and the usable replicates."""
    table = np.array(
        [[c.true_positives[0], c.false_positives[0], c.n_true, c.n_other] for c in counts], np.float64
    )
    usable = 0

    def statistic(totals: FloatArray) -> FloatArray:
        nonlocal usable
        values = overlap(metric, MaskCounts(*totals.T))
        usable = int(np.count_nonzero(~np.isnan(values)))
        return values

    sums = cluster_sums(table, cluster_codes(patients, len(table)))
    interval = statistic_interval(
        sums, statistic, n=len(table), level=level, replicates=replicates, seed=seed
    )
    return interval, usable if interval.low is not None else 0


def _count_bands(images: Sequence[CodedPixels]) -> FloatArray:
    """A row for each image: its pixels inside, then outside the truth, in each band."""
    inside, outside = pooled_levels(images, exact=False)
    position = np.cumsum(inside) / max(1, inside.sum()) + np.cumsum(outside) / max(1, outside.sum())
    bands = np.minimum((position * (BANDS / 2)).astype(np.intp), BANDS - 1)
    counts = np.zeros((len(images), 2 * BANDS))
    for row, image in zip(counts, images, strict=True):
        image_bands = bands[image.codes]
        row[:BANDS] = np.bincount(image_bands, image.inside, BANDS)
        row[BANDS:] = np.bincount(image_bands, image.outside, BANDS)
    return counts


def _auroc_of_bands(totals: FloatArray) -> FloatArray:
    inside, outside = totals[:, :BANDS], totals[:, BANDS:]
    below = np.cumsum(outside, axis=1) - outside / 2
    return ratio((inside * below).sum(axis=1), inside.sum(axis=1) * outside.sum(axis=1))


def _auprc_of_bands(totals: FloatArray) -> FloatArray:
    inside, outside = totals[:, BANDS - 1 :: -1], totals[:, : BANDS - 1 : -1]
    hit = np.cumsum(inside, axis=1)
    predicted = hit + np.cumsum(outside, axis=1)
    precision = np.divide(hit, predicted, out=np.zeros_like(hit), where=predicted > 0)
    return ratio((inside * precision).sum(axis=1), inside.sum(axis=1))
