"""Correlation of recognition with grounding: over the findings of a model, and over models."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.explanations.analysis.estimates import MapEstimate, estimate_of_run
from carina.explanations.analysis.measures import Measure
from carina.explanations.analysis.read import MapsRun
from carina.explanations.analysis.recognition import AUROC
from carina.stats import Interval, spearman

FEWEST: Final = 3
"""Points from which there is a correlation: two are always in line."""
ENOUGH: Final = 5
"""Points from which it has an interval."""


@dataclass(frozen=True)
class RelationPoint:
    """A finding or a model, with its recognition and its grounding."""

    name: str
    recognition: MapEstimate
    grounding: MapEstimate


@dataclass(frozen=True)
class Relation:
    """Points, and Spearman's correlation over them."""

    run: MapsRun | None
    """None for a relation over models."""
    measure: Measure
    points: tuple[RelationPoint, ...]
    correlation: Interval
    left_out: tuple[MapsRun, ...] = ()
    """Runs on other probes, which a relation over models leaves out."""


def relate_findings(
    run: MapsRun, measure: Measure, recognised: Sequence[MapEstimate], grounded: Sequence[MapEstimate]
) -> Relation:
    """One point for each finding that has both estimates."""
    known = {
        one.name: one for one in recognised if one.metric == AUROC and one.name and one.value is not None
    }
    points = [
        RelationPoint(one.name, known[one.name], one)
        for one in grounded
        if one.level == "finding" and one.metric == measure.variant and one.source == "model"
        if one.name in known and one.value is not None
    ]
    return Relation(run, measure, tuple(points), _correlation(points, None))


def same_probes(runs: Sequence[MapsRun]) -> tuple[list[MapsRun], list[MapsRun]]:
    """Runs on the probes that most runs share (of sets that tie, the larger one), and the other runs."""
    if not runs:
        return [], []
    shared = Counter(run.probes for run in runs)
    most = max(shared, key=lambda probes: (shared[probes], len(probes[0]), len(probes[1])))
    return [run for run in runs if run.probes == most], [run for run in runs if run.probes != most]


def relate_models(
    measure: Measure,
    candidates: Sequence[tuple[MapsRun, MapEstimate | None, MapEstimate | None]],
    left_out: Sequence[MapsRun] = (),
) -> Relation:
    """One point for each run; a replicate draws the runs of one model together."""
    kept = [
        (run, RelationPoint(run.title, recognised, grounded))
        for run, recognised, grounded in candidates
        if recognised is not None and recognised.value is not None
        if grounded is not None and grounded.value is not None
    ]
    models = [run.model for run, _ in kept]
    points = [point for _, point in kept]
    return Relation(None, measure, tuple(points), _correlation(points, models), tuple(left_out))


def _correlation(points: Sequence[RelationPoint], clusters: Sequence[str] | None) -> Interval:
    """Of the points as they are: replicates draw points or models, so the intervals of the points do not enter."""
    groups = len(points) if clusters is None else len(set(clusters))
    if groups < FEWEST:
        return Interval(None, None, None, len(points), groups)
    correlation = spearman(
        np.array([point.recognition.value for point in points], np.float64),
        np.array([point.grounding.value for point in points], np.float64),
        clusters,
    )
    if groups >= ENOUGH:
        return correlation
    return Interval(correlation.value, None, None, correlation.n, correlation.clusters)


def correlation_estimate(relation: Relation, first: MapsRun) -> MapEstimate:
    """A row of the tables; a relation over models is listed under the first run."""
    run = relation.run or first
    level = "correlation over models" if relation.run is None else "correlation over findings"
    return estimate_of_run(
        run, level=level, name=AUROC, metric=relation.measure.variant, interval=relation.correlation
    )
