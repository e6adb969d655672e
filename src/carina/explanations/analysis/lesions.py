"""Grounding by properties of the lesion: conspicuity, pieces, side, agreement of annotators, view."""

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from carina.cases import Benchmark
from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.estimates import MapEstimate, estimate_of_run
from carina.explanations.analysis.measures import WHOLE_CELLS, Measure
from carina.explanations.analysis.read import MapsRun
from carina.explanations.scoring import MODEL
from carina.runs.analysis.breakdown import Dimension, DimensionTitle
from carina.runs.analysis.case_facts import collect_case_facts
from carina.stats import ratio_intervals

LESION_DIMENSIONS: Final = (
    DimensionTitle.CONSPICUITY,
    DimensionTitle.PIECES,
    DimensionTitle.SIDE,
    DimensionTitle.AGREEMENT,
    DimensionTitle.VIEW,
)
"""Dimensions that are used where the benchmark knows them; the size of the truth has bins of its own."""
REPLICATES: Final = 1000


def lesion_dimensions(bench: Benchmark | None, runs: Sequence[MapsRun]) -> list[Dimension]:
    """Dimensions that divide the scored probes; none where the benchmark was not known."""
    if bench is None:
        return []
    cases = {case for run in runs for case in run.own["case"]}
    known = {one.title: one for one in collect_case_facts(bench, cases)[0].dimensions}
    return [known[title] for title in LESION_DIMENSIONS if title in known]


def estimate_lesions(
    run: MapsRun, measures: Sequence[Measure], dimensions: Iterable[Dimension]
) -> list[MapEstimate]:
    """Means of a run, and of the controls that a model has to exceed, for every part of every dimension."""
    estimates: list[MapEstimate] = []
    variants = (*(one.variant for one in measures), WHOLE_CELLS.variant)
    columns = [name for name in dict.fromkeys(variants) if name in run.scores.columns]
    if not columns:
        return estimates
    for dimension in dimensions:
        rows = run.scores.filter(pl.col("source").is_in([MODEL, *RIVALS])).join(dimension.members, on="case")
        groups = sorted(
            rows.sort("case").group_by("part", "source", maintain_order=True),
            key=lambda item: dimension.labels.index(item[0][0]),
        )
        for (label, source), part in groups:
            means = ratio_intervals(
                part.select(columns).to_numpy(), part["patient"].to_list(), replicates=REPLICATES
            )
            estimates += [
                estimate_of_run(
                    run,
                    source=source,
                    level=dimension.title.lower(),
                    name=label,
                    metric=variant,
                    average="micro",
                    interval=one,
                )
                for variant, one in zip(columns, means, strict=True)
            ]
    return estimates
