"""Models against each other and against baselines that never look: paired, and corrected for how often one looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from carina.report.analyse.figures import Contrast, Figure, Key, contrast, corrected
from carina.report.analyse.headline import Measure
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run

Frames = Mapping[tuple[str, Key], pl.DataFrame]
"""Weighted outcomes by run and measure."""
Figures = Mapping[tuple[str, Key], Figure]


@dataclass(frozen=True)
class AgainstBlind:
    """A model beside the baseline that came nearest to it."""

    run: Run
    baseline: Run
    differences: tuple[Contrast, ...]

    @property
    def not_above(self) -> list[Contrast]:
        """Figures in which its advantage may be none: the interval reaches 0."""
        return [item for item in self.differences if item.low is not None and item.low <= 0]


def frames(
    runs: Sequence[Run], found: Mapping[str, Outcomes], measures: Sequence[Measure]
) -> dict[tuple[str, Key], pl.DataFrame]:
    return {(run.id, measure.key): measure.select(found[run.id]) for run in runs for measure in measures}


def compared(runs: Sequence[Run], told: Frames, measures: Sequence[Measure]) -> list[Contrast]:
    """Every pair of runs with the same history, the oracle apart; one family of tests a measure.

    Two that never look have nothing to be compared in.
    """
    rivals = [
        (one, other)
        for one, other in combinations([run for run in runs if not run.oracle], 2)
        if one.history == other.history and not (one.baseline and other.baseline)
    ]
    made: list[Contrast] = []
    for measure in measures:
        family = [_contrast(told, one, other, measure.key) for one, other in rivals]
        made += corrected([item for item in family if item is not None])
    return made


def best(
    runs: Sequence[Run], told: Frames, figures: Figures, measures: Sequence[Measure]
) -> set[tuple[str, Key]]:
    """Runs and measures in which a run is above the next by more than chance explains.

    Among runs of the same history, the oracle apart; the tests of one history are one family.
    """
    sure: set[tuple[str, Key]] = set()
    for history in dict.fromkeys(run.history for run in runs):
        rivals = [run for run in runs if run.history == history and not run.oracle]
        family = []
        for measure in measures:
            key = measure.key
            scored = [
                (-value, run.id, run) for run in rivals if (value := figures[run.id, key].value) is not None
            ]
            ranked = [run for _, _, run in sorted(scored)]
            if len(ranked) > 1:
                item = _contrast(told, ranked[0], ranked[1], key)
                family += [item] if item is not None else []
        sure |= {
            (item.one, (item.level, item.name, item.metric))
            for item in corrected(family)
            if item.sure and item.value > 0
        }
    return sure


def against_blind(
    runs: Sequence[Run], told: Frames, figures: Figures, measures: Sequence[Measure]
) -> list[AgainstBlind]:
    """Every seeing model beside the best baseline of the same history, or of any where that has none."""
    made = []
    for run in runs:
        if run.baseline or run.oracle:
            continue
        blind = [other for other in runs if other.baseline]
        blind = [other for other in blind if other.history == run.history] or blind
        if not blind:
            continue
        last = measures[-1].key
        # Of equals, the one that is named first.
        nearest = max(blind, key=lambda other: figures[other.id, last].value or 0.0)
        found = [_contrast(told, run, nearest, measure.key) for measure in measures]
        made.append(AgainstBlind(run, nearest, tuple(item for item in found if item is not None)))
    return made


def _contrast(told: Frames, one: Run, other: Run, key: Key) -> Contrast | None:
    return contrast((one.id, told[one.id, key]), (other.id, told[other.id, key]), key)
