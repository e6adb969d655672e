"""A figure of an explain run: one number with its interval and what it rests on."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import polars as pl

from carina.report.ground.read import MapsRun
from carina.report.page.cells import Cell, percent, spread
from carina.stats import Interval, clopper_pearson

USABLE: Final = 100
"""Draws below which no interval is told."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the tables."""

    run: str
    model: str
    method: str
    source: str
    """Whose maps: "model", or a control on the same frames and grids."""
    level: str
    """What it is about: "all", "finding", "size", "recognition" ..."""
    name: str
    """Which of them."""
    metric: str
    """The variant, or what else is measured."""
    average: str = ""
    """Micro: every image counts alike. Macro: every finding does."""
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    patients: int = 0


def of_run(run: MapsRun, *, level: str, name: str, metric: str, found: Interval, average: str = "") -> Figure:
    """A figure of the run's model."""
    return Figure(
        run=run.id,
        model=run.model,
        method=run.method,
        source="model",
        level=level,
        name=name,
        metric=metric,
        average=average,
        value=found.value,
        low=found.low,
        high=found.high,
        n=found.n,
        patients=found.clusters,
    )


def summed(run: MapsRun, variants: Iterable[str] | None = None) -> list[Figure]:
    """The figures of a run's own summary, in its order; of some variants, or of all."""
    rows = run.summary
    if variants is not None:
        rows = rows.filter(pl.col("variant").is_in(list(variants)))
    return [
        honest(
            Figure(
                run=run.id,
                model=run.model,
                method=run.method,
                source=row["source"],
                level=row["level"],
                name=row["group"],
                metric=row["variant"],
                average=row["average"],
                value=row["value"],
                low=row["low"] if _usable(row) else None,
                high=row["high"] if _usable(row) else None,
                n=row["n"],
                patients=row["patients"],
            )
        )
        for row in rows.iter_rows(named=True)
    ]


def _usable(row: Mapping[str, Any]) -> bool:
    """Whether enough draws of patients held every finding that a mean over findings needs."""
    return row["average"] != "macro" or int(row["replicates"]) >= USABLE


def honest(figure: Figure) -> Figure:
    """Draws from peaks that all hit, or all miss, tell nothing of how few they are; the patients' number does."""
    alike = figure.metric.startswith("hit") and figure.value in (0.0, 1.0) and figure.low == figure.high
    if not alike or figure.patients < 2:
        return figure
    exact = clopper_pearson(figure.patients if figure.value else 0, figure.patients)
    return msgspec.structs.replace(figure, low=exact.low, high=exact.high)


def key_of(figure: Figure) -> str:
    """Which row of the tables a cell is."""
    return "|".join((figure.run, figure.source, figure.level, figure.name, figure.metric, figure.average))


def share(
    figure: Figure | None, *, line: float | None = None, limit: float | None = None, bold: bool = False
) -> Cell:
    """A figure between 0 and 1 with a bar; on the bar a line and a triangle, for what it is compared with."""
    if figure is None or figure.value is None:
        return Cell()
    beside = [
        f", {name} {percent(value)}"
        for name, value in (("best control", line), ("grid limit", limit))
        if value is not None
    ]
    return Cell(
        text=percent(figure.value),
        sub=spread(figure.low, figure.high),
        n=f"n {figure.n:,}",
        bold=bold,
        bar=100 * figure.value,
        chance=None if line is None else 100 * line,
        constant=None if limit is None else 100 * limit,
        key=key_of(figure),
        title=f"{figure.metric}, n = {figure.n:,} of {figure.patients:,} patients{''.join(beside)}",
    )
