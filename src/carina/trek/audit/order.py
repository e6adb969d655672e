"""Gate: is the order that a conversation claims the order that it has, and does no side give a place away?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from carina.cases.audit import GateResult, Row
from carina.trek.audit.limits import Limits
from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.tallies import share
from carina.trek.audit.turns import Conversation, Decoder

_LEAST_TURNS: Final = 12
_LEAST_STAGES: Final = 4
"""A shuffle of fewer turns and stages may well be in order by chance."""
_REPORT: Final = 8
_CLOSED: Final = ("yes_no", "choice")


class Order(Ruled):
    """Stages in the order of turns."""

    name = "order"
    rules = (
        "staged never goes back",
        "shuffled is not in order",
        "no place is asked for in a closed form after its side was told",
    )
    threshold = (
        "staged: no turn of a lower stage after a higher one; shuffled: not in the order of stages; no closed question "
        "about the place of a finding after one about its side"
    )
    good = "The order that each conversation claims is the one that it has, and no side gives a place away."
    bad = (
        "Some conversations claim another order than they have, so they would be scored in the wrong table, or tell a "
        "side before they ask for the place among others of the other side."
    )

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        super().__init__(limits, decoder)
        self._cases: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._after: Counter[str] = Counter()
        self._concordance: Counter[str] = Counter()

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        case = conversation.case
        stages = [step.stage for step in case.steps]
        ordered = all(one <= other for one, other in pairwise(stages))
        self._cases[case.order] += 1
        self._turns[case.order] += len(stages)
        self._concordance[case.order] += 1.0 if ordered else concordance(stages)  # type: ignore[assignment]
        if _REPORT in stages:
            first = stages.index(_REPORT)
            self._after[case.order] += sum(stage != _REPORT for stage in stages[first:])
        if case.order == "staged" and not ordered:
            at = next(at for at, (one, other) in enumerate(pairwise(stages), start=1) if one > other)
            what = f"stage: {stages[at]} after {stages[at - 1]} in a staged conversation"
            yield Broken(self.rules[0], case.steps[at].id, what)
        if (
            case.order == "shuffled"
            and ordered
            and len(stages) >= _LEAST_TURNS
            and len(set(stages)) >= _LEAST_STAGES
        ):
            yield Broken(self.rules[1], "", "order: shuffled, but the turns are in the order of stages")
        yield from self._given_away(conversation)

    def _given_away(self, conversation: Conversation) -> Iterator[Broken]:
        told: set[str] = set()
        for turn in conversation.turns:
            if turn.step.task == "side":
                told.add(turn.name)
            elif turn.step.task == "location" and turn.name in told and turn.step.format in _CLOSED:
                what = (
                    f"question: a closed one about the place of the {turn.name}, whose side was told before"
                )
                yield Broken(self.rules[2], turn.step.id, what)

    def result(self) -> GateResult:
        return msgspec.structs.replace(found := super().result(), rows=(*found.rows, *self._told()))

    def _told(self) -> Iterator[Row]:
        for order, n in sorted(self._cases.items()):
            yield Row(
                name=f"{order}: concordance with the order of stages",
                n=n,
                value=float(self._concordance[order]) / n,
                note="for information; 1 in order, 0 at random",
            )
            yield share(
                f"{order}: turns after the report",
                self._after[order],
                self._turns[order],
                note="for information; they can be read off the right report before them",
            )


def concordance(stages: Sequence[int]) -> float:
    """Of all pairs of turns of different stages, those in order less those not, as a share."""
    seen: Counter[int] = Counter()
    for_, against = 0, 0
    for stage in stages:
        for other, times in seen.items():
            if other < stage:
                for_ += times
            elif other > stage:
                against += times
        seen[stage] += 1
    return (for_ - against) / (for_ + against) if for_ + against else 1.0
