"""Do readers agree more than by chance? Intervals are of patients drawn with replacement, as everywhere here."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from carina.errors import CarinaError
from carina.stats.interval import Interval, statistic_interval
from carina.stats.resampling import (
    REPLICATES,
    Clusters,
    FloatArray,
    Labels,
    cluster_codes,
    cluster_sums,
    label_codes,
    one_hot,
    ratio,
)


def cohen_kappa(
    a: Labels,
    b: Labels,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Cohen's kappa of two readers over rows that both have labelled (None or NaN: not labelled).

    (p_o - p_e) / (1 - p_e), with p_o the share of rows with equal labels and p_e = sum over labels of the product of
    both readers' shares. None where both gave all rows one and the same label.
    """
    if len(a) != len(b):
        raise CarinaError(f"a and b: expected as many labels, not {len(a)} and {len(b)}")
    (first, second), width = label_codes(a, b)
    codes = cluster_codes(clusters, len(first))
    kept = (first >= 0) & (second >= 0)
    first, second, codes = first[kept], second[kept], codes[kept]
    features = np.hstack([(first == second)[:, None], one_hot(first, width), one_hot(second, width)])
    sums = cluster_sums(features, codes)

    def kappa(totals: FloatArray) -> FloatArray:
        equal, ours, theirs = totals[:, 0], totals[:, 1 : 1 + width], totals[:, 1 + width :]
        n = ours.sum(axis=1)
        expected = (ours * theirs).sum(axis=1)  # in n², so that whole numbers stay whole
        return ratio(n * equal - expected, n * n - expected)

    return statistic_interval(sums, kappa, n=len(first), level=level, replicates=replicates, seed=seed)


def krippendorff_alpha(
    ratings: Sequence[Sequence[Hashable]] | npt.NDArray[Any],
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Krippendorff's alpha for names (nominal), of units (rows) by readers (columns); None or NaN where not labelled.

    1 - (N - 1) * D / (N² - sum of N_c²) over units with two labels or more: N labels in all, N_c of kind c, and D = sum
    over units of (m² - sum of m_c²) / (m - 1), m labels and m_c of kind c in the unit. None where only one kind occurs.
    """
    rows = [list(row) for row in ratings]
    readers = {len(row) for row in rows}
    if len(readers) > 1:
        raise CarinaError(f"ratings: expected as many readers for each unit, not {sorted(readers)}")
    (flat,), width = label_codes([label for row in rows for label in row])
    codes = cluster_codes(clusters, len(rows))
    kinds = one_hot(flat, width).reshape(len(rows), max(readers, default=0), width).sum(axis=1)
    pairable = kinds.sum(axis=1) >= 2
    kinds, codes = kinds[pairable], codes[pairable]
    labels = kinds.sum(axis=1)
    apart = (labels**2 - (kinds**2).sum(axis=1)) / (labels - 1)
    sums = cluster_sums(np.hstack([apart[:, None], kinds]), codes)

    def alpha(totals: FloatArray) -> FloatArray:
        n = totals[:, 1:].sum(axis=1)
        return 1 - ratio((n - 1) * totals[:, 0], n * n - (totals[:, 1:] ** 2).sum(axis=1))

    return statistic_interval(sums, alpha, n=len(kinds), level=level, replicates=replicates, seed=seed)
