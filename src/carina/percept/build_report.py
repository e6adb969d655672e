"""What `carina build percept` reports."""

from collections import Counter
from typing import Final

import msgspec

from carina.cases.build_report import BuildReport
from carina.reports.conflicts import IN_CONFLICT

_NO_MASK: Final = frozenset({"not drawn", "drawn as a box", "no frontal image"})
_NOT_EXAMINED: Final = frozenset({"uncertain", "looks like another finding", IN_CONFLICT})
"""Reasons for which a lesion is left out before anything asks for its mask."""


class CellReport(msgspec.Struct, frozen=True, kw_only=True):
    """One lesion on one path: how many cases were requested, how many were built, and why not more."""

    target: str
    """The lesion."""
    path: str
    """"LF" (lesion-free), "RF" (no revision needed) or "RR" (revision required)."""
    wanted: int
    """Cases that were requested."""
    built: int
    """Cases that were built."""
    candidates: int
    """Studies that come into question: with the lesion, or on the lesion-free path without it."""
    reasons: dict[str, int]
    """Candidates that could not be used, by reason; the two paths of a lesion share theirs."""
    not_asked: dict[str, int] = {}
    """By task and reason ("distribution: zone on a cut"), cases that were built without the step."""


class PerceptBuildReport(BuildReport, frozen=True, kw_only=True):
    """`build.json` of a percept benchmark."""

    cells: tuple[CellReport, ...]
    """Every lesion on every path."""

    @property
    def not_asked(self) -> dict[str, int]:
        """By task and reason, cases of all cells that were built without the step."""
        total: Counter[str] = Counter()
        for cell in self.cells:
            total.update(cell.not_asked)
        return dict(sorted(total.items()))

    @property
    def without_lesions(self) -> str | None:
        """Why there are only lesion-free cases; None where there are others, or none at all."""
        with_lesion = [cell for cell in self.cells if cell.path != "LF"]
        if any(cell.built for cell in with_lesion) or not any(cell.built for cell in self.cells):
            return None
        reasons: Counter[str] = Counter()
        for cell in with_lesion:
            if cell.path == "RF":
                reasons.update(cell.reasons)
        if not reasons or (reasons.keys() & _NO_MASK and reasons.keys() <= _NO_MASK | _NOT_EXAMINED):
            return "no lesion has a mask on a frontal image: only lesion-free cases"
        reason, number = reasons.most_common(1)[0]
        return f"no lesion can be used, most often because of {reason!r} ({number}): only lesion-free cases"

    @property
    def unfilled(self) -> tuple[CellReport, ...]:
        """Cells with fewer cases than requested."""
        return tuple(cell for cell in self.cells if cell.built < cell.wanted)
