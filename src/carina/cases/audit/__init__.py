"""Audit: what a benchmark would let a model score without looking, and what in it is wrong."""

from carina.cases.audit.constants import Constants
from carina.cases.audit.duplicates import Duplicates
from carina.cases.audit.frame import Gate, Objections, audit, defects, judged, measured
from carina.cases.audit.margins import Margins
from carina.cases.audit.names import Names
from carina.cases.audit.positions import Positions
from carina.cases.audit.quotas import Quotas
from carina.cases.audit.reasons import Reasons, left_out
from carina.cases.audit.record import Audit, Found, GateResult, Row, Status, gravest
from carina.cases.audit.register import Register
from carina.cases.audit.shares import Work, audit_shared
from carina.cases.audit.soundness import Soundness
from carina.cases.audit.splits import Splits
from carina.cases.audit.text_only import TextOnly
from carina.cases.audit.thresholds import Thresholds
from carina.cases.audit.views import Views
from carina.cases.render.views import ImageSource

__all__ = [
    "Audit",
    "Found",
    "Gate",
    "GateResult",
    "Objections",
    "Row",
    "Status",
    "Thresholds",
    "Work",
    "audit",
    "audit_shared",
    "common_gates",
    "defects",
    "gravest",
    "judged",
    "left_out",
    "measured",
]


def common_gates(
    thresholds: Thresholds | None = None,
    *,
    images: ImageSource | None = None,
    cases: int | None = None,
    per_cell: int | None = None,
    cells: tuple[str, ...] = (),
    skipped: Reasons | None = None,
) -> list[Gate]:
    """Fresh gates that hold for every protocol.

    `images` is the benchmark itself, `cases` how many there will be, `per_cell` how many were asked for, in these
    `cells` at least; `skipped` counts why studies were left out, by cell ("edema/LF") or else by target. What is
    None is not looked at.
    """
    limits, register = thresholds or Thresholds(), Register()
    return [
        Soundness(limits),
        Margins(limits),
        Positions(limits),
        Constants(limits),
        TextOnly(limits),
        Names(limits),
        Duplicates(limits, register),
        Splits(limits, register),
        Views(limits, images, cases=cases),
        Quotas(limits, per_cell=per_cell, cells=cells, skipped=skipped),
    ]
