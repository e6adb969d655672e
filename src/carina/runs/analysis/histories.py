"""One model under two history policies: the cost of its own earlier answers, their worth, and the gain by hints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.runs.analysis.estimates import Difference, apply_holm, difference_between
from carina.runs.analysis.measures import Measure
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun, model_name, sort_steps

COMPARED: Final = (
    ("own", "gold"),
    ("own", "implicit"),
    ("own", "none"),
    ("hint", "own"),
    ("explicit", "own"),
)
"""First minus second: propagation of a model's errors, worth of its conversation, gain by hints."""
_STATE_COLUMNS: Final = ("case", "number", "protocol", "step", "state", "status")
_ANSWER_COLUMNS: Final = ("answer", "label", "boxes", "text")
"""Columns that are equal where two runs give the same answers."""


@dataclass(frozen=True)
class HistoryPair:
    """One model under two histories, on the same cases."""

    one: ComparedRun
    other: ComparedRun
    differences: tuple[Difference, ...]
    """The first minus the second, one for each measure; p after Holm's correction over all of them."""
    identical_answers: int | None
    """Number of answers, where all are the same under both: the history has no influence on such a model."""

    @property
    def histories(self) -> tuple[str, str]:
        return self.one.history, self.other.history

    @property
    def own(self) -> ComparedRun:
        """The run with the model's own answers in the history, which every comparison has."""
        return self.one if self.one.history == "own" else self.other


def compare_histories(
    runs: Sequence[ComparedRun],
    outcomes: Mapping[str, Outcomes],
    measures: Sequence[Measure],
    protocol: str,
) -> list[HistoryPair]:
    """Every two runs of a model whose histories are compared and that share answered cases."""
    pairs = []
    for first, second in COMPARED:
        for one, other in _runs_of_one_model(runs, first, second):
            differences = [
                difference_between(
                    (one.id, measure.select(outcomes[one.id])),
                    (other.id, measure.select(outcomes[other.id])),
                    measure.key,
                )
                for measure in measures
            ]
            family = apply_holm([item for item in differences if item is not None])
            if family:
                identical = count_identical_answers(one, other, protocol)
                pairs.append(HistoryPair(one, other, tuple(family), identical))
    return pairs


def pair_with_corrected(runs: Sequence[ComparedRun]) -> list[tuple[ComparedRun, ComparedRun]]:
    """Runs with own answers, each with the run of the same model whose answers were corrected: gold, else hint."""
    pairs = {}
    for history in ("explicit", "hint", "implicit", "gold"):
        for own, corrected in _runs_of_one_model(runs, "own", history):
            pairs[own.id] = (own, corrected)
    return [pairs[run.id] for run in runs if run.id in pairs]


def _runs_of_one_model(
    runs: Sequence[ComparedRun], first: str, second: str
) -> list[tuple[ComparedRun, ComparedRun]]:
    return [
        (one, other)
        for one in runs
        if one.history == first
        for other in runs
        if other.history == second and _is_asked_alike(one, other)
    ]


def _is_asked_alike(one: ComparedRun, other: ComparedRun) -> bool:
    """Whether two runs are of one model, asked in the same way but for the history."""
    return (
        model_name(one.info) == model_name(other.info)
        and one.info.policy.profile == other.info.policy.profile
        and one.info.sampling == other.info.sampling
        and one.info.request == other.info.request
        and one.info.max_side == other.info.max_side
        and one.info.weights == other.info.weights
        and one.info.policy.on_wrong == other.info.policy.on_wrong
    )


def count_identical_answers(one: ComparedRun, other: ComparedRun, protocol: str) -> int | None:
    """Number of answers of two runs, where every one of them is the same in both; None otherwise."""
    states = [
        sort_steps(run.table.read(_STATE_COLUMNS).filter(pl.col("protocol") == protocol)).drop("number")
        for run in (one, other)
    ]
    count = states[0].filter(pl.col("state") == "answered").height
    if not count or not states[0].equals(states[1], null_equal=True):
        return None
    digests = [_digest_answers(run, protocol) for run in (one, other)]
    return count if digests[0].equals(digests[1]) else None


def _digest_answers(run: ComparedRun, protocol: str) -> pl.DataFrame:
    """A number for each answer, equal where answers are equal: the answers themselves would fill the memory."""
    columns = ("case", "number", "protocol", *_ANSWER_COLUMNS)
    digests = [pl.DataFrame(schema={"case": pl.String, "number": pl.Int64, "digest": pl.Int64})]
    for batch in run.table.read_batches(columns):
        own = batch.filter(pl.col("protocol") == protocol)
        answers = own.select(_ANSWER_COLUMNS).iter_rows()
        digest = pl.Series("digest", [hash(str(answer)) for answer in answers], dtype=pl.Int64)
        digests.append(own.select("case", "number", digest))
    return pl.concat(digests).sort("case", "number")
