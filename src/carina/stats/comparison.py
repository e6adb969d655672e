"""Comparison of two models on the same rows, and corrections for many comparisons."""

import math
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from carina.stats.bootstrap import mean_interval
from carina.stats.resampling import (
    BLOCK,
    FEW,
    REPLICATES,
    Clusters,
    FloatArray,
    IntArray,
    cluster_codes,
    cluster_sums,
    one_column,
)
from carina.store.errors import CarinaError
from carina.store.seeding import rng

EXACT: Final = 12
"""Up to this many informative clusters, all sign patterns are enumerated: 4,096."""
TIE: Final = 1e-9
"""Sums of fractions that differ by less, relative to the sum of their absolute values, are taken as equal."""


class Difference(msgspec.Struct, frozen=True):
    """Mean difference between two models on the same rows; None where undefined, never NaN.

    Attributes:
        value: Mean of the first less the second.
        low: Lower end of the interval; None, as is `high`, with fewer than two clusters.
        high: Upper end of the interval.
        p: Two-sided p-value from sign flips of whole clusters; None only without rows.
        n: Number of rows.
        clusters: Number of clusters, usually patients.
    """

    value: float | None
    low: float | None
    high: float | None
    p: float | None
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
    """Mean of a - b over rows where both have a value, with interval and p-value.

    The interval is `mean_interval` of the differences, so both models are resampled together. The p-value is the
    probability that |sum over patients of s_c * D_c| is at least |sum of D_c|, with D_c the sum of a patient's
    differences and s_c a random sign: if the models were equally good, swapping their answers for any patient would
    change nothing. Patients with D_c = 0 carry no information. Up to 12 informative patients, all sign patterns are
    enumerated; above, `replicates` patterns are drawn and p = (k + 1) / (replicates + 1). With one row per patient and
    binary scores this is McNemar's exact test.

    Args:
        a: Scores of the first model, shape (rows,); NaN or None where missing.
        b: Scores of the second model on the same rows.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates and random sign patterns.
        seed: Seed of both.

    Returns:
        The difference with its interval and p-value.

    Raises:
        CarinaError: `a` and `b` differ in length.

    Example:
        >>> paired_difference([1, 1, 0, 1], [0, 1, 0, 0]).value
        0.5
    """
    first, second = one_column(a, "a"), one_column(b, "b")
    if len(first) != len(second):
        raise CarinaError(
            f"a and b: expected the same number of values, found {len(first)} and {len(second)}"
        )
    codes = cluster_codes(clusters, len(first))
    gap = (first - second)[:, 0]
    codes, gap = codes[~np.isnan(gap)], gap[~np.isnan(gap)]
    # The better model is put first, so that swapping a and b only changes signs, to the last digit; except for a tie,
    # where the bounds may differ as with another seed. fsum gives the same sum for any order of rows.
    side = -1.0 if math.fsum(gap) < 0 else 1.0
    found = mean_interval(side * gap, codes, level=level, replicates=replicates, seed=seed)
    low, high = _with_sign(found.low, side), _with_sign(found.high, side)
    if side < 0:
        low, high = high, low
    p = sign_flip_p(cluster_sums(side * gap[:, None], codes)[:, 0], replicates=replicates, seed=seed)
    return Difference(
        _with_sign(found.value, side), low, high, p if len(gap) else None, found.n, found.clusters
    )


def sign_flip_p(sums: FloatArray, *, replicates: int = REPLICATES, seed: int = 0) -> float:
    """Two-sided p-value of sums whose signs are random under the null hypothesis; see `paired_difference`."""
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
        raise CarinaError(f"replicates: expected at least 1, found {replicates}")
    return (_count_extreme(sizes, least, replicates=replicates, seed=seed) + 1) / (replicates + 1)


def _count_extreme(sizes: FloatArray, least: float, *, replicates: int, seed: int) -> int:
    """Number of random sign patterns whose sum is at least `least` away from 0."""
    draw = rng(seed, "stats", "sign flip")
    distinct, counts = np.unique(sizes, return_counts=True)
    grouped = len(distinct) * FEW <= len(sizes)
    rows = max(1, BLOCK // (len(distinct) if grouped else len(sizes)))
    extreme = 0
    for start in range(0, replicates, rows):
        size = min(rows, replicates - start)
        if grouped:
            # Clusters of one size are interchangeable: only the number of positive ones matters.
            positive = draw.binomial(counts, 0.5, size=(size, len(counts))).astype(np.float64) @ distinct
        else:
            packed = draw.integers(0, 256, size=(size, -(-len(sizes) // 8)), dtype=np.uint8)
            positive = np.unpackbits(packed, axis=1, count=len(sizes)).astype(np.float64) @ sizes
        extreme += int(np.count_nonzero(np.abs(2.0 * positive - sizes.sum()) >= least))
    return extreme


def _with_sign(number: float | None, side: float) -> float | None:
    return None if number is None else side * number + 0.0


# ---- many comparisons ---------------------------------------------------------------------------------------------


def holm(p: npt.ArrayLike) -> FloatArray:
    """Holm's step-down adjustment of p-values, which controls the family-wise error rate.

    With p_(1) <= ... <= p_(m): adjusted_(i) = max over j <= i of min(1, (m - j + 1) * p_(j)).

    Args:
        p: P-values, shape (m,). Undefined ones (NaN or None) stay NaN and do not count as comparisons.

    Returns:
        Adjusted p-values in the order of `p`.

    Raises:
        CarinaError: A p-value is not between 0 and 1.

    Example:
        >>> holm([0.01, 0.04]).tolist()
        [0.02, 0.04]
    """
    numbers, order = _sort_p_values(p)
    factors = np.arange(len(order), 0, -1)
    numbers[order] = np.minimum(1.0, np.maximum.accumulate(factors * numbers[order]))
    return numbers


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Benjamini and Hochberg's step-up adjustment of p-values, which controls the false discovery rate.

    With p_(1) <= ... <= p_(m): adjusted_(i) = min over j >= i of min(1, m / j * p_(j)).

    Args:
        p: P-values, shape (m,). Undefined ones (NaN or None) stay NaN and do not count as comparisons.

    Returns:
        Adjusted p-values in the order of `p`.

    Raises:
        CarinaError: A p-value is not between 0 and 1.

    Example:
        >>> benjamini_hochberg([0.01, 0.04]).tolist()
        [0.02, 0.04]
    """
    numbers, order = _sort_p_values(p)
    factors = len(order) / np.arange(1, len(order) + 1)
    scaled = factors * numbers[order]
    numbers[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return numbers


def _sort_p_values(p: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """A copy of the p-values, and the places of the defined ones in ascending order."""
    numbers = np.array(p, dtype=np.float64)
    if numbers.ndim != 1:
        raise CarinaError(f"p: expected a list of p-values, found {numbers.ndim} dimensions")
    defined = np.flatnonzero(~np.isnan(numbers))
    if not ((numbers[defined] >= 0) & (numbers[defined] <= 1)).all():
        raise CarinaError("p: expected p-values from 0 to 1")
    return numbers, defined[np.argsort(numbers[defined], kind="stable")]
