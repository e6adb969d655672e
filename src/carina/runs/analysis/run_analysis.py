"""Everything that a report says about a group of runs, computed once: tables, figures and page are made from it."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import polars as pl

from carina.cases.protocol import find_protocol
from carina.runs.analysis import counts
from carina.runs.analysis.breakdown import Dimension, break_down, row_dimensions
from carina.runs.analysis.comparisons import (
    AgainstBlind,
    compare_models,
    compare_with_blind,
    find_best,
    select_samples,
)
from carina.runs.analysis.estimates import Difference, Estimate, Key
from carina.runs.analysis.first_errors import after_first_error, first_errors, single_errors
from carina.runs.analysis.histories import (
    HistoryPair,
    compare_histories,
    count_identical_answers,
    pair_with_corrected,
)
from carina.runs.analysis.measures import Measure, free_text_measures, headline_measures
from carina.runs.analysis.reach import (
    ReachCurve,
    paths_with_steps,
    reach_by_stage,
    reach_by_step,
    reach_of_target,
    targets_with_stages,
)
from carina.runs.analysis.readers import READERS, HumanCeiling, find_human_ceiling
from carina.runs.analysis.run_groups import RunGroup
from carina.runs.prices import Prices
from carina.stats import design_effect, minimum_detectable_difference


@dataclass(frozen=True)
class DetectableDifference:
    """The smallest true difference of two models that this benchmark would detect."""

    measure: Measure
    n: int
    patients: int
    accuracy: float
    """Accuracy at which it holds: the mean of the runs."""
    difference: float | None


@dataclass(frozen=True)
class RunAnalysis:
    """All estimates and differences of a group of runs."""

    group: RunGroup
    measures: tuple[Measure, ...]
    free_text_measures: tuple[Measure, ...]
    headline: dict[tuple[str, Key], Estimate]
    """By run, of both kinds of measures."""
    best: set[tuple[str, Key]]
    """Runs and measures in which a run is significantly above the next best."""
    blind: tuple[AgainstBlind, ...]
    differences: tuple[Difference, ...]
    detectable: tuple[DetectableDifference, ...]
    histories: tuple[HistoryPair, ...]
    reach: dict[str, tuple[ReachCurve, ...]]
    """Curves over the stages of all cases ("stages"), and over the steps of each path."""
    target_reach: dict[str, tuple[ReachCurve, ...]]
    """Curves over stages, by target."""
    first_errors: tuple[Estimate, ...]
    single_errors: tuple[Estimate, ...]
    after_first_error: tuple[Estimate, ...]
    dimensions: tuple[Dimension, ...]
    breakdown: tuple[Estimate, ...]
    formats: tuple[Estimate, ...]
    opposing_paths: tuple[Estimate, ...]
    tasks: tuple[Estimate, ...]
    parsing: tuple[Estimate, ...]
    error_kinds: tuple[Estimate, ...]
    cost: tuple[Estimate, ...]
    ceiling: HumanCeiling | None = None
    """Readers against readers on the same cases, where the benchmark has several."""

    @property
    def leading_measure(self) -> Measure:
        """The measure that its protocol declares to summarise a run; the first one where these runs lack it."""
        leading = find_protocol(self.group.protocol).leading
        return next((one for one in self.measures if one.level == leading.level), self.measures[0])

    @property
    def step_tasks(self) -> dict[str, str]:
        """Task of each step, where all steps of one name have the same task, as in percept."""
        steps = pl.concat([one.all_steps.select("step", "task") for one in self.group.outcomes.values()])
        tasks = steps.group_by("step").agg(pl.col("task").unique()).filter(pl.col("task").list.len() == 1)
        return {step: names[0] for step, names in tasks.sort("step").iter_rows()}

    @property
    def tables(self) -> dict[str, list[Estimate]]:
        """All estimates by the table that they belong to."""
        curves = [curve for each in (*self.reach.values(), *self.target_reach.values()) for curve in each]
        return {
            "headline": [*self.headline.values(), *self.opposing_paths],
            "formats": list(self.formats),
            "questions": list(self.tasks),
            "reach": [item for curve in curves for item in curve.estimates],
            "errors": [*self.first_errors, *self.single_errors, *self.after_first_error],
            "breakdown": list(self.breakdown),
            "reading": [*self.parsing, *self.error_kinds],
            "cost": list(self.cost),
            **({} if self.ceiling is None else {READERS: self.ceiling.estimates}),
        }

    @property
    def difference_tables(self) -> dict[str, list[Difference]]:
        """All differences by the table that they belong to."""
        return {
            "comparison": list(self.differences),
            "histories": [item for pair in self.histories for item in pair.differences],
            "against-blind": [item for pair in self.blind for item in pair.differences],
        }


def analyse_group(
    group: RunGroup, prices: Prices, progress: Callable[[], None] = lambda: None
) -> RunAnalysis:
    """Compute all estimates of a group of runs; `progress` is called after every run."""
    outcomes, runs = group.outcomes, group.runs
    all_outcomes = list(outcomes.values())
    measures = tuple(headline_measures(group.protocol, all_outcomes))
    free_text = tuple(free_text_measures(group.protocol, all_outcomes))
    dimensions = (*row_dimensions(all_outcomes), *group.facts.dimensions)
    headline: dict[tuple[str, Key], Estimate] = {}
    estimates: dict[str, list[Estimate]] = {
        name: []
        for name in (
            "first_errors", "single_errors", "breakdown", "formats", "opposing_paths", "tasks", "parsing",
            "error_kinds", "cost",
        )
    }  # fmt: skip
    for run in runs:
        own = outcomes[run.id]
        headline |= {(run.id, measure.key): measure.estimate(run, own) for measure in (*measures, *free_text)}
        estimates["first_errors"] += first_errors(run, own)
        estimates["single_errors"] += single_errors(run, own)
        estimates["breakdown"] += [item for one in dimensions for item in break_down(run, own, one)]
        estimates["formats"] += counts.estimate_formats(run, own)
        estimates["opposing_paths"] += counts.estimate_opposing_paths(run, own)
        estimates["tasks"] += counts.estimate_tasks(run, own)
        estimates["parsing"] += counts.count_parsing(run, own)
        estimates["error_kinds"] += counts.count_error_kinds(run, own)
        estimates["cost"] += counts.sum_cost(run, own, prices.price(run.info.model))
        progress()
    samples = select_samples(runs, outcomes, measures)
    reach = {"stages": tuple(reach_by_stage(run, outcomes[run.id]) for run in runs)}
    for path in paths_with_steps(all_outcomes):
        reach[path] = tuple(reach_by_step(run, outcomes[run.id], path) for run in runs)
    return RunAnalysis(
        group=group,
        measures=measures,
        free_text_measures=free_text,
        headline=headline,
        best=find_best(runs, samples, headline, measures),
        blind=tuple(compare_with_blind(runs, samples, headline, measures)),
        differences=tuple(compare_models(runs, samples, measures)),
        detectable=tuple(_detectable_difference(group, measure) for measure in measures),
        histories=tuple(compare_histories(runs, outcomes, (*measures, *free_text), group.protocol)),
        reach=reach,
        target_reach={
            target: tuple(reach_of_target(run, outcomes[run.id], target) for run in runs)
            for target in targets_with_stages(all_outcomes)
        },
        after_first_error=tuple(
            item
            for own_run, corrected in pair_with_corrected(runs)
            if count_identical_answers(own_run, corrected, group.protocol) is None
            for item in after_first_error(
                (own_run, outcomes[own_run.id]), (corrected, outcomes[corrected.id])
            )
        ),
        dimensions=dimensions,
        ceiling=find_human_ceiling(group.bench, group.cases),
        **{name: tuple(items) for name, items in estimates.items()},
    )


def _detectable_difference(group: RunGroup, measure: Measure) -> DetectableDifference:
    """For two models of the mean accuracy and clustering of these runs whose errors are independent."""
    rivals = [run for run in group.runs if not run.is_oracle] or list(group.runs)
    samples = [measure.select(group.outcomes[run.id]) for run in rivals]
    samples = [item for item in samples if not item.is_empty()]
    if not samples:
        return DetectableDifference(measure, 0, 0, 0.0, None)
    effects = [design_effect(item["value"].to_numpy(), item["cluster"].to_list()) for item in samples]
    known = [effect for effect in effects if effect is not None]
    accuracy = fmean(float(item["value"].to_numpy().mean()) for item in samples)
    n, patients = samples[0].height, samples[0]["cluster"].n_unique()
    difference = None
    if patients > 1 and 0 < accuracy < 1:
        difference = minimum_detectable_difference(
            n, patients, accuracy, effect=max(1.0, fmean(known)) if known else 1.0
        )
    return DetectableDifference(measure, n, patients, accuracy, difference)
