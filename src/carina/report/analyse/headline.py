"""The headline: what is measured for each protocol, and every run's figure for it.

For percept: case success as a mean over lesions, each stage (detection and contour check as balanced accuracy over the
opposing paths), and the mean over stages beside the mean over steps. For conversations: accuracy of the questions that
have a right answer by stage, and words by stage apart from them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from carina.report.analyse.constant import best_constant
from carina.report.analyse.figures import Figure, Key, estimate, weighted
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run
from carina.report.words import stage_name


@dataclass(frozen=True)
class Measure:
    """A column of the headline: one way to sum up a run."""

    level: str
    name: str
    metric: str
    title: str
    select: Callable[[Outcomes], pl.DataFrame]
    """The run's outcomes with their weights; empty where it has none."""

    @property
    def key(self) -> Key:
        return self.level, self.name, self.metric

    def of(self, run: Run, found: Outcomes) -> Figure:
        """A run's figure; without a value where it has no outcomes of that kind."""
        rows = self.select(found)
        made = estimate(run, rows, level=self.level, name=self.name, metric=self.metric)
        return msgspec.structs.replace(made, constant=best_constant(rows))


def measures(protocol: str, runs: Sequence[Outcomes]) -> list[Measure]:
    """What is measured of a protocol: figures that have a right answer, the one that leads first."""
    stages = sorted({stage for run in runs for stage in run.stages["stage"].unique()})
    opposed = [stage for stage in stages if any(run.is_opposed(stage) for run in runs)]
    found = []
    if protocol == "percept":
        found.append(Measure("case", "", "mean over targets", "Case success", _cases))
    found += [
        Measure(
            "stage",
            str(stage),
            "balanced accuracy" if stage in opposed else "accuracy",
            stage_name(protocol, stage),
            _stage(stage),
        )
        for stage in stages
    ]
    if len(stages) > 1:
        found.append(Measure("macro", "", "mean over stages", "Mean over stages", _macro))
    found.append(Measure("micro", "", "accuracy", "All steps", _micro))
    return found


def word_measures(protocol: str, runs: Sequence[Outcomes]) -> list[Measure]:
    """How well answers in words match, by stage; reports are a stage of their own."""
    stages = sorted({stage for run in runs for stage in run.words["stage"].unique()})
    return [
        Measure("words", str(stage), "mean score", stage_name(protocol, stage), _words(stage))
        for stage in stages
    ]


def _cases(found: Outcomes) -> pl.DataFrame:
    return weighted(found.cases, "target")


def _stage(stage: int) -> Callable[[Outcomes], pl.DataFrame]:
    def select(found: Outcomes) -> pl.DataFrame:
        return weighted(_both_sides(found, found.stages.filter(pl.col("stage") == stage)), "side")

    return select


def _macro(found: Outcomes) -> pl.DataFrame:
    # A stage that rests on one patient would weigh as much as the others and say nothing of its spread.
    several = found.stages.filter(pl.col("cluster").n_unique().over("stage") > 1)
    return weighted(_both_sides(found, several), "stage", "side")


def _micro(found: Outcomes) -> pl.DataFrame:
    return weighted(found.closed)


def _words(stage: int) -> Callable[[Outcomes], pl.DataFrame]:
    def select(found: Outcomes) -> pl.DataFrame:
        return weighted(found.words.filter(pl.col("stage") == stage).with_columns(chance=None))

    return select


def _both_sides(found: Outcomes, stages: pl.DataFrame) -> pl.DataFrame:
    """Without stages of which only one of two opposing paths is there: that figure never stands alone."""
    opposed = [stage for stage in stages["stage"].unique() if found.is_opposed(stage)]
    sides = pl.col("side").n_unique().over("stage")
    return stages.filter(~pl.col("stage").is_in(opposed) | (sides == 2))
