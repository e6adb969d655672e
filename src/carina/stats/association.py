"""Association of two variables (correlation) and of a score with a class (area under the ROC curve).

Intervals are percentile intervals of patients resampled with replacement.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from carina.stats.interval import Interval, interval_of, or_none, statistic_interval
from carina.stats.resampling import (
    BLOCK,
    REPLICATES,
    Clusters,
    FloatArray,
    IntArray,
    cluster_codes,
    cluster_sums,
    one_column,
    weights,
)
from carina.store.errors import CarinaError

ROUNDING: Final = 1e-12
"""A variance below this share of the mean square is a rounding error."""
_MIN_CLUSTERS: Final = 2
"""Patients of each class that an interval needs."""


def pearson(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Pearson's correlation over rows where both variables have a value, with interval.

    cov(x, y) / sqrt(var(x) * var(y)). The value is None if a variable is constant; replicates in which one is constant
    are left out.

    Args:
        x: First variable, shape (rows,); NaN or None where missing.
        y: Second variable on the same rows.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        The correlation with its interval.

    Raises:
        CarinaError: `x` and `y` differ in length.

    Example:
        >>> round(pearson([1, 2, 3, 4], [2, 4, 6, 8]).value, 6)
        1.0
    """
    pairs, codes = _pairs(x, y, clusters)
    if len(pairs) == 0 or (pairs.min(axis=0) == pairs.max(axis=0)).any():
        return Interval(None, None, None, len(pairs), len(np.unique(codes)))
    # Scaled to about 1 and centred: squares neither overflow nor lose precision.
    pairs = pairs / np.abs(pairs).max(axis=0)
    pairs = pairs - pairs.mean(axis=0)
    u, v = (pairs / np.abs(pairs).max(axis=0)).T
    sums = cluster_sums(np.column_stack([np.ones_like(u), u, v, u * u, v * v, u * v]), codes)

    def correlation(totals: FloatArray) -> FloatArray:
        n, su, sv, suu, svv, suv = totals.T
        across = n * suv - su * sv
        ours, theirs = n * suu - su * su, n * svv - sv * sv
        varied = (ours > ROUNDING * n * suu) & (theirs > ROUNDING * n * svv)
        return _quotient(across, ours, theirs, varied)

    return statistic_interval(sums, correlation, n=len(pairs), level=level, replicates=replicates, seed=seed)


