"""Tables by what a case or a question is about."""

from collections.abc import Iterator

from carina.report.analyse.breakdown import Dimension
from carina.report.analyse.counts import all_kinds
from carina.report.analysis import Analysis
from carina.report.page.cells import Grid, Head
from carina.report.page.grids.common import by_label
from carina.report.words import FORMATS, PATH_MEANINGS, path_name
from carina.show.case_words import kind as kind_words

_METRICS = {"accuracy": "Accuracy over steps", "case success": "Case success: right throughout"}


def breakdowns(told: Analysis) -> Iterator[Grid]:
    for dimension in told.dimensions:
        metrics = ["accuracy"]
        if told.exam.protocol == "percept" and "step" not in dimension.of.columns:
            metrics.append("case success")
        rows = [
            (
                _METRICS[metric] if len(metrics) > 1 else "",
                (f"by {dimension.title.lower()}", label, metric, _head(dimension, label)),
            )
            for metric in metrics
            for label in dimension.labels
        ]
        note = f"{dimension.note[:1].upper()}{dimension.note[1:]}. " if dimension.note else ""
        if dimension.title == "Path":
            told_paths = [label for label in dimension.labels if label in PATH_MEANINGS]
            note += " ".join(f"{label}: {PATH_MEANINGS[label]}." for label in told_paths) + " "
        title = f"By {dimension.title.lower()}"
        note = f"{note}Percent, with 95% interval over patients; the line on a bar is chance."
        yield by_label(told, told.breakdown, rows, title=title, corner=dimension.title, note=note)


def questions(told: Analysis) -> Grid:
    """Sub-questions as groups of rows, runs as columns."""
    names = list(dict.fromkeys((item.name, item.metric) for item in told.tasks))
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in names))}
    names.sort(key=lambda item: (order[item[0]], item[1] != "accuracy", item[1]))
    rows = [(name, ("task", name, metric, Head(text=metric))) for name, metric in names]
    return by_label(
        told, told.tasks, rows, title="Questions one by one", corner="Question and metric", note="Percent."
    )


def kinds(told: Analysis) -> Grid:
    rows = [
        (task, (f"kind, {task}", kind, "share of wrong answers", Head(text=kind_words(kind))))
        for task, kind in all_kinds(told.kinds)
    ]
    return by_label(
        told,
        told.kinds,
        rows,
        title="Which errors were chosen",
        corner="Kind of error",
        note="Percent of a question's wrong answers that chose an option of this kind.",
    )


def _head(dimension: Dimension, label: str) -> Head:
    if dimension.title == "Path":
        return Head(text=path_name(label), title=PATH_MEANINGS.get(label, ""))
    return Head(text=FORMATS.get(label, label) if dimension.title == "Format" else label)
