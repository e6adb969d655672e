"""Why a benchmark does not hold more cases, as its builder wrote it down beside it."""

import csv
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from carina.errors import BenchmarkError

REPORT: Final = "build.json"
SKIPPED: Final = "skipped.csv"

Reasons = Mapping[str, Mapping[str, int]]
"""By cell ("edema/LF") or target: how many studies were left out for which reason."""


class _Cell(msgspec.Struct):
    """What is read of a builder's report; it says more."""

    target: str
    path: str
    reasons: dict[str, int]


class _Report(msgspec.Struct):
    cells: list[_Cell] = []
    """None for a protocol that fills no cells."""


def left_out(directory: Path) -> Reasons:
    """By cell from the builder's report; by target from the list of studies where there is no report."""
    path = directory / REPORT
    if not path.is_file():
        return _listed(directory / SKIPPED)
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path}: not the report of a build: {error}") from error
    return {f"{cell.target}/{cell.path}": cell.reasons for cell in report.cells}


def _listed(path: Path) -> Reasons:
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                reasons[row.get("target") or ""][row.get("reason") or "no reason"] += 1
    return dict(reasons)
