"""Audits: can a benchmark be passed without looking at its images, and are its answer keys sound?

An audit passes every case through gates. A gate is one decorated class in one module; see `carina.audits.gate`. The
public function is `carina.audit`, which also writes the page; `audit_benchmark` computes the same results only.
"""

from carina.audits.auditing import audit_cases
from carina.audits.benchmark import AuditOptions, audit_benchmark
from carina.audits.gate import (
    AuditContext,
    Gate,
    GateInfo,
    Limits,
    NoLimits,
    gate,
    list_gates,
    make_gates,
)
from carina.audits.result import Audit, AuditResult, GateResult, Objection, Objections, Row, Status

__all__ = [
    "Audit",
    "AuditContext",
    "AuditOptions",
    "AuditResult",
    "Gate",
    "GateInfo",
    "GateResult",
    "Limits",
    "NoLimits",
    "Objection",
    "Objections",
    "Row",
    "Status",
    "audit_benchmark",
    "audit_cases",
    "gate",
    "list_gates",
    "make_gates",
]
