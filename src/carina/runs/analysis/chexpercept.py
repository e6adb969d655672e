"""Percept's numbers in the layout of CheXpercept's summary: accuracy by stage and depth, for each path.

There are two views of the same answers: `end_to_end` counts a stage only where all earlier stages are right,
`oracle_passed` counts it by itself. Depth is the number of stages passed in a row; a case without attributes gets one
more when it passes all its stages, so that every path has one greatest depth.
"""

from collections import defaultdict
from statistics import fmean
from typing import Final

import msgspec
import polars as pl

from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun

PATHS: Final = {"LF": "lesion_free", "RF": "revision_free", "RR": "revision_required"}
SETTINGS: Final = ("end_to_end", "oracle_passed")
_STAGES: Final = (1, 2, 3, 4)


class SummaryRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `chexpercept.csv`; `CSV_NAMES` are the names of its columns."""

    path: str
    model: str
    setting: str
    stage1: float | None
    """Shares of cases; None where the path has no such stage."""
    stage2: float | None
    stage3: float | None
    stage4: float | None
    depth: float
    history: str
    run: str
    n: int
    """Number of complete cases."""


CSV_NAMES: Final = tuple(
    f"acc({name})" if name.startswith("stage") else name for name in SummaryRow.__struct_fields__
)


def summarise_paths(run: ComparedRun, outcomes: Outcomes) -> list[SummaryRow]:
    """Both views of every path of which a percept run has complete cases."""
    complete = pl.col("case").is_in(outcomes.complete.implode())
    whole = outcomes.case_stages.filter(complete).sort("case", "stage")
    paths: dict[str, dict[str, dict[int, bool]]] = defaultdict(lambda: defaultdict(dict))
    for case, path, stage, value in whole.select("case", "path", "stage", "value").iter_rows():
        paths[path][case][stage] = value == 1.0
    return [
        SummaryRow(
            path=name,
            model=run.model,
            setting=setting,
            **{f"stage{stage}": _accuracy(cases, stage, setting) for stage in _STAGES},
            depth=fmean(_depth(stages, path) for stages in cases),
            history=run.history,
            run=run.id,
            n=len(cases),
        )
        for path, name in PATHS.items()
        if (cases := list(paths[path].values()))
        for setting in SETTINGS
    ]


def _accuracy(cases: list[dict[int, bool]], stage: int, setting: str) -> float | None:
    with_stage = [stages for stages in cases if stage in stages]
    if not with_stage:
        return None
    if setting == "oracle_passed":
        return fmean(stages[stage] for stages in with_stage)
    return fmean(all(right for at, right in stages.items() if at <= stage) for stages in with_stage)


def _depth(stages: dict[int, bool], path: str) -> int:
    passed = 0
    for stage in sorted(stages):
        if not stages[stage]:
            return passed
        passed += 1
    return passed + (path != "LF" and _STAGES[-1] not in stages)
