"""An estimate with its interval, alone or as a row of a table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from carina.stats.resampling import FloatArray, IntArray, percentiles, resampled_sums, total


class Interval(msgspec.Struct, frozen=True):
    """An estimate with its interval; None where undefined, never NaN.

    Attributes:
        value: The estimate; None without data.
        low: Lower end of the interval; None, as is `high`, with fewer than two clusters.
        high: Upper end of the interval.
        n: Number of rows behind the estimate.
        clusters: Number of clusters, usually patients, of these rows.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals of many columns as arrays, NaN where undefined; `intervals[i]` is the `Interval` of one column."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n: IntArray
    clusters: IntArray

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, column: int) -> Interval:
        return Interval(
            or_none(self.value[column]),
            or_none(self.low[column]),
            or_none(self.high[column]),
            int(self.n[column]),
            int(self.clusters[column]),
        )

    def __iter__(self) -> Iterator[Interval]:
        return (self[column] for column in range(len(self)))


def or_none(number: float) -> float | None:
    """The number, or None for NaN."""
    return None if np.isnan(number) else float(number)


def interval_of(value: float, replicated: FloatArray, *, level: float, n: int, clusters: int) -> Interval:
    """An estimate with the percentile interval of its replicates; without bounds if the estimate is undefined."""
    estimate = or_none(value)
    if estimate is None or clusters < 2:
        return Interval(estimate, None, None, n, clusters)
    low, high = percentiles(replicated[:, None], level)
    return Interval(estimate, or_none(low[0]), or_none(high[0]), n, clusters)


def statistic_interval(
    sums: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    n: int,
    level: float,
    replicates: int,
    seed: int,
) -> Interval:
    """Interval of a statistic that is a function of column sums.

    Args:
        sums: Column sums of each cluster, shape (clusters, columns).
        statistic: Function from column sums, shape (k, columns), to k values; NaN where undefined. Undefined replicates
            are left out.
        n: Number of rows behind the sums.
        level: Coverage of the interval, between 0 and 1.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
    """
    if len(sums) == 0:
        return Interval(None, None, None, 0, 0)
    value = float(statistic(total(sums)[None, :])[0])
    replicated = statistic(resampled_sums(sums, replicates=replicates, seed=seed))
    return interval_of(value, replicated, level=level, n=n, clusters=len(sums))
