"""Bases of trek's gates: one that examines conversations, and one that checks them against named rules."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from carina.audits.gate import AuditContext, Gate, L, NoLimits
from carina.audits.result import GateResult, Objections, Row
from carina.audits.trek.conversation import Conversation, ConversationReader
from carina.audits.trek.proportions import limited_row, share_row
from carina.cases.model import Case


class ConversationGate(Gate[L]):
    """A gate that examines trek conversations and ignores the cases of other protocols."""

    def __init__(self, context: AuditContext, limits: L) -> None:
        super().__init__(context, limits)
        self.decoder = self._reader = context.shared(ConversationReader)
        self._n = 0

    def see(self, case: Case) -> None:
        conversation = self._reader.read(case)
        if conversation is not None:
            self._n += 1
            self.examine(conversation)

    @abstractmethod
    def examine(self, conversation: Conversation) -> None:
        """Examine one conversation."""


class DefectGate(ConversationGate[L]):
    """A gate that counts defects of turns by kind and accepts a share of turns with each."""

    def __init__(self, context: AuditContext, limits: L) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._counts: Counter[str] = Counter()

    def limited_rows(
        self, accepted: Iterable[tuple[str, int, float]], *, warns: str | None = None
    ) -> tuple[Row, ...]:
        """A row for each kind of defect, given with the number of turns and the share of them that is accepted.

        `warns` is the kind that only causes a warning.
        """
        return tuple(
            limited_row(
                kind,
                self._counts[kind],
                n,
                limit=limit,
                context=self.context,
                note=f"{self._counts[kind]} of {n} turns",
                severity="warn" if kind == warns else "fail",
            )
            for kind, n, limit in accepted
        )


class Violation(NamedTuple):
    """A rule that a conversation violates, and where."""

    rule: str
    step: str
    """Id of the turn; "" for the whole conversation."""
    what: str
    """Names the field and the fault."""


class RuleGate(ConversationGate[NoLimits]):
    """A gate that accepts no violation of its rules; every rule has a row in the result.

    A subclass lists its rules and finds their violations.
    """

    rules: ClassVar[tuple[str, ...]]
    threshold: ClassVar[str]
    good: ClassVar[str]
    bad: ClassVar[str]

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._violated: Counter[str] = Counter()

    @abstractmethod
    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        """All violations in a conversation."""

    def examine(self, conversation: Conversation) -> None:
        violated = set()
        for rule, step, what in self.find_violations(conversation):
            self._objections.add(conversation.case.id, f"turn {step}: {what}" if step else what)
            violated.add(rule)
        self._violated.update(violated)

    def result(self) -> GateResult:
        rows = tuple(
            share_row(
                rule,
                self._violated[rule],
                self._n,
                limit=0.0,
                status="fail" if self._violated[rule] else "pass",
                note=f"violated in {self._violated[rule]} of {self._n} conversations"
                if self._violated[rule]
                else "",
            )
            for rule in self.rules
        )
        return self.report_defects(
            self._n,
            self._objections,
            threshold=self.threshold,
            good=self.good,
            bad=self.bad,
            unit="conversations",
            rows=rows if self._n else (),
        )
