"""Maps against each other on the same probes: a model and the controls, and one run and another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from carina.report.analyse.figures import Contrast, corrected
from carina.report.ground.figures import ENOUGH
from carina.report.ground.measures import Measure
from carina.report.ground.read import MapsRun
from carina.stats import paired_difference

RIVALS: Final = ("control/mean-region", "control/lungs", "control/centre")
"""Controls that a model has to be above: they know where findings are, and nothing of the image."""
REPLICATES: Final = 2000


@dataclass(frozen=True)
class AgainstControls:
    """A run less each of the controls on its own frames and grid."""

    run: MapsRun
    differences: tuple[Contrast, ...]
    """By control, then by measure; p after Holm's correction over all of them."""

    @property
    def not_above(self) -> list[Contrast]:
        """Where the model is not surely above."""
        return [item for item in self.differences if item.value <= 0 or not item.sure]


def against_controls(run: MapsRun, told: Sequence[Measure]) -> AgainstControls | None:
    """None for controls, and for runs that were scored without any."""
    if run.control:
        return None
    made = [
        item
        for source in RIVALS
        if not (beside := run.of(source)).is_empty()
        for measure in told
        if (item := difference((run.id, run.own), (source, beside), measure)) is not None
    ]
    return AgainstControls(run, tuple(corrected(made))) if made else None


def between(runs: Sequence[MapsRun], told: Sequence[Measure]) -> list[Contrast]:
    """Every two runs on the probes that both have; p after Holm's correction over all pairs of a measure."""
    made: list[Contrast] = []
    for measure in told:
        made += corrected(list(_pairs(runs, measure)))
    return made


def _pairs(runs: Sequence[MapsRun], measure: Measure) -> Iterator[Contrast]:
    for one, other in combinations([run for run in runs if not run.oracle], 2):
        item = difference((one.id, one.own), (other.id, other.own), measure)
        if item is not None:
            yield item


def difference(
    one: tuple[str, pl.DataFrame], other: tuple[str, pl.DataFrame], measure: Measure
) -> Contrast | None:
    """The first less the second, each with the scores of its maps; None where they share no probe."""
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
    found = paired_difference(
        both["value"].to_numpy(),
        both["against"].to_numpy(),
        both["patient"].to_list(),
        replicates=REPLICATES,
    )
    p = 1.0 if found.p is None else found.p
    few = found.clusters < ENOUGH
    return Contrast(
        one=one[0],
        other=other[0],
        level="all",
        name="",
        metric=variant,
        value=found.value or 0.0,
        low=None if few else found.low,
        high=None if few else found.high,
        p=p,
        adjusted=p,
        n=found.n,
    )
