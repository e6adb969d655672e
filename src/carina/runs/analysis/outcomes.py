"""The outcome of every step, stage and case of a run.

A step that ended in a transport error is neither right nor wrong and is left out; a step that was never asked for
another reason is wrong and stays in. Where the protocol says so
(`ProtocolInfo.has_stage_outcomes`), a stage is right when all its steps are, as in CheXpercept; elsewhere every step
counts by itself. All tables are sorted, so that the order of rows in a file changes nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from carina.cases.protocol import find_protocol
from carina.runs.analysis.read import TEXT_SCORES, sort_steps

CLOSED: Final = ("choice", "yes_no", "boxes", "map")
"""Formats that always have a right answer; free text is mostly only more or less similar to its key."""
_UNIT_COLUMNS: Final = (
    "case", "target", "path", "number", "step", "stage", "task", "format", "multiple", "state",
    "gold_label", "kinds", "chance",
)  # fmt: skip
_SCORES: Final = ("overlap", "f1", "iou", "rouge", "entity_f1", "attribute_f1", *TEXT_SCORES)
"""Scores that outcomes have only where the run has them."""
_COUNTED_COLUMNS: Final = (
    "case", "step", "stage", "task", "path", "patient", "state", "status", "obeyed", "seconds", "input_tokens",
    "output_tokens", "images",
)  # fmt: skip
"""Columns that outcomes, and counts of all steps, are made of: as few as possible, because runs are long."""


@dataclass(frozen=True)
class Outcomes:
    """A run's outcomes by step, stage and case, one table each.

    Columns that all of them have: `unit` (what is counted), `case`, `cluster` (the patient, or the case where the
    patient is unknown), `target`, `path`, `value` (1 right, 0 wrong, or a score), `chance` (None where unknown); and
    for the best constant answer `question` (units that would get the same answer) and `pattern` (the right answer as a
    list of steps and answers with a tab between; None among them where the key fits one case only).
    """

    protocol: str
    steps: pl.DataFrame
    """Steps that were answered or not reached; also `step`, `number`, `stage`, `task`, `format`, `closed`."""
    all_steps: pl.DataFrame
    """Every step, also those that ended in a transport error."""

    def score(self, name: str) -> pl.Expr:
        """A score of the steps; null in all of them where the run does not have it."""
        return pl.col(name) if name in self.steps.columns else pl.lit(None, pl.Float64)

    @cached_property
    def closed(self) -> pl.DataFrame:
        """Steps that have a right answer."""
        return self.steps.filter("closed")

    @cached_property
    def free_text(self) -> pl.DataFrame:
        """Steps that are answered in free text without one right answer."""
        return self.steps.filter(~pl.col("closed"))

    @cached_property
    def stages(self) -> pl.DataFrame:
        """The outcomes that the accuracy of a stage averages, with `stage` and `side`, which names opposing paths."""
        info = find_protocol(self.protocol)
        units = self._all_right("case", "stage") if info.has_stage_outcomes else self.closed
        side = pl.lit("")
        for stage in info.stages:
            if stage.is_opposed:
                # Named after a side of one path, if there is one: names decide in which order sides are resampled.
                sides = (stage.positive_paths, stage.negative_paths)
                named = next((paths for paths in sides if len(paths) == 1), stage.positive_paths)
                own = pl.when(pl.col("path").is_in(named)).then(pl.lit(named[0])).otherwise(pl.lit("other"))
                side = pl.when(pl.col("stage") == stage.number).then(own).otherwise(side)
        return units.with_columns(side=side)

    @cached_property
    def case_stages(self) -> pl.DataFrame:
        """One row for each case and stage: whether all its closed steps are right."""
        return self._all_right("case", "stage")

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row for each complete case: whether every closed step is right."""
        return self._all_right("case")

    @cached_property
    def complete(self) -> pl.Series:
        """Ids of the cases without a step that ended in a transport error."""
        failed = self.all_steps.filter(pl.col("state") == "incomplete")["case"].unique()
        ids = self.all_steps["case"].unique().sort()
        return ids.filter(~ids.is_in(failed.implode()))

    def _all_right(self, *by: str) -> pl.DataFrame:
        """Closed steps together: right when all are; left out where one of them ended in a transport error."""
        failed = self.all_steps.filter(pl.col("state") == "incomplete").select(by).unique()
        return (
            self.closed.group_by(*by)
            .agg(
                pl.col("cluster", "target", "path").first(),
                value=pl.col("value").min(),
                # A product with an unknown factor is unknown.
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


def derive_outcomes(steps: pl.DataFrame, protocol: str, keys: pl.DataFrame) -> Outcomes:
    """The outcomes of a run's steps of one protocol; `keys` are the right answers in words, by case and step."""
    rows = sort_steps(steps.filter(pl.col("protocol") == protocol))
    # Some questions are answered in free text and yet have one right answer, such as the view.
    closed = pl.col("format").is_in(CLOSED) | pl.col("correct").is_not_null()
    answered = pl.col("state") == "answered"
    right = pl.col("correct").fill_null(value=False).cast(pl.Float64)
    value = (
        pl.when(answered & closed)
        .then(right)
        .when(answered)
        .then(pl.col("score").fill_null(0.0))
        .otherwise(0.0)
    )
    # Joined by itself: a join of all columns would copy them.
    key = rows.select("case", "step").join(keys, on=["case", "step"], how="left", maintain_order="left")[
        "key"
    ]
    units = rows.with_columns(key).select(
        *_UNIT_COLUMNS,
        *(name for name in _SCORES if rows[name].null_count() < rows.height),
        "key",
        gold=pl.coalesce(pl.col("gold_label").cast(pl.String), pl.col("gold_options").list.join("+")).cast(
            pl.Categorical
        ),
        cluster=pl.coalesce("patient", pl.concat_str(pl.lit("case "), "case")),
        closed=closed,
        value=value,
        unit=pl.concat_str("case", pl.lit("/"), "step"),
        question=pl.concat_str("task", pl.lit(", "), "format").cast(pl.Categorical),
        pattern=pl.concat_list(pl.concat_str(pl.lit("\t"), "key")),
    )
    return Outcomes(protocol, units.filter(pl.col("state") != "incomplete"), rows.select(_COUNTED_COLUMNS))
