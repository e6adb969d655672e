"""The stage at which a case first goes wrong, and what a correction of one stage alone would restore."""

import polars as pl

from carina.runs.analysis.estimates import Estimate, Key, estimate_share, weight_groups
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun

NO_ERROR = "none"
"""Name of the cases without an error."""
NOT_CORRECTED = "right at all later stages, not corrected"
CORRECTED = "right at all later stages, corrected"
"""Metrics of `after_first_error`."""


def first_errors(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Share of complete cases by the stage of their first error, and of those without one."""
    cases = _wrong_stages(outcomes).with_columns(
        name=pl.col("wrong").list.first().cast(pl.String).fill_null(NO_ERROR)
    )
    names = [*map(str, sorted(outcomes.case_stages["stage"].unique())), NO_ERROR]
    return [
        _share(run, cases, pl.col("name") == name, ("first error", name, "share of cases")) for name in names
    ]


def single_errors(run: ComparedRun, outcomes: Outcomes) -> list[Estimate]:
    """Share of complete cases with errors at one stage only: correcting it would make the whole case right."""
    cases = _wrong_stages(outcomes)
    return [
        _share(
            run,
            cases,
            (pl.col("wrong").list.len() == 1) & (pl.col("wrong").list.first() == stage),
            ("recovery", str(stage), "share of cases wrong at this stage alone"),
        )
        for stage in sorted(outcomes.case_stages["stage"].unique())
    ]


def after_first_error(
    own: tuple[ComparedRun, Outcomes], corrected: tuple[ComparedRun, Outcomes]
) -> list[Estimate]:
    """Of cases with their first error at a stage, the share that is right at all later stages.

    Once as the model went on by itself, and once in `corrected`, the run of the same model in which every wrong answer
    was corrected before the next question. Cases that end with the stage are left out.
    """
    (own_run, before), (corrected_run, after) = own, corrected
    cases = _wrong_stages(before).filter(pl.col("wrong").list.len() > 0)
    cases = cases.with_columns(first=pl.col("wrong").list.first())
    estimates = []
    for stage in sorted(before.case_stages["stage"].unique()):
        first_here = cases.filter(pl.col("first") == stage).select("case")
        later = [_later_stages(run, stage).join(first_here, on="case", how="semi") for run in (before, after)]
        both = [one.join(other, on="case", how="semi") for one, other in (later, later[::-1])]
        for run, part, metric in (
            (own_run, both[0], NOT_CORRECTED),
            (corrected_run, both[1], CORRECTED),
        ):
            if not part.is_empty():
                key = ("after first error", str(stage), metric)
                estimates.append(_share(run, part, pl.col("value") == 1.0, key))
    return estimates


def _later_stages(outcomes: Outcomes, stage: int) -> pl.DataFrame:
    """Complete cases with stages after this one: whether all of these are right."""
    later = outcomes.case_stages.filter(
        pl.col("case").is_in(outcomes.complete.implode()) & (pl.col("stage") > stage)
    )
    return later.group_by("case").agg(pl.col("cluster").first(), pl.col("value").min()).sort("case")


def _wrong_stages(outcomes: Outcomes) -> pl.DataFrame:
    """Complete cases with the stages that are wrong, in order."""
    stages = outcomes.case_stages.filter(pl.col("case").is_in(outcomes.complete.implode()))
    wrong = pl.col("stage").filter(pl.col("value") < 1.0).sort()
    return stages.group_by("case").agg(pl.col("cluster").first(), wrong=wrong).sort("case")


def _share(run: ComparedRun, cases: pl.DataFrame, condition: pl.Expr, key: Key) -> Estimate:
    units = cases.select(
        "cluster", unit="case", value=condition.cast(pl.Float64), chance=pl.lit(None, pl.Float64)
    )
    level, name, metric = key
    return estimate_share(run, weight_groups(units), level=level, name=name, metric=metric)
