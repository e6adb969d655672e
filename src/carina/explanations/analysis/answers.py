"""Answers about findings, by whether a map or a box points at the finding on the same study."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.explanations.analysis.boxes import BoxRun
from carina.explanations.analysis.estimates import ENOUGH, MapEstimate, limit_bounds
from carina.explanations.analysis.measures import Measure
from carina.explanations.analysis.read import MapsRun
from carina.runs.analysis.case_facts import step_finding
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.run_groups import RunGroup
from carina.stats import Interval, ratio_intervals, ratio_replicates
from carina.stats.interval import interval_of

HIT: Final = 0.5
"""Share of a peak, or of the named boxes, within the truth from which it counts as a hit."""
REPLICATES: Final = 2000
_POINTING: Final = ("boxes", "map")
"""Formats whose answers point themselves, so that they are not compared with pointing."""


@dataclass(frozen=True, eq=False)
class Pointer:
    """A model that points at findings, by its maps or by boxes."""

    id: str
    title: str
    model: str
    method: str
    sources: frozenset[str]
    """Names of the sources of its studies."""
    hits: pl.DataFrame
    """`study`, `finding`, `hit`: once each."""


@dataclass(frozen=True, eq=False)
class PointingAndAnswers:
    """Answers of a run about findings, by whether a pointer hits the finding."""

    pointer: Pointer
    group: RunGroup
    run: ComparedRun
    counts: tuple[tuple[int, int], tuple[int, int]]
    """For hits and for misses: number of right and of wrong answers."""
    accuracy: tuple[Interval, Interval]
    """Estimates for hits and for misses."""
    difference: Interval
    findings: int
    """Number of findings of studies."""

    @property
    def is_same_model(self) -> bool:
        """Whether one model points and answers."""
        return self.pointer.model == self.run.info.model


def point_by_maps(run: MapsRun, measure: Measure) -> Pointer:
    """The hits of a run of maps; a finding with several maps of a study is hit where they are on average."""
    index = run.maps.table(["id", "study"]).collect().rename({"id": "case"})
    hits = run.own.select("case", "finding", share=measure.variant).drop_nulls().join(index, on="case")
    return Pointer(
        run.id,
        run.title,
        run.model,
        run.method,
        frozenset(one.name for one in run.manifest.sources),
        _hits_by_study(hits),
    )


def point_by_boxes(box_run: BoxRun) -> Pointer:
    hits = box_run.scores.select("study", "finding", share="box centre")
    sources = frozenset(box_run.run.index["source"])
    return Pointer(
        box_run.run.id, box_run.title, box_run.run.info.model, "boxes", sources, _hits_by_study(hits)
    )


def _hits_by_study(hits: pl.DataFrame) -> pl.DataFrame:
    return hits.group_by("study", "finding").agg(hit=pl.col("share").mean() >= HIT).sort("study", "finding")


def join_answers(pointers: Sequence[Pointer], groups: Sequence[RunGroup]) -> list[PointingAndAnswers]:
    """Every pointer with every run that answers questions about findings it points at."""
    joined = []
    for group in groups:
        about = _step_findings(group)
        for run in group.runs:
            if run.is_oracle:
                continue
            answers = _answers(group, run, about)
            for pointer in pointers:
                both = _join(pointer, group, run, answers)
                if both is not None:
                    joined.append(both)
    return joined


def _step_findings(group: RunGroup) -> pl.DataFrame:
    """The finding that each step asks about, where it is one."""
    rows = []
    for case in group.bench.pick(list(group.cases)):
        for step in case.steps:
            finding = step_finding(case, step)
            if finding:
                rows.append((case.id, step.id, finding))
    return pl.DataFrame(rows, dict.fromkeys(("case", "step", "finding"), pl.String), orient="row")


def _answers(group: RunGroup, run: ComparedRun, about: pl.DataFrame) -> pl.DataFrame:
    """Closed steps whose answers do not point themselves."""
    steps = group.outcomes[run.id].closed
    return (
        steps.filter(~pl.col("format").is_in(_POINTING))
        .select("case", "step", "cluster", "value")
        .join(about, on=["case", "step"])
        .join(run.index.select("case", "study", "source"), on="case")
    )


def _join(
    pointer: Pointer, group: RunGroup, run: ComparedRun, answers: pl.DataFrame
) -> PointingAndAnswers | None:
    own = answers.filter(pl.col("source").is_in(sorted(pointer.sources))) if pointer.sources else answers
    both = own.join(pointer.hits, on=["study", "finding"]).sort("case", "step")
    if both.is_empty():
        return None
    value, hit = both["value"].to_numpy(), both["hit"].to_numpy()
    table = np.column_stack([np.where(hit, value, np.nan), np.where(hit, np.nan, value)])
    patients = both["cluster"].to_list()
    after_hit, after_miss = ratio_intervals(table, patients, replicates=REPLICATES)
    replicates = ratio_replicates(table, patients, replicates=REPLICATES)
    gap = (
        np.nan if after_hit.value is None or after_miss.value is None else after_hit.value - after_miss.value
    )
    clusters = len(set(patients))
    counts = [(int((value[own] > 0).sum()), int((value[own] == 0).sum())) for own in (hit, ~hit)]
    return PointingAndAnswers(
        pointer,
        group,
        run,
        (counts[0], counts[1]),
        (limit_bounds(after_hit, is_counted=True), limit_bounds(after_miss, is_counted=True)),
        _difference(gap, replicates, both.height, clusters, min(after_hit.clusters, after_miss.clusters)),
        both.select("study", "finding").n_unique(),
    )


def _difference(gap: float, replicates: NDArray[np.float64], n: int, clusters: int, fewest: int) -> Interval:
    """The difference, with an interval where hits and misses rest on enough patients each."""
    interval = interval_of(gap, replicates[:, 0] - replicates[:, 1], level=0.95, n=n, clusters=clusters)
    return interval if fewest >= ENOUGH else Interval(interval.value, None, None, n, clusters)


def answer_estimates(answers: PointingAndAnswers) -> list[MapEstimate]:
    """Rows of the tables."""
    values = {
        "accuracy where it points right": answers.accuracy[0],
        "accuracy where it points wrong": answers.accuracy[1],
        "difference": answers.difference,
    }
    for name, (right, wrong) in zip(("hit", "miss"), answers.counts, strict=True):
        values |= {
            f"{name}, right answer": Interval(right, None, None, right + wrong, 0),
            f"{name}, wrong answer": Interval(wrong, None, None, right + wrong, 0),
        }
    return [
        MapEstimate(
            run=answers.pointer.id,
            model=answers.pointer.model,
            method=answers.pointer.method,
            source="model",
            level=f"answers to {answers.group.title}",
            name=answers.run.id,
            metric=metric,
            value=one.value,
            low=one.low,
            high=one.high,
            n=one.n,
            patients=one.clusters,
        )
        for metric, one in values.items()
    ]
