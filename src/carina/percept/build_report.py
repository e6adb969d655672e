"""What `carina build percept` reports."""

from collections import Counter

import msgspec

from carina.cases.build_report import BuildReport


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
    def unfilled(self) -> tuple[CellReport, ...]:
        """Cells with fewer cases than requested."""
        return tuple(cell for cell in self.cells if cell.built < cell.wanted)
