"""The headline of a report as one tidy table: a row for each run and measure, with everything to compare it with."""

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl

from carina.cases.protocol import find_protocol
from carina.runs.analysis.estimates import Estimate
from carina.runs.analysis.measures import Measure
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.readers import METRICS
from carina.runs.analysis.run_analysis import RunAnalysis

STAGE_LEVELS = ("stage", "words")
"""Levels of measures that are about one stage."""


class ResultRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `results.csv` and `results.parquet`. Shares are from 0 to 1."""

    protocol: str
    benchmark: str
    run: str
    label: str
    """Name of the run on pages."""
    model: str
    method: str | None = None
    """Explanation method, for maps."""
    history: str | None = None
    """History policy, for answers."""
    setting: str | None = None
    """The history, and what else differs from the defaults of `carina run`."""
    level: str
    """What is averaged: "stage", "macro" (stages), "micro" (steps), "case", "words" (free text), or "maps"."""
    stage: int | None = None
    """Number of the stage; None for measures over all stages."""
    stage_name: str
    """Title of the stage, or of the measure."""
    metric: str
    n: int
    estimate: float | None
    low: float | None
    high: float | None
    chance: float | None = None
    constant: float | None = None
    """Value of the best constant answer."""
    blind_baseline: float | None = None
    """Of answers: highest value of the blind baselines with the same history, or with any where none has it. Of maps:
    highest value of the controls that do not look at the image."""
    human_ceiling: float | None = None
    """Value of readers against readers on the same cases, where there are several."""
    unread: float | None = None
    """Share of the answers, of the stage where it is one, that could not be parsed."""


def result_rows(analyses: Sequence[RunAnalysis]) -> list[ResultRow]:
    """The rows of all groups of runs: by run, then by measure."""
    return [row for analysis in analyses for row in _rows_of_group(analysis)]


def _rows_of_group(analysis: RunAnalysis) -> Iterator[ResultRow]:
    group = analysis.group
    benchmark = group.bench.directory.resolve().name
    for run in group.runs:
        for measure in (*analysis.measures, *analysis.free_text_measures):
            estimate = analysis.headline[run.id, measure.key]
            stage = int(measure.name) if measure.level in STAGE_LEVELS else None
            yield ResultRow(
                protocol=group.protocol,
                benchmark=benchmark,
                run=run.id,
                label=run.name,
                model=run.model,
                history=run.history,
                setting=run.setting,
                level=measure.level,
                stage=stage,
                stage_name=measure.title,
                metric=measure.metric,
                n=estimate.n,
                estimate=estimate.value,
                low=estimate.low,
                high=estimate.high,
                chance=estimate.chance,
                constant=estimate.constant,
                blind_baseline=_blind_baseline(analysis, run, measure),
                human_ceiling=None
                if (ceiling := reader_estimate(analysis, measure)) is None
                else ceiling.value,
                unread=_unread_share(group.outcomes[run.id], stage),
            )


def reader_estimate(analysis: RunAnalysis, measure: Measure) -> Estimate | None:
    """What readers reach against readers in a measure; None where it says nothing of readers, or there is one only."""
    if analysis.ceiling is None or measure.level != "stage":
        return None
    stages = find_protocol(analysis.group.protocol).stages
    score = next((stage.reader_score for stage in stages if stage.number == int(measure.name)), "")
    known = {one.metric: one for one in analysis.ceiling.estimates if not one.name}
    return known.get(METRICS[score]) if score else None


def _blind_baseline(analysis: RunAnalysis, run: ComparedRun, measure: Measure) -> float | None:
    baselines = [one for one in analysis.group.runs if one.is_baseline]
    baselines = [one for one in baselines if one.history == run.history] or baselines
    values = [analysis.headline[one.id, measure.key].value for one in baselines]
    return max((value for value in values if value is not None), default=None)


def _unread_share(outcomes: Outcomes, stage: int | None) -> float | None:
    answered = outcomes.all_steps.filter(pl.col("state") == "answered")
    if stage is not None:
        answered = answered.filter(pl.col("stage") == stage)
    if answered.is_empty():
        return None
    return answered.filter(pl.col("status") != "ok").height / answered.height
