"""Which cases the browser holds: a mix, with those on which runs disagree and those that went wrong first."""

from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from carina.report.exam import Exam


def chosen_cases(exams: Sequence[Exam], most: int) -> dict[int, list[str]]:
    """Ids of cases by place of their exam, each in order of its benchmark; `most` are shared among the exams."""
    left = most
    chosen: dict[int, list[str]] = {}
    for place, exam in enumerate(exams):
        share = -(-left // (len(exams) - place))
        chosen[place] = _chosen(exam, share)
        left -= len(chosen[place])
    return chosen


def _chosen(exam: Exam, most: int) -> list[str]:
    """One of each cell in turn (target and path), within a cell the most telling first."""
    cells: dict[tuple[str, str], list[tuple[float, int, str]]] = defaultdict(list)
    telling = _telling(exam)
    ids = exam.cases
    for place, case in enumerate(ids):
        cell, score = telling[case]
        cells[cell].append((-score, place, case))
    # Cells whose first case tells most come first.
    queues = sorted(sorted(cell) for cell in cells.values())
    taken: list[str] = []
    depth = 0
    while len(taken) < min(most, len(ids)):
        taken += [queue[depth][2] for queue in queues if depth < len(queue)][: most - len(taken)]
        depth += 1
    wanted = set(taken)
    return [case for case in ids if case in wanted]


def _telling(exam: Exam) -> dict[str, tuple[tuple[str, str], float]]:
    """Cell of every case, and how much there is to see in it: disagreement, then errors."""
    rivals = [run for run in exam.runs if not run.oracle] or list(exam.runs)
    steps = pl.concat(
        [exam.outcomes[run.id].steps.select("case", "step", "target", "path", "value") for run in rivals]
    )
    by_step = steps.group_by("case", "step").agg(
        pl.col("target", "path").first(), spread=pl.col("value").std(ddof=0), wrong=1 - pl.col("value").mean()
    )
    by_case = by_step.group_by("case").agg(
        pl.col("target", "path").first(), score=pl.col("spread").sum() + 0.1 * pl.col("wrong").sum()
    )
    found: dict[str, tuple[tuple[str, str], float]] = dict.fromkeys(exam.cases, (("", ""), 0.0))
    for case, target, path, score in by_case.select("case", "target", "path", "score").iter_rows():
        # Rounded, so that the order of sums cannot change an order of cases.
        found[case] = ((target or "", path or ""), round(score, 6))
    return found
