"""Running models through benchmarks: the examination, its parsers and scores, and who answers.

>>> run_model(Path("percept"), "builtin/reader", Path("runs/reader"), RunOptions())
"""

from carina.run.claim import read_info
from carina.run.examine import RunOptions, RunResult, read_rows, run_model
from carina.run.records import (
    STATUSES,
    Call,
    History,
    Parsed,
    Policy,
    RunCounts,
    RunInfo,
    Scores,
    StepRow,
    Turn,
)
from carina.run.tally import Tally
from carina.run.walk import Walk

__all__ = [
    "STATUSES",
    "Call",
    "History",
    "Parsed",
    "Policy",
    "RunCounts",
    "RunInfo",
    "RunOptions",
    "RunResult",
    "Scores",
    "StepRow",
    "Tally",
    "Turn",
    "Walk",
    "read_info",
    "read_rows",
    "run_model",
]
