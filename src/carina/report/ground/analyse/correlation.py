"""Do models that recognise a finding also find its place? Over findings of a model, and over models."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.report.ground.analyse.recognition import AUROC
from carina.report.ground.figures import Figure, of_run
from carina.report.ground.measures import Measure
from carina.report.ground.read import MapsRun
from carina.stats import Interval, spearman

FEWEST: Final = 3
"""Points that a correlation is told of: two are always in line."""
ENOUGH: Final = 5
"""Points that its interval is told of."""


@dataclass(frozen=True)
class Place:
    """A finding, or a model: how well it is recognised and how well grounded."""

    name: str
    recognition: Figure
    grounding: Figure


@dataclass(frozen=True)
class Relation:
    """Points, and Spearman's correlation over them."""

    run: MapsRun | None
    """None for one over models."""
    measure: Measure
    places: tuple[Place, ...]
    correlation: Interval
    left: tuple[MapsRun, ...] = ()
    """Runs on other probes, which one over models does without."""


def over_findings(
    run: MapsRun, measure: Measure, recognised: Sequence[Figure], grounded: Sequence[Figure]
) -> Relation:
    """One point a finding that has both figures."""
    known = {
        one.name: one for one in recognised if one.metric == AUROC and one.name and one.value is not None
    }
    places = [
        Place(one.name, known[one.name], one)
        for one in grounded
        if one.level == "finding" and one.metric == measure.variant and one.source == "model"
        if one.name in known and one.value is not None
    ]
    return Relation(run, measure, tuple(places), _correlation(places, None))


def same_probes(runs: Sequence[MapsRun]) -> tuple[list[MapsRun], list[MapsRun]]:
    """Runs on the probes that most of them share, on the larger set where sets tie; and the other runs."""
    if not runs:
        return [], []
    shared = Counter(run.probes for run in runs)
    most = max(shared, key=lambda probes: (shared[probes], len(probes[0]), len(probes[1])))
    return [run for run in runs if run.probes == most], [run for run in runs if run.probes != most]


def over_models(
    measure: Measure,
    points: Sequence[tuple[MapsRun, Figure | None, Figure | None]],
    left: Sequence[MapsRun] = (),
) -> Relation:
    """One point a run; runs of one model by several methods are drawn together."""
    kept = [
        (run, Place(run.title, recognised, grounded))
        for run, recognised, grounded in points
        if recognised is not None and recognised.value is not None
        if grounded is not None and grounded.value is not None
    ]
    models = [run.model for run, _ in kept]
    places = [place for _, place in kept]
    return Relation(None, measure, tuple(places), _correlation(places, models), tuple(left))


def _correlation(places: Sequence[Place], clusters: Sequence[str] | None) -> Interval:
    """Of the points as they are: draws are of points, or of models, so how sure each point is does not enter."""
    groups = len(places) if clusters is None else len(set(clusters))
    if groups < FEWEST:
        return Interval(None, None, None, len(places), groups)
    found = spearman(
        np.array([place.recognition.value for place in places], np.float64),
        np.array([place.grounding.value for place in places], np.float64),
        clusters,
    )
    return found if groups >= ENOUGH else Interval(found.value, None, None, found.n, found.clusters)


def correlation_figure(relation: Relation, first: MapsRun) -> Figure:
    """As a row of the tables; one over models stands under the first run."""
    run = relation.run or first
    level = "correlation over models" if relation.run is None else "correlation over findings"
    return of_run(run, level=level, name=AUROC, metric=relation.measure.variant, found=relation.correlation)
