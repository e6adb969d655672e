"""Two models on the same rows: how far apart, and could chance alone have done it?"""

import math
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from carina.errors import CarinaError
from carina.seeding import rng
from carina.stats.bootstrap import mean_interval
from carina.stats.resampling import (
    BLOCK,
    FEW,
    REPLICATES,
    Clusters,
    FloatArray,
    cluster_codes,
    cluster_sums,
    one_column,
)

EXACT: Final = 12
"""Up to so many informative clusters all of their sign flips are counted: 4,096."""
TIE: Final = 1e-9
"""Sums of fractions that differ by less, relative to the sum of their sizes, are one value rounded in two ways."""


class Difference(msgspec.Struct, frozen=True):
    """How much better the first is than the second on the same rows; None where undefined, never NaN."""

    value: float | None
    low: float | None
    """None, as is `high`, where there are fewer than two clusters."""
    high: float | None
    p: float | None
    """Two-sided, from sign flips of whole clusters; None only where there are no rows."""
    n: int
    clusters: int


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Difference:
    """The mean of a - b over rows where both have a value, with interval and p-value.

    The interval is `mean_interval` of the differences: both models are drawn together. The p-value asks how often
    |sum over patients of s_c * D_c| is at least |sum of D_c|, with D_c the sum of a patient's differences and s_c a
    sign, + or - alike: if the models were alike, swapping their answers for any patient would change nothing. Patients
    with D_c = 0 say nothing. Up to 12 informative ones all sign patterns are counted; above, `replicates` are drawn
    and p = (k + 1) / (replicates + 1). With one row a patient and right-or-wrong scores this is McNemar's exact test.
    """
    first, second = one_column(a, "a"), one_column(b, "b")
    if len(first) != len(second):
        raise CarinaError(f"a and b: expected as many values, not {len(first)} and {len(second)}")
    codes = cluster_codes(clusters, len(first))
    gap = (first - second)[:, 0]
    codes, gap = codes[~np.isnan(gap)], gap[~np.isnan(gap)]
    # The better one is put first, so that a against b is b against a turned round, to the last digit; unless they
    # tie, where the bounds may differ as two seeds do. fsum is the same for any order of rows.
    side = -1.0 if math.fsum(gap) < 0 else 1.0
    found = mean_interval(side * gap, codes, level=level, replicates=replicates, seed=seed)
    low, high = _turned(found.low, side), _turned(found.high, side)
    if side < 0:
        low, high = high, low
    p = sign_flip_p(cluster_sums(side * gap[:, None], codes)[:, 0], replicates=replicates, seed=seed)
    return Difference(_turned(found.value, side), low, high, p if len(gap) else None, found.n, found.clusters)


def sign_flip_p(sums: FloatArray, *, replicates: int = REPLICATES, seed: int = 0) -> float:
    """Two-sided p-value of independent sums against all of their signs being chance; see `paired_difference`."""
    scale = float(np.abs(sums).sum())
    sums = sums[np.abs(sums) > TIE * scale]
    if len(sums) == 0:
        return 1.0
    least = abs(math.fsum(sums)) - TIE * scale
    sizes = np.sort(np.abs(sums))
    if len(sizes) <= EXACT:
        patterns = np.arange(1 << len(sizes))[:, None] >> np.arange(len(sizes)) & 1
        return float((np.abs((2.0 * patterns - 1.0) @ sizes) >= least).mean())
    if replicates < 1:
        raise CarinaError(f"replicates: expected at least 1, not {replicates}")
    return (_as_far(sizes, least, replicates=replicates, seed=seed) + 1) / (replicates + 1)


def _as_far(sizes: FloatArray, least: float, *, replicates: int, seed: int) -> int:
    """How many random sign patterns take the sum at least so far from 0."""
    draw = rng(seed, "stats", "sign flip")
    distinct, counts = np.unique(sizes, return_counts=True)
    grouped = len(distinct) * FEW <= len(sizes)
    rows = max(1, BLOCK // (len(distinct) if grouped else len(sizes)))
    far = 0
    for start in range(0, replicates, rows):
        size = min(rows, replicates - start)
        if (
            grouped
        ):  # clusters of one size are interchangeable: how many of them stay positive is all that matters
            positive = draw.binomial(counts, 0.5, size=(size, len(counts))).astype(np.float64) @ distinct
        else:
            packed = draw.integers(0, 256, size=(size, -(-len(sizes) // 8)), dtype=np.uint8)
            positive = np.unpackbits(packed, axis=1, count=len(sizes)).astype(np.float64) @ sizes
        far += int(np.count_nonzero(np.abs(2.0 * positive - sizes.sum()) >= least))
    return far


def _turned(number: float | None, side: float) -> float | None:
    return None if number is None else side * number + 0.0
