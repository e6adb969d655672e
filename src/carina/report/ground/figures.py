"""A figure of an explain run: one number with its interval and what it rests on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import msgspec
import polars as pl

from carina.ground.explain.scoring import MODEL
from carina.report.ground.read import MapsRun
from carina.report.page.cells import Cell, percent, spread
from carina.stats import Interval, clopper_pearson

USABLE: Final = 100
"""Draws below which no interval is told."""
ENOUGH: Final = 5
"""Patients from which an interval is told: draws of fewer look surer than they are."""

_COUNTED: Final = ("box centre", "accuracy", "frequency of presence")
"""What is counted as right or wrong, probe by probe, besides peaks."""


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


def of_run(
    run: MapsRun,
    *,
    level: str,
    name: str,
    metric: str,
    found: Interval,
    average: str = "",
    source: str = MODEL,
) -> Figure:
    """A figure of the run's model, or of a control on its frames and grid."""
    about = {"level": level, "name": name, "metric": metric, "average": average}
    return estimated(found, run=run.id, model=run.model, method=run.method, source=source, **about)


def estimated(
    found: Interval,
    *,
    run: str,
    model: str,
    method: str,
    level: str,
    name: str,
    metric: str,
    average: str,
    source: str = MODEL,
) -> Figure:
    """An estimate with the bounds that it may have."""
    found = bounded(found, counted=_is_counted(metric))
    return Figure(
        run=run,
        model=model,
        method=method,
        source=source,
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
    """The figures of a run's own summary, in its order; of some variants, or of all.

    A profile that tells findings alone gets the mean over them below.
    """
    rows = run.summary
    if variants is not None:
        rows = rows.filter(pl.col("variant").is_in(list(variants)))
    told = [
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
    return [*told, *_means(run, told)]


def _means(run: MapsRun, told: Sequence[Figure]) -> Iterator[Figure]:
    """Means over findings of what has no figure of all images: values without an interval."""
    whole = {(one.source, one.metric) for one in told if one.level == "all"}
    parts: dict[tuple[str, str], list[Figure]] = {}
    for one in told:
        if one.level == "finding" and one.value is not None and (one.source, one.metric) not in whole:
            parts.setdefault((one.source, one.metric), []).append(one)
    patients = {source: run.of(source)["patient"].n_unique() for source, _ in parts}
    for (source, _), own in parts.items():
        yield msgspec.structs.replace(
            own[0],
            level="all",
            name="",
            average="macro",
            value=fmean(one.value for one in own if one.value is not None),
            low=None,
            high=None,
            n=sum(one.n for one in own),
            patients=patients[source],
        )


def _usable(row: Mapping[str, Any]) -> bool:
    """Whether enough draws of patients held every finding that a mean over findings needs."""
    return row["average"] != "macro" or int(row["replicates"]) >= USABLE


def bounded(found: Interval, *, counted: bool = False) -> Interval:
    """Without bounds where it rests on too few patients.

    Draws from what is counted as right or wrong, and is all right or all wrong, tell nothing of how few they are; the
    patients' number does.
    """
    if found.clusters < ENOUGH:
        return Interval(found.value, None, None, found.n, found.clusters)
    if not counted or found.value not in (0.0, 1.0) or found.low != found.high:
        return found
    exact = clopper_pearson(found.clusters if found.value else 0, found.clusters)
    return Interval(found.value, exact.low, exact.high, found.n, found.clusters)


def _is_counted(metric: str) -> bool:
    return metric.startswith("hit") or metric in _COUNTED


def honest(figure: Figure) -> Figure:
    """The figure with the bounds that it may have."""
    found = bounded(
        Interval(figure.value, figure.low, figure.high, figure.n, figure.patients),
        counted=_is_counted(figure.metric),
    )
    return msgspec.structs.replace(figure, low=found.low, high=found.high)


def key_of(figure: Figure) -> str:
    """Which row of the tables a cell is."""
    return "|".join((figure.run, figure.source, figure.level, figure.name, figure.metric, figure.average))


def share(
    figure: Figure | None, *, line: float | None = None, cells: float | None = None, bold: bool = False
) -> Cell:
    """A figure between 0 and 1 with a bar; on the bar a line and a triangle, for what it is compared with."""
    if figure is None or figure.value is None:
        return Cell()
    beside = [
        f", {name} {percent(value)}"
        for name, value in (("best control", line), ("best set of whole cells", cells))
        if value is not None
    ]
    return Cell(
        text=percent(figure.value),
        sub=spread(figure.low, figure.high),
        n=f"n {figure.n:,}",
        bold=bold,
        bar=100 * figure.value,
        chance=None if line is None else 100 * line,
        constant=None if cells is None else 100 * cells,
        key=key_of(figure),
        title=f"{figure.metric}, n = {figure.n:,} of {figure.patients:,} patients{''.join(beside)}",
    )
