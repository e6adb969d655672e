"""Gate: do questions presuppose the answers of other questions?

A question that presupposes a finding ("where is the effusion?") answers another ("is there an effusion?"). Such turns
are marked as restating the truth. Marked or not, one that comes before the closed question reveals its answer, and so
does a prompt of the report stage that quotes the reference.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult, Objections, Row
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation, Turn, mentions
from carina.audits.trek.proportions import limited_row, share_row, with_status_of_rows

_REPORT: Final = 8
_PRESUPPOSING: Final = """location severity appearance distribution position description relation trend change prognosis
    advice others"""
PRESUPPOSING: Final = frozenset(
    {*_PRESUPPOSING.split(), "finding box", "finding outlook", "impression from findings"}
)
"""Tasks whose questions presuppose what they name."""


class PresupposedAnswersLimits(Limits, frozen=True):
    """Limits of `presupposed-answers`."""

    marked: Annotated[
        Share,
        Meta(
            description="Share of closed turns of staged conversations that an earlier question, marked as restating, "
            "may answer."
        ),
    ] = 0.05
    unmarked: Annotated[Share, Meta(description="The same for earlier questions that are not marked.")] = 0.0
    restating: Annotated[
        Share,
        Meta(description="Share of turns that may restate the truth, as all questions about attributes do."),
    ] = 0.70


@gate(
    "presupposed-answers",
    title="Presupposed answers",
    meaning="No question reveals the answer of a later closed question by its wording.",
    limits=PresupposedAnswersLimits,
    protocols=("trek",),
    order=450,
)
class PresupposedAnswers(ConversationGate[PresupposedAnswersLimits]):
    """Turns that restate the truth, and closed turns that earlier questions answer."""

    def __init__(self, context: AuditContext, limits: PresupposedAnswersLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._turns: Counter[int] = Counter()
        self._marked: Counter[int] = Counter()
        self._revealed: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        for step in case.steps:
            self._turns[step.stage] += 1
            self._marked[step.stage] += step.restates
        self._closed[case.order] += len(conversation.presence)
        if conversation.presence:
            self._find_revealed(conversation)

    def _find_revealed(self, conversation: Conversation) -> None:
        """Closed turns with the right answer "yes" that an earlier question presupposes."""
        case = conversation.case
        presupposing = [t for t in conversation.turns if t.step.restates or _presupposes(t)]
        if not presupposing:
            return
        for turn in conversation.presence:
            if turn.label != "yes":
                continue
            for before in presupposing:
                if before.at >= turn.at:
                    break
                if mentions(conversation.text, turn.name, before.start, before.answer_start):
                    how = _kind_of(before)
                    self._revealed[f"{case.order} {how}"] += 1
                    if case.order == "staged":
                        what = f"turn {turn.step.id}: {turn.name!r} is presupposed by turn {before.step.id} ({how})"
                        self._objections.add(case.id, what, how != "marked")
                    break

    def result(self) -> GateResult:
        rows = tuple(self._rows()) if self._n else ()
        limits = self.limits
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold=f"in staged conversations, earlier questions answer at most {limits.marked:.1%} of closed "
                f"turns if they are marked as restating, {limits.unmarked:.1%} if not, and no report prompt does; at "
                f"most {limits.restating:.0%} of turns restate (warn)",
                good="Turns that restate the truth are marked, and do not answer closed questions after them.",
                bad="The wording of earlier questions answers some closed questions; ask the closed ones first, or "
                "refer to the dialogue instead of naming the finding.",
                unit="conversations",
                rows=rows,
            )
        )

    def _rows(self) -> Iterator[Row]:
        limits = self.limits
        yield limited_row(
            "turns that restate",
            self._marked.total(),
            self._turns.total(),
            limit=limits.restating,
            context=self.context,
            severity="warn",
        )
        for stage, n in sorted(self._turns.items()):
            if self._marked[stage]:
                yield share_row(
                    f"stage {stage}: turns that restate", self._marked[stage], n, note="for information"
                )
        for how, limit in (
            ("marked", limits.marked),
            ("unmarked", limits.unmarked),
            ("report prompt", 0.0),
        ):
            count, n = self._revealed[f"staged {how}"], self._closed["staged"]
            yield limited_row(
                f"closed turns answered by an earlier question ({how})",
                count,
                n,
                limit=limit,
                context=self.context,
                note=f"{count} of {n} closed turns of staged conversations",
            )
        n = self._closed["shuffled"]
        if n:
            count = sum(times for how, times in self._revealed.items() if how.startswith("shuffled"))
            note = "for information; shuffled conversations are scored separately"
            yield share_row("shuffled: closed turns answered by an earlier question", count, n, note=note)


def _kind_of(turn: Turn) -> str:
    if turn.step.stage == _REPORT:
        return "report prompt"
    return "marked" if turn.step.restates else "unmarked"


def _presupposes(turn: Turn) -> bool:
    return turn.step.stage == _REPORT or (turn.step.task in PRESUPPOSING and turn.label is None)
