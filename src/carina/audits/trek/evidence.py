"""Gate: is every statement supported by a report sentence, by structured truth, or by a reviewer?"""

from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.facts import has_structured_truth, is_sampled_negative
from carina.audits.trek.proportions import with_status_of_rows
from carina.cases.model import Case, Step

_UNSUPPORTED: Final = "neither evidence nor structured truth"
_NO_SENTENCE: Final = "no sentence although there is a report"
_UNREVIEWED: Final = "written by a model and not reviewed"
_REJECTED: Final = "rejected by a reviewer"
_UNEXPLAINED: Final = "rewritten without a reason"
_STATING: Final = frozenset(range(2, 8))
"""Stages that state facts about the study; views and quality concern the images, reports are their own evidence."""
_WHOLE_STUDY: Final = frozenset({"study", "region"})
"""Kinds of targets whose questions may be about the absence of all findings, for which there is no sentence."""


class EvidenceLimits(Limits, frozen=True):
    """Limits of `evidence`."""

    unsupported: Annotated[
        Share,
        Meta(description="Share of turns that state a fact with neither evidence nor structured truth."),
    ] = 0.01
    without_sentence: Annotated[
        Share,
        Meta(
            description="Share of turns with structured truth but without a report sentence, in conversations that "
            "have a report."
        ),
    ] = 0.50


@gate(
    "evidence",
    title="Evidence of statements",
    meaning="Every statement has a report sentence or structured truth, and a review if a model wrote it.",
    limits=EvidenceLimits,
    protocols=("trek",),
    order=460,
)
class Evidence(DefectGate[EvidenceLimits]):
    """Support of turns, and their review."""

    def __init__(self, context: AuditContext, limits: EvidenceLimits) -> None:
        super().__init__(context, limits)
        self._turns = self._stating = self._reported = 0

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        self._turns += len(case.steps)
        has_report = any(step.key.sections for step in case.steps)
        for turn in conversation.turns:
            step = turn.step
            if step.origin.method != "rule" or step.origin.review != "none":
                self._check_review(case, step)
            is_none = turn.choices is not None and turn.choices.right.isdisjoint(turn.choices.content)
            if (
                step.stage in _STATING
                and step.format != "boxes"
                and turn.kind not in _WHOLE_STUDY
                and not is_none
            ):
                self._check_support(case, step, has_report=has_report)

    def _check_support(self, case: Case, step: Step, *, has_report: bool) -> None:
        self._stating += 1
        if not step.evidence and not has_structured_truth(step):
            self._report(case, step, _UNSUPPORTED)
        # No sentence of the report names a sampled negative.
        if has_report and not is_sampled_negative(step):
            self._reported += 1
            self._counts[_NO_SENTENCE] += not step.evidence

    def _check_review(self, case: Case, step: Step) -> None:
        origin = step.origin
        if origin.method == "llm" and origin.review == "none":
            self._report(case, step, _UNREVIEWED)
        if origin.review == "rejected":
            self._report(case, step, _REJECTED)
        if origin.review == "rewritten" and not origin.note:
            self._report(case, step, _UNEXPLAINED)

    def _report(self, case: Case, step: Step, what: str) -> None:
        self._counts[what] += 1
        self._objections.add(case.id, f"turn {step.id}: {what}", what == _UNSUPPORTED)

    def result(self) -> GateResult:
        limits = self.limits
        rows = self.limited_rows(
            (
                (_UNSUPPORTED, self._stating, limits.unsupported),
                (_NO_SENTENCE, self._reported, limits.without_sentence),
                (_UNREVIEWED, self._turns, 0.0),
                (_REJECTED, self._turns, 0.0),
                (_UNEXPLAINED, self._turns, 0.0),
            ),
            warns=_NO_SENTENCE,
        )
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold=f"at most {limits.unsupported:.1%} of turns of stages 2 to 7 with neither evidence nor "
                f"structured truth; no unreviewed text of a model; at most {limits.without_sentence:.0%} without a "
                "sentence where there is a report (warn)",
                good="Every statement is supported by a sentence or by structured truth; no model text is unreviewed.",
                bad="Some statements have no stored support, or were written by a model and not reviewed; remove them "
                "or have them reviewed.",
                unit="conversations",
                rows=rows if self._n else (),
            )
        )
