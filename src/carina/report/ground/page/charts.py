"""The charts of explain runs, from their analysis."""

from typing import Final

from carina.report.draw import Drawing, Series
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.draw.dots import Panel, Spot, dot_chart
from carina.report.ground.figures import Figure
from carina.report.ground.measures import pointing
from carina.report.ground.page.curves import calibration_chart, relation_chart, threshold_chart
from carina.report.ground.page.grids import OVER_FINDINGS, controls_of, fullest, labels
from carina.report.ground.page.styles import control_styles

_LINES: Final = "A line is a 95% interval over patients; figures of fewer than five have none."


def charts(told: GroundAnalysis, series: dict[str, Series], prefix: str) -> dict[str, Drawing]:
    """By what they show; those that have nothing to show are left out."""
    if not told.probing.measures or not any(run.scoring.scored for run in told.probing.runs):
        return {}
    return {
        name: drawing
        for name, drawing in (
            ("headline", _headline(told, series, f"{prefix}-headline")),
            ("finding", _by(told, series, f"{prefix}-finding", "finding")),
            ("size", _by(told, series, f"{prefix}-size", "size")),
            ("recognition", relation_chart(told, series, f"{prefix}-recognition")),
            ("threshold", threshold_chart(told, series, f"{prefix}-threshold")),
            ("calibration", calibration_chart(told, series, f"{prefix}-calibration")),
        )
        if drawing is not None
    }


def _spot(figure: Figure | None) -> Spot | None:
    return None if figure is None or figure.value is None else Spot(figure.value, figure.low, figure.high)


def _headline(told: GroundAnalysis, series: dict[str, Series], name: str) -> Drawing:
    """Runs, and below them the controls of the run that has most."""
    beside = fullest(told)
    sources = controls_of(beside) if beside is not None else []
    drawn = {**series, **control_styles(sources)}
    panels = []
    for one in told.probing.measures:
        found = {
            run.id: _spot(told.figure(run, one.variant, average=told.average)) for run in told.probing.runs
        }
        if beside is not None:
            found |= {
                source: _spot(told.figure(beside, one.variant, source=source, average=told.average))
                for source in sources
            }
        panels.append(Panel(one.title, {key: {key: spot} for key, spot in found.items() if spot}))
    recognised = {run.id: _spot(told.mean_auroc(run)) for run in told.probing.runs}
    if any(recognised.values()):
        panels.append(
            Panel("Recognition AUROC", {key: {key: spot} for key, spot in recognised.items() if spot})
        )
    return dot_chart(
        name,
        {key: style.name for key, style in drawn.items()},
        panels,
        drawn,
        title="Grounding of every run and of the controls, and recognition, with 95% intervals",
        note=(f"Of grounding the {OVER_FINDINGS}, without an interval. " if told.average == "macro" else "")
        + f"{_LINES} Controls, in grey, need no model"
        + ("." if beside is None else f"; they are those on the frames and grid of {beside.title}."),
    )


def _by(told: GroundAnalysis, series: dict[str, Series], name: str, level: str) -> Drawing | None:
    names = labels(told, level)
    chosen = [one for one in (pointing(told.probing.measures), told.probing.area) if one]
    if len(names) < 2 or not chosen:
        return None
    panels = []
    for one in chosen:
        spots = {
            label: {
                run.id: spot
                for run in told.probing.runs
                if (spot := _spot(told.figure(run, one.variant, level=level, name=label)))
            }
            for label in names
        }
        cells = {}
        if one.metric == "iou":
            for label in names:
                known = [told.whole_cells(run, level=level, name=label) for run in told.probing.runs]
                reached = [value for value in known if value is not None]
                if reached:
                    cells[label] = max(reached)
        panels.append(Panel(one.title, spots, cells))
    beside = (
        " The line with a triangle is what the best set of whole cells reaches, on the grid where that is highest; a "
        "smooth map can lie a little above it."
        if panels[-1].cells
        else ""
    )
    return dot_chart(
        name,
        {label: label for label in names},
        panels,
        series,
        title=f"Grounding by {'finding' if level == 'finding' else 'size of the truth'}, with 95% intervals",
        note=f"{_LINES}{beside}",
    )
