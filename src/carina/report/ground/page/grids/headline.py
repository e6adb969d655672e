"""The headline tables: measures by run and control, by images and by findings, and models less controls."""

from collections.abc import Iterator

from carina.report.ground.analyse.compare import RIVALS
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import share
from carina.report.ground.page.grids.common import (
    CONTROLS,
    OVER_FINDINGS,
    columns,
    controls_of,
    fullest,
    run_head,
)
from carina.report.ground.read import MapsRun
from carina.report.page.cells import Cell, Grid, Head, Row, gap


def headline(told: GroundAnalysis) -> Grid:
    alone = told.average == "macro"
    rows = [*_run_rows(told, told.average)]
    beside = fullest(told)
    if beside is not None:
        rows += _control_rows(told, beside)
    return Grid(
        title="Headline",
        corner="Model and method",
        columns=(
            *columns(told, note=OVER_FINDINGS if alone else ""),
            Head(text="Recognition AUROC", note=OVER_FINDINGS),
        ),
        rows=tuple(rows),
        note=(
            f"Percent: the mean over findings, without an interval, for profile {told.probing.profile} tells findings "
            "alone; these are below, each with its interval."
            if alone
            else "Percent, with 95% interval over patients; every image counts alike."
        )
        + " On the bars the line is the best of the controls that know where findings lie and nothing of the image "
        "(mean region, lungs, centre), on the same frames and grid"
        + (
            "; the triangle is what the best set of whole cells of this grid reaches, and a smooth map can lie a "
            "little above it."
            if any(told.whole_cells(run, average=told.average) is not None for run in told.probing.runs)
            else "."
        ),
    )


def macro(told: GroundAnalysis) -> Grid:
    """Nothing where the headline tells it already."""
    rows = _run_rows(told, "macro", recognised=False) if told.average == "micro" else ()
    return Grid(
        title="Every finding counts alike",
        corner="Model and method",
        columns=columns(told),
        rows=tuple(rows),
        note="Percent: the mean of the findings' means. Draws of patients that miss a finding are left out of the "
        "interval; with fewer than 100 others there is none.",
    )


def _run_rows(told: GroundAnalysis, average: str, *, recognised: bool = True) -> Iterator[Row]:
    for run in told.probing.runs:
        cells = [
            share(
                told.figure(run, one.variant, average=average),
                line=None if run.control else told.rival(run, one.variant, average=average),
                cells=told.whole_cells(run, average=average) if one.metric == "iou" else None,
            )
            for one in told.probing.measures
        ]
        if recognised:
            cells.append(share(told.mean_auroc(run)))
        yield Row(
            head=run_head(run), cells=tuple(cells), group="Controls as runs" if run.control else "Models"
        )


def _control_rows(told: GroundAnalysis, run: MapsRun) -> Iterator[Row]:
    for source in controls_of(run):
        cells = [
            share(told.figure(run, one.variant, source=source, average=told.average))
            for one in told.probing.measures
        ]
        yield Row(
            head=Head(text=source, note=CONTROLS[source], mark=source),
            cells=(*cells, Cell()),
            group=f"Controls on the frames and grid of {run.title}",
        )


def every_control(told: GroundAnalysis) -> Grid:
    """Controls of the other runs, whose frames and grids are others."""
    shown = fullest(told)
    rows = [
        row
        for run in told.probing.runs
        if run is not shown and not run.control
        for row in _control_rows(told, run)
    ]
    return Grid(
        title="Controls of the other runs",
        corner="Control",
        columns=(*columns(told), Head(text="")),
        rows=tuple(rows),
        note="Percent. Every run is read against controls on its own frames, grid and probes.",
    )


def against(told: GroundAnalysis) -> Grid:
    """Model less control on the same maps."""
    rows = []
    for item in told.controls:
        for source in RIVALS:
            own = {one.metric: one for one in item.differences if one.other == source}
            if own:
                cells = tuple(gap(own.get(measure.variant)) for measure in told.probing.measures)
                rows.append(
                    Row(
                        head=Head(text=f"less {source}", note=CONTROLS[source]),
                        cells=cells,
                        group=item.run.title,
                    )
                )
    return Grid(
        title="Models against the controls",
        corner="Difference",
        columns=columns(told),
        rows=tuple(rows),
        note="Percentage points, paired on the same probes, with 95% interval over patients; p after Holm's correction "
        "over all differences of a run. Bold with a star: below 0.05.",
    )
