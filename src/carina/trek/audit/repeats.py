"""Gate: is anything asked twice within a conversation?"""

from collections import Counter, defaultdict
from typing import Final

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case, Step
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import graded, limited
from carina.trek.audit.turns import Conversation, Decoder, Turn

_EXACT: Final = "the same words"
_NEAR: Final = "nearly the same words"
_AGAIN: Final = "the same thing in other words"


class Repeats:
    """The same question, nearly the same, or the same thing about one target."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._found: Counter[str] = Counter()
        self._n = self._turns = 0

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        self._turns += len(conversation.turns)
        asked: dict[tuple[str, tuple[str, ...]], Turn] = {}
        about: defaultdict[tuple[object, ...], list[Turn]] = defaultdict(list)
        for turn in conversation.turns:
            step = turn.step
            first = asked.setdefault((step.question, step.depends_on), turn)
            if first is not turn and _options(step) == _options(first.step):
                self._note(case, turn, first, _EXACT)
                continue
            here = about[step.task, step.format, turn.name, turn.kind]
            if here:
                self._compare(conversation, turn, here)
            here.append(turn)

    def _compare(self, conversation: Conversation, turn: Turn, here: list[Turn]) -> None:
        words = _words(conversation, turn)
        probed = _probed(turn.step)
        for before in here:
            if _probed(before.step) != probed:
                continue  # another image, site or grade
            other = _words(conversation, before)
            near = len(words & other) > self._limits.near * len(words | other)
            self._note(conversation.case, turn, before, _NEAR if near else _AGAIN)
            return

    def _note(self, case: Case, turn: Turn, before: Turn, how: str) -> None:
        self._found[how] += 1
        what = f"turn {turn.step.id}: asks in {how} as turn {before.step.id}"
        if how == _AGAIN:
            what = f"turn {turn.step.id}: asks {how} as turn {before.step.id}"
        self._objections.add(case.id, what, {_EXACT: 2.0, _NEAR: 1.0, _AGAIN: 0.0}[how])

    def result(self) -> GateResult:
        limits = self._limits
        rows = tuple(
            limited(
                how,
                self._found[how],
                self._turns,
                limit=limit,
                thresholds=limits.common,
                note=f"{self._found[how]} of {self._turns} turns",
            )
            for how, limit in ((_EXACT, 0.0), (_NEAR, 0.0), (_AGAIN, limits.again))
        )
        return graded(
            defects(
                "repeats",
                self._n,
                self._objections,
                threshold=f"no question twice in the same or nearly the same words (more than {limits.near:.0%} "
                f"in common); the same thing again in at most {limits.again:.0%} of turns",
                good="Nothing is asked twice within a conversation.",
                bad="Some conversations ask the same thing twice, and the first answer tells the second; drop one.",
                unit="conversations",
                rows=rows if self._n else (),
            )
        )


def _options(step: Step) -> list[str]:
    return [option.text for option in step.options]


def _words(conversation: Conversation, turn: Turn) -> set[str]:
    return set(conversation.text[turn.start : turn.answered].split())


def _probed(step: Step) -> tuple[object, ...]:
    """What tells two questions of one family and target apart: facts, options, label, images and dependencies."""
    key = step.key
    return step.facts, key.label, key.boxes, step.uses, step.depends_on, tuple(sorted(_options(step)))
