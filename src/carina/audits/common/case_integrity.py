"""Gate: can every case be asked and scored?"""

from typing import Final

from carina.audits.first_seen import FirstSeen
from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections
from carina.cases.faults import faults
from carina.cases.model import Case

_THRESHOLD: Final = "at least one case; no fault in any case; every id once"


@gate(
    "case-integrity",
    title="Case integrity",
    meaning="Every case can be asked and scored, and no two cases have the same id.",
    order=10,
)
class CaseIntegrity(Gate[NoLimits]):
    """Faults inside cases, and repeated ids."""

    cost = 6.0

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._ids = FirstSeen()
        self._n = 0

    def see(self, case: Case) -> None:
        self._n += 1
        for fault in faults(case):
            self._objections.add(case.id, fault)
        if self._ids.first(case.id, self._n) != self._n:
            self._objections.add(case.id, "another case has the same id")

    def result(self) -> GateResult:
        if not self._n:
            return GateResult(
                name=self.name,
                title=self.title,
                status="fail",
                n=0,
                threshold=_THRESHOLD,
                meaning="The benchmark has no case; build or import some.",
            )
        return self.report_defects(
            self._n,
            self._objections,
            threshold=_THRESHOLD,
            good="Every case can be asked and scored.",
            bad="Some cases cannot be asked or scored as they are; correct or remove them.",
        )
