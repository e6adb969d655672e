"""Estimates of a run of maps: one number with its interval and the counts that it rests on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import msgspec
import polars as pl

from carina.explanations.analysis.read import MapsRun
from carina.explanations.scoring import MODEL
from carina.stats import Interval, clopper_pearson

USABLE: Final = 100
"""Bootstrap replicates below which there is no interval."""
ENOUGH: Final = 5
"""Patients from which there is an interval: replicates of fewer look more certain than they are."""

_COUNTED: Final = ("box centre", "accuracy", "frequency of presence")
"""Metrics besides hits that are right or wrong for each probe."""


class MapEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the tables."""

    run: str
    model: str
    method: str
    source: str
    """Source of the maps: "model", or a control on the same frames and grids."""
    level: str
    """Subject: "all", "finding", "size", "recognition" ..."""
    name: str
    """Value of the subject."""
    metric: str
    """The variant of the metric, or another measure."""
    average: str = ""
    """Micro: every image has the same weight. Macro: every finding has."""
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    patients: int = 0


def estimate_of_run(
    run: MapsRun,
    *,
    level: str,
    name: str,
    metric: str,
    interval: Interval,
    average: str = "",
    source: str = MODEL,
) -> MapEstimate:
    """An estimate of the run's model, or of a control on its frames and grid."""
    about = {"level": level, "name": name, "metric": metric, "average": average}
    return to_estimate(interval, run=run.id, model=run.model, method=run.method, source=source, **about)


def to_estimate(
    interval: Interval,
    *,
    run: str,
    model: str,
    method: str,
    level: str,
    name: str,
    metric: str,
    average: str,
    source: str = MODEL,
) -> MapEstimate:
    """An interval as an estimate, without bounds that rest on too few patients."""
    interval = limit_bounds(interval, is_counted=_is_counted(metric))
    return MapEstimate(
        run=run,
        model=model,
        method=method,
        source=source,
        level=level,
        name=name,
        metric=metric,
        average=average,
        value=interval.value,
        low=interval.low,
        high=interval.high,
        n=interval.n,
        patients=interval.clusters,
    )


def summary_estimates(run: MapsRun, variants: Iterable[str] | None = None) -> list[MapEstimate]:
    """The estimates of a run's own summary, in its order; of some variants, or of all.

    For a profile that reports findings only, the mean over them follows.
    """
    rows = run.summary
    if variants is not None:
        rows = rows.filter(pl.col("variant").is_in(list(variants)))
    estimates = [
        _with_limited_bounds(
            MapEstimate(
                run=run.id,
                model=run.model,
                method=run.method,
                source=row["source"],
                level=row["level"],
                name=row["group"],
                metric=row["variant"],
                average=row["average"],
                value=row["value"],
                low=row["low"] if _has_interval(row) else None,
                high=row["high"] if _has_interval(row) else None,
                n=row["n"],
                patients=row["patients"],
            )
        )
        for row in rows.iter_rows(named=True)
    ]
    return [*estimates, *_means_over_findings(run, estimates)]


def _means_over_findings(run: MapsRun, estimates: Sequence[MapEstimate]) -> Iterator[MapEstimate]:
    """Means over findings of variants without an estimate over all images; they have no interval."""
    whole = {(one.source, one.metric) for one in estimates if one.level == "all"}
    parts: dict[tuple[str, str], list[MapEstimate]] = {}
    for one in estimates:
        if one.level == "finding" and one.value is not None and (one.source, one.metric) not in whole:
            parts.setdefault((one.source, one.metric), []).append(one)
    patients = {source: run.scores_of(source)["patient"].n_unique() for source, _ in parts}
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


def _has_interval(row: Mapping[str, Any]) -> bool:
    """Whether enough replicates hold every finding that a mean over findings needs."""
    return row["average"] != "macro" or int(row["replicates"]) >= USABLE


def limit_bounds(interval: Interval, *, is_counted: bool = False) -> Interval:
    """The interval without bounds where it rests on too few patients.

    Replicates of outcomes that are all right or all wrong do not show how few they are. For such counts the bounds are
    Clopper and Pearson's for the number of patients.
    """
    if interval.clusters < ENOUGH:
        return Interval(interval.value, None, None, interval.n, interval.clusters)
    if not is_counted or interval.value not in (0.0, 1.0) or interval.low != interval.high:
        return interval
    exact = clopper_pearson(interval.clusters if interval.value else 0, interval.clusters)
    return Interval(interval.value, exact.low, exact.high, interval.n, interval.clusters)


def _is_counted(metric: str) -> bool:
    return metric.startswith("hit") or metric in _COUNTED


def _with_limited_bounds(estimate: MapEstimate) -> MapEstimate:
    """The estimate with the bounds that its number of patients allows."""
    interval = limit_bounds(
        Interval(estimate.value, estimate.low, estimate.high, estimate.n, estimate.patients),
        is_counted=_is_counted(estimate.metric),
    )
    return msgspec.structs.replace(estimate, low=interval.low, high=interval.high)
