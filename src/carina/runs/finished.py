"""Find out that a run is finished without reading its log and its benchmark again."""

import os
from pathlib import Path

import msgspec

from carina.runs.claim import RUN_FILE, read_info
from carina.runs.records import RunInfo
from carina.runs.results import Run, count_missing_cases
from carina.runs.steps_table import STEPS_FILE
from carina.store.errors import CarinaError


def find_finished_run(out: Path, info: RunInfo) -> Run | None:
    """The run in a directory, where it is what the user asks for and has nothing left to ask.

    Args:
        out: Directory of the run.
        info: The run that the user asks for.

    Returns:
        The run; None where anything differs, is missing or was changed since, so that it must be looked at closely.
    """
    if not os.path.lexists(out / RUN_FILE):
        return None
    try:
        existing = read_info(out)
        is_same = _what_is_asked(existing) == _what_is_asked(info)
        if not (is_same and existing.ended and existing.table and not count_missing_cases(existing)):
            return None
        table = (out / STEPS_FILE).stat().st_mtime_ns
        if any(log.stat().st_mtime_ns > table for log in out.glob("steps-*.jsonl")):
            return None
        finished = Run(out, existing)
        # Reading compares the table with its checksum.
        states = finished.table.read(("state",))["state"]
    except (CarinaError, OSError):
        return None
    return None if (states == "incomplete").any() else finished


def _what_is_asked(info: RunInfo) -> RunInfo:
    """Everything but what a call adds: its time, and what it has written."""
    return msgspec.structs.replace(info, id="", benchmark="", calls=(), case_count=None, table=None)
