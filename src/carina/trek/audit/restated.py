"""Gate: do questions tell what other questions ask?

A question that takes a finding for granted ("where is the effusion?") answers another ("is there an effusion?"). Such
turns are marked. Marked or not, one that comes before the closed question gives its answer away, and so does a prompt
of the report stage that quotes the reference.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from carina.cases.audit import GateResult, Objections, Row, defects
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import graded, limited, share
from carina.trek.audit.turns import Conversation, Decoder, Turn, mentioned

_REPORT: Final = 8
_PRESUMING: Final = """location severity appearance distribution position description relation trend change prognosis
    advice others"""
PRESUMING: Final = frozenset(
    {*_PRESUMING.split(), "finding box", "finding outlook", "impression from findings"}
)
"""Families whose questions take what they name for granted."""


class Restated:
    """Marked turns, and closed turns that earlier questions answer."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._n = 0
        self._turns: Counter[int] = Counter()
        self._marked: Counter[int] = Counter()
        self._told: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        for step in case.steps:
            self._turns[step.stage] += 1
            self._marked[step.stage] += step.restates
        self._closed[case.order] += len(conversation.presence)
        if conversation.presence:
            self._answered(conversation)

    def _answered(self, conversation: Conversation) -> None:
        """Closed turns with a right "yes" that an earlier question has already taken for granted."""
        case = conversation.case
        presuming = [t for t in conversation.turns if t.step.restates or _presumes(t)]
        if not presuming:
            return
        for turn in conversation.presence:
            if turn.label != "yes":
                continue
            for before in presuming:
                if before.at >= turn.at:
                    break
                if mentioned(conversation.text, turn.name, before.start, before.answered):
                    how = _how(before)
                    self._told[f"{case.order} {how}"] += 1
                    if case.order == "staged":
                        what = f"turn {turn.step.id}: {turn.name!r} is told by turn {before.step.id} ({how})"
                        self._objections.add(case.id, what, how != "marked")
                    break

    def result(self) -> GateResult:
        rows = tuple(self._rows()) if self._n else ()
        limits = self._limits
        return graded(
            defects(
                "restated",
                self._n,
                self._objections,
                threshold=f"where staged, an earlier question answers at most {limits.told:.1%} of closed turns "
                f"if it is marked as restating, {limits.told_unmarked:.1%} if it is not, and no report prompt does; at "
                f"most {limits.restating:.0%} of turns restate (warn)",
                good="What restates the truth is marked, and does not answer closed questions after it.",
                bad="Some closed questions are answered by the wording of earlier ones; ask them first, or refer to "
                "the dialogue instead of naming the finding.",
                unit="conversations",
                rows=rows,
            )
        )

    def _rows(self) -> Iterator[Row]:
        limits = self._limits
        yield limited(
            "turns that restate",
            self._marked.total(),
            self._turns.total(),
            limit=limits.restating,
            thresholds=limits.common,
            grave="warn",
        )
        for stage, n in sorted(self._turns.items()):
            if self._marked[stage]:
                yield share(
                    f"stage {stage}: turns that restate", self._marked[stage], n, note="for information"
                )
        for how, limit in (
            ("marked", limits.told),
            ("unmarked", limits.told_unmarked),
            ("report prompt", 0.0),
        ):
            count, n = self._told[f"staged {how}"], self._closed["staged"]
            yield limited(
                f"closed turns answered by an earlier question ({how})",
                count,
                n,
                limit=limit,
                thresholds=limits.common,
                note=f"{count} of {n} closed turns of staged conversations",
            )
        n = self._closed["shuffled"]
        if n:
            count = sum(times for how, times in self._told.items() if how.startswith("shuffled"))
            note = "for information; shuffled conversations are scored apart"
            yield share("shuffled: closed turns answered by an earlier question", count, n, note=note)


def _how(turn: Turn) -> str:
    if turn.step.stage == _REPORT:
        return "report prompt"
    return "marked" if turn.step.restates else "unmarked"


def _presumes(turn: Turn) -> bool:
    return turn.step.stage == _REPORT or (turn.step.task in PRESUMING and turn.label is None)
