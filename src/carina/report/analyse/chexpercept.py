"""Percept's figures as CheXpercept's summary has them: accuracy by stage and depth, path by path.

Two views of the same answers: `end_to_end` counts a stage only where all earlier ones were right, `oracle_passed`
counts it for itself. Depth is the number of stages passed in a row; a case that has no attributes to be asked about
gets one more when all its stages are passed, so that every path has one greatest depth.
"""

from collections import defaultdict
from statistics import fmean
from typing import Final

import msgspec
import polars as pl

from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run

PATHS: Final = {"LF": "lesion_free", "RF": "revision_free", "RR": "revision_required"}
SETTINGS: Final = ("end_to_end", "oracle_passed")
_STAGES: Final = (1, 2, 3, 4)


class SummaryRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `chexpercept.csv`; `CSV_NAMES` has what its columns are called."""

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
    """Complete cases."""


CSV_NAMES: Final = tuple(
    f"acc({name})" if name.startswith("stage") else name for name in SummaryRow.__struct_fields__
)


def summary(run: Run, found: Outcomes) -> list[SummaryRow]:
    """Of a percept run, both views of every path that it has complete cases of."""
    whole = found.case_stages.filter(pl.col("case").is_in(found.complete.implode())).sort("case", "stage")
    paths: dict[str, dict[str, dict[int, bool]]] = defaultdict(lambda: defaultdict(dict))
    for case, path, stage, value in whole.select("case", "path", "stage", "value").iter_rows():
        paths[path][case][stage] = value == 1.0
    made = []
    for path, name in PATHS.items():
        cases = list(paths[path].values())
        if not cases:
            continue
        depth = fmean(_depth(stages, path) for stages in cases)
        for setting in SETTINGS:
            shares = {f"stage{stage}": _share(cases, stage, setting) for stage in _STAGES}
            made.append(
                SummaryRow(
                    path=name,
                    model=run.model,
                    setting=setting,
                    **shares,
                    depth=depth,
                    history=run.history,
                    run=run.id,
                    n=len(cases),
                )
            )
    return made


def _share(cases: list[dict[int, bool]], stage: int, setting: str) -> float | None:
    asked = [stages for stages in cases if stage in stages]
    if not asked:
        return None
    if setting == "oracle_passed":
        return fmean(stages[stage] for stages in asked)
    return fmean(all(right for at, right in stages.items() if at <= stage) for stages in asked)


def _depth(stages: dict[int, bool], path: str) -> int:
    passed = 0
    for stage in sorted(stages):
        if not stages[stage]:
            return passed
        passed += 1
    return passed + (path != "LF" and _STAGES[-1] not in stages)
