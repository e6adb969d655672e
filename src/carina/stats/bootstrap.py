"""Means with intervals for rows that cluster in patients.

All are ratios of sums, value = sum of values / number of rows, so that every row has the same weight, however many rows
a patient has. The interval is the percentile interval of bootstrap replicates, in each of which as many patients are
drawn with replacement as there are. It is too narrow with fewer than about 20 patients, and has no width if all values
are equal; use `clopper_pearson` then.
"""

import numpy as np
import numpy.typing as npt

from carina.stats.interval import Interval, Intervals, interval_of
from carina.stats.resampling import (
    REPLICATES,
    Clusters,
    FloatArray,
    IntArray,
    Labels,
    cluster_codes,
    cluster_sums,
    columns_of,
    label_codes,
    one_column,
    one_hot,
    percentiles,
    ratio,
    resampled_sums,
    total,
)
from carina.store.errors import CarinaError


def mean_interval(
    values: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Mean of values over rows, with a percentile interval of patients resampled with replacement.

    Value and replicates are sum(w_c * S_c) / sum(w_c * n_c), with S_c the sum and n_c the number of a patient's values
    and w_c how often the patient was drawn (1 for the value).

    Args:
        values: One number per row, shape (rows,); missing values (NaN or None) are left out.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        The mean with its interval.

    Raises:
        CarinaError: A value is infinite, or `clusters` differs in length.

    Example:
        >>> right = mean_interval([1, 0, 1, 1], ["p1", "p1", "p2", "p3"])
        >>> right.value, right.clusters
        (0.75, 3)
    """
    column = one_column(values)
    return ratio_intervals(column, clusters, level=level, replicates=replicates, seed=seed)[0]


def ratio_intervals(
    values: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Intervals:
    """Means of many columns with intervals, all from the same bootstrap replicates.

    Each column is treated as by `mean_interval`. A patient without any value is not drawn. A replicate without values
    in a column is left out for that column.

    Args:
        values: Numbers, shape (rows, columns); NaN where a row has no value.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        One interval per column.

    Raises:
        CarinaError: A value is infinite, or `clusters` differs in length.

    Example:
        >>> [column.value for column in ratio_intervals([[1, 0], [1, 1]])]
        [1.0, 0.5]
    """
    table, codes = _present(columns_of(values), clusters)
    value, replicated, rows = _means(table, codes, replicates=replicates, seed=seed)
    owners = (cluster_sums((~np.isnan(table)).astype(np.float64), codes) > 0).sum(axis=0)
    low, high = percentiles(replicated, level)
    low[owners < 2] = high[owners < 2] = np.nan
    return Intervals(value, low, high, rows, owners.astype(np.int64))


def ratio_replicates(
    values: npt.ArrayLike, clusters: Clusters = None, *, replicates: int = REPLICATES, seed: int = 0
) -> FloatArray:
    """The replicates behind `ratio_intervals`, for statistics of several columns.

    For example, the interval of a macro mean over stages is given by percentiles of the replicates' row means.

    Args:
        values: Numbers, shape (rows, columns); NaN where a row has no value.
        clusters: Patient of each row; None if rows are independent.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        Means, shape (replicates, columns); NaN where a replicate has no value in a column.

    Raises:
        CarinaError: A value is infinite, or `clusters` differs in length.

    Example:
        >>> means = ratio_replicates([[1, 0], [1, 1], [1, 0]], replicates=100)
        >>> means.shape, float(means[:, 0].min())
        ((100, 2), 1.0)
    """
    table, codes = _present(columns_of(values), clusters)
    return _means(table, codes, replicates=replicates, seed=seed)[1]


def balanced_accuracy(
    correct: npt.ArrayLike,
    group: Labels,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """Mean of the groups' accuracies, (1/G) * sum over groups of (right in group / rows in group), with interval.

    With the right answer as group and two answers it is (sensitivity + specificity) / 2. Every replicate is balanced
    again; one without rows of a group is left out. Rows without group or value do not count.

    Args:
        correct: 1 for a right answer and 0 for a wrong one, shape (rows,).
        group: Group of each row, usually the right answer.
        clusters: Patient of each row; None if rows are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        The balanced accuracy with its interval.

    Raises:
        CarinaError: `group` or `clusters` differs in length.

    Example:
        >>> balanced_accuracy([1, 1, 1, 0], ["yes", "yes", "yes", "no"]).value
        0.5
    """
    right = one_column(correct, "correct")
    if len(right) != len(group):
        raise CarinaError(f"group: expected one for each of {len(right)} rows of correct, found {len(group)}")
    (groups,), width = label_codes(group)
    spread = np.where(one_hot(groups, width) > 0, right, np.nan)
    table, codes = _present(spread, clusters)
    value, replicated, rows = _means(table, codes, replicates=replicates, seed=seed)
    present = rows > 0  # a group all of whose values are missing has no mean
    if not present.any():
        return Interval(None, None, None, 0, 0)
    return interval_of(
        float(value[present].mean()),
        replicated[:, present].mean(axis=1),
        level=level,
        n=int(rows.sum()),
        clusters=len(np.unique(codes)),
    )


def survival(
    reached: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Intervals:
    """Share of cases (rows) that are right at a step (columns) and at all steps before it, with intervals.

    Args:
        reached: 1 for a right answer and 0 for a wrong one, shape (cases, steps); NaN where a case has no such step,
            which then does not count for this step.
        clusters: Patient of each case; None if cases are independent.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        One interval per step, all from the same bootstrap replicates.

    Raises:
        CarinaError: A value is infinite, or `clusters` differs in length.

    Example:
        >>> [step.value for step in survival([[1, 1], [1, 0]])]
        [1.0, 0.5]
    """
    table = columns_of(reached, "reached")
    missing = np.isnan(table)
    standing = np.logical_and.accumulate(missing | (table > 0), axis=1)
    return ratio_intervals(
        np.where(missing, np.nan, standing), clusters, level=level, replicates=replicates, seed=seed
    )


def _present(table: FloatArray, clusters: Clusters) -> tuple[FloatArray, IntArray]:
    """Rows with any value, and their clusters."""
    codes = cluster_codes(clusters, len(table))
    kept = ~np.isnan(table).all(axis=1)
    return table[kept], codes[kept]


def _means(
    table: FloatArray, codes: IntArray, *, replicates: int, seed: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """The mean, the replicates and the number of rows of each column."""
    width = table.shape[1]
    is_present = ~np.isnan(table)
    rows = is_present.sum(axis=0).astype(np.int64)
    if len(table) == 0:
        return np.full(width, np.nan), np.full((replicates, width), np.nan), rows
    # Columns with values in the same rows, such as models on the same steps, share their counts. These are in the order
    # of columns: an order by their contents would depend on the order of rows.
    masks: dict[bytes, int] = {}
    counted = np.array(
        [masks.setdefault(mask.tobytes(), len(masks)) for mask in is_present.T], dtype=np.int64
    )
    kept = np.unique(counted, return_index=True)[1]
    sums = cluster_sums(np.hstack([np.where(is_present, table, 0.0), is_present[:, kept]]), codes)
    drawn = resampled_sums(sums, replicates=replicates, seed=seed)
    # A mean lies between its values, but a quotient of rounded sums need not: equal values would get a width.
    least = np.where(is_present, table, np.inf).min(axis=0)
    most = np.where(is_present, table, -np.inf).max(axis=0)
    whole = total(sums)
    value = np.clip(ratio(whole[:width], whole[width + counted]), least, most)
    return value, np.clip(ratio(drawn[:, :width], drawn[:, width + counted]), least, most), rows
