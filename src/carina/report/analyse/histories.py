"""One model under two histories: what its own earlier answers cost it, what they are worth, what hints would help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.report.analyse.figures import Contrast, contrast, corrected
from carina.report.analyse.headline import Measure
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run
from carina.report.words import model_name

COMPARED: Final = (("own", "gold"), ("own", "none"), ("hint", "own"))
"""First less second: propagation of a model's errors, worth of its conversation, worth of being told."""
_SAID: Final = ("state", "status", "answer", "label", "boxes", "text")
"""What two runs that answer alike have in common."""


@dataclass(frozen=True)
class HistoryPair:
    """One model under two histories, on the same cases."""

    one: Run
    other: Run
    differences: tuple[Contrast, ...]
    """The first less the second, one a measure; p after Holm's correction over all of them."""
    alike: int | None
    """Number of answers, where all are the same under both: the history does not reach such a model."""

    @property
    def histories(self) -> tuple[str, str]:
        return self.one.history, self.other.history

    @property
    def own(self) -> Run:
        """The run of the model's own answers, which every comparison has."""
        return self.one if self.one.history == "own" else self.other


def history_pairs(
    runs: Sequence[Run], found: Mapping[str, Outcomes], measures: Sequence[Measure], protocol: str
) -> list[HistoryPair]:
    """Every two runs of a model whose histories are compared and that share answered cases, in order of comparisons."""
    told = []
    for first, second in COMPARED:
        for one, other in _of_one_model(runs, first, second):
            made = [
                contrast(
                    (one.id, measure.select(found[one.id])),
                    (other.id, measure.select(found[other.id])),
                    measure.key,
                )
                for measure in measures
            ]
            kept = corrected([item for item in made if item is not None])
            if kept:
                told.append(HistoryPair(one, other, tuple(kept), same_answers(one, other, protocol)))
    return told


def mended_pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Runs of a model's own answers with one in which they were mended: gold where there is such a run, else hint."""
    chosen = {}
    for history in ("hint", "gold"):
        for own, mended in _of_one_model(runs, "own", history):
            chosen[own.id] = (own, mended)
    return [chosen[run.id] for run in runs if run.id in chosen]


def _of_one_model(runs: Sequence[Run], first: str, second: str) -> list[tuple[Run, Run]]:
    return [
        (one, other)
        for one in runs
        if one.history == first
        for other in runs
        if other.history == second and model_name(other.info) == model_name(one.info)
    ]


def same_answers(one: Run, other: Run, protocol: str) -> int | None:
    """How many answers two runs gave, where every one of them is the same in both; None otherwise."""
    said = [
        run.steps.filter(pl.col("protocol") == protocol).select("case", "step", *_SAID)
        for run in (one, other)
    ]
    answered = said[0].filter(pl.col("state") == "answered").height
    return answered if answered and said[0].equals(said[1], null_equal=True) else None
