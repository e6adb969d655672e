"""What an audit says: one result per gate, with its counts, its measurements and the records it objects to.

Records only, ready for JSON. How a gate reaches its result is in the gate's own module.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from carina.store.results import Result

if TYPE_CHECKING:
    import polars as pl

Status = Literal["pass", "warn", "fail", "not applicable"]
KIND: Final = "carina/audit"
SCHEMA: Final = "2.0"
"""2.0: gates have descriptive names (`answer-position`, not `positions`) and a title."""
EXAMPLES: Final = 12
"""Records that the result of a gate lists, worst first."""

_BY_SEVERITY: Final[tuple[Status, ...]] = ("not applicable", "pass", "warn", "fail")


def worst_status(*statuses: Status) -> Status:
    """The most severe of several statuses; "not applicable" for none."""
    return max(statuses, key=_BY_SEVERITY.index, default="not applicable")


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a gate objects to."""

    id: str
    """Id of the case, or of another record: a patient, an image, a stratum, a baseline."""
    what: str
    """What is wrong with it."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of a gate: a share or a score, with its 95% interval, beside what chance gives."""

    name: str
    n: int
    """Questions, cases or other records that the value is measured on."""
    value: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    limit: float | None = None
    """The largest value that the gate accepts."""
    p: float | None = None
    """Probability that chance alone does as well, corrected for all comparisons of the gate."""
    status: Status = "pass"
    note: str = ""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one gate."""

    name: str
    title: str = ""
    status: Status
    n: int
    """Records that the gate has examined, in `unit`."""
    unit: str = "cases"
    count: int = 0
    """Examined records that the gate objects to."""
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    """Upper end of the 95% interval of the rate; `low` is the lower end."""
    threshold: str
    """What the gate requires, with the limits in use."""
    meaning: str
    """One sentence: what the result means and what to do about it."""
    rows: tuple[Row, ...] = ()
    worst: tuple[Objection, ...] = ()


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all gates on one benchmark; `audit.json` holds exactly this."""

    kind: str = KIND
    schema: str = SCHEMA
    benchmark: str | None = None
    """Fingerprint of the audited benchmark; None for cases that are not stored as one."""
    status: Status
    """The most severe status of all gates."""
    cases: int
    steps: int
    patients: int
    cells: dict[str, int]
    """Cases per stratum, such as "edema/RR"."""
    gates: tuple[GateResult, ...]

    def count(self, status: Status) -> int:
        """How many gates have this status."""
        return sum(gate.status == status for gate in self.gates)

    def gate(self, name: str) -> GateResult:
        """The result of the gate with this name.

        Raises:
            KeyError: No gate of this name was run.
        """
        for gate in self.gates:
            if gate.name == name:
                return gate
        raise KeyError(name)


class Objections:
    """Counts the records that a gate objects to, and keeps the worst few of them as examples.

    Args:
        keep: How many examples to keep: those with the highest badness, and of equal ones the first.

    Example:
        >>> objections = Objections()
        >>> objections.add("case-1", "has no image")
        >>> objections.records, objections.worst[0].id
        (1, 'case-1')
    """

    def __init__(self, keep: int = EXAMPLES) -> None:
        self._keep = keep
        self._heap: list[tuple[float, int, Objection]] = []
        self._last: str | None = None
        self.total = 0
        self.records = 0
        """Records with at least one objection; all objections to one record are added one after the other."""

    def add(self, record: str, what: str, badness: float = 0.0) -> None:
        """Add one objection."""
        self.total += 1
        self.records += record != self._last
        self._last = record
        entry = (badness, -self.total, Objection(id=record, what=what))
        if len(self._heap) < self._keep:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    @property
    def worst(self) -> tuple[Objection, ...]:
        """The examples, worst first."""
        ordered = sorted(self._heap, key=lambda entry: entry[:2], reverse=True)
        return tuple(objection for *_, objection in ordered)

    def __bool__(self) -> bool:
        return self.total > 0


@dataclass(frozen=True, repr=False)
class AuditResult(Result):
    """What `carina.audit` returns: the results of all gates, and where they are written.

    Attributes:
        directory: Directory that holds `audit.html` and `audit.json`.
        audit: The results as a record, as `audit.json` holds them.
        page: The HTML page.
    """

    directory: Path
    audit: Audit
    page: Path

    @property
    def path(self) -> Path:
        """The directory of the audit."""
        return self.directory

    @property
    def gates(self) -> tuple[GateResult, ...]:
        """One result per gate."""
        return self.audit.gates

    @property
    def status(self) -> Status:
        """The most severe status of all gates."""
        return self.audit.status

    @property
    def passed(self) -> bool:
        """Whether no gate failed; warnings do not count."""
        return self.audit.status != "fail"

    def gate(self, name: str) -> GateResult:
        """The result of one gate.

        Raises:
            KeyError: No gate of this name was run.
        """
        return self.audit.gate(name)

    def to_frame(self) -> "pl.DataFrame":
        """One row per gate: name, title, status, examined and objectionable records, rate with interval, meaning."""
        import polars as pl  # noqa: PLC0415 - not needed to audit

        numbers = ("n", "unit", "count", "rate", "low", "high")
        columns = ("name", "title", "status", *numbers, "threshold", "meaning")
        types = {"n": pl.Int64, "count": pl.Int64, **dict.fromkeys(("rate", "low", "high"), pl.Float64)}
        return pl.DataFrame(
            {column: [getattr(gate, column) for gate in self.gates] for column in columns},
            schema={column: types.get(column, pl.String) for column in columns},
        )

    def _summary(self) -> Mapping[str, object]:
        counts = {status: self.audit.count(status) for status in ("fail", "warn", "pass")}
        return {"status": self.status, "gates": len(self.gates), **counts, "cases": self.audit.cases}
