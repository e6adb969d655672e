"""Propagation: what a model loses at each stage because of its own earlier answers, against mended ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carina.report.analyse.figures import Contrast, contrast, corrected
from carina.report.analyse.headline import Measure
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run


@dataclass(frozen=True)
class Propagation:
    """One model under two histories, on the same cases."""

    own: Run
    mended: Run
    differences: tuple[Contrast, ...]
    """Own less mended: below 0 where earlier errors do harm. One a measure."""


def propagation(
    runs: Sequence[Run], found: Mapping[str, Outcomes], measures: Sequence[Measure]
) -> list[Propagation]:
    """For every model with a run of its own answers and one of mended ones (`gold`, `hint`)."""
    told = []
    for own, mended in pairs(runs):
        made = [
            contrast(
                (own.id, measure.select(found[own.id])),
                (mended.id, measure.select(found[mended.id])),
                measure.key,
            )
            for measure in measures
        ]
        told.append(Propagation(own, mended, tuple(corrected([item for item in made if item is not None]))))
    return told


def pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Runs of one model with its own answers and with mended ones."""
    return [
        (own, mended)
        for own in runs
        if own.history == "own"
        for history in ("gold", "hint")
        for mended in runs
        if mended.history == history and mended.model == own.model
    ]