def spearman(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Spearman's correlation over rows where both variables have a value, with interval.

    Pearson's correlation of ranks, tied values at their middle rank. Every replicate is ranked again, which takes
    seconds for 10,000 replicates of 10,000 rows. The value is None if a variable is constant; replicates in which one
    is constant are left out.

    Args:
        x: First variable, shape (rows,); NaN or None where missing.
        y: Second variable on the same rows.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        The correlation with its interval.

    Raises:
        CarinaError: `x` and `y` differ in length.

    Example:
        >>> spearman([1, 2, 3, 4], [1, 4, 9, 16]).value
        1.0
    """
    pairs, codes = _pairs(x, y, clusters)
    if len(pairs) == 0:
        return Interval(None, None, None, 0, 0)
    distinct, kinds = np.unique(pairs, axis=0, return_inverse=True)
    ids = [np.unique(column, return_inverse=True)[1] for column in distinct.T]
    counts = _count_kinds(kinds, codes, len(distinct))
    value = _rank_correlation(np.asarray(counts.sum(axis=1))[:, None], *ids)[0]
    replicated = np.concatenate(
        [
            _rank_correlation(block, *ids)
            for block in _resample_counts(counts, len(distinct), replicates=replicates, seed=seed)
        ]
    )
    return interval_of(value, replicated, level=level, n=len(pairs), clusters=counts.shape[1])


def auroc(
    scores: npt.ArrayLike,
    positive: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Area under the ROC curve with interval: the probability that a positive row scores higher than a negative one.

    Ties count one half. The value is None if a class is empty; replicates in which one is empty are left out. There is
    no interval if a class comes from a single patient.

    Args:
        scores: Scores, shape (rows,); rows with NaN or None are left out.
        positive: True for rows of the positive class, shape (rows,).
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        The area with its interval.

    Raises:
        CarinaError: `positive` is not boolean, or differs in length.

    Example:
        >>> auroc([0.9, 0.4, 0.6, 0.1], [True, True, False, False]).value
        0.75
    """
    values = one_column(scores, "scores")[:, 0]
    is_positive = np.asarray(positive)
    if is_positive.dtype != np.bool_ or is_positive.shape != values.shape:
        raise CarinaError(f"positive: expected true or false for each of {len(values)} scores")
    kept = ~np.isnan(values)
    values, is_positive = values[kept], is_positive[kept]
    codes = cluster_codes(clusters, len(kept))[kept]
    if len(values) == 0:
        return Interval(None, None, None, 0, 0)
    distinct, place = np.unique(values, return_inverse=True)
    counts = _count_kinds(place + len(distinct) * is_positive, codes, 2 * len(distinct))
    value = _area(np.asarray(counts.sum(axis=1))[:, None])[0]
    patients = counts.shape[1]
    if min(len(np.unique(codes[is_positive == kind])) for kind in (True, False)) < _MIN_CLUSTERS:
        return Interval(or_none(value), None, None, len(values), patients)
    replicated = np.concatenate(
        [_area(block) for block in _resample_counts(counts, len(distinct), replicates=replicates, seed=seed)]
    )
    return interval_of(value, replicated, level=level, n=len(values), clusters=patients)


def _count_kinds(kinds: IntArray, codes: IntArray, number: int) -> csr_array[np.float64]:
    """How often each kind of row (rows) occurs in each cluster (columns).

    Clusters are in order of their contents, so that neither their names nor the order of rows change a result.
    """
    order = np.lexsort((kinds, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = sorted(np.split(kinds[order], starts[1:]), key=lambda group: group.tolist())
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return csr_array((np.ones(len(kinds)), (np.concatenate(groups), owner)), shape=(number, len(groups)))


def _resample_counts(
    counts: csr_array[np.float64], width: int, *, replicates: int, seed: int
) -> Iterator[FloatArray]:
    """Counts of each kind (rows) in each replicate (columns), in blocks that fit the processor's cache."""
    rows = max(1, 4 * BLOCK // width)
    clusters = np.ones(counts.shape[1], dtype=np.int64)
    for block in weights(clusters, replicates=replicates, seed=seed):
        for start in range(0, len(block), rows):
            yield np.asarray(counts @ block[start : start + rows].T)


def _area(counts: FloatArray) -> FloatArray:
    """Area for each column of counts: negative rows by rising score, then positive rows."""
    negatives, positives = np.split(counts, 2)
    below = np.cumsum(negatives, axis=0) - negatives / 2
    pairs = negatives.sum(axis=0) * positives.sum(axis=0)
    won = (positives * below).sum(axis=0)
    area: FloatArray = np.full(len(pairs), np.nan)
    np.divide(won, pairs, out=area, where=pairs > 0)
    return area


def _rank_correlation(counts: FloatArray, x: IntArray, y: IntArray) -> FloatArray:
    """Spearman's correlation for each column of counts of pairs, given the order of the pairs' values."""
    ours, theirs = _centred_ranks(counts, x), _centred_ranks(counts, y)
    spread, other = (counts * ours * ours).sum(axis=0), (counts * theirs * theirs).sum(axis=0)
    return _quotient((counts * ours * theirs).sum(axis=0), spread, other, (spread > 0) & (other > 0))


def _centred_ranks(counts: FloatArray, ids: IntArray) -> FloatArray:
    """Middle ranks of values, less their mean, which is half the count."""
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    grouped = np.add.reduceat(counts[order], starts, axis=0)
    upto = np.cumsum(grouped, axis=0)
    ranks: FloatArray = (upto - grouped / 2 - upto[-1] / 2)[ids]
    return ranks


def _quotient(
    across: FloatArray, ours: FloatArray, theirs: FloatArray, defined: npt.NDArray[np.bool_]
) -> FloatArray:
    found = np.full(len(across), np.nan)
    spread = np.sqrt(ours[defined] * theirs[defined])
    found[defined] = np.clip(across[defined] / spread, -1.0, 1.0)
    return found


def _pairs(x: npt.ArrayLike, y: npt.ArrayLike, clusters: Clusters) -> tuple[FloatArray, IntArray]:
    """Rows where both variables have a value, sorted by them, and their clusters."""
    first, second = one_column(x, "x"), one_column(y, "y")
    if len(first) != len(second):
        raise CarinaError(
            f"x and y: expected the same number of values, found {len(first)} and {len(second)}"
        )
    pairs = np.hstack([first, second])
    kept = ~np.isnan(pairs).any(axis=1)
    pairs, codes = pairs[kept], cluster_codes(clusters, len(pairs))[kept]
    order = np.lexsort(pairs.T)
    return pairs[order], codes[order]
