"""A figure with its interval, alone or as a row of a table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from carina.stats.resampling import FloatArray, IntArray, percentiles, resampled_sums, total


class Interval(msgspec.Struct, frozen=True):
    """An estimate and how sure it is; None where undefined, never NaN."""

    value: float | None
    """None where there is nothing to estimate from."""
    low: float | None
    """None, as is `high`, where there are fewer than two clusters: one patient says nothing of others."""
    high: float | None
    n: int
    """Rows that it is made from."""
    clusters: int
    """Patients that these rows belong to."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals of many columns as arrays, NaN where undefined; `intervals[i]` is one of them."""

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
    """An estimate with the percentile interval of its replicates; no bounds where it is undefined itself."""
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
    """A statistic that is a function of column sums, (k, columns) -> (k,), from the sums of each cluster.

    Undefined where the statistic is NaN; replicates in which it is are left out.
    """
    if len(sums) == 0:
        return Interval(None, None, None, 0, 0)
    value = float(statistic(total(sums)[None, :])[0])
    replicated = statistic(resampled_sums(sums, replicates=replicates, seed=seed))
    return interval_of(value, replicated, level=level, n=n, clusters=len(sums))
