"""Gate: does every number that a key rests on keep its distance from where the key would change?"""

import math
from collections import Counter
from itertools import chain

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult, Row
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case, Fact


class Margins:
    """Facts with a range, as stated by whoever built the case."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._objections = Objections(thresholds.worst)
        self._seen: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._tightest: dict[str, tuple[float, str]] = {}
        self._n = 0

    def see(self, case: Case) -> None:
        facts = chain(
            (("", fact) for fact in case.facts), *([(s.id, f) for f in s.facts] for s in case.steps)
        )
        stated = [(step, fact) for step, fact in facts if fact.low is not None or fact.high is not None]
        self._n += bool(stated)
        for step, fact in stated:
            name = f"step {step}: {fact.name}" if step else fact.name
            self._seen[name] += 1
            slack = _slack(fact)
            if slack < self._tightest.get(name, (math.inf, ""))[0]:
                self._tightest[name] = slack, case.id
            if not slack >= 0:
                self._outside[name] += 1
                about = f" of {fact.about!r}" if fact.about else ""
                self._objections.add(
                    case.id,
                    f"{name}{about} is {_number(fact.value)}, expected {_range(fact)}",
                    1e9 if math.isnan(slack) else -slack,
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
                note=_tightest(*self._tightest[name]) if name in self._tightest else "no value",
            )
            for name, n in sorted(self._seen.items())
        )
        return defects(
            "margins",
            self._n,
            self._objections,
            threshold="every stated number within its range",
            good="Every number that a key rests on lies within the range in which the key holds.",
            bad="Some keys rest on numbers outside their range and may be wrong; build those cases anew or drop them.",
            unit="cases with margins",
            rows=rows,
        )


def _slack(fact: Fact) -> float:
    """Distance to the nearer end of the range; negative outside, not a number where there is no value."""
    if fact.value is None or not math.isfinite(fact.value):
        return math.nan
    below = fact.value - fact.low if fact.low is not None else math.inf
    above = fact.high - fact.value if fact.high is not None else math.inf
    # What was rounded when it was written is not outside.
    slack = min(below, above)
    return 0.0 if -1e-9 * max(1.0, abs(fact.value)) <= slack < 0 else slack


def _tightest(slack: float, case: str) -> str:
    return f"closest to its limit by {slack:.4g} in {case}"


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.4g}"


def _range(fact: Fact) -> str:
    if fact.low is None:
        return f"at most {_number(fact.high)}"
    if fact.high is None:
        return f"at least {_number(fact.low)}"
    return f"{_number(fact.low)} to {_number(fact.high)}"
