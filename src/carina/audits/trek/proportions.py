"""Rows about shares of turns and about differences of shares, with intervals that are clustered by conversation.

Only sums of products over conversations are kept, so memory does not grow.
"""

import math
from typing import Final

import msgspec

from carina.audits.chance import Z95, at_least, normal_tail
from carina.audits.gate import AuditContext
from carina.audits.result import GateResult, Row, Status, worst_status
from carina.stats.proportion import wilson

_LEAST_SPREAD: Final = 1e-9


class ShareDifference:
    """Difference of P(yes) between two groups of turns, clustered by conversation."""

    def __init__(self) -> None:
        self._sums = [0.0] * 4
        self._products = [[0.0] * 4 for _ in range(4)]

    def add(self, yes: int, n: int, other_yes: int, other_n: int) -> None:
        """Add one conversation: in each group, the turns answered with yes and all turns."""
        values = (yes, n, other_yes, other_n)
        for row, one in enumerate(values):
            if one:
                self._sums[row] += one
                line = self._products[row]
                for column, other in enumerate(values):
                    line[column] += one * other

    @property
    def counts(self) -> tuple[int, int]:
        """Number of turns in each group."""
        return int(self._sums[1]), int(self._sums[3])

    @property
    def yes(self) -> tuple[int, int]:
        """Number of turns answered with yes in each group."""
        return int(self._sums[0]), int(self._sums[2])

    def value(self) -> float:
        """The difference; both groups must have turns."""
        yes, n, other_yes, other_n = self._sums
        return yes / n - other_yes / other_n

    def error(self) -> float:
        """Standard error: clustered by conversation, by the delta method, but at least the binomial one."""
        yes, n, other_yes, other_n = self._sums
        p, q = yes / n, other_yes / other_n
        weights = (1 / n, -p / n, -1 / other_n, q / other_n)
        clustered = sum(
            one * other * self._products[row][column]
            for row, one in enumerate(weights)
            for column, other in enumerate(weights)
        )
        # A share of 0 or 1 has no variance of its own; the centre of Wilson's interval has.
        r, s = (yes + 2) / (n + 4), (other_yes + 2) / (other_n + 4)
        binomial = r * (1 - r) / n + s * (1 - s) / other_n
        return math.sqrt(max(clustered, binomial, _LEAST_SPREAD**2))

    def interval(self) -> tuple[float, float]:
        """95% interval of the difference."""
        half = Z95 * self.error()
        return self.value() - half, self.value() + half

    def judge(self, context: AuditContext, *, warn: float, fail: float, tests: int) -> tuple[Status, float]:
        """Status for a difference beyond these values in either direction, and the probability of that by chance."""
        size, error = abs(self.value()), self.error()
        far = min(1.0, 2 * tests * normal_tail((size - fail) / error))
        near = min(1.0, 2 * tests * normal_tail((size - warn) / error))
        if far <= context.fail_level:
            return "fail", far
        return ("warn" if near <= context.warn_level else "pass"), near


def share_row(
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
    interval = wilson(count, n)
    return Row(
        name=name,
        n=n,
        value=count / n if n else 0.0,
        low=interval.low if n else 0.0,
        high=interval.high if n else 1.0,
        limit=limit,
        status=status,
        note=note,
        chance=chance,
        p=p,
    )


def judge_share(
    count: float, n: int, limit: float, context: AuditContext, tests: int = 1
) -> tuple[Status, float]:
    """Status for a share that may not be above its limit beyond chance; a limit of 0 accepts none."""
    if not count or not n:
        return "pass", 1.0
    if limit <= 0:
        return "fail", 0.0
    p = min(1.0, at_least(count, {limit: n}) * tests)
    return context.judge(p), p


def limited_row(
    name: str,
    count: float,
    n: int,
    *,
    limit: float,
    context: AuditContext,
    tests: int = 1,
    note: str = "",
    severity: Status = "fail",
) -> Row:
    """A row about a share that may not be above its limit; `severity` is its most severe status."""
    status, p = judge_share(count, n, limit, context, tests)
    if status == "fail":
        status = severity
    return share_row(name, count, n, limit=limit, status=status, note=note, p=p)


def with_status_of_rows(result: GateResult) -> GateResult:
    """As severe as the most severe row, for gates that accept some of the defects they count."""
    if not result.n:
        return result
    status = worst_status("pass", *(row.status for row in result.rows))
    is_tolerated = status == "pass" and result.count > 0
    meaning = "All objections are within the limits." if is_tolerated else result.meaning
    return msgspec.structs.replace(result, status=status, meaning=meaning)
