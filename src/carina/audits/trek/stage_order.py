"""Gate: do the turns have the order that the conversation states, and does no side reveal a location?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from carina.audits.gate import AuditContext, NoLimits, gate
from carina.audits.result import GateResult, Row
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import Conversation
from carina.audits.trek.proportions import share_row

_LEAST_TURNS: Final = 12
_LEAST_STAGES: Final = 4
"""Shuffled conversations with fewer turns or stages may be in order by chance."""
_REPORT: Final = 8
_CLOSED: Final = ("yes_no", "choice")


@gate(
    "stage-order",
    title="Order of stages",
    meaning="The turns have the order that their conversation states, and no side reveals a location.",
    protocols=("trek",),
    order=330,
)
class StageOrder(RuleGate):
    """Stages in the order of turns."""

    rules = (
        "staged conversations never return to a lower stage",
        "shuffled conversations are not in order",
        "no closed question about a location after one about its side",
    )
    threshold = (
        "staged: no turn of a lower stage after a higher one; shuffled: not in the order of stages; no closed question "
        "about the location of a finding after one about its side"
    )
    good = "The turns have the order that their conversation states, and no side reveals a location."
    bad = (
        "Some conversations have another order than they state, so they would be scored in the wrong table, or state a "
        "side before they ask for the location with options on the other side."
    )

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._cases: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._after_report: Counter[str] = Counter()
        self._concordance: Counter[str] = Counter()

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        case = conversation.case
        stages = [step.stage for step in case.steps]
        is_ordered = all(one <= other for one, other in pairwise(stages))
        self._cases[case.order] += 1
        self._turns[case.order] += len(stages)
        self._concordance[case.order] += 1.0 if is_ordered else concordance(stages)  # type: ignore[assignment]
        if _REPORT in stages:
            first = stages.index(_REPORT)
            self._after_report[case.order] += sum(stage != _REPORT for stage in stages[first:])
        if case.order == "staged" and not is_ordered:
            at = next(at for at, (one, other) in enumerate(pairwise(stages), start=1) if one > other)
            what = f"stage: {stages[at]} after {stages[at - 1]} in a staged conversation"
            yield Violation(self.rules[0], case.steps[at].id, what)
        if (
            case.order == "shuffled"
            and is_ordered
            and len(stages) >= _LEAST_TURNS
            and len(set(stages)) >= _LEAST_STAGES
        ):
            yield Violation(self.rules[1], "", "order: shuffled, but the turns are in the order of stages")
        yield from self._find_revealed_locations(conversation)

    def _find_revealed_locations(self, conversation: Conversation) -> Iterator[Violation]:
        with_side: set[str] = set()
        for turn in conversation.turns:
            if turn.step.task == "side":
                with_side.add(turn.name)
            elif turn.step.task == "location" and turn.name in with_side and turn.step.format in _CLOSED:
                what = f"question: closed, about the location of the {turn.name}, whose side an earlier turn states"
                yield Violation(self.rules[2], turn.step.id, what)

    def result(self) -> GateResult:
        return msgspec.structs.replace(found := super().result(), rows=(*found.rows, *self._order_rows()))

    def _order_rows(self) -> Iterator[Row]:
        for order, n in sorted(self._cases.items()):
            yield Row(
                name=f"{order}: concordance with the order of stages",
                n=n,
                value=float(self._concordance[order]) / n,
                note="for information; 1 in order, 0 at random",
            )
            yield share_row(
                f"{order}: turns after the report",
                self._after_report[order],
                self._turns[order],
                note="for information; the right report before them states their answers",
            )


def concordance(stages: Sequence[int]) -> float:
    """Share of pairs of turns of different stages that are in order, less the share that are not."""
    earlier: Counter[int] = Counter()
    concordant, discordant = 0, 0
    for stage in stages:
        for other, times in earlier.items():
            if other < stage:
                concordant += times
            elif other > stage:
                discordant += times
        earlier[stage] += 1
    pairs = concordant + discordant
    return (concordant - discordant) / pairs if pairs else 1.0
