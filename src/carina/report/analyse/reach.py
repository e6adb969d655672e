"""Reach: the share of cases in which everything was right so far, after each stage or each step.

Only complete cases count, and all of them at every place, so that the curve never rises and ends at case success. A
case that has no such stage keeps what it had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.report.analyse.figures import Figure, estimate, weighted
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run

MOST_TARGETS: Final = 16


@dataclass(frozen=True)
class Curve:
    """One run's way through the stages or steps of some cases."""

    run: str
    places: tuple[str, ...]
    figures: tuple[Figure, ...]
    """One a place."""


def by_stage(run: Run, found: Outcomes) -> Curve:
    """Over all complete cases, after each stage."""
    return _curve(run, found, found.closed, "stage", "all")


def by_step(run: Run, found: Outcomes, path: str) -> Curve:
    """Over the complete cases of one path, after each step."""
    return _curve(run, found, found.closed.filter(pl.col("path") == path), "step", path)


def by_target(run: Run, found: Outcomes, target: str) -> Curve:
    """Over the complete cases about one target, after each stage."""
    return _curve(run, found, found.closed.filter(pl.col("target") == target), "stage", f"target {target}")


def targets_with_stages(found: Sequence[Outcomes]) -> list[str]:
    """Targets, where there are several and cases of more than one stage; none where they are too many to be drawn."""
    closed = pl.concat([run.closed.select("target", "stage") for run in found]).drop_nulls()
    targets = sorted(closed["target"].unique())
    return targets if closed["stage"].n_unique() > 1 and 1 < len(targets) <= MOST_TARGETS else []


def paths_with_steps(found: Sequence[Outcomes]) -> list[str]:
    """Paths with more than one step, longest first."""
    closed = pl.concat([run.closed.select("path", "step") for run in found])
    counted = closed.drop_nulls().group_by("path").agg(n=pl.col("step").n_unique())
    return counted.filter(pl.col("n") > 1).sort(["n", "path"], descending=[True, False])["path"].to_list()


def _curve(run: Run, found: Outcomes, closed: pl.DataFrame, by: str, name: str) -> Curve:
    closed = closed.filter(pl.col("case").is_in(found.complete.implode()))
    places = closed.group_by(by).agg(pl.col("number").median()).sort("number", by)[by].to_list()
    if by == "stage":
        places.sort()
    figures = []
    for count, place in enumerate(places, start=1):
        so_far = closed.with_columns(
            counted=pl.col(by).is_in(places[:count]),
        ).group_by("case").agg(
            pl.col("cluster").first(),
            value=pl.when("counted").then("value").otherwise(1.0).min(),
            chance=pl.when("counted").then("chance").otherwise(1.0).product(),
            known=pl.when("counted").then(pl.col("chance").is_not_null()).otherwise(pl.lit(value=True)).all(),
        )  # fmt: skip
        told = so_far.with_columns(unit="case", chance=pl.when("known").then("chance"))
        figures.append(
            estimate(
                run,
                weighted(told),
                level=f"reach by {by}, {name}",
                name=str(place),
                metric="share of cases still right",
            )
        )
    return Curve(run.id, tuple(map(str, places)), tuple(figures))
