"""Does a model that points right also answer right? Peaks and boxes joined with answers about the same findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.report.exam import Exam
from carina.report.ground.analyse.boxes import BoxRun
from carina.report.ground.figures import ENOUGH, Figure, bounded
from carina.report.ground.measures import Measure
from carina.report.ground.read import MapsRun
from carina.report.read import Run
from carina.stats import Interval, ratio_intervals, ratio_replicates
from carina.stats.interval import interval_of

HIT: Final = 0.5
"""Share of a peak, or of named boxes, in the truth from which it counts as a hit."""
REPLICATES: Final = 2000
_POINTING: Final = ("boxes", "map")
"""Answers that point themselves are not what pointing is compared with."""


@dataclass(frozen=True, eq=False)
class Pointer:
    """Whoever points at findings: a model by its maps, or by boxes."""

    id: str
    title: str
    model: str
    method: str
    sources: frozenset[str]
    """Names of the data that it was asked about."""
    hits: pl.DataFrame
    """`study`, `finding`, `hit`: once each."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Answers about findings, by whether these were pointed at."""

    pointer: Pointer
    exam: Exam
    run: Run
    counts: tuple[tuple[int, int], tuple[int, int]]
    """Hits and misses; of each right and wrong answers."""
    accuracy: tuple[Interval, Interval]
    """After hits and after misses."""
    difference: Interval
    findings: int
    """Findings of studies that are asked about."""

    @property
    def same(self) -> bool:
        """Whether one model did both."""
        return self.pointer.model == self.run.info.model


def by_maps(run: MapsRun, measure: Measure) -> Pointer:
    """A finding that several maps of a study are asked for is hit where they are on average."""
    index = run.maps.table(["id", "study"]).collect().rename({"id": "case"})
    hits = run.own.select("case", "finding", share=measure.variant).drop_nulls().join(index, on="case")
    return Pointer(
        run.id,
        run.title,
        run.model,
        run.method,
        frozenset(one.name for one in run.manifest.sources),
        _once(hits),
    )


def by_boxes(found: BoxRun) -> Pointer:
    hits = found.scores.select("study", "finding", share="box centre")
    sources = frozenset(found.run.steps["source"].unique().to_list())
    return Pointer(found.run.id, found.title, found.run.info.model, "boxes", sources, _once(hits))


def _once(hits: pl.DataFrame) -> pl.DataFrame:
    return hits.group_by("study", "finding").agg(hit=pl.col("share").mean() >= HIT).sort("study", "finding")


def joined(pointers: Sequence[Pointer], exams: Sequence[Exam]) -> list[Joint]:
    """Every pointer with every run that was asked about findings it pointed at."""
    made = []
    for exam in exams:
        about = _about(exam)
        for run in exam.runs:
            if run.oracle:
                continue
            answers = _answers(exam, run, about)
            for pointer in pointers:
                found = _joint(pointer, exam, run, answers)
                if found is not None:
                    made.append(found)
    return made


def _about(exam: Exam) -> pl.DataFrame:
    """What each step is about, where that is one finding: the target of its case, or what the question names."""
    rows = []
    for case in exam.bench.pick(list(exam.cases)):
        for step in case.steps:
            named = {fact.text for fact in step.facts if fact.name == "target" and fact.about == "finding"}
            finding = case.target or (named.pop() if len(named) == 1 else None)
            if finding:
                rows.append((case.id, step.id, finding))
    return pl.DataFrame(rows, dict.fromkeys(("case", "step", "finding"), pl.String), orient="row")


def _answers(exam: Exam, run: Run, about: pl.DataFrame) -> pl.DataFrame:
    """Steps that have a right answer and do not point themselves."""
    steps = exam.outcomes[run.id].closed
    return (
        steps.filter(~pl.col("format").is_in(_POINTING))
        .select("case", "step", "study", "source", "cluster", "value")
        .join(about, on=["case", "step"])
    )


def _joint(pointer: Pointer, exam: Exam, run: Run, answers: pl.DataFrame) -> Joint | None:
    told = answers.filter(pl.col("source").is_in(sorted(pointer.sources))) if pointer.sources else answers
    both = told.join(pointer.hits, on=["study", "finding"]).sort("case", "step")
    if both.is_empty():
        return None
    value, hit = both["value"].to_numpy(), both["hit"].to_numpy()
    table = np.column_stack([np.where(hit, value, np.nan), np.where(hit, np.nan, value)])
    patients = both["cluster"].to_list()
    after_hit, after_miss = ratio_intervals(table, patients, replicates=REPLICATES)
    drawn = ratio_replicates(table, patients, replicates=REPLICATES)
    gap = (
        np.nan if after_hit.value is None or after_miss.value is None else after_hit.value - after_miss.value
    )
    clusters = len(set(patients))
    counts = [(int((value[own] > 0).sum()), int((value[own] == 0).sum())) for own in (hit, ~hit)]
    return Joint(
        pointer,
        exam,
        run,
        (counts[0], counts[1]),
        (bounded(after_hit, counted=True), bounded(after_miss, counted=True)),
        _difference(gap, drawn, both.height, clusters, min(after_hit.clusters, after_miss.clusters)),
        both.select("study", "finding").n_unique(),
    )


def _difference(gap: float, drawn: NDArray[np.float64], n: int, clusters: int, fewest: int) -> Interval:
    """With an interval where hits and misses are of enough patients each."""
    found = interval_of(gap, drawn[:, 0] - drawn[:, 1], level=0.95, n=n, clusters=clusters)
    return found if fewest >= ENOUGH else Interval(found.value, None, None, n, clusters)


def joint_figures(found: Joint) -> list[Figure]:
    """As rows of the tables."""
    told = {
        "accuracy where it points right": found.accuracy[0],
        "accuracy where it points wrong": found.accuracy[1],
        "difference": found.difference,
    }
    for name, (right, wrong) in zip(("hit", "miss"), found.counts, strict=True):
        told |= {
            f"{name}, right answer": Interval(right, None, None, right + wrong, 0),
            f"{name}, wrong answer": Interval(wrong, None, None, right + wrong, 0),
        }
    return [
        Figure(
            run=found.pointer.id,
            model=found.pointer.model,
            method=found.pointer.method,
            source="model",
            level=f"answers to {found.exam.title}",
            name=found.run.id,
            metric=metric,
            value=one.value,
            low=one.low,
            high=one.high,
            n=one.n,
            patients=one.clusters,
        )
        for metric, one in told.items()
    ]
