"""Grounding by what the lesion is like: how well it is seen, in how many pieces, on which side, how agreed upon."""

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from carina.cases import Benchmark
from carina.ground.explain.scoring import MODEL
from carina.report.analyse.breakdown import Dimension
from carina.report.facts import facts_of
from carina.report.ground.analyse.compare import RIVALS
from carina.report.ground.figures import Figure, of_run
from carina.report.ground.measures import WHOLE_CELLS, Measure
from carina.report.ground.read import MapsRun
from carina.stats import ratio_intervals

DIVIDED: Final = ("Conspicuity", "Pieces", "Side", "Agreement", "View")
"""Divisions of the truth, as far as the benchmark knows them; its size has bins of its own."""
REPLICATES: Final = 1000


def divisions(bench: Benchmark | None, runs: Sequence[MapsRun]) -> list[Dimension]:
    """Those that divide the scored probes; none where the benchmark was not found."""
    if bench is None:
        return []
    cases = {case for run in runs for case in run.own["case"]}
    found = {one.title: one for one in facts_of(bench, cases).dimensions}
    return [found[title] for title in DIVIDED if title in found]


def lesion_figures(run: MapsRun, told: Sequence[Measure], divided: Iterable[Dimension]) -> list[Figure]:
    """Means of a run, and of the controls that a model has to be above, for every part of every division."""
    made: list[Figure] = []
    wanted = (*(one.variant for one in told), WHOLE_CELLS.variant)
    columns = [name for name in dict.fromkeys(wanted) if name in run.scores.columns]
    if not columns:
        return made
    for division in divided:
        rows = run.scores.filter(pl.col("source").is_in([MODEL, *RIVALS])).join(division.of, on="case")
        groups = sorted(
            rows.sort("case").group_by("part", "source", maintain_order=True),
            key=lambda item: division.labels.index(item[0][0]),
        )
        for (label, source), part in groups:
            means = ratio_intervals(
                part.select(columns).to_numpy(), part["patient"].to_list(), replicates=REPLICATES
            )
            made += [
                of_run(
                    run,
                    source=source,
                    level=division.title.lower(),
                    name=label,
                    metric=variant,
                    average="micro",
                    found=one,
                )
                for variant, one in zip(columns, means, strict=True)
            ]
    return made
