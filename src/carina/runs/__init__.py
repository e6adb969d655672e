"""Runs: evaluate a model on a benchmark (`run`), estimate its cost first (`estimate`), read the results (`open_run`).

>>> from carina.runs import open_run, run
>>> run("bench", "builtin/random", "runs/random")
Run('runs/random', model='builtin/random', history='own', cases=18, answered='82 of 82 steps')
>>> open_run("runs/random").to_frame().height
82
"""

from carina.runs.claim import read_info
from carina.runs.cost import Estimate, estimate
from carina.runs.evaluate import run
from carina.runs.experiment import RunSet, is_experiment_file, run_all, run_experiment
from carina.runs.in_process import InProcessModel
from carina.runs.records import (
    STATUSES,
    Call,
    History,
    ParsedAnswer,
    Policy,
    Prompts,
    RunCounts,
    RunInfo,
    Scores,
    StepRow,
    Turn,
)
from carina.runs.results import Failure, Run, open_run
from carina.runs.shown_prompt import ShownPrompt, show_prompt
from carina.runs.walk import Walk

__all__ = [
    "STATUSES",
    "Call",
    "Estimate",
    "Failure",
    "History",
    "InProcessModel",
    "ParsedAnswer",
    "Policy",
    "Prompts",
    "Run",
    "RunCounts",
    "RunInfo",
    "RunSet",
    "Scores",
    "ShownPrompt",
    "StepRow",
    "Turn",
    "Walk",
    "estimate",
    "is_experiment_file",
    "open_run",
    "read_info",
    "run",
    "run_all",
    "run_experiment",
    "show_prompt",
]
