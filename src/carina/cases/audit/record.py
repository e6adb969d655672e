"""What an audit says: one result a gate, with what was counted, what was measured and which records are worst.

Records only, fit for JSON; how they are reached stands with each gate, how they look in `carina.show`.
"""

from typing import Final, Literal

import msgspec

Status = Literal["pass", "warn", "fail", "not applicable"]
KIND: Final = "carina/audit"
SCHEMA: Final = "1.0"

_GRAVITY: Final[tuple[Status, ...]] = ("not applicable", "pass", "warn", "fail")


def gravest(*statuses: Status) -> Status:
    """The status of a whole, from those of its parts."""
    return max(statuses, key=_GRAVITY.index, default="not applicable")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a gate objects to."""

    id: str
    """Of the case; or of what else is concerned: a patient, an image, a cell."""
    what: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of a gate: a share or a score, with its 95% interval, against chance."""

    name: str
    n: int
    value: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    limit: float | None = None
    """The value that may not be exceeded."""
    p: float | None = None
    """How often chance alone does as well, corrected for all comparisons of the gate."""
    status: Status = "pass"
    note: str = ""


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one gate found."""

    name: str
    status: Status
    n: int
    """Records that were looked at, in `unit`."""
    unit: str = "cases"
    count: int = 0
    """How many of them the gate objects to."""
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    """95% interval of the rate."""
    threshold: str
    meaning: str
    """One sentence: what the result means and what to do about it."""
    rows: tuple[Row, ...] = ()
    worst: tuple[Found, ...] = ()


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The whole audit of a benchmark."""

    kind: str = KIND
    schema: str = SCHEMA
    benchmark: str | None = None
    """Fingerprint of what was audited, where it lies on disk."""
    status: Status
    cases: int
    steps: int
    patients: int
    cells: dict[str, int]
    gates: tuple[GateResult, ...]

    def count(self, status: Status) -> int:
        """How many gates ended like this."""
        return sum(gate.status == status for gate in self.gates)

    def gate(self, name: str) -> GateResult:
        """The result of the gate with this name."""
        return next(gate for gate in self.gates if gate.name == name)
