"""Gate: do answers that quote a report speak only of what the conversation shows?"""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.facts import quotes_of_report
from carina.audits.trek.proportions import with_status_of_rows
from carina.cases.model import Step
from carina.reports.sections import sentence_spans
from carina.reports.unseen import UNSEEN, find_unseen

_REPORT: Final = 8
_ADVICE: Final = 7


class UnseenContentsLimits(Limits, frozen=True):
    """Limits of `unseen-contents`."""

    max_share: Annotated[
        Share,
        Meta(description="Share of answers that quote a report and speak of something that is not shown."),
    ] = 0.0


@gate(
    "unseen-contents",
    title="Contents that are not shown",
    meaning="No answer that quotes a report compares with an earlier study, or describes a view or an examination, "
    "that the conversation does not show.",
    limits=UnseenContentsLimits,
    protocols=("trek",),
    order=465,
)
class UnseenContents(DefectGate[UnseenContentsLimits]):
    """Sentences of keys that nobody can confirm who sees the images of the conversation."""

    cost = 4.0

    def __init__(self, context: AuditContext, limits: UnseenContentsLimits) -> None:
        super().__init__(context, limits)
        self._answers = 0

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        views = {image.view for image in case.images if image.role == "current"}
        for step in case.steps:
            said = list(_list_sentences(step))
            self._answers += bool(said)
            found = {
                unseen: sentence
                for sentence in reversed(said)
                if (unseen := find_unseen(sentence, views=views, has_prior=case.reference_study is not None))
            }
            for unseen, sentence in sorted(found.items()):
                self._counts[unseen] += 1
                self._objections.add(case.id, f"turn {step.id}: {sentence!r} speaks of {unseen}")

    def result(self) -> GateResult:
        limit = self.limits.max_share
        rows = self.limited_rows((unseen, self._answers, limit) for unseen in UNSEEN)
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold=f"at most {limit:.1%} of answers that quote a report speak of an earlier study, another "
                "examination or a view that is not shown",
                good="What answers quote from reports can be seen on the images of the conversation.",
                bad="Some answers quote sentences about what is not shown; no model can give them. Leave the sentences "
                "out, or show what they speak of.",
                unit="conversations",
                rows=rows if self._answers else (),
            )
        )


def _list_sentences(step: Step) -> Iterator[str]:
    if step.stage not in (_ADVICE, _REPORT):
        return
    texts = quotes_of_report(step)
    if step.stage == _REPORT and not texts and step.key.text:
        texts = [step.key.text]
    for text in texts:
        for start, end in sentence_spans(text):
            yield text[start:end]
