"""A figure: one number of a run with its interval, how many it rests on, and what chance would give.

Every figure is a weighted mean of group means: a plain accuracy has one group, a balanced one two of equal weight, a
mean over stages one or two a stage. Patients are drawn for all groups together, and every draw is balanced anew.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.report.read import Run
from carina.stats import clopper_pearson, holm, paired_difference, ratio_replicates

REPLICATES: Final = 2000
SEED: Final = 0
ALPHA: Final = 0.05
_ENOUGH: Final = 0.1
"""Share of draws that must hold every group, so that those that do not can be left out."""
Key = tuple[str, str, str]
"""Level, name and metric."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `tables.parquet`."""

    run: str
    model: str
    history: str
    level: str
    """What it is about: "stage", "macro", "case", "task", "reach" ..."""
    name: str
    """Which of them: "1", "consolidation" ..."""
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    chance: float | None = None
    constant: float | None = None
    """What the best fixed answer would give, for figures of the headline; None where there is no such answer."""


@dataclass(frozen=True)
class _Spread:
    value: float
    low: float | None
    high: float | None
    chance: float | None
    shares: NDArray[np.float64]


def weighted(frame: pl.DataFrame, *groups: str) -> pl.DataFrame:
    """Outcomes with equal weight for every value of the first column, within it of the second, and so on."""
    weight = pl.lit(1.0)
    outer: list[str] = []
    for name in groups:
        # Number of siblings: distinct values of this column within the ones before.
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
    """What each weighted outcome adds to the figure: its group's weight over the rows of the group.

    Where a run lacks a group, the others share its weight.
    """
    each = rows.select(pl.col("weight") / pl.len().over("group")).to_series().to_numpy()
    return np.asarray(each / math.fsum(each))


def _spread(rows: pl.DataFrame) -> _Spread:
    """The figure of weighted outcomes, of which there is at least one."""
    groups = rows["group"].unique().sort()
    codes = rows["group"].cast(pl.Enum(groups)).to_physical().to_numpy()
    weight = np.zeros(len(groups))
    weight[codes] = rows["weight"].to_numpy()
    weight /= weight.sum()
    values = rows["value"].to_numpy()
    table = np.where(codes[:, None] == np.arange(len(groups)), values[:, None], np.nan)
    # Groups in order of their names, rows of equal value alike: the order of rows changes nothing.
    means = np.array([np.sort(values[codes == group]).mean() for group in range(len(groups))])
    shares = row_shares(rows)
    clusters = rows["cluster"].to_numpy().astype(str)
    low = high = None
    if len(np.unique(clusters)) > 1:
        drawn = _weighed(ratio_replicates(table, clusters, replicates=REPLICATES, seed=SEED), weight)
        low, high = (float(bound) for bound in np.quantile(drawn, [0.025, 0.975]))
    chances = rows["chance"]
    chance = math.fsum(chances.to_numpy() * shares) if chances.null_count() == 0 else None
    return _Spread(float(means @ weight), low, high, chance, shares)


def _weighed(drawn: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The figure of each draw.

    Draws that miss a group are left out; where nearly all do, the groups that are there share its weight.
    """
    missing = np.isnan(drawn)
    whole = ~missing.any(axis=1)
    if whole.mean() >= _ENOUGH:
        return np.asarray(drawn[whole] @ weight)
    present = np.where(missing, 0.0, weight)
    return np.asarray((np.where(missing, 0.0, drawn) * present).sum(axis=1) / present.sum(axis=1))


def estimate(run: Run, frame: pl.DataFrame, *, level: str, name: str, metric: str) -> Figure:
    """A share as a figure of a run, from weighted outcomes; without a value where there are none."""
    about = Figure(
        run=run.id, model=run.model, history=run.history, level=level, name=name, metric=metric, value=None
    )
    if frame.is_empty():
        return about
    found = _spread(frame)
    low, high = found.low, found.high
    alike = set(frame["value"].unique())
    if alike in ({0.0}, {1.0}) and low is not None:
        # Draws from answers that are all alike tell nothing of how few they are; the patients' number does.
        patients = frame["cluster"].n_unique()
        exact = clopper_pearson(patients if alike == {1.0} else 0, patients)
        low, high = exact.low, exact.high
    return msgspec.structs.replace(
        about, value=found.value, low=low, high=high, n=frame.height, chance=found.chance
    )


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A paired difference of two runs in one figure."""

    one: str
    other: str
    """Ids of the runs: the difference is the first less the second."""
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
    def sure(self) -> bool:
        return self.adjusted < ALPHA


def contrast(one: tuple[str, pl.DataFrame], other: tuple[str, pl.DataFrame], key: Key) -> Contrast | None:
    """The difference of two runs' weighted outcomes, over what both have; None where that is nothing."""
    both = (
        one[1]
        .join(other[1].select("unit", "group", against="value"), on=["unit", "group"])
        .sort("unit", "group")
    )
    if both.is_empty():
        return None
    gap = _spread(both.with_columns(value=pl.col("value") - pl.col("against")))
    # Swapping a patient's answers between the models swaps what they add to the two figures.
    tested = paired_difference(
        both["value"].to_numpy() * gap.shares,
        both["against"].to_numpy() * gap.shares,
        both["cluster"].to_numpy().astype(str),
        replicates=REPLICATES,
        seed=SEED,
    )
    level, name, metric = key
    return Contrast(
        one=one[0],
        other=other[0],
        level=level,
        name=name,
        metric=metric,
        value=gap.value,
        low=gap.low,
        high=gap.high,
        p=1.0 if tested.p is None else tested.p,
        adjusted=1.0 if tested.p is None else tested.p,
        n=both.height,
    )


def corrected(family: Sequence[Contrast]) -> list[Contrast]:
    """The same contrasts with p after Holm's correction for all of them."""
    adjusted = holm([item.p for item in family])
    return [
        msgspec.structs.replace(item, adjusted=float(p)) for item, p in zip(family, adjusted, strict=True)
    ]
