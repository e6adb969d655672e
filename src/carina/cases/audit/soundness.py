"""Gate: can every case be asked and scored at all?"""

from typing import Final

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult
from carina.cases.audit.register import Firsts
from carina.cases.audit.thresholds import Thresholds
from carina.cases.faults import faults
from carina.cases.model import Case

_THRESHOLD: Final = "one case or more, no fault in any, no id twice"


class Soundness:
    """No fault inside a case, and no id twice."""

    cost = 6.0

    def __init__(self, thresholds: Thresholds) -> None:
        self._objections = Objections(thresholds.worst)
        self._ids = Firsts()
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
                name="soundness",
                status="fail",
                n=0,
                threshold=_THRESHOLD,
                meaning="There is no case, so nothing can be asked; build or import some.",
            )
        return defects(
            "soundness",
            self._n,
            self._objections,
            threshold=_THRESHOLD,
            good="Every case can be asked and scored.",
            bad="Some cases cannot be asked or scored as they stand; mend them or leave them out.",
        )
