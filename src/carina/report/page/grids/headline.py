"""The headline tables: measures by run, both sides of percept's first stages, formats by their own metrics."""

from collections.abc import Sequence
from dataclasses import replace

from carina.report.analyse.counts import FORMAT_METRICS
from carina.report.analyse.headline import Measure
from carina.report.analysis import Analysis
from carina.report.page.cells import Cell, Grid, Head, Row, percent, share
from carina.report.page.grids.common import by_label, by_run, history_group, run_head
from carina.report.words import FORMATS, stage_name


def headline(told: Analysis) -> Grid:
    """Runs by measures, grouped by history; the best in bold where it is surely the best."""
    note = (
        "Percent, with 95% interval over patients. On the bars the line is chance and the triangle the best constant "
        "answer. "
    )
    if told.exam.protocol == "percept":
        note += (
            "Detection and contour check are balanced over opposing paths; a stage is right when all its steps are; "
            "case success is the mean over targets of cases that are right throughout. "
        )
    else:
        note += "Questions that have a right answer; answers in words stand in a table of their own. "
    note += "Bold with a star: above the next run of the same history, paired, after Holm's correction."
    grid = _measured(told, told.measures, "Headline", note)
    rows = [replace(row, group=row.group or "Models") for row in grid.rows]
    return replace(grid, rows=(*rows, *_without_looking(told)))


def in_words(told: Analysis) -> Grid:
    note = (
        "Mean score of answers in words, times 100: agreement of findings where the answer names any, else of "
        "attributes, else of words (ROUGE-L)."
    )
    return _measured(told, told.word_measures, "Answers in words, by stage", note)


def _measured(told: Analysis, measures: Sequence[Measure], title: str, note: str) -> Grid:
    rows = [
        Row(
            head=run_head(run),
            cells=tuple(
                share(told.headline[run.id, measure.key], bold=(run.id, measure.key) in told.best)
                for measure in measures
            ),
            group=history_group(run, told),
        )
        for run in told.exam.runs
    ]
    columns = tuple(Head(text=measure.title, note=measure.metric) for measure in measures)
    return Grid(title=title, corner="Model", columns=columns, rows=tuple(rows), note=note)


def _without_looking(told: Analysis) -> list[Row]:
    """Chance and the best constant answer, over the cases of the run that has most."""
    fullest = max(
        told.exam.runs, key=lambda run: max(told.headline[run.id, one.key].n for one in told.measures)
    )
    figures = [told.headline[fullest.id, measure.key] for measure in told.measures]
    asked = (
        ("Chance", "a draw among the admissible answers", [figure.chance for figure in figures]),
        ("Best constant answer", "the same to every question of a kind", [one.constant for one in figures]),
    )
    return [
        Row(
            head=Head(text=name, note=note),
            cells=tuple(Cell() if value is None else Cell(text=_small(value)) for value in values),
            group="What needs no picture, worked out from the keys",
        )
        for name, note, values in asked
        if any(value is not None for value in values)
    ]


def _small(value: float) -> str:
    """What is hardly ever right is not never right."""
    return "<0.1" if 0 < value < 0.0005 else percent(value)


def opposing(told: Analysis) -> Grid:
    asked = [(name, metric) for name in ("1", "2") for metric in ("sensitivity", "specificity")]
    columns = [
        ("stage", name, metric, Head(text=f"{stage_name(told.exam.protocol, int(name))}: {metric}"))
        for name, metric in asked
    ]
    return by_run(
        told,
        "Detection and contour check, both sides",
        told.opposing,
        columns,
        "Percent. Sensitivity: the lesion is there, or the contour needs a revision, and the answer says so. "
        "Specificity: neither is the case, and the answer says so.",
    )


def formats(told: Analysis) -> Grid:
    """Formats and their metrics as rows; nothing where there is one format alone."""
    present = {(item.name, item.metric) for item in told.formats if item.value is not None}
    rows = [
        (FORMATS[name], ("format", name, metric, Head(text=metric)))
        for name, metric in FORMAT_METRICS
        if (name, metric) in present and len({form for form, _ in present}) > 1
    ]
    return by_label(
        told,
        told.formats,
        rows,
        title="By format",
        corner="Metric",
        note="Times 100, each format by its own metrics. Answers that could not be read count as 0.",
    )
