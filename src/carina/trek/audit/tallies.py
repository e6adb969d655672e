"""Shares and their differences over conversations, with intervals that know that turns of one conversation go together.

Only sums of products over conversations are kept, so memory does not grow.
"""

import math
from typing import Final

import msgspec

from carina.cases.audit import GateResult, Row, Status, gravest
from carina.cases.audit.chance import Z95, at_least, normal_tail, wilson
from carina.cases.audit.thresholds import Thresholds

_LEAST_SPREAD: Final = 1e-9


class Gap:
    """P(yes) in one group of turns less P(yes) in another, by conversation."""

    def __init__(self) -> None:
        self._sums = [0.0] * 4
        self._products = [[0.0] * 4 for _ in range(4)]

    def add(self, yes: int, n: int, other_yes: int, other_n: int) -> None:
        """One conversation: how many of how many in each group."""
        values = (yes, n, other_yes, other_n)
        for row, one in enumerate(values):
            if one:
                self._sums[row] += one
                line = self._products[row]
                for column, other in enumerate(values):
                    line[column] += one * other

    @property
    def counts(self) -> tuple[int, int]:
        """Turns in each group."""
        return int(self._sums[1]), int(self._sums[3])

    @property
    def yes(self) -> tuple[int, int]:
        """Turns answered with yes in each group."""
        return int(self._sums[0]), int(self._sums[2])

    def value(self) -> float:
        """The difference; there must be turns in both groups."""
        yes, n, other_yes, other_n = self._sums
        return yes / n - other_yes / other_n

    def error(self) -> float:
        """Its standard error: of the residuals of conversations, by the delta method, and at least the binomial one."""
        yes, n, other_yes, other_n = self._sums
        p, q = yes / n, other_yes / other_n
        weights = (1 / n, -p / n, -1 / other_n, q / other_n)
        clustered = sum(
            one * other * self._products[row][column]
            for row, one in enumerate(weights)
            for column, other in enumerate(weights)
        )
        # A share of 0 or 1 has no spread of its own; Wilson's middle has.
        r, s = (yes + 2) / (n + 4), (other_yes + 2) / (other_n + 4)
        binomial = r * (1 - r) / n + s * (1 - s) / other_n
        return math.sqrt(max(clustered, binomial, _LEAST_SPREAD**2))

    def interval(self) -> tuple[float, float]:
        """95%."""
        half = Z95 * self.error()
        return self.value() - half, self.value() + half

    def judged(self, thresholds: Thresholds, *, warn: float, fail: float, tests: int) -> tuple[Status, float]:
        """Whether the difference is beyond these, either way, and how often it would be by chance."""
        size, error = abs(self.value()), self.error()
        far = min(1.0, 2 * tests * normal_tail((size - fail) / error))
        near = min(1.0, 2 * tests * normal_tail((size - warn) / error))
        if far <= thresholds.fail_level:
            return "fail", far
        return ("warn" if near <= thresholds.warn_level else "pass"), near


def share(  # what a row tells of a share
    name: str,
    count: float,
    n: int,
    *,
    limit: float | None = None,
    status: Status = "pass",
    note: str = "",
    chance: float | None = None,
    p: float | None = None,
) -> Row:
    """A row about a share of turns or conversations, with Wilson's interval."""
    low, high = wilson(count, n)
    value = count / n if n else 0.0
    return Row(
        name=name,
        n=n,
        value=value,
        low=low,
        high=high,
        limit=limit,
        status=status,
        note=note,
        chance=chance,
        p=p,
    )


def above(count: float, n: int, limit: float, thresholds: Thresholds, tests: int = 1) -> tuple[Status, float]:
    """Whether a share is above a limit beyond chance; a limit of 0 tolerates none."""
    if not count or not n:
        return "pass", 1.0
    if limit <= 0:
        return "fail", 0.0
    p = min(1.0, at_least(count, {limit: n}) * tests)
    if p <= thresholds.fail_level:
        return "fail", p
    return ("warn" if p <= thresholds.warn_level else "pass"), p


def limited(
    name: str,
    count: float,
    n: int,
    *,
    limit: float,
    thresholds: Thresholds,
    tests: int = 1,
    note: str = "",
    grave: Status = "fail",
) -> Row:
    """A row about a share that may not be above its limit; `grave` is the worst that it can come to."""
    status, p = above(count, n, limit, thresholds, tests)
    if status == "fail":
        status = grave
    return share(name, count, n, limit=limit, status=status, note=note, p=p)


def graded(result: GateResult) -> GateResult:
    """As grave as its gravest row, for gates that tolerate some of what they object to."""
    if not result.n:
        return result
    status = gravest("pass", *(row.status for row in result.rows))
    tolerated = status == "pass" and result.count > 0
    meaning = "What was found is within the limits." if tolerated else result.meaning
    return msgspec.structs.replace(result, status=status, meaning=meaning)
