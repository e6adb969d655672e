"""Gate: is a finding that an earlier turn mentions present more often than a new one?

For every closed question about a named finding or device: does the name occur in an earlier question, option or right
answer of the conversation? If "yes" is more frequent for those, a model that only reads scores without the images.
"""

from collections import defaultdict
from typing import Annotated

from msgspec import Meta

from carina.audits.gate import AuditContext, Count, Limits, Share, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek.base import ConversationGate
from carina.audits.trek.conversation import Conversation, mentions, slot_name
from carina.audits.trek.proportions import ShareDifference, share_row

_Group = tuple[str, int, str]


class EarlierMentionsLimits(Limits, frozen=True):
    """Limits of `earlier-mentions`."""

    warn_difference: Annotated[
        Share,
        Meta(description="Difference of P(yes) between mentioned and new names beyond which the gate warns."),
    ] = 0.05
    fail_difference: Annotated[
        Share,
        Meta(description="Difference of P(yes) between mentioned and new names beyond which the gate fails."),
    ] = 0.10
    min_questions: Annotated[
        Count,
        Meta(
            description="Questions about mentioned names, and about new ones, from which they are compared."
        ),
    ] = 30


@gate(
    "earlier-mentions",
    title="Earlier mentions",
    meaning="Whether an earlier turn mentions a finding does not reveal whether it is present.",
    limits=EarlierMentionsLimits,
    protocols=("trek",),
    order=430,
)
class EarlierMentions(ConversationGate[EarlierMentionsLimits]):
    """P(yes) of mentioned names less P(yes) of new names, by order, stage and kind of target."""

    def __init__(self, context: AuditContext, limits: EarlierMentionsLimits) -> None:
        super().__init__(context, limits)
        self._differences: defaultdict[_Group, ShareDifference] = defaultdict(ShareDifference)

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        counts: defaultdict[_Group, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for turn in conversation.closed:
            is_mentioned = mentions(conversation.text, turn.name, 0, turn.start)
            if not is_mentioned and turn.step.slots:
                is_mentioned = mentions(conversation.text, slot_name(turn), 0, turn.start)
            here = counts[case.order, turn.step.stage, turn.kind]
            place = 0 if is_mentioned else 2
            here[place] += turn.label == "yes"
            here[place + 1] += 1
        for group, (yes, n, new_yes, new) in counts.items():
            self._differences[group].add(yes, n, new_yes, new)

    def result(self) -> GateResult:
        limits = self.limits
        groups = {
            group: difference
            for group, difference in sorted(self._differences.items())
            if min(difference.counts)
        }
        tests = sum(self._has_enough(difference) for difference in groups.values())
        rows = [row for group, difference in groups.items() for row in self._rows(group, difference, tests)]
        return self.report_rows(
            rows,
            n=self._n,
            threshold=f"P(yes | mentioned before) - P(yes | new) within {limits.fail_difference:g} in either direction "
            f"(warn beyond {limits.warn_difference:g}); judged from {limits.min_questions} questions of each kind",
            good="Whether an earlier turn mentions a finding does not reveal whether it is present.",
            bad="Findings that earlier turns mention are present more or less often than new ones, so reading replaces "
            "looking; ask also about absent findings that were mentioned, and about present ones that were not.",
            none="No stage has closed questions both about mentioned names and about new ones.",
        )

    def _has_enough(self, difference: ShareDifference) -> bool:
        return min(difference.counts) >= self.limits.min_questions

    def _rows(self, group: _Group, difference: ShareDifference, tests: int) -> tuple[Row, Row]:
        order, stage, kind = group
        limits = self.limits
        status, p = difference.judge(
            self.context, warn=limits.warn_difference, fail=limits.fail_difference, tests=max(tests, 1)
        )
        has_enough = self._has_enough(difference)
        if not has_enough:
            status, p = "pass", 1.0
        low, high = difference.interval()
        (yes, new_yes), (n, new) = difference.yes, difference.counts
        name = f"{stage} {kind}" if order == "staged" else f"{stage} {kind}, {order}"
        right = max(yes + new - new_yes, n - yes + new_yes)
        majority = max(yes + new_yes, n + new - yes - new_yes)
        return (
            Row(
                name=f"{name}: mentioned less new",
                n=n + new,
                value=difference.value(),
                low=low,
                high=high,
                chance=0.0,
                limit=limits.fail_difference,
                p=p,
                status=status,
                note=f"yes in {yes} of {n} mentioned before ({yes / n:.0%}), in {new_yes} of {new} new ones "
                f"({new_yes / new:.0%})" + ("" if has_enough else "; too few to judge"),
            ),
            share_row(
                f"{name}: rule from earlier mentions",
                right,
                n + new,
                chance=majority / (n + new),
                note="for information; chance is the most frequent answer",
            ),
        )
