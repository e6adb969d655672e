"""Gate: is any uncertain finding answered with a plain "no" (or "yes")?"""

import re
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import Conversation, Turn, flatten_text, list_forms
from carina.audits.trek.facts import is_recorded_uncertain
from carina.audits.trek.proportions import with_status_of_rows
from carina.cases.model import Case

_RECORDED: Final = "uncertain in the facts"
_ANSWER: Final = "hedged in the answer"
_REPORT: Final = "hedged in the report"
HEDGES: Final = (
    " may ",
    " might ",
    " could ",
    " possible ",
    " possibly ",
    " probable ",
    " probably ",
    " questionable ",
    " suspected ",
    " suspicious ",
    " equivocal ",
    " cannot be excluded ",
    " cannot be ruled out ",
    " cannot exclude ",
    " not excluded ",
    " uncertain ",
    " likely ",
)
_CLAUSE: Final = re.compile(r"[.;,:\n]|\bbut\b|\bwithout\b|\balthough\b|\bno\b")
"""End of a clause, up to which a hedge reaches."""


class UncertainFindingsLimits(Limits, frozen=True):
    """Limits of `uncertain-findings`."""

    hedged_negatives: Annotated[
        Share,
        Meta(
            description='Share of "no" answers that are hedged, or about a finding that the report hedges. A finding '
            'that is recorded as uncertain may never be "no".'
        ),
    ] = 0.01


@gate(
    "uncertain-findings",
    title="Uncertain findings",
    meaning='No uncertain finding is answered with a plain "yes" or "no".',
    limits=UncertainFindingsLimits,
    protocols=("trek",),
    order=420,
)
class UncertainFindings(DefectGate[UncertainFindingsLimits]):
    """Labels beside hedges in facts, answers and report."""

    def __init__(self, context: AuditContext, limits: UncertainFindingsLimits) -> None:
        super().__init__(context, limits)
        self._examined = self._closed = self._negatives = 0

    def examine(self, conversation: Conversation) -> None:
        if not conversation.presence:
            return
        case = conversation.case
        self._examined += 1
        clauses = _hedged_clauses(case)
        for turn in conversation.presence:
            self._closed += 1
            self._negatives += turn.label == "no"
            how = _find_hedge(conversation, turn, clauses)
            if how:
                self._counts[how] += 1
                what = f'turn {turn.step.id}: "{turn.label}" about {turn.name!r}, {how}'
                self._objections.add(case.id, what, how == _RECORDED)

    def result(self) -> GateResult:
        limits = self.limits
        rows = self.limited_rows(
            (
                (_RECORDED, self._closed, 0.0),
                (_ANSWER, self._negatives, limits.hedged_negatives),
                (_REPORT, self._negatives, limits.hedged_negatives),
            ),
            warns=_REPORT,
        )
        return with_status_of_rows(
            self.report_defects(
                self._examined,
                self._objections,
                threshold='no finding recorded as uncertain is answered with "yes" or "no"; at most '
                f'{limits.hedged_negatives:.1%} of "no" answers are hedged, or about findings that the report '
                "hedges (warn)",
                good="Uncertain findings are labelled as uncertain, and no plain answer is hedged.",
                bad='Some uncertain findings are answered with a plain "yes" or "no"; label them as uncertain or '
                "remove them.",
                unit="conversations with closed questions",
                rows=rows if self._examined else (),
            )
        )


def _find_hedge(conversation: Conversation, turn: Turn, clauses: list[str]) -> str | None:
    if is_recorded_uncertain(turn.step):
        return _RECORDED
    if turn.label != "no":
        return None
    answer = conversation.text[turn.answer_start : turn.end]
    if any(hedge in answer for hedge in HEDGES):
        return _ANSWER
    if any(form in clause for clause in clauses for form in list_forms(turn.name)):
        return _REPORT
    return None


def _hedged_clauses(case: Case) -> list[str]:
    """Clauses of the right report that contain a hedge."""
    found = []
    for step in case.steps:
        for section in step.key.sections:
            text = section.text.lower()
            if any(hedge.strip() in text for hedge in HEDGES):
                clauses = (f" {flatten_text(clause)} " for clause in _CLAUSE.split(text))
                found += [clause for clause in clauses if any(hedge in clause for hedge in HEDGES)]
    return found
