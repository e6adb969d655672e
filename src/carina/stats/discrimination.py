"""Do scores tell two classes apart? The area under the ROC curve, with intervals of patients drawn with replacement."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from carina.errors import CarinaError
from carina.stats.interval import Interval, interval_of, or_none
from carina.stats.resampling import (
    BLOCK,
    REPLICATES,
    Clusters,
    FloatArray,
    cluster_codes,
    one_column,
    weights,
)

_FEWEST = 2
"""Patients of a class, for bounds."""


def auroc(
    scores: npt.ArrayLike,
    positive: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """The probability that a positive row has a higher score than a negative one, ties as one half, with interval.

    Rows whose score is NaN are left out. None where either class is empty; replicates in which one is are left out. No
    bounds where either class is of one patient alone, whom every replicate holds.
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
    kinds = place + len(distinct) * is_positive
    # Clusters in order of what they hold, so that neither their names nor the order of rows matter.
    order = np.lexsort((kinds, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = sorted(np.split(kinds[order], starts[1:]), key=lambda group: group.tolist())
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    members = csr_array(
        (np.ones(len(kinds)), (np.concatenate(groups), owner)), shape=(2 * len(distinct), len(groups))
    )
    value = _area(np.asarray(members.sum(axis=1))[:, None])[0]
    if min(len(np.unique(codes[is_positive == kind])) for kind in (True, False)) < _FEWEST:
        return Interval(or_none(value), None, None, len(values), len(groups))
    replicated: list[FloatArray] = []
    rows = max(1, 4 * BLOCK // len(distinct))
    for block in weights(np.ones(len(groups), dtype=np.int64), replicates=replicates, seed=seed):
        for start in range(0, len(block), rows):
            replicated.append(_area(np.asarray(members @ block[start : start + rows].T)))
    return interval_of(value, np.concatenate(replicated), level=level, n=len(values), clusters=len(groups))


def _area(counts: FloatArray) -> FloatArray:
    """Of each column of counts: negatives by rising score, then positives."""
    negatives, positives = np.split(counts, 2)
    below = np.cumsum(negatives, axis=0) - negatives / 2
    pairs = negatives.sum(axis=0) * positives.sum(axis=0)
    won = (positives * below).sum(axis=0)
    area: FloatArray = np.full(len(pairs), np.nan)
    np.divide(won, pairs, out=area, where=pairs > 0)
    return area
