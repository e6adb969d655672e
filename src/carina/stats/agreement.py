"""Agreement between readers beyond chance, with intervals of patients resampled with replacement.

The `krippendorff` package computes the coefficient only; here its ingredients are sums over patients, so that ten
thousand replicates are one matrix product.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
from carina.store.errors import CarinaError


def cohen_kappa(
    a: Labels,
    b: Labels,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Cohen's kappa of two readers over rows that both have labelled, with interval.

    (p_o - p_e) / (1 - p_e), with p_o the share of rows with equal labels and p_e = sum over labels of the product of
    both readers' shares. The value is None if both readers gave all rows the same label.

    Args:
        a: Labels of the first reader; None or NaN where there is none.
        b: Labels of the second reader on the same rows.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        Kappa with its interval.

    Raises:
        CarinaError: `a` and `b` differ in length.

    Example:
        >>> cohen_kappa(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"]).value
        0.5
    """
    if len(a) != len(b):
        raise CarinaError(f"a and b: expected the same number of labels, found {len(a)} and {len(b)}")
    (first, second), width = label_codes(a, b)
    codes = cluster_codes(clusters, len(first))
    kept = (first >= 0) & (second >= 0)
    first, second, codes = first[kept], second[kept], codes[kept]
    features = np.hstack([(first == second)[:, None], one_hot(first, width), one_hot(second, width)])
    sums = cluster_sums(features, codes)

    def kappa(totals: FloatArray) -> FloatArray:
        equal, first_counts, second_counts = totals[:, 0], totals[:, 1 : 1 + width], totals[:, 1 + width :]
        n = first_counts.sum(axis=1)
        expected = (first_counts * second_counts).sum(axis=1)  # times n², so that integers stay integers
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
    """Krippendorff's alpha for nominal labels of any number of readers, with interval.

    1 - (N - 1) * D / (N² - sum of N_c²) over units with two labels or more: N labels in all, N_c of kind c, and D = sum
    over units of (m² - sum of m_c²) / (m - 1), m labels and m_c of kind c in the unit. The value is None if only one
    kind of label occurs.

    Args:
        ratings: Labels, shape (units, readers); None or NaN where there is none.
        clusters: Patient of each unit; None if units are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        Alpha with its interval.

    Raises:
        CarinaError: Units differ in their number of readers.

    Example:
        >>> round(krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"]]).value, 3)
        0.444
    """
    rows = [list(row) for row in ratings]
    readers = {len(row) for row in rows}
    if len(readers) > 1:
        raise CarinaError(
            f"ratings: expected the same number of readers for each unit, found {sorted(readers)}"
        )
    (flat,), width = label_codes([label for row in rows for label in row])
    codes = cluster_codes(clusters, len(rows))
    kinds = one_hot(flat, width).reshape(len(rows), max(readers, default=0), width).sum(axis=1)
    pairable = kinds.sum(axis=1) >= 2
    kinds, codes = kinds[pairable], codes[pairable]
    labels = kinds.sum(axis=1)
    disagreement = (labels**2 - (kinds**2).sum(axis=1)) / (labels - 1)
    sums = cluster_sums(np.hstack([disagreement[:, None], kinds]), codes)

    def alpha(totals: FloatArray) -> FloatArray:
        n = totals[:, 1:].sum(axis=1)
        return 1 - ratio((n - 1) * totals[:, 0], n * n - (totals[:, 1:] ** 2).sum(axis=1))

    return statistic_interval(sums, alpha, n=len(kinds), level=level, replicates=replicates, seed=seed)
