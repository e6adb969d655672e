"""Models against each other, and how small a difference the benchmark can show."""

from carina.report.analysis import Analysis
from carina.report.page.cells import Cell, Grid, Head, Row, gap, percent
from carina.report.words import HISTORIES


def comparison(told: Analysis) -> Grid:
    models = {run.id: run for run in told.exam.runs}
    found = {(item.one, item.other, item.level, item.name, item.metric): item for item in told.contrasts}
    pairs = list(dict.fromkeys((item.one, item.other) for item in told.contrasts))
    rows = [
        Row(
            head=Head(text=f"{models[one].model} less {models[other].model}"),
            cells=tuple(gap(found.get((one, other, *measure.key))) for measure in told.measures),
            group=f"History {models[one].history}: {HISTORIES[models[one].history]}",
        )
        for one, other in pairs
    ]
    return Grid(
        title="Models against each other",
        corner="Pair",
        columns=tuple(Head(text=measure.title, note=measure.metric) for measure in told.measures),
        rows=tuple(rows),
        note="Percentage points, paired on the same cases, with 95% interval over patients; p after Holm's correction "
        "over all pairs of a column. Bold with a star: below 0.05.",
    )


def detectable(told: Analysis) -> Grid:
    rows = [
        Row(
            head=Head(text=item.measure.title, note=item.measure.metric),
            cells=(
                Cell(text=f"{item.n:,}"),
                Cell(text=f"{item.patients:,}"),
                Cell(text=percent(item.accuracy)),
                Cell(text="–" if item.difference is None else percent(item.difference)),
            ),
        )
        for item in told.detectable
        if item.n
    ]
    return Grid(
        title="What this benchmark can tell apart",
        corner="Figure",
        columns=(
            Head(text="n"),
            Head(text="patients"),
            Head(text="mean accuracy", note="percent, of these runs"),
            Head(text="smallest difference", note="percentage points, found with 80% probability"),
        ),
        rows=tuple(rows),
        note="For two models that err independently at this accuracy, tested in pairs at 0.05; models that find the "
        "same cases hard are told apart more finely. A dash: not even the largest possible difference would be found.",
    )
