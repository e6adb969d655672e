"""Runs of maps compared on the same probes: models with the controls, and runs with each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from carina.explanations.analysis.estimates import ENOUGH
from carina.explanations.analysis.measures import Measure
from carina.explanations.analysis.read import MapsRun
from carina.runs.analysis.estimates import Difference, apply_holm
from carina.stats import paired_difference

RIVALS: Final = ("control/mean-region", "control/lungs", "control/centre")
"""Controls that a model has to exceed: they know where findings usually are, and nothing about the image."""
REPLICATES: Final = 2000


@dataclass(frozen=True)
class AgainstControls:
    """A run minus each of the controls on its own frames and grid."""

    run: MapsRun
    differences: tuple[Difference, ...]
    """By control, then by measure; p after Holm's correction over all of them."""

    @property
    def not_above(self) -> list[Difference]:
        """Differences in which the model is not significantly above the control."""
        return [item for item in self.differences if item.value <= 0 or not item.is_significant]


def compare_with_controls(run: MapsRun, measures: Sequence[Measure]) -> AgainstControls | None:
    """A run compared with its controls; None for controls, and for runs that were scored without any."""
    if run.is_control:
        return None
    differences = [
        item
        for source in RIVALS
        if not (control := run.scores_of(source)).is_empty()
        for measure in measures
        if (item := paired_scores((run.id, run.own), (source, control), measure)) is not None
    ]
    return AgainstControls(run, tuple(apply_holm(differences))) if differences else None


def compare_runs(runs: Sequence[MapsRun], measures: Sequence[Measure]) -> list[Difference]:
    """Every two runs on the probes that both have; p after Holm's correction over all pairs of a measure."""
    differences: list[Difference] = []
    for measure in measures:
        differences += apply_holm(list(_pairs(runs, measure)))
    return differences


def _pairs(runs: Sequence[MapsRun], measure: Measure) -> Iterator[Difference]:
    for one, other in combinations([run for run in runs if not run.is_oracle], 2):
        item = paired_scores((one.id, one.own), (other.id, other.own), measure)
        if item is not None:
            yield item


def paired_scores(
    one: tuple[str, pl.DataFrame], other: tuple[str, pl.DataFrame], measure: Measure
) -> Difference | None:
    """The first minus the second, each with the scores of its maps; None where they share no probe."""
    variant = measure.variant
    if variant not in one[1].columns or variant not in other[1].columns:
        return None
    both = (
        one[1]
        .select("case", "patient", value=variant)
        .join(other[1].select("case", against=variant), on="case")
        .drop_nulls()
        .sort("case")
    )
    if both.is_empty():
        return None
    tested = paired_difference(
        both["value"].to_numpy(),
        both["against"].to_numpy(),
        both["patient"].to_list(),
        replicates=REPLICATES,
    )
    p = 1.0 if tested.p is None else tested.p
    few = tested.clusters < ENOUGH
    return Difference(
        one=one[0],
        other=other[0],
        level="all",
        name="",
        metric=variant,
        value=tested.value or 0.0,
        low=None if few else tested.low,
        high=None if few else tested.high,
        p=p,
        adjusted=p,
        n=tested.n,
    )
