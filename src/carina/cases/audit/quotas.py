"""Gate: are all cells of the examination filled as they were meant to be?"""

from collections import Counter

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.reasons import Reasons
from carina.cases.audit.record import GateResult, Row
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case


class Quotas:
    """Cases by cell, against the number that was asked for."""

    def __init__(
        self,
        thresholds: Thresholds,
        *,
        per_cell: int | None = None,
        cells: tuple[str, ...] = (),
        skipped: Reasons | None = None,
    ) -> None:
        self._thresholds = thresholds
        self._per_cell = per_cell
        self._cells = cells
        self._skipped = skipped or {}
        self._counts: Counter[str] = Counter()
        self._paths: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()

    def see(self, case: Case) -> None:
        self._counts[case.cell] += 1
        if case.target and case.path:
            self._paths[case.path] += 1
            self._targets[case.target] += 1

    def result(self) -> GateResult:
        cells = {*self._cells, *(f"{target}/{path}" for target in self._targets for path in self._paths)}
        cells |= set(self._counts)
        wanted = self._per_cell or (max(self._counts.values()) if self._counts else 0)
        objections = Objections(self._thresholds.worst)
        rows = []
        for cell in sorted(cells):
            n = self._counts[cell]
            missing = wanted - n
            reasons = self._skipped.get(cell) or self._skipped.get(cell.split("/", 1)[0], {})
            why = ", ".join(f"{reason} ({times})" for reason, times in Counter(reasons).most_common(3))
            what = f"{n} of {wanted} cases" + (f"; studies were left out for: {why}" if why else "")
            if missing > 0:
                objections.add(cell, what, missing)
            rows.append(
                Row(
                    name=cell,
                    n=n,
                    value=min(1.0, n / wanted) if wanted else 1.0,
                    chance=1.0,
                    status="warn" if missing > 0 else "pass",
                    note=what,
                )
            )
        asked = (
            f"{self._per_cell} cases in every cell" if self._per_cell else "all cells as large as the largest"
        )
        return defects(
            "quotas",
            len(cells),
            objections,
            threshold=asked,
            good="Every cell is full.",
            bad="Some cells are not full, so their intervals are wider and tables must say so; more studies fill them.",
            unit="cells",
            grave="warn",
            rows=tuple(rows),
        )
