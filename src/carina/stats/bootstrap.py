"""Means with intervals for rows that cluster in patients.

All are ratios of sums, value = sum of values / number of rows, so that every row counts alike however many a patient
has. The interval is the percentile interval of replicates, each made of as many patients drawn with replacement. It is
too narrow with fewer than some 20 patients, and has no width where all values are equal: `clopper_pearson` then tells
how little a handful of right answers proves.
"""

import numpy as np
import numpy.typing as npt

from carina.errors import CarinaError
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


def mean_interval(
    values: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Interval:
    """The mean of values over rows, with a percentile interval of patients drawn with replacement.

    Value and replicates are sum(w_c * S_c) / sum(w_c * n_c), with S_c the sum and n_c the number of a patient's values
    and w_c how often it was drawn (1 for the value). Missing values (NaN or None) are left out.
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
    """The means of many columns, NaN where a row has no value there, all from the same draws of patients.

    Column by column as `mean_interval`. A patient without any value is not drawn from; one with values in some columns
    only is, so a replicate may have none in a column: it is left out there.
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
    """The replicates behind `ratio_intervals`, (replicates, columns), for figures made of several columns.

    The interval of a macro mean of stages is the percentiles of the replicates' row means. NaN where a replicate has
    no value in a column.
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
    """The mean of the groups' means, (1/G) * sum over groups of (right in group / rows in group), with interval.

    With the gold answer as group and two answers it is (sensitivity + specificity) / 2. Every replicate is
    balanced anew; one that misses a group altogether is left out. Rows without group or value do not count.
    """
    right = one_column(correct, "correct")
    if len(right) != len(group):
        raise CarinaError(f"group: expected one for each of {len(right)} rows of correct, not {len(group)}")
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
    """The share of cases (rows) still right after each step (columns): right at it and at all before it.

    Takes right answers step by step, or what was reached already: a case once wrong stays lost either way. NaN where a
    case has no such step; it counts neither as right nor as a case there. All steps share their draws.
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
    """Each column's mean, its replicates, and how many rows it has."""
    width = table.shape[1]
    there = ~np.isnan(table)
    rows = there.sum(axis=0).astype(np.int64)
    if len(table) == 0:
        return np.full(width, np.nan), np.full((replicates, width), np.nan), rows
    # Columns with values in the same rows, as of models on the same steps, share their counts.
    # They are in order of columns: an order by their contents would depend on the order of rows.
    masks: dict[bytes, int] = {}
    counted = np.array([masks.setdefault(mask.tobytes(), len(masks)) for mask in there.T], dtype=np.int64)
    kept = np.unique(counted, return_index=True)[1]
    sums = cluster_sums(np.hstack([np.where(there, table, 0.0), there[:, kept]]), codes)
    drawn = resampled_sums(sums, replicates=replicates, seed=seed)
    # A mean lies among its values, but a quotient of rounded sums need not: equal values would get a width.
    least = np.where(there, table, np.inf).min(axis=0)
    most = np.where(there, table, -np.inf).max(axis=0)
    whole = total(sums)
    value = np.clip(ratio(whole[:width], whole[width + counted]), least, most)
    return value, np.clip(ratio(drawn[:, :width], drawn[:, width + counted]), least, most), rows
