"""Models compared with each other and with blind baselines: paired, and corrected for the number of tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from carina.runs.analysis.estimates import Difference, Estimate, Key, apply_holm, difference_between
from carina.runs.analysis.measures import Measure
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import BLIND_MODELS, ComparedRun

Samples = Mapping[tuple[str, Key], pl.DataFrame]
"""Weighted outcomes by run and measure."""
Estimates = Mapping[tuple[str, Key], Estimate]


@dataclass(frozen=True)
class AgainstBlind:
    """A model compared with the blind baseline that comes nearest to it."""

    run: ComparedRun
    baseline: ComparedRun
    differences: tuple[Difference, ...]

    @property
    def not_above(self) -> list[Difference]:
        """Differences whose interval includes 0 or lies below it."""
        return [item for item in self.differences if item.low is not None and item.low <= 0]


def select_samples(
    runs: Sequence[ComparedRun], outcomes: Mapping[str, Outcomes], measures: Sequence[Measure]
) -> dict[tuple[str, Key], pl.DataFrame]:
    """The weighted outcomes of every run and measure."""
    return {(run.id, measure.key): measure.select(outcomes[run.id]) for run in runs for measure in measures}


def compare_models(
    runs: Sequence[ComparedRun], samples: Samples, measures: Sequence[Measure]
) -> list[Difference]:
    """Every pair of runs with the same history, without the oracle; one family of tests for each measure.

    Two blind baselines are not compared with each other.
    """
    pairs = [
        (one, other)
        for one, other in combinations([run for run in runs if not run.is_oracle], 2)
        if one.history == other.history and not (one.is_baseline and other.is_baseline)
    ]
    differences: list[Difference] = []
    for measure in measures:
        family = [_difference(samples, one, other, measure.key) for one, other in pairs]
        differences += apply_holm([item for item in family if item is not None])
    return differences


def find_best(
    runs: Sequence[ComparedRun], samples: Samples, estimates: Estimates, measures: Sequence[Measure]
) -> set[tuple[str, Key]]:
    """Runs and measures in which a run is significantly above the next best.

    Among runs of the same history, without the oracle; the tests of one history are one family.
    """
    best: set[tuple[str, Key]] = set()
    for history in dict.fromkeys(run.history for run in runs):
        rivals = [run for run in runs if run.history == history and not run.is_oracle]
        family = []
        for measure in measures:
            key = measure.key
            scored = [
                (-value, run.id, run) for run in rivals if (value := estimates[run.id, key].value) is not None
            ]
            ranked = [run for _, _, run in sorted(scored)]
            if len(ranked) > 1:
                item = _difference(samples, ranked[0], ranked[1], key)
                family += [item] if item is not None else []
        best |= {
            (item.one, item.key) for item in apply_holm(family) if item.is_significant and item.value > 0
        }
    return best


def compare_with_blind(
    runs: Sequence[ComparedRun], samples: Samples, estimates: Estimates, measures: Sequence[Measure]
) -> list[AgainstBlind]:
    """Every model that sees images, compared with the best baseline of the same history (of any, where none has it)."""
    compared = []
    for run in runs:
        if run.is_baseline or run.is_oracle:
            continue
        baselines = [other for other in runs if other.is_baseline]
        baselines = [other for other in baselines if other.history == run.history] or baselines
        # A baseline that reads no prompt fits every prompt.
        baselines = [
            other
            for other in baselines
            if other.info.model in BLIND_MODELS or other.prompt_settings == run.prompt_settings
        ] or baselines
        if not baselines:
            continue
        last = measures[-1].key
        # Of equals, the one that comes first.
        nearest = max(baselines, key=lambda other: estimates[other.id, last].value or 0.0)
        differences = [_difference(samples, run, nearest, measure.key) for measure in measures]
        compared.append(AgainstBlind(run, nearest, tuple(item for item in differences if item is not None)))
    return compared


def _difference(samples: Samples, one: ComparedRun, other: ComparedRun, key: Key) -> Difference | None:
    return difference_between((one.id, samples[one.id, key]), (other.id, samples[other.id, key]), key)
