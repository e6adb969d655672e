"""Everything that a report says of one exam, computed once: tables, figures and page are made from it."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from carina.report.analyse import counts
from carina.report.analyse.breakdown import Dimension, broken_down, of_rows
from carina.report.analyse.compare import AgainstBlind, against_blind, best, compared, frames
from carina.report.analyse.errors import first_errors, mended, only_errors
from carina.report.analyse.figures import Contrast, Figure, Key
from carina.report.analyse.headline import Measure, measures, word_measures
from carina.report.analyse.histories import HistoryPair, history_pairs, mended_pairs, same_answers
from carina.report.analyse.reach import (
    Curve,
    by_stage,
    by_step,
    by_target,
    paths_with_steps,
    targets_with_stages,
)
from carina.report.exam import Exam
from carina.report.read import Run
from carina.run.prices import Prices
from carina.stats import design_effect, minimum_detectable_difference


@dataclass(frozen=True)
class Detectable:
    """How small a true difference of two models this benchmark would show."""

    measure: Measure
    n: int
    patients: int
    accuracy: float
    """At which it holds: the mean of the runs."""
    difference: float | None


@dataclass(frozen=True)
class Analysis:
    exam: Exam
    measures: tuple[Measure, ...]
    word_measures: tuple[Measure, ...]
    headline: dict[tuple[str, Key], Figure]
    """Of both kinds of measures, by run."""
    best: set[tuple[str, Key]]
    blind: tuple[AgainstBlind, ...]
    contrasts: tuple[Contrast, ...]
    detectable: tuple[Detectable, ...]
    histories: tuple[HistoryPair, ...]
    reach: dict[str, tuple[Curve, ...]]
    """Curves by the name of what they go over: "stages" of all cases, or steps of a path."""
    target_reach: dict[str, tuple[Curve, ...]]
    """Curves over stages, by target."""
    first: tuple[Figure, ...]
    only: tuple[Figure, ...]
    mended: tuple[Figure, ...]
    dimensions: tuple[Dimension, ...]
    breakdown: tuple[Figure, ...]
    formats: tuple[Figure, ...]
    opposing: tuple[Figure, ...]
    tasks: tuple[Figure, ...]
    reading: tuple[Figure, ...]
    kinds: tuple[Figure, ...]
    cost: tuple[Figure, ...]

    @property
    def lead(self) -> Measure:
        """The figure that sums a run up: success of whole cases, or accuracy over all steps."""
        return self.measures[0] if self.exam.protocol == "percept" else self.measures[-1]

    @property
    def step_tasks(self) -> dict[str, str]:
        """What steps ask, where all of one name ask the same, as percept's do."""
        asked = pl.concat([found.all_steps.select("step", "task") for found in self.exam.outcomes.values()])
        told = asked.group_by("step").agg(pl.col("task").unique()).filter(pl.col("task").list.len() == 1)
        return {step: tasks[0] for step, tasks in told.sort("step").iter_rows()}

    @property
    def figures(self) -> dict[str, list[Figure]]:
        """All figures by the table that they stand in."""
        return {
            "headline": [*self.headline.values(), *self.opposing],
            "formats": list(self.formats),
            "questions": list(self.tasks),
            "reach": [
                item
                for curves in (*self.reach.values(), *self.target_reach.values())
                for curve in curves
                for item in curve.figures
            ],
            "errors": [*self.first, *self.only, *self.mended],
            "breakdown": list(self.breakdown),
            "reading": [*self.reading, *self.kinds],
            "cost": list(self.cost),
        }


def analyse(exam: Exam, prices: Prices, progress: Callable[[], None] = lambda: None) -> Analysis:
    """All figures of an exam; `progress` is told after every run."""
    found, runs = exam.outcomes, exam.runs
    asked = tuple(measures(exam.protocol, list(found.values())))
    words = tuple(word_measures(exam.protocol, list(found.values())))
    divided = (*of_rows(list(found.values())), *exam.facts.dimensions)
    headline: dict[tuple[str, Key], Figure] = {}
    gathered: dict[str, list[Figure]] = {
        name: []
        for name in ("first", "only", "breakdown", "formats", "opposing", "tasks", "reading", "kinds", "cost")
    }
    for run in runs:
        told = found[run.id]
        headline |= {(run.id, measure.key): measure.of(run, told) for measure in (*asked, *words)}
        gathered["first"] += first_errors(run, told)
        gathered["only"] += only_errors(run, told)
        gathered["breakdown"] += [item for one in divided for item in broken_down(run, told, one)]
        gathered["formats"] += counts.by_format(run, told)
        gathered["opposing"] += counts.opposing(run, told)
        gathered["tasks"] += counts.by_task(run, told)
        gathered["reading"] += counts.reading(run, told)
        gathered["kinds"] += counts.chosen_kinds(run, told)
        gathered["cost"] += counts.cost(run, told, prices.price(run.info.model))
        progress()
    selected = frames(runs, found, asked)
    reach = {"stages": tuple(by_stage(run, found[run.id]) for run in runs)}
    for path in paths_with_steps(list(found.values())):
        reach[path] = tuple(by_step(run, found[run.id], path) for run in runs)
    return Analysis(
        exam=exam,
        measures=asked,
        word_measures=words,
        headline=headline,
        best=best(runs, selected, headline, asked),
        blind=tuple(against_blind(runs, selected, headline, asked)),
        contrasts=tuple(compared(runs, selected, asked)),
        detectable=tuple(_detectable(exam, measure) for measure in asked),
        histories=tuple(history_pairs(runs, found, (*asked, *words), exam.protocol)),
        reach=reach,
        target_reach={
            target: tuple(by_target(run, found[run.id], target) for run in runs)
            for target in targets_with_stages(list(found.values()))
        },
        mended=tuple(
            item
            for own, other in mended_pairs(runs)
            if same_answers(own, other, exam.protocol) is None
            for item in mended((own, found[own.id]), (other, found[other.id]))
        ),
        dimensions=divided,
        **{name: tuple(items) for name, items in gathered.items()},
    )


def _detectable(exam: Exam, measure: Measure) -> Detectable:
    """For two models as good as these runs on the mean, as spread over patients, erring independently."""
    samples = [measure.select(exam.outcomes[run.id]) for run in _rivals(exam)]
    samples = [item for item in samples if not item.is_empty()]
    if not samples:
        return Detectable(measure, 0, 0, 0.0, None)
    effects = [design_effect(item["value"].to_numpy(), item["cluster"].to_list()) for item in samples]
    known = [effect for effect in effects if effect is not None]
    accuracy = fmean(float(item["value"].to_numpy().mean()) for item in samples)
    n, patients = samples[0].height, samples[0]["cluster"].n_unique()
    difference = None
    if patients > 1 and 0 < accuracy < 1:
        difference = minimum_detectable_difference(
            n, patients, accuracy, effect=max(1.0, fmean(known)) if known else 1.0
        )
    return Detectable(measure, n, patients, accuracy, difference)


def _rivals(exam: Exam) -> list[Run]:
    """Runs that compete: all but the oracle, or the oracle where it is alone."""
    return [run for run in exam.runs if not run.oracle] or list(exam.runs)
