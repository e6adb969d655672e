"""Tables behind the curves of reach."""

from collections.abc import Iterator, Sequence

from carina.report.analyse.reach import Curve
from carina.report.analysis import Analysis
from carina.report.page.cells import Grid, Head, Row, share
from carina.report.page.grids.common import by_run, lookup, run_head, several_histories
from carina.report.words import PATH_MEANINGS, path_name, stage_name

_METRIC = "share of cases still right"


def reach(told: Analysis) -> Iterator[Grid]:
    """After each stage of all cases, and after each step of a path."""
    tasks = told.step_tasks
    for name, curves in told.reach.items():
        figures = [item for curve in curves for item in curve.figures]
        if name == "stages":
            level, title, note = "reach by stage, all", "Reach over all cases, by stage", ""
            heads = _stages(told, curves)
        else:
            level, title = f"reach by step, {name}", f"Reach on path {path_name(name)}, by step"
            note = f" Path {name}: {PATH_MEANINGS[name]}." if name in PATH_MEANINGS else ""
            heads = {place: Head(text=place, note=tasks.get(place, "")) for place in _places(curves)}
        columns = [(level, place, _METRIC, head) for place, head in heads.items()]
        yield by_run(
            told, title, figures, columns, f"Percent of complete cases that are right up to here.{note}"
        )


def target_reach(told: Analysis) -> Grid:
    """After each stage, target by target."""
    every = [curve for curves in told.target_reach.values() for curve in curves]
    heads = _stages(told, every)
    found = lookup(item for curve in every for item in curve.figures)
    rows = [
        Row(
            head=run_head(run, history=several_histories(told)),
            cells=tuple(
                share(found.get((run.id, f"reach by stage, target {target}", place, _METRIC)))
                for place in heads
            ),
            group=target,
        )
        for target in told.target_reach
        for run in told.exam.runs
    ]
    return Grid(
        title="Reach by target",
        corner="Target and model",
        columns=tuple(heads.values()),
        rows=tuple(row for row in rows if any(cell.text for cell in row.cells)),
        note="Percent of the complete cases about a target that are right up to here. Blank: no such stage.",
    )


def _stages(told: Analysis, curves: Sequence[Curve]) -> dict[str, Head]:
    return {
        place: Head(text=f"{place} {stage_name(told.exam.protocol, int(place))}")
        for place in sorted(_places(curves), key=int)
    }


def _places(curves: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(place for curve in curves for place in curve.places))
