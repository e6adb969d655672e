"""Gate: are the findings that are asked about names of the vocabulary?"""

from collections import Counter

from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections
from carina.cases.model import Case
from carina.studies.terms import CONFIRMED, is_known_name, nearest_term


@gate(
    "known-targets",
    title="Known names of findings",
    meaning="Every finding that is asked about has a name of the vocabulary, or one that was confirmed at import.",
    order=85,
    protocols=("ground",),
)
class KnownTargets(Gate[NoLimits]):
    """Probes by the finding that they ask about."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._confirmed = frozenset(context.options.get(CONFIRMED, ()))
        self._cases: Counter[str] = Counter()

    def see(self, case: Case) -> None:
        if case.target is not None:
            self._cases[case.target] += 1

    def result(self) -> GateResult:
        objections = Objections()
        for name, cases in sorted(self._cases.items()):
            if not is_known_name(name, "finding") and name not in self._confirmed:
                nearest = nearest_term(name, kind="finding")
                meant = f"; did you mean {nearest!r}?" if nearest else ""
                objections.add(name, f"not a known name, asked about {cases} times{meant}")
        return self.report_defects(
            len(self._cases),
            objections,
            threshold="no name outside of the vocabulary that was not confirmed at import",
            good="Every finding has a known name.",
            bad="Some findings have names that are not known, so that a misspelling may be asked about as a finding of "
            "its own; say what they mean at import (--categories) and build again.",
            unit="findings",
            severity="warn",
        )
