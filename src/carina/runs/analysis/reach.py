"""Reach: the share of cases in which every answer so far is right, after each stage or each step.

Only complete cases count, and all of them at every position, so that the curve never rises and ends at case success. A
case that lacks a stage keeps its value of the stage before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.runs.analysis.estimates import Estimate, estimate_share, weight_groups
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun

MOST_TARGETS: Final = 16


@dataclass(frozen=True)
class ReachCurve:
    """The reach of one run over the stages or steps of some cases."""

    run: str
    positions: tuple[str, ...]
    """Stages or steps, in order."""
    estimates: tuple[Estimate, ...]
    """One for each position."""


def reach_by_stage(run: ComparedRun, outcomes: Outcomes) -> ReachCurve:
    """Over all complete cases, after each stage."""
    return _curve(run, outcomes, outcomes.closed, "stage", "all")


def reach_by_step(run: ComparedRun, outcomes: Outcomes, path: str) -> ReachCurve:
    """Over the complete cases of one path, after each step."""
    return _curve(run, outcomes, outcomes.closed.filter(pl.col("path") == path), "step", path)


def reach_of_target(run: ComparedRun, outcomes: Outcomes, target: str) -> ReachCurve:
    """Over the complete cases about one target, after each stage."""
    own = outcomes.closed.filter(pl.col("target") == target)
    return _curve(run, outcomes, own, "stage", f"target {target}")


def targets_with_stages(runs: Sequence[Outcomes]) -> list[str]:
    """Targets, where there are several and cases of several stages; none where they are too many to be drawn."""
    closed = pl.concat([outcomes.closed.select("target", "stage") for outcomes in runs]).drop_nulls()
    targets = sorted(closed["target"].unique())
    return targets if closed["stage"].n_unique() > 1 and 1 < len(targets) <= MOST_TARGETS else []


def paths_with_steps(runs: Sequence[Outcomes]) -> list[str]:
    """Paths with more than one step, longest first."""
    closed = pl.concat([outcomes.closed.select("path", "step") for outcomes in runs])
    counts = closed.drop_nulls().group_by("path").agg(n=pl.col("step").n_unique())
    return counts.filter(pl.col("n") > 1).sort(["n", "path"], descending=[True, False])["path"].to_list()


def _curve(run: ComparedRun, outcomes: Outcomes, closed: pl.DataFrame, by: str, name: str) -> ReachCurve:
    closed = closed.filter(pl.col("case").is_in(outcomes.complete.implode()))
    positions = closed.group_by(by).agg(pl.col("number").median()).sort("number", by)[by].to_list()
    if by == "stage":
        positions.sort()
    estimates = []
    for count, position in enumerate(positions, start=1):
        so_far = closed.with_columns(
            counted=pl.col(by).is_in(positions[:count]),
        ).group_by("case").agg(
            pl.col("cluster").first(),
            value=pl.when("counted").then("value").otherwise(1.0).min(),
            chance=pl.when("counted").then("chance").otherwise(1.0).product(),
            known=pl.when("counted").then(pl.col("chance").is_not_null()).otherwise(pl.lit(value=True)).all(),
        )  # fmt: skip
        units = so_far.with_columns(unit="case", chance=pl.when("known").then("chance"))
        estimates.append(
            estimate_share(
                run,
                weight_groups(units),
                level=f"reach by {by}, {name}",
                name=str(position),
                metric="share of cases still right",
            )
        )
    return ReachCurve(run.id, tuple(map(str, positions)), tuple(estimates))
