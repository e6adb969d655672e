"""The page of an audit: what passed, what did not, and which records to look at. Beside it the same as JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from carina.cases.audit import Audit, GateResult, Row
from carina.files import write_bytes
from carina.show.template import fill

HTML: Final = "audit.html"
JSON: Final = "audit.json"
MARKS: Final = {"pass": "✓", "warn": "!", "fail": "✕", "not applicable": "–"}
"""So that a status is told without colour."""

_WIDTH: Final = 200
"""Of a bar, in pixels for a share of 1."""


@dataclass(frozen=True, kw_only=True)
class AuditFiles:
    """The files of an audit."""

    html: Path
    json: Path


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A row of measurements as lengths in a small picture."""

    row: Row
    value: float
    low: float | None
    high: float | None
    chance: float | None
    limit: float | None

    @property
    def figures(self) -> str:
        """The value with its interval, in figures."""
        text = f"{self.row.value:.3f}"
        if self.row.low is not None and self.row.high is not None:
            text += f" ({self.row.low:.3f} to {self.row.high:.3f})"
        return text


def write_audit(audit: Audit, out_dir: Path, *, title: str) -> AuditFiles:
    """Write `audit.html` and `audit.json`."""
    files = AuditFiles(html=out_dir / HTML, json=out_dir / JSON)
    content = msgspec.json.format(msgspec.json.encode(audit), indent=2) + b"\n"
    write_bytes(files.json, content)
    values: dict[str, object] = {
        "title": title,
        "audit": audit,
        "summary": summary(audit),
        "gates": audit.gates,
        # What needs a look comes first.
        "graver": [(gate, [_bar(row) for row in gate.rows]) for gate in sorted(audit.gates, key=_grave)],
        "marks": MARKS,
        "width": _WIDTH,
        "rate": rate,
    }
    write_bytes(files.html, fill("audit.html.j2", values).encode())
    return files


def summary(audit: Audit) -> str:
    """One line: how many gates passed, and which did not."""
    parts = []
    for status, word in (("fail", "failed"), ("warn", "warned")):
        names = [gate.name for gate in audit.gates if gate.status == status]
        if names:
            parts.append(f"{len(names)} {word}: {', '.join(names)}")
    passed, of = audit.count("pass"), len(audit.gates) - audit.count("not applicable")
    return "; ".join([f"{passed} of {of} gates passed", *parts])


def rate(gate: GateResult) -> str:
    """How many records a gate objects to, in per cent with the interval."""
    if gate.rate is None:
        return ""
    text = f"{gate.rate:.1%}"
    if gate.low is not None and gate.high is not None and not gate.unit.startswith("baselines"):
        text += f" ({gate.low:.1%} to {gate.high:.1%})"
    return text


def _grave(gate: GateResult) -> int:
    return ("fail", "warn", "pass", "not applicable").index(gate.status)


def _bar(row: Row) -> Bar:
    return Bar(
        row=row,
        value=_length(row.value) or 0.0,
        low=_length(row.low),
        high=_length(row.high),
        chance=_length(row.chance),
        limit=_length(row.limit),
    )


def _length(share: float | None) -> float | None:
    return None if share is None else round(min(max(share, 0.0), 1.0) * _WIDTH, 1)
