"""The page of an audit: the status of every gate, and which records it flags. `write_audit` adds the same as JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from carina.audits import Audit, GateResult, Row
from carina.pages.frame import render_page
from carina.store.files import write_bytes

HTML: Final = "audit.html"
JSON: Final = "audit.json"
STATUS_SIGNS: Final = {"pass": "✓", "warn": "!", "fail": "✕", "not applicable": "–"}
"""Signs that show a status without colour."""

_BAR_WIDTH: Final = 200
"""Width of a bar in pixels for a share of 1."""


@dataclass(frozen=True, kw_only=True)
class AuditFiles:
    """The files of an audit."""

    html: Path
    json: Path


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A measured row as lengths in a small chart."""

    row: Row
    value: float
    low: float | None
    high: float | None
    chance: float | None
    limit: float | None

    @property
    def text(self) -> str:
        """The value with its interval."""
        text = f"{self.row.value:.3f}"
        if self.row.low is not None and self.row.high is not None:
            text += f" ({self.row.low:.3f} to {self.row.high:.3f})"
        return text


def write_audit(audit: Audit, out_dir: Path, *, title: str) -> AuditFiles:
    """Write `audit.html` and `audit.json`."""
    files = AuditFiles(html=out_dir / HTML, json=out_dir / JSON)
    write_bytes(files.json, msgspec.json.format(msgspec.json.encode(audit), indent=2) + b"\n")
    write_bytes(files.html, render_audit(audit, title=title).encode())
    return files


def render_audit(audit: Audit, *, title: str) -> str:
    """Render the page of an audit as HTML.

    Args:
        audit: The results of all gates.
        title: Name of the benchmark.

    Returns:
        A whole page.

    Example:
        >>> from carina.audits import AuditOptions, audit_benchmark
        >>> audit = audit_benchmark("bench", AuditOptions(gates=("patient-overlap",)))
        >>> "<title>Audit of My benchmark · Carina</title>" in render_audit(audit, title="My benchmark")
        True
    """
    values: dict[str, object] = {
        "title": title,
        "audit": audit,
        "summary": summarize_audit(audit),
        # Gates that need attention come first.
        "details": [(gate, [_bar(row) for row in gate.rows]) for gate in sorted(audit.gates, key=_severity)],
        "signs": STATUS_SIGNS,
        "bar_width": _BAR_WIDTH,
        "format_rate": format_rate,
    }
    return render_page("audit.html.j2", values, title=f"Audit of {title}", styles=("audit.css",))


def summarize_audit(audit: Audit) -> str:
    """One line: how many gates passed, and the names of those that did not."""
    parts = []
    for status, verb in (("fail", "failed"), ("warn", "warned")):
        names = [gate.name for gate in audit.gates if gate.status == status]
        if names:
            parts.append(f"{len(names)} {verb}: {', '.join(names)}")
    passed, applicable = audit.count("pass"), len(audit.gates) - audit.count("not applicable")
    return "; ".join([f"{passed} of {applicable} gates passed", *parts])


def format_rate(gate: GateResult) -> str:
    """Share of records that a gate flags, in per cent with the interval."""
    if gate.rate is None:
        return ""
    text = f"{gate.rate:.1%}"
    if gate.low is not None and gate.high is not None and not gate.unit.startswith("baselines"):
        text += f" ({gate.low:.1%} to {gate.high:.1%})"
    return text


def _severity(gate: GateResult) -> int:
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
    return None if share is None else round(min(max(share, 0.0), 1.0) * _BAR_WIDTH, 1)
