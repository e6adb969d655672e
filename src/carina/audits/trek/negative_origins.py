"""Gate: where do "no" answers come from, and does the shown text reveal them?

If all negatives are taken from the negations of reports, a model recognises them by knowing what reports usually deny.
Origins are mixed as far as the studies allow it: a set from reports alone has only negatives that they state, and a set
without reports has none of these.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.chance import at_least
from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation, Turn, flatten_text, list_forms
from carina.audits.trek.facts import knows_only_what_is_recorded, negative_origin
from carina.audits.trek.proportions import limited_row, share_row
from carina.cases.model import Case

_ORIGINS: Final = ("stated", "sibling", "sampled")
_MISSING: Final = "no origin stated"


class NegativeOriginsLimits(Limits, frozen=True):
    """Limits of `negative-origins`."""

    missing_origin: Annotated[
        Share, Meta(description='Share of "no" answers about a named finding or device that state no origin.')
    ] = 0.0
    single_origin: Annotated[Share, Meta(description="Share of negatives of one and the same origin.")] = 0.80
    shown_text_gain: Annotated[
        Share,
        Meta(
            description='Accuracy that the rule "yes if the shown text names it" may add to the most frequent answer.'
        ),
    ] = 0.05


@gate(
    "negative-origins",
    title="Origins of negative answers",
    meaning='Every "no" states its origin, origins are mixed, and the shown text does not reveal them.',
    limits=NegativeOriginsLimits,
    protocols=("trek",),
    order=410,
)
class NegativeOrigins(ConversationGate[NegativeOriginsLimits]):
    """Origins of negatives, and what the overlap of terms predicts."""

    def __init__(self, context: AuditContext, limits: NegativeOriginsLimits) -> None:
        super().__init__(context, limits)
        self._origins: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._could_be_other = False
        """Whether a study of the set has negatives that its report does not state."""
        self._has_reports = False
        """Whether a report of the set states anything that is asked about."""
        self._shown: Counter[tuple[bool, str]] = Counter()
        self._report: Counter[tuple[bool, str]] = Counter()

    def examine(self, conversation: Conversation) -> None:
        self._has_reports = self._has_reports or any(step.evidence for step in conversation.case.steps)
        if not conversation.presence:
            return
        case = conversation.case
        report = _report_text(case)
        for turn in conversation.presence:
            if turn.label == "no":
                origin = negative_origin(turn.step)
                known = origin if origin in _ORIGINS else _MISSING
                self._origins[known] += 1
                self._could_be_other |= not knows_only_what_is_recorded(case, turn.kind)
                self._example.setdefault(known, f"{case.id} {turn.step.id}")
            shown = _shown_text(conversation, turn)
            if shown:
                self._shown[_names_target(shown, turn), turn.label or ""] += 1
            if report:
                self._report[_names_target(report, turn), turn.label or ""] += 1

    def result(self) -> GateResult:
        rows = [*self._origin_rows(), *self._overlap_rows()]
        limits = self.limits
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f'every "no" states its origin; no origin has more than {limits.single_origin:.0%} of them; '
            f'"yes if the shown text names it" adds at most {limits.shown_text_gain:g} to the most frequent answer',
            good='Every "no" states its origin, and the shown text does not reveal them; '
            + self._describe_mixture(),
            bad='Some "no" answers state no origin, come from one origin only, or are revealed by the shown text; '
            "sample negatives of other origins.",
            none='No question about a named finding or device is answered with "no".',
        )

    def _describe_mixture(self) -> str:
        if not self._could_be_other:
            return "only reports state that something is absent."
        return "origins are mixed." if self._has_reports else "no report states that something is absent."

    def _explain_only_origin(self, origin: str) -> str | None:
        """Why all negatives of the set may have this origin; None where they may not."""
        if origin == "stated" and not self._could_be_other:
            return "nobody looked for anything beyond the reports, so that there is no other origin"
        if origin == "sampled" and not self._has_reports:
            return "no report states anything, so that what is absent is known from what was looked for"
        return None

    def _origin_rows(self) -> Iterator[Row]:
        n, limits = self._origins.total(), self.limits
        if not n:
            return
        missing = self._origins[_MISSING]
        yield limited_row(
            _MISSING,
            missing,
            n,
            limit=limits.missing_origin,
            context=self.context,
            note=f"{missing} of {n}, as in {self._example[_MISSING]}" if missing else "",
        )
        for origin in _ORIGINS:
            name, count, note = (
                f"origin: {origin}",
                self._origins[origin],
                f"{self._origins[origin]} of {n} negatives",
            )
            only = self._explain_only_origin(origin)
            if only is not None:
                yield share_row(name, count, n, note=f"{note}; {only}")
                continue
            yield limited_row(
                name,
                count,
                n,
                limit=limits.single_origin,
                context=self.context,
                tests=len(_ORIGINS),
                note=note,
            )

    def _overlap_rows(self) -> Iterator[Row]:
        counts = self._shown
        if counts.total():
            hits, majority, n = _score_heuristic(counts)
            limit = min(1.0, majority / n + self.limits.shown_text_gain)
            yield limited_row(
                "heuristic: the shown text names it",
                hits,
                n,
                limit=limit,
                context=self.context,
                note=f"the most frequent answer is right in {majority} of {n}",
            )
        counts = self._report
        if counts.total():
            hits, majority, n = _score_heuristic(counts)
            denied = counts[True, "no"]
            of = denied + counts[False, "no"]
            p = at_least(hits, {majority / n: n})
            yield share_row(
                "heuristic: the hidden report names it",
                hits,
                n,
                chance=majority / n,
                p=p,
                note=f'for information; {denied} of {of} "no" targets are named in the report',
            )


def _score_heuristic(counts: Counter[tuple[bool, str]]) -> tuple[int, int, int]:
    """Hits of the better of "yes if named" and "no if named", hits of the most frequent answer, and questions."""
    right = counts[True, "yes"] + counts[False, "no"]
    n = counts.total()
    yes = counts[True, "yes"] + counts[False, "yes"]
    return max(right, n - right), max(yes, n - yes), n


def _names_target(text: str, turn: Turn) -> bool:
    return any(form in text for form in list_forms(turn.name))


def _shown_text(conversation: Conversation, turn: Turn) -> str:
    """The context that has been shown up to a turn."""
    steps = conversation.case.steps[: turn.at + 1]
    return " ".join(f" {flatten_text(step.context)} " for step in steps if step.context)


def _report_text(case: Case) -> str:
    """The right report, as far as turns of the conversation contain it."""
    texts = [section.text for step in case.steps for section in step.key.sections]
    return " ".join(f" {flatten_text(text)} " for text in texts)
