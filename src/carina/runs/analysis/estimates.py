"""Estimates: one number of a run with its interval, the count that it rests on, and what chance would give.

Every estimate is a weighted mean of group means: a plain accuracy has one group, a balanced accuracy two of equal
weight, a mean over stages one or two for each stage. The bootstrap draws patients for all groups together, and every
replicate is balanced again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.runs.analysis.read import ComparedRun
from carina.stats import clopper_pearson, holm, paired_difference, ratio_replicates

REPLICATES: Final = 2000
SEED: Final = 0
ALPHA: Final = 0.05
_ENOUGH: Final = 0.1
"""Share of replicates that must hold every group, so that the others can be left out."""
Key = tuple[str, str, str]
"""Level, name and metric."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `tables.parquet`."""

    run: str
    model: str
    history: str
    level: str
    """Subject: "stage", "macro", "case", "task", "reach" ..."""
    name: str
    """Value of the subject: "1", "consolidation" ..."""
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    chance: float | None = None
    constant: float | None = None
    """Value of the best constant answer, for headline measures; None where there is no such answer."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A paired difference of two runs in one measure."""

    one: str
    other: str
    """Ids of the runs: the difference is the first minus the second."""
    level: str
    name: str
    metric: str
    value: float
    low: float | None
    high: float | None
    p: float
    adjusted: float
    """p after Holm's correction within its family."""
    n: int

    @property
    def key(self) -> Key:
        return self.level, self.name, self.metric

    @property
    def is_significant(self) -> bool:
        """Whether p after the correction is below 0.05."""
        return self.adjusted < ALPHA


@dataclass(frozen=True)
class _WeightedMean:
    value: float
    low: float | None
    high: float | None
    chance: float | None
    shares: NDArray[np.float64]


def weight_groups(frame: pl.DataFrame, *groups: str) -> pl.DataFrame:
    """Outcomes with equal weight for every value of the first column, within it of the second, and so on."""
    weight = pl.lit(1.0)
    outer: list[str] = []
    for name in groups:
        # Number of siblings: distinct values of this column within the columns before it.
        siblings = pl.col(name).n_unique().over(outer) if outer else pl.col(name).n_unique()
        weight = weight / siblings
        outer.append(name)
    group = (
        pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in groups], separator="/")
        if groups
        else pl.lit("")
    )
    kept = [name for name in ("question", "pattern") if name in frame.columns]
    return frame.select(
        "unit", "cluster", "value", "chance", *kept, group=group, weight=weight.cast(pl.Float64)
    )


def row_shares(rows: pl.DataFrame) -> NDArray[np.float64]:
    """The share of each weighted outcome in the mean: its group's weight divided by the rows of the group.

    Where a run lacks a group, the others share its weight.
    """
    each = rows.select(pl.col("weight") / pl.len().over("group")).to_series().to_numpy()
    return np.asarray(each / math.fsum(each))


def _weighted_mean(rows: pl.DataFrame) -> _WeightedMean:
    """The mean of weighted outcomes, of which there is at least one, with its interval."""
    groups = rows["group"].unique().sort()
    codes = rows["group"].cast(pl.Enum(groups)).to_physical().to_numpy()
    weight = np.zeros(len(groups))
    weight[codes] = rows["weight"].to_numpy()
    weight /= weight.sum()
    values = rows["value"].to_numpy()
    table = np.where(codes[:, None] == np.arange(len(groups)), values[:, None], np.nan)
    # Groups in order of their names, values sorted: the order of rows changes nothing.
    means = np.array([np.sort(values[codes == group]).mean() for group in range(len(groups))])
    shares = row_shares(rows)
    clusters = rows["cluster"].to_numpy().astype(str)
    low = high = None
    if len(np.unique(clusters)) > 1:
        replicates = _weigh_replicates(
            ratio_replicates(table, clusters, replicates=REPLICATES, seed=SEED), weight
        )
        low, high = (float(bound) for bound in np.quantile(replicates, [0.025, 0.975]))
    chances = rows["chance"]
    chance = math.fsum(chances.to_numpy() * shares) if chances.null_count() == 0 else None
    return _WeightedMean(float(means @ weight), low, high, chance, shares)


def _weigh_replicates(replicates: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each replicate.

    Replicates that lack a group are left out; where nearly all do, the groups that are there share its weight.
    """
    missing = np.isnan(replicates)
    whole = ~missing.any(axis=1)
    if whole.mean() >= _ENOUGH:
        return np.asarray(replicates[whole] @ weight)
    present = np.where(missing, 0.0, weight)
    return np.asarray((np.where(missing, 0.0, replicates) * present).sum(axis=1) / present.sum(axis=1))


def estimate_share(run: ComparedRun, frame: pl.DataFrame, *, level: str, name: str, metric: str) -> Estimate:
    """The mean of weighted outcomes as an estimate of a run; without a value where there are no outcomes."""
    empty = Estimate(
        run=run.id, model=run.model, history=run.history, level=level, name=name, metric=metric, value=None
    )
    if frame.is_empty():
        return empty
    mean = _weighted_mean(frame)
    low, high = mean.low, mean.high
    distinct = set(frame["value"].unique())
    if distinct in ({0.0}, {1.0}) and low is not None:
        # Replicates of answers that are all the same do not show how few they are; the number of patients does.
        patients = frame["cluster"].n_unique()
        exact = clopper_pearson(patients if distinct == {1.0} else 0, patients)
        low, high = exact.low, exact.high
    return msgspec.structs.replace(
        empty, value=mean.value, low=low, high=high, n=frame.height, chance=mean.chance
    )


def difference_between(
    one: tuple[str, pl.DataFrame], other: tuple[str, pl.DataFrame], key: Key
) -> Difference | None:
    """The difference of two runs' weighted outcomes, over the units that both have; None where there are none."""
    both = (
        one[1]
        .join(other[1].select("unit", "group", against="value"), on=["unit", "group"])
        .sort("unit", "group")
    )
    if both.is_empty():
        return None
    mean = _weighted_mean(both.with_columns(value=pl.col("value") - pl.col("against")))
    # Swapping a patient's answers between the models swaps what they contribute to the two means.
    tested = paired_difference(
        both["value"].to_numpy() * mean.shares,
        both["against"].to_numpy() * mean.shares,
        both["cluster"].to_numpy().astype(str),
        replicates=REPLICATES,
        seed=SEED,
    )
    level, name, metric = key
    return Difference(
        one=one[0],
        other=other[0],
        level=level,
        name=name,
        metric=metric,
        value=mean.value,
        low=mean.low,
        high=mean.high,
        p=1.0 if tested.p is None else tested.p,
        adjusted=1.0 if tested.p is None else tested.p,
        n=both.height,
    )


def apply_holm(family: Sequence[Difference]) -> list[Difference]:
    """The same differences with p after Holm's correction for all of them."""
    adjusted = holm([item.p for item in family])
    return [
        msgspec.structs.replace(item, adjusted=float(p)) for item, p in zip(family, adjusted, strict=True)
    ]
