"""Where cases break, and what mending one place alone would restore."""

import polars as pl

from carina.report.analyse.figures import Figure, Key, estimate, weighted
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run

NONE = "none"
"""Name of the cases that did not break."""


def first_errors(run: Run, found: Outcomes) -> list[Figure]:
    """Share of complete cases by the stage of their first error, and of those without one."""
    broken = _by_case(found).with_columns(name=pl.col("wrong").list.first().cast(pl.String).fill_null(NONE))
    names = [*map(str, sorted(found.case_stages["stage"].unique())), NONE]
    return [
        _share(run, broken, pl.col("name") == name, ("first error", name, "share of cases")) for name in names
    ]


def only_errors(run: Run, found: Outcomes) -> list[Figure]:
    """Share of complete cases that mending this stage alone would make right from end to end."""
    broken = _by_case(found)
    return [
        _share(
            run,
            broken,
            (pl.col("wrong").list.len() == 1) & (pl.col("wrong").list.first() == stage),
            ("recovery", str(stage), "share of cases wrong at this stage alone"),
        )
        for stage in sorted(found.case_stages["stage"].unique())
    ]


def mended(own: tuple[Run, Outcomes], other: tuple[Run, Outcomes]) -> list[Figure]:
    """Of cases that first broke at a stage, how many were right from there on, left alone and mended.

    `other` is the same model's run in which every wrong answer was mended before the next question. Cases with nothing
    after the stage are left out.
    """
    (own_run, before), (after_run, after) = own, other
    broken = _by_case(before).filter(pl.col("wrong").list.len() > 0)
    broken = broken.with_columns(first=pl.col("wrong").list.first())
    found = []
    for stage in sorted(before.case_stages["stage"].unique()):
        cases = broken.filter(pl.col("first") == stage).select("case")
        later = [_later(run, stage).join(cases, on="case", how="semi") for run in (before, after)]
        both = [one.join(other, on="case", how="semi") for one, other in (later, later[::-1])]
        for run, part, metric in (
            (own_run, both[0], "right from there on, left alone"),
            (after_run, both[1], "right from there on, mended"),
        ):
            if not part.is_empty():
                found.append(
                    _share(run, part, pl.col("value") == 1.0, ("after first error", str(stage), metric))
                )
    return found


def _later(found: Outcomes, stage: int) -> pl.DataFrame:
    """Complete cases with stages after this one: whether all of these are right."""
    kept = found.case_stages.filter(
        pl.col("case").is_in(found.complete.implode()) & (pl.col("stage") > stage)
    )
    return kept.group_by("case").agg(pl.col("cluster").first(), pl.col("value").min()).sort("case")


def _by_case(found: Outcomes) -> pl.DataFrame:
    """Complete cases with the stages that were wrong, in order."""
    stages = found.case_stages.filter(pl.col("case").is_in(found.complete.implode()))
    wrong = pl.col("stage").filter(pl.col("value") < 1.0).sort()
    return stages.group_by("case").agg(pl.col("cluster").first(), wrong=wrong).sort("case")


def _share(run: Run, cases: pl.DataFrame, condition: pl.Expr, key: Key) -> Figure:
    told = cases.select(
        "cluster", unit="case", value=condition.cast(pl.Float64), chance=pl.lit(None, pl.Float64)
    )
    level, name, metric = key
    return estimate(run, weighted(told), level=level, name=name, metric=metric)
