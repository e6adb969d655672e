"""Gate: does every stratum (lesion x path) hold as many cases as intended?"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections, Row
from carina.cases.model import Case

_PATHS = ("LF", "RF", "RR")


@gate(
    "stratum-quotas",
    title="Cases per stratum",
    meaning="Every stratum (lesion x path) holds as many cases as intended.",
    order=100,
)
class StratumQuotas(Gate[NoLimits]):
    """Cases per stratum, beside the number that the benchmark was built for."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        per_stratum = context.options.get("per_cell")
        self._per_stratum = per_stratum if isinstance(per_stratum, int) else None
        self._intended = _intended_strata(context.options)
        self._counts: Counter[str] = Counter()
        self._paths: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()

    def see(self, case: Case) -> None:
        self._counts[case.cell] += 1
        if case.target and case.path:
            self._paths[case.path] += 1
            self._targets[case.target] += 1

    def result(self) -> GateResult:
        strata = {*self._intended, *(f"{target}/{path}" for target in self._targets for path in self._paths)}
        strata |= set(self._counts)
        wanted = self._per_stratum or (max(self._counts.values()) if self._counts else 0)
        objections = Objections()
        rows = []
        skipped = self.context.skipped
        for stratum in sorted(strata):
            n = self._counts[stratum]
            missing = wanted - n
            reasons = skipped.get(stratum) or skipped.get(stratum.split("/", 1)[0], {})
            why = ", ".join(f"{reason} ({times})" for reason, times in Counter(reasons).most_common(3))
            what = f"{n} of {wanted} cases" + (f"; studies were skipped for: {why}" if why else "")
            if missing > 0:
                objections.add(stratum, what, missing)
            rows.append(
                Row(
                    name=stratum,
                    n=n,
                    value=min(1.0, n / wanted) if wanted else 1.0,
                    chance=1.0,
                    status="warn" if missing > 0 else "pass",
                    note=what,
                )
            )
        return self.report_defects(
            len(strata),
            objections,
            threshold=f"{self._per_stratum} cases in every stratum"
            if self._per_stratum
            else "all strata as large as the largest",
            good="Every stratum is full.",
            bad="Some strata are not full, so their intervals are wider and tables must say so; add studies to fill "
            "them.",
            unit="strata",
            severity="warn",
            rows=tuple(rows),
        )


def _intended_strata(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The strata that a percept benchmark was built for; none for other benchmarks."""
    if options.get("protocol") != "percept" or not isinstance(options.get("targets"), list):
        return ()
    return tuple(f"{target}/{path}" for target in options["targets"] for path in _PATHS)
