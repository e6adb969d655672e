"""Headline measures of a protocol, and the best constant answer that each is compared with.

A protocol declares which measures these are (`ProtocolInfo.headline`); the score of free text by stage is added where
there is any.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import polars as pl

from carina.cases.protocol import find_protocol, stage_title
from carina.runs.analysis.estimates import Estimate, Key, estimate_share, row_shares, weight_groups
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun

Pattern = tuple[str, ...]
"""Steps and the answers to them, a tab between, in order."""


@dataclass(frozen=True)
class Measure:
    """A column of the headline table: one way to summarise a run."""

    level: str
    name: str
    metric: str
    title: str
    select: Callable[[Outcomes], pl.DataFrame]
    """The run's outcomes with their weights; empty where it has none."""

    @property
    def key(self) -> Key:
        return self.level, self.name, self.metric

    def estimate(self, run: ComparedRun, outcomes: Outcomes) -> Estimate:
        """The estimate of a run; without a value where it has no outcomes of that kind."""
        rows = self.select(outcomes)
        estimate = estimate_share(run, rows, level=self.level, name=self.name, metric=self.metric)
        return msgspec.structs.replace(estimate, constant=best_constant(rows))


def headline_measures(protocol: str, runs: Sequence[Outcomes]) -> list[Measure]:
    """The measures that a protocol declares as its headline, in that order; a level of stages has one for each."""
    stages = sorted({stage for run in runs for stage in run.stages["stage"].unique()})
    info = find_protocol(protocol)
    measures = []
    for declared in info.headline:
        if declared.level == "stage":
            measures += [
                Measure(
                    "stage",
                    str(stage),
                    f"balanced {declared.metric}" if info.is_opposed(stage) else declared.metric,
                    info.stage_title(stage),
                    _select_stage(stage),
                )
                for stage in stages
            ]
        elif declared.level != "macro" or len(stages) > 1:
            select = _SELECT[declared.level]
            measures.append(Measure(declared.level, "", declared.metric, declared.title, select))
    return measures


def free_text_measures(protocol: str, runs: Sequence[Outcomes]) -> list[Measure]:
    """The mean score of free text by stage; reports are a stage of their own."""
    stages = sorted({stage for run in runs for stage in run.free_text["stage"].unique()})
    return [
        Measure("words", str(stage), "mean score", stage_title(protocol, stage), _select_free_text(stage))
        for stage in stages
    ]


def _select_steps(outcomes: Outcomes) -> pl.DataFrame:
    return weight_groups(outcomes.closed)


def _select_cases(outcomes: Outcomes) -> pl.DataFrame:
    return weight_groups(outcomes.cases, "target")


def _select_stage(stage: int) -> Callable[[Outcomes], pl.DataFrame]:
    def select(outcomes: Outcomes) -> pl.DataFrame:
        own = outcomes.stages.filter(pl.col("stage") == stage)
        return weight_groups(_with_both_sides(outcomes, own), "side")

    return select


def _select_stages(outcomes: Outcomes) -> pl.DataFrame:
    # A stage that rests on one patient would weigh as much as the others and have no interval.
    several = outcomes.stages.filter(pl.col("cluster").n_unique().over("stage") > 1)
    return weight_groups(_with_both_sides(outcomes, several), "stage", "side")


_SELECT: Final = {"case": _select_cases, "macro": _select_stages, "micro": _select_steps}
"""What a measure averages, by its level."""


def _select_free_text(stage: int) -> Callable[[Outcomes], pl.DataFrame]:
    def select(outcomes: Outcomes) -> pl.DataFrame:
        own = outcomes.free_text.filter(pl.col("stage") == stage)
        return weight_groups(own.with_columns(chance=None))

    return select


def _with_both_sides(outcomes: Outcomes, stages: pl.DataFrame) -> pl.DataFrame:
    """Without stages of which only one of two opposing paths occurs: one side alone is never reported."""
    opposed = [
        stage for stage in stages["stage"].unique() if find_protocol(outcomes.protocol).is_opposed(stage)
    ]
    sides = pl.col("side").n_unique().over("stage")
    return stages.filter(~pl.col("stage").is_in(opposed) | (sides == 2))


def best_constant(rows: pl.DataFrame) -> float | None:
    """The value that the best constant answers reach on weighted outcomes.

    A constant answer says the same words to every question of a kind: "no" to every detection, "2 zones" to every
    distribution. For a stage or a case of several steps it is one constant answer to each of them, and counts where all
    are right. Someone who always says that there is no lesion has every lesion-free case right: a third of percept.

    Returns:
        The value; None where a key fits one case only, such as a box.
    """
    if rows.is_empty():
        return None
    weights: dict[str, dict[Pattern, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question, pattern, share in zip(rows["question"], rows["pattern"], row_shares(rows), strict=True):
        if pattern is None or None in pattern:
            return None
        weights[question][tuple(pattern)].append(float(share))
    return math.fsum(
        _best_pattern({pattern: math.fsum(shares) for pattern, shares in by_pattern.items()})
        for by_pattern in weights.values()
    )


def _best_pattern(weights: Mapping[Pattern, float]) -> float:
    """The weight that the best pattern covers: units with its steps and answers, and with only some of its steps.

    Of two units that can be right at once, the steps of one are among those of the other: targets without attributes
    end earlier, and paths part by an answer. So the best pattern is that of some unit.
    """
    kinds = {tuple(item.partition("\t")[0] for item in pattern) for pattern in weights}
    best = 0.0
    for pattern in weights:
        answers = {item.partition("\t")[0]: item for item in pattern}
        covered = [tuple(answers[step] for step in kind) for kind in kinds if set(kind) <= answers.keys()]
        best = max(best, math.fsum(weights.get(part, 0.0) for part in covered))
    return best
