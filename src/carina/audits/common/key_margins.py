"""Gate: is every number behind an answer key far enough from the value at which the key would change?"""

import math
from collections import Counter
from itertools import chain

from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections, Row
from carina.cases.model import Case, Fact


@gate(
    "key-margins",
    title="Margins of answer keys",
    meaning="Every number behind an answer key lies within the range in which the key holds.",
    order=20,
)
class KeyMargins(Gate[NoLimits]):
    """Gate: every fact with a range lies within it."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._objections = Objections()
        self._stated: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._tightest: dict[str, tuple[float, str]] = {}
        self._n = 0

    def see(self, case: Case) -> None:
        facts = chain(
            (("", fact) for fact in case.facts), *([(s.id, f) for f in s.facts] for s in case.steps)
        )
        with_range = [(step, fact) for step, fact in facts if fact.low is not None or fact.high is not None]
        self._n += bool(with_range)
        for step, fact in with_range:
            name = f"step {step}: {fact.name}" if step else fact.name
            self._stated[name] += 1
            margin = _measure_margin(fact)
            if margin < self._tightest.get(name, (math.inf, ""))[0]:
                self._tightest[name] = margin, case.id
            if not margin >= 0:
                self._outside[name] += 1
                about = f" of {fact.about!r}" if fact.about else ""
                self._objections.add(
                    case.id,
                    f"{name}{about} is {_format_number(fact.value)}, expected {_format_range(fact)}",
                    1e9 if math.isnan(margin) else -margin,
                )

    def result(self) -> GateResult:
        rows = tuple(
            Row(
                name=name,
                n=n,
                value=self._outside[name] / n,
                chance=None,
                limit=0.0,
                status="fail" if self._outside[name] else "pass",
                note=_describe_closest(*self._tightest[name]) if name in self._tightest else "no value",
            )
            for name, n in sorted(self._stated.items())
        )
        return self.report_defects(
            self._n,
            self._objections,
            threshold="every stated number within its range",
            good="Every number behind an answer key lies within the range in which the key holds.",
            bad="Some answer keys rest on numbers outside their range and may be wrong; rebuild or remove these cases.",
            unit="cases with margins",
            rows=rows,
        )


def _measure_margin(fact: Fact) -> float:
    """Distance to the nearer end of the range; negative outside, NaN where the value is missing."""
    if fact.value is None or not math.isfinite(fact.value):
        return math.nan
    below = fact.value - fact.low if fact.low is not None else math.inf
    above = fact.high - fact.value if fact.high is not None else math.inf
    # A value that was rounded when it was written is not outside.
    margin = min(below, above)
    return 0.0 if -1e-9 * max(1.0, abs(fact.value)) <= margin < 0 else margin


def _describe_closest(margin: float, case: str) -> str:
    return f"smallest margin {margin:.4g}, in {case}"


def _format_number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.4g}"


def _format_range(fact: Fact) -> str:
    if fact.low is None:
        return f"at most {_format_number(fact.high)}"
    if fact.high is None:
        return f"at least {_format_number(fact.low)}"
    return f"{_format_number(fact.low)} to {_format_number(fact.high)}"
