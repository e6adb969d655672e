"""What gates without tolerance have in common: each objection breaks a named rule, and every rule has its row."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import share
from carina.trek.audit.turns import Conversation, Decoder


class Broken(NamedTuple):
    """A rule that a conversation breaks, and where."""

    rule: str
    step: str
    """Id of the turn; "" for the whole conversation."""
    what: str
    """Names the field."""


class Ruled(ABC):
    """A gate from rules: a subclass names them and finds what breaks them."""

    name: str
    rules: tuple[str, ...]
    threshold: str
    good: str
    bad: str

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self.limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._broken: Counter[str] = Counter()
        self._n = 0

    @abstractmethod
    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        """All rules that this one breaks."""

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        seen = set()
        for rule, step, what in self.broken(conversation):
            self._objections.add(case.id, f"turn {step}: {what}" if step else what)
            seen.add(rule)
        self._broken.update(seen)

    def result(self) -> GateResult:
        rows = tuple(
            share(
                rule,
                self._broken[rule],
                self._n,
                limit=0.0,
                status="fail" if self._broken[rule] else "pass",
                note=f"broken in {self._broken[rule]} of {self._n} conversations"
                if self._broken[rule]
                else "",
            )
            for rule in self.rules
        )
        return defects(
            self.name,
            self._n,
            self._objections,
            threshold=self.threshold,
            good=self.good,
            bad=self.bad,
            unit="conversations",
            rows=rows if self._n else (),
        )
