"""What became of every step, stage and case of a run.

A step that failed on the way is neither right nor wrong and is left out; one that was never asked for another reason is
wrong and stays in. A stage of percept is right when all its steps are, as in CheXpercept; elsewhere every step counts
for itself. Everything is sorted, so that the order of rows in a file changes nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

CLOSED: Final = ("choice", "yes_no", "boxes", "map")
"""Formats that always have a right answer; words mostly are only more or less alike."""
_WORDY: Final = ("prompt", "hint", "seen_sha256", "views", "raw", "answer", "boxes", "text", "gold", "error")
"""Columns that only the case browser needs."""
_OPPOSED: Final = {("percept", 1): "LF", ("percept", 2): "RR"}
"""Stages whose answer is the path: the path that stands against the others."""


@dataclass(frozen=True)
class Outcomes:
    """A run's outcomes at three levels, one frame each.

    Columns that all have: `unit` (what is counted), `case`, `cluster` (the patient, or the case where none is known),
    `target`, `path`, `value` (1 right, 0 wrong, or a score), `chance` (None where unknown), and what a fixed answer is
    judged by: `question` (units with the same one would all get it) and `pattern` (what it would have to be, a list of
    steps and answers with a tab between; None among them where a key cannot be said of another case).
    """

    protocol: str
    steps: pl.DataFrame
    """Steps that were answered or never reached; also `step`, `number`, `stage`, `task`, `format`, `closed`."""
    all_steps: pl.DataFrame
    """The rows as they were, incomplete ones too."""

    @cached_property
    def closed(self) -> pl.DataFrame:
        """Steps that have a right answer."""
        return self.steps.filter("closed")

    @cached_property
    def words(self) -> pl.DataFrame:
        """Steps that are answered in words."""
        return self.steps.filter(~pl.col("closed"))

    @cached_property
    def stages(self) -> pl.DataFrame:
        """What a stage's accuracy is a mean of, with `stage` and `side`, which tells opposing paths apart."""
        found = self._joint("case", "stage") if self.protocol == "percept" else self.closed
        side = pl.lit("")
        for (protocol, stage), path in _OPPOSED.items():
            if protocol == self.protocol:
                against = pl.when(pl.col("path") == path).then(pl.lit(path)).otherwise(pl.lit("other"))
                side = pl.when(pl.col("stage") == stage).then(against).otherwise(side)
        return found.with_columns(side=side)

    @cached_property
    def case_stages(self) -> pl.DataFrame:
        """One row a case and stage: whether all its closed steps are right."""
        return self._joint("case", "stage")

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row a complete case: whether every closed step is right."""
        return self._joint("case")

    @cached_property
    def complete(self) -> pl.Series:
        """Ids of the cases of which no step failed on the way."""
        failed = self.all_steps.filter(pl.col("state") == "incomplete")["case"].unique()
        ids = self.all_steps["case"].unique().sort()
        return ids.filter(~ids.is_in(failed.implode()))

    def is_opposed(self, stage: int) -> bool:
        """Whether a stage is reported over opposing paths."""
        return (self.protocol, stage) in _OPPOSED

    def _joint(self, *by: str) -> pl.DataFrame:
        """Closed steps taken together: right when all are; left out where one of them failed on the way."""
        failed = self.all_steps.filter(pl.col("state") == "incomplete").select(by).unique()
        return (
            self.closed.group_by(*by)
            .agg(
                pl.col("cluster", "target", "path").first(),
                value=pl.col("value").min(),
                # A product that holds an unknown chance is unknown.
                chance=pl.when(pl.col("chance").null_count() == 0).then(pl.col("chance").product()),
                pattern=pl.concat_str("step", pl.lit("\t"), "key").sort(),
            )
            .join(failed, on=by, how="anti")
            .with_columns(
                unit=pl.concat_str([pl.col(name).cast(pl.String) for name in by], separator="/"),
                question=pl.concat_str([pl.lit("all"), *(pl.col(name).cast(pl.String) for name in by[1:])]),
            )
            .sort(*by)
        )


def outcomes(steps: pl.DataFrame, protocol: str, keys: pl.DataFrame) -> Outcomes:
    """The outcomes of one protocol's steps in a run; `keys` are right answers in words (`Facts.keys`)."""
    rows = steps.filter(pl.col("protocol") == protocol).drop(_WORDY).sort("case", "number")
    # Some questions are answered in words and yet have one right answer, such as the view.
    closed = pl.col("format").is_in(CLOSED) | pl.col("correct").is_not_null()
    asked = pl.col("state") == "answered"
    right = pl.col("correct").fill_null(value=False).cast(pl.Float64)
    value = (
        pl.when(asked & closed).then(right).when(asked).then(pl.col("score").fill_null(0.0)).otherwise(0.0)
    )
    told = rows.join(keys, on=["case", "step"], how="left", maintain_order="left").with_columns(
        cluster=pl.coalesce("patient", pl.concat_str(pl.lit("case "), "case")),
        closed=closed,
        value=value,
        unit=pl.concat_str("case", pl.lit("/"), "step"),
        question=pl.concat_str("task", pl.lit(", "), "format"),
        pattern=pl.concat_list(pl.concat_str(pl.lit("\t"), "key")),
    )
    return Outcomes(protocol, told.filter(pl.col("state") != "incomplete"), rows)
