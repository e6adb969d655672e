"""Gate: has anything uncertain become a plain "no" (or "yes")?"""

import re
from collections import Counter
from typing import Final

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import graded, limited
from carina.trek.audit.turns import Conversation, Decoder, Turn, flat, forms

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
"""A hedge goes no further than this."""


class Hedged:
    """Labels against hedges in facts, answers and report."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._found: Counter[str] = Counter()
        self._n = self._closed = self._denied = 0

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None or not conversation.presence:
            return
        self._n += 1
        clauses = _hedged_clauses(case)
        for turn in conversation.presence:
            self._closed += 1
            self._denied += turn.label == "no"
            how = _hedge(conversation, turn, clauses)
            if how:
                self._found[how] += 1
                what = f'turn {turn.step.id}: "{turn.label}" about {turn.name!r}, {how}'
                self._objections.add(case.id, what, how == _RECORDED)

    def result(self) -> GateResult:
        limits = self._limits
        rows = tuple(
            limited(
                how,
                self._found[how],
                n,
                limit=limit,
                thresholds=limits.common,
                note=f"{self._found[how]} of {n} turns",
                grave="warn" if how == _REPORT else "fail",
            )
            for how, n, limit in (
                (_RECORDED, self._closed, 0.0),
                (_ANSWER, self._denied, limits.hedged),
                (_REPORT, self._denied, limits.hedged),
            )
        )
        return graded(
            defects(
                "hedged",
                self._n,
                self._objections,
                threshold='nothing recorded as uncertain is answered with "yes" or "no"; at most '
                f'{limits.hedged:.1%} of "no" answers are hedged themselves or about what the report hedges (warn)',
                good="What is uncertain is labelled so, and nothing hedged stands behind a plain answer.",
                bad='Some uncertain findings are answered with a plain "yes" or "no"; label them so or drop them.',
                unit="conversations with closed questions",
                rows=rows if self._n else (),
            )
        )


def _hedge(conversation: Conversation, turn: Turn, clauses: list[str]) -> str | None:
    if any(fact.name == "truth" and fact.text == "uncertain" for fact in turn.step.facts):
        return _RECORDED
    if turn.label != "no":
        return None
    answer = conversation.text[turn.answered : turn.end]
    if any(hedge in answer for hedge in HEDGES):
        return _ANSWER
    if any(form in clause for clause in clauses for form in forms(turn.name)):
        return _REPORT
    return None


def _hedged_clauses(case: Case) -> list[str]:
    """Clauses of the right report that hedge."""
    found = []
    for step in case.steps:
        for section in step.key.sections:
            text = section.text.lower()
            if any(hedge.strip() in text for hedge in HEDGES):
                clauses = (f" {flat(clause)} " for clause in _CLAUSE.split(text))
                found += [clause for clause in clauses if any(hedge in clause for hedge in HEDGES)]
    return found
