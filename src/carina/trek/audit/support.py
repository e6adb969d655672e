"""Gate: does every statement rest on something? On a sentence, on structured truth, or on a person's review."""

from collections import Counter
from typing import Final

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case, Step
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import graded, limited
from carina.trek.audit.turns import Decoder

_UNSUPPORTED: Final = "neither evidence nor structured truth"
_UNEVIDENCED: Final = "no sentence where there is a report"
_UNREVIEWED: Final = "worded by a model and not reviewed"
_REJECTED: Final = "rejected by a review"
_UNEXPLAINED: Final = "rewritten without a reason"
_STATING: Final = frozenset(range(2, 8))
"""Stages that state facts about the study; views and quality are the images', reports are their own evidence."""
_NO_TRUTH: Final = frozenset({"target"})
_WHOLE: Final = frozenset({"study", "region"})
"""Listings and questions about the whole study or a region of it may be about nothing, and nothing has no sentence."""


class Support:
    """What turns rest on, and who has looked at them."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._found: Counter[str] = Counter()
        self._n = self._turns = self._stating = self._reported = 0

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        self._turns += len(case.steps)
        reported = any(step.key.sections for step in case.steps)
        for turn in conversation.turns:
            step = turn.step
            if step.origin.method != "rule" or step.origin.review != "none":
                self._see_origin(case, step)
            none = turn.choices is not None and turn.choices.right.isdisjoint(turn.choices.content)
            if step.stage in _STATING and step.format != "boxes" and turn.kind not in _WHOLE and not none:
                self._see_facts(case, step, reported=reported)

    def _see_facts(self, case: Case, step: Step, *, reported: bool) -> None:
        self._stating += 1
        true = any(fact.name not in _NO_TRUTH for fact in step.facts)
        if not step.evidence and not true:
            self._note(case, step, _UNSUPPORTED)
        # What is drawn as a negative stands in no sentence, by its nature.
        drawn = any(fact.name == "negative" and fact.text != "stated" for fact in step.facts)
        if reported and not drawn:
            self._reported += 1
            self._found[_UNEVIDENCED] += not step.evidence

    def _see_origin(self, case: Case, step: Step) -> None:
        origin = step.origin
        if origin.method == "llm" and origin.review == "none":
            self._note(case, step, _UNREVIEWED)
        if origin.review == "rejected":
            self._note(case, step, _REJECTED)
        if origin.review == "rewritten" and not origin.note:
            self._note(case, step, _UNEXPLAINED)

    def _note(self, case: Case, step: Step, what: str) -> None:
        self._found[what] += 1
        self._objections.add(case.id, f"turn {step.id}: {what}", what == _UNSUPPORTED)

    def result(self) -> GateResult:
        limits = self._limits
        rows = [
            limited(
                what,
                self._found[what],
                n,
                limit=limit,
                thresholds=limits.common,
                note=f"{self._found[what]} of {n} turns",
                grave="warn" if what == _UNEVIDENCED else "fail",
            )
            for what, n, limit in (
                (_UNSUPPORTED, self._stating, limits.unsupported),
                (_UNEVIDENCED, self._reported, limits.unevidenced),
                (_UNREVIEWED, self._turns, 0.0),
                (_REJECTED, self._turns, 0.0),
                (_UNEXPLAINED, self._turns, 0.0),
            )
        ]
        return graded(
            defects(
                "support",
                self._n,
                self._objections,
                threshold=f"at most {limits.unsupported:.1%} of turns of stages 2 to 7 without evidence and structured "
                f"truth; no text of a model that nobody reviewed; at most {limits.unevidenced:.0%} without a sentence "
                "where there is a report (warn)",
                good="Every statement rests on a sentence or on structured truth; no text is an unreviewed model's.",
                bad="Some statements rest on nothing that is stored, or nobody has reviewed who worded them; drop "
                "them or have them reviewed.",
                unit="conversations",
                rows=tuple(rows) if self._n else (),
            )
        )
