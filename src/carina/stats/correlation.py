"""Do two figures rise together? With intervals of patients drawn with replacement."""

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from carina.errors import CarinaError
from carina.stats.interval import Interval, interval_of, statistic_interval
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

ROUNDING: Final = 1e-12
"""A variance that is a smaller share of the mean square is none, but rounding."""


def pearson(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Pearson's correlation over rows where both have a value: cov(x, y) / sqrt(var(x) * var(y)), with interval.

    None where either is constant. Replicates in which one is are left out.
    """
    pairs, codes = _pairs(x, y, clusters)
    if len(pairs) == 0 or (pairs.min(axis=0) == pairs.max(axis=0)).any():
        return Interval(None, None, None, len(pairs), len(np.unique(codes)))
    # Numbers near 1 about 0: squares neither overflow nor drown what matters.
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
    """Spearman's correlation over rows where both have a value: Pearson's of their ranks, ties at their middle rank.

    Every replicate is ranked anew, which takes seconds for 10,000 replicates of 10,000 rows. None where either is
    constant; replicates in which one is are left out.
    """
    pairs, codes = _pairs(x, y, clusters)
    if len(pairs) == 0:
        return Interval(None, None, None, 0, 0)
    distinct, kinds = np.unique(pairs, axis=0, return_inverse=True)
    ids = [np.unique(column, return_inverse=True)[1] for column in distinct.T]
    members = _members(kinds, codes)
    value = _rank_correlation(members.sum(axis=1)[:, None], *ids)[0]
    clustered = members.shape[1]
    replicated: list[FloatArray] = []
    rows = max(1, 4 * BLOCK // len(distinct))
    for block in weights(np.ones(clustered, dtype=np.int64), replicates=replicates, seed=seed):
        for start in range(0, len(block), rows):
            counts = np.asarray(members @ block[start : start + rows].T)
            replicated.append(_rank_correlation(counts, *ids))
    return interval_of(value, np.concatenate(replicated), level=level, n=len(pairs), clusters=clustered)


def _members(kinds: IntArray, codes: IntArray) -> csr_array[np.float64]:
    """How often each distinct pair (rows) occurs in each cluster (columns), clusters in order of their pairs."""
    order = np.lexsort((kinds, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = sorted(np.split(kinds[order], starts[1:]), key=lambda group: group.tolist())
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    shape = (int(kinds.max()) + 1, len(groups))
    return csr_array((np.ones(len(kinds)), (np.concatenate(groups), owner)), shape=shape)


def _rank_correlation(counts: FloatArray, x: IntArray, y: IntArray) -> FloatArray:
    """Spearman's correlation of each column of counts of pairs, given the order of the pairs' values."""
    ours, theirs = _centred_ranks(counts, x), _centred_ranks(counts, y)
    spread, other = (counts * ours * ours).sum(axis=0), (counts * theirs * theirs).sum(axis=0)
    return _quotient((counts * ours * theirs).sum(axis=0), spread, other, (spread > 0) & (other > 0))


def _centred_ranks(counts: FloatArray, ids: IntArray) -> FloatArray:
    """Middle ranks of values less their mean, which is half the count."""
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
    """Rows where both have a value, in order of these, and their clusters."""
    first, second = one_column(x, "x"), one_column(y, "y")
    if len(first) != len(second):
        raise CarinaError(f"x and y: expected as many values, not {len(first)} and {len(second)}")
    pairs = np.hstack([first, second])
    kept = ~np.isnan(pairs).any(axis=1)
    pairs, codes = pairs[kept], cluster_codes(clusters, len(pairs))[kept]
    order = np.lexsort(pairs.T)
    return pairs[order], codes[order]
