"""Gate: is any question asked twice within a conversation?"""

from collections import defaultdict
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import Conversation, Turn
from carina.audits.trek.proportions import with_status_of_rows
from carina.cases.model import Case, Step

_SAME_WORDS: Final = "the same words"
_SIMILAR_WORDS: Final = "nearly the same words"
_OTHER_WORDS: Final = "the same thing in other words"


class RepeatedQuestionsLimits(Limits, frozen=True):
    """Limits of `repeated-questions`."""

    word_overlap: Annotated[
        Share,
        Meta(
            description="Share of common words above which two questions of one task and target are nearly the same."
        ),
    ] = 0.90
    max_share: Annotated[
        Share, Meta(description="Share of turns that may ask in other words what an earlier turn asks.")
    ] = 0.02


@gate(
    "repeated-questions",
    title="Repeated questions",
    meaning="No conversation asks the same thing twice.",
    limits=RepeatedQuestionsLimits,
    protocols=("trek",),
    order=370,
)
class RepeatedQuestions(DefectGate[RepeatedQuestionsLimits]):
    """The same question, nearly the same question, or the same thing about one target in other words."""

    def __init__(self, context: AuditContext, limits: RepeatedQuestionsLimits) -> None:
        super().__init__(context, limits)
        self._turns = 0

    def examine(self, conversation: Conversation) -> None:
        self._turns += len(conversation.turns)
        questions: dict[tuple[str, tuple[str, ...]], Turn] = {}
        by_target: defaultdict[tuple[object, ...], list[Turn]] = defaultdict(list)
        for turn in conversation.turns:
            step = turn.step
            first = questions.setdefault((step.question, step.depends_on), turn)
            if first is not turn and _option_texts(step) == _option_texts(first.step):
                self._report(conversation.case, turn, first, _SAME_WORDS)
                continue
            here = by_target[step.task, step.format, turn.name, turn.kind]
            if here:
                self._compare(conversation, turn, here)
            here.append(turn)

    def _compare(self, conversation: Conversation, turn: Turn, here: list[Turn]) -> None:
        words = _question_words(conversation, turn)
        subject = _question_subject(turn.step)
        for before in here:
            if _question_subject(before.step) != subject:
                continue  # another image, site or grade
            other = _question_words(conversation, before)
            is_similar = len(words & other) > self.limits.word_overlap * len(words | other)
            self._report(conversation.case, turn, before, _SIMILAR_WORDS if is_similar else _OTHER_WORDS)
            return

    def _report(self, case: Case, turn: Turn, before: Turn, how: str) -> None:
        self._counts[how] += 1
        what = f"turn {turn.step.id}: asks in {how} as turn {before.step.id}"
        if how == _OTHER_WORDS:
            what = f"turn {turn.step.id}: asks {how} as turn {before.step.id}"
        self._objections.add(case.id, what, {_SAME_WORDS: 2.0, _SIMILAR_WORDS: 1.0, _OTHER_WORDS: 0.0}[how])

    def result(self) -> GateResult:
        limits = self.limits
        rows = self.limited_rows(
            (
                (_SAME_WORDS, self._turns, 0.0),
                (_SIMILAR_WORDS, self._turns, 0.0),
                (_OTHER_WORDS, self._turns, limits.max_share),
            )
        )
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold="no question twice in the same or nearly the same words (more than "
                f"{limits.word_overlap:.0%} in common); the same thing again in at most {limits.max_share:.0%} of "
                "turns",
                good="No conversation asks the same thing twice.",
                bad="Some conversations ask the same thing twice, so the first answer reveals the second; remove one.",
                unit="conversations",
                rows=rows if self._n else (),
            )
        )


def _option_texts(step: Step) -> list[str]:
    return [option.text for option in step.options]


def _question_words(conversation: Conversation, turn: Turn) -> set[str]:
    return set(conversation.text[turn.start : turn.answer_start].split())


def _question_subject(step: Step) -> tuple[object, ...]:
    """What distinguishes two questions of one task and target: facts, options, label, images and dependencies."""
    key = step.key
    return step.facts, key.label, key.boxes, step.uses, step.depends_on, tuple(sorted(_option_texts(step)))
