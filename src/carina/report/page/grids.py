"""The tables of an exam, from its analysis."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from carina.report.analyse.breakdown import Dimension
from carina.report.analyse.counts import FORMAT_METRICS, all_kinds
from carina.report.analyse.errors import NONE
from carina.report.analyse.figures import Figure
from carina.report.analyse.headline import Measure
from carina.report.analysis import Analysis
from carina.report.page.cells import Cell, Grid, Head, Row, gap, number, percent, share
from carina.report.read import Run
from carina.report.words import FORMATS, HISTORIES, STATUSES, stage_name
from carina.show.case_words import PATHS
from carina.show.case_words import kind as kind_words

Lookup = Mapping[tuple[str, str, str, str], Figure]


def headline(told: Analysis) -> Grid:
    """Runs by measures, grouped by history; the best in bold where it is surely the best."""
    words = told.exam.protocol == "percept"
    note = "Percent; 95% interval over patients; the tick on the bar is chance. "
    if words:
        note += (
            "Detection and contour check are balanced over opposing paths; a stage is right when all its steps are; "
            "case success is the mean over targets of cases that are right throughout. "
        )
    else:
        note += "Questions that have a right answer; answers in words stand in a table of their own. "
    note += "Bold: above the next run of the same history, paired, after Holm's correction."
    return _measured(told, told.measures, "Headline", note)


def in_words(told: Analysis) -> Grid:
    note = (
        "Mean score of answers in words, times 100: agreement of findings where the answer names any, else of "
        "attributes, else of words (ROUGE-L)."
    )
    return _measured(told, told.word_measures, "Answers in words, by stage", note)


def _measured(told: Analysis, measures: Sequence[Measure], title: str, note: str) -> Grid:
    columns = []
    for measure in measures:
        chances = {
            percent(item.chance)
            for run in told.exam.runs
            if (item := told.headline[run.id, measure.key]).chance is not None
        }
        chance = f" · chance {chances.pop()}" if len(chances) == 1 else ""
        columns.append(Head(text=measure.title, note=f"{measure.metric}{chance}"))
    rows = [
        Row(
            head=_head(run, told),
            cells=tuple(
                share(told.headline[run.id, measure.key], bold=(run.id, measure.key) in told.best)
                for measure in measures
            ),
            group=f"{run.history}: {HISTORIES[run.history]}",
        )
        for run in told.exam.runs
    ]
    return Grid(title=title, corner="Model", columns=tuple(columns), rows=tuple(rows), note=note)


def opposing(told: Analysis) -> Grid:
    asked = [("1", "sensitivity"), ("1", "specificity"), ("2", "sensitivity"), ("2", "specificity")]
    columns = [
        (name, metric, f"{stage_name(told.exam.protocol, int(name))}: {metric}") for name, metric in asked
    ]
    return _by_run(
        told,
        "Detection and contour check, both sides",
        told.opposing,
        [("stage", name, metric, title, "") for name, metric, title in columns],
        "Sensitivity: the lesion is there, or the contour needs a revision, and the answer says so. Specificity: "
        "neither is the case, and the answer says so.",
    )


def formats(told: Analysis) -> Grid:
    """Formats and their metrics as rows; nothing where there is one format alone."""
    present = {(item.name, item.metric) for item in told.formats if item.value is not None}
    rows = [
        ("format", name, metric, FORMATS[name], metric)
        for name, metric in FORMAT_METRICS
        if (name, metric) in present and len({form for form, _ in present}) > 1
    ]
    return _by_label(
        told, "By format", told.formats, rows, "Times 100. Answers that could not be read count as 0."
    )


def questions(told: Analysis) -> Grid:
    """Sub-questions as rows, runs as columns."""
    names = list(dict.fromkeys((item.name, item.metric) for item in told.tasks))
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in names))}
    names.sort(key=lambda item: (order[item[0]], item[1] != "accuracy", item[1]))
    return _by_label(
        told,
        "Questions one by one",
        told.tasks,
        [("task", name, metric, name, metric) for name, metric in names],
        "",
    )


def reach(told: Analysis) -> Iterator[Grid]:
    for name, curves in told.reach.items():
        figures = [item for curve in curves for item in curve.figures]
        places = list(dict.fromkeys(place for curve in curves for place in curve.places))
        level = f"reach by {'stage' if name == 'stages' else 'step'}, {'all' if name == 'stages' else name}"
        titles = [
            f"{place} {stage_name(told.exam.protocol, int(place))}" if name == "stages" else place
            for place in places
        ]
        columns = [
            (level, place, "share of cases still right", title, "")
            for place, title in zip(places, titles, strict=True)
        ]
        title = "All cases" if name == "stages" else f"Path {name}, {PATHS.get(name, '')}".rstrip(", ")
        yield _by_run(told, f"Reach: {title}", figures, columns, "")


def propagation(told: Analysis) -> Grid:
    every = (*told.measures, *told.word_measures)
    columns = [
        Head(
            text=measure.title, note=f"{measure.metric}{' in words' if measure in told.word_measures else ''}"
        )
        for measure in every
    ]
    rows = []
    for pair in told.propagation:
        by_key = {(item.level, item.name, item.metric): item for item in pair.differences}
        rows.append(
            Row(
                head=Head(text=pair.own.model, note=f"own less {pair.mended.history}"),
                cells=tuple(gap(by_key.get(measure.key)) for measure in every),
            )
        )
    return Grid(
        title="Propagation",
        corner="Model",
        columns=tuple(columns),
        rows=tuple(rows),
        note="Points, on the same cases, with 95% interval and p after Holm's correction within a model. Below zero: "
        "its own earlier answers cost the model accuracy.",
    )


def first_errors(told: Analysis) -> Grid:
    stages = list(dict.fromkeys(item.name for item in told.first))
    columns = [("first error", stage, "share of cases", _stage(told, stage), "") for stage in stages]
    return _by_run(told, "First error", told.first, columns, "Percent of complete cases.")


def recovery(told: Analysis) -> Grid:
    metric = "share of cases wrong at this stage alone"
    columns = [("recovery", item, metric, _stage(told, item), "") for item in _names(told.only)]
    return _by_run(
        told,
        "Recovery: wrong at one stage alone",
        told.only,
        columns,
        "Percent of complete cases that would be right throughout if this stage alone were mended.",
    )


def after_error(told: Analysis) -> Grid:
    stages = _names(told.mended)
    columns = [
        ("after first error", stage, metric, _stage(told, stage), metric.rpartition(", ")[2])
        for stage in stages
        for metric in ("right from there on, left alone", "right from there on, mended")
    ]
    return _by_run(
        told,
        "After the first error: left alone and mended",
        told.mended,
        columns,
        "Of cases whose first error was at this stage, percent that were right at all later ones.",
    )


def breakdowns(told: Analysis) -> Iterator[Grid]:
    for dimension in told.dimensions:
        metrics = ["accuracy"]
        if told.exam.protocol == "percept" and "step" not in dimension.of.columns:
            metrics.append("case success")
        rows = [
            (
                f"by {dimension.title.lower()}",
                label,
                metric,
                _label(dimension, label),
                metric if len(metrics) > 1 else "",
            )
            for label in dimension.labels
            for metric in metrics
        ]
        note = f"{dimension.note.capitalize()}. " if dimension.note else ""
        yield _by_label(told, f"By {dimension.title.lower()}", told.breakdown, rows, note)


def reading(told: Analysis) -> Grid:
    columns = [("status", status, "answers", title, "") for status, title in STATUSES.items()]
    states = [
        ("state", "not_reached", "steps", "steps not reached", ""),
        ("state", "incomplete", "steps", "steps incomplete", ""),
    ]
    found = _lookup(told.reading)
    heads = [Head(text=title, note=note) for *_, title, note in (*columns, *states)]
    obeyed = any(item.level == "form" and item.value is not None for item in told.reading)
    if obeyed:
        heads.append(Head(text="kept to the form", note="where one was demanded"))
    rows = []
    for run in told.exam.runs:
        cells = [number(found.get((run.id, *key[:3])), of=True) for key in (*columns, *states)]
        if obeyed:
            cells.append(share(found.get((run.id, "form", "obeyed", "share of answers"))))
        rows.append(Row(head=_head(run, told), cells=tuple(cells)))
    return Grid(
        title="How answers were read",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(rows),
        note="Answers by class. All but those read count as wrong; incomplete steps count as neither.",
    )


def kinds(told: Analysis) -> Grid:
    rows = [
        (f"kind, {task}", kind, "share of wrong answers", kind_words(kind), task)
        for task, kind in all_kinds(told.kinds)
    ]
    return _by_label(
        told,
        "Which errors were chosen",
        told.kinds,
        rows,
        "Percent of a question's wrong answers that chose an option of this kind.",
    )


def cost(told: Analysis) -> Grid:
    found = _lookup(told.cost)
    columns = (
        ("input tokens", "sum", 0),
        ("output tokens", "sum", 0),
        ("dollars", "at list price", 4),
        ("image sends", "sum", 0),
        ("seconds", "sum", 1),
        ("seconds", "median of a step", 2),
    )
    rows = [
        Row(
            head=_head(run, told),
            cells=tuple(
                number(found.get((run.id, "cost", name, metric)), digits=digits)
                for name, metric, digits in columns
            ),
        )
        for run in told.exam.runs
    ]
    return Grid(
        title="Cost and time",
        corner="Model",
        columns=tuple(Head(text=name, note=metric) for name, metric, _ in columns),
        rows=tuple(rows),
        note="Of answered steps. A picture counts as sent with every question of the conversation that it is in. "
        "Dollars are list prices without discounts, blank where the price or the tokens are not known.",
    )


def comparison(told: Analysis) -> Grid:
    models = {run.id: run for run in told.exam.runs}
    found = {(item.one, item.other, item.level, item.name, item.metric): item for item in told.contrasts}
    pairs = list(dict.fromkeys((item.one, item.other) for item in told.contrasts))
    rows = [
        Row(
            head=Head(text=f"{models[one].model} less {models[other].model}"),
            cells=tuple(gap(found.get((one, other, *measure.key))) for measure in told.measures),
            group=f"{models[one].history}: {HISTORIES[models[one].history]}",
        )
        for one, other in pairs
    ]
    return Grid(
        title="Models against each other",
        corner="Pair",
        columns=tuple(Head(text=measure.title, note=measure.metric) for measure in told.measures),
        rows=tuple(rows),
        note="Points, paired on the same cases, with 95% interval over patients; p after Holm's correction over all "
        "pairs of a column. Bold: below 0.05.",
    )


def detectable(told: Analysis) -> Grid:
    rows = [
        Row(
            head=Head(text=item.measure.title, note=item.measure.metric),
            cells=(
                Cell(text=str(item.n)),
                Cell(text=str(item.patients)),
                Cell(text=percent(item.accuracy)) if item.n else Cell(),
                Cell(text=percent(item.difference))
                if item.difference is not None
                else Cell(text="none" if item.n else ""),
            ),
        )
        for item in told.detectable
    ]
    return Grid(
        title="What this benchmark can tell apart",
        corner="Figure",
        columns=(
            Head(text="n"),
            Head(text="patients"),
            Head(text="mean accuracy", note="of these runs"),
            Head(text="smallest difference", note="points, found with 80% probability"),
        ),
        rows=tuple(rows),
        note="For two models that err independently at this accuracy, tested in pairs at 0.05; models that find the "
        "same cases hard are told apart more finely.",
    )


def _by_run(
    told: Analysis,
    title: str,
    figures: Iterable[Figure],
    columns: Sequence[tuple[str, str, str, str, str]],
    note: str,
) -> Grid:
    """Runs as rows; columns are level, name, metric, title and note."""
    found = _lookup(figures)
    rows = [
        Row(head=_head(run, told), cells=tuple(share(found.get((run.id, *column[:3]))) for column in columns))
        for run in told.exam.runs
    ]
    kept = tuple(row for row in rows if any(cell.text for cell in row.cells))
    heads = tuple(Head(text=column[3], note=column[4]) for column in columns)
    return Grid(title=title, corner="Model", columns=heads, rows=kept, note=note)


def _by_label(
    told: Analysis,
    title: str,
    figures: Iterable[Figure],
    rows: Sequence[tuple[str, str, str, str, str]],
    note: str,
) -> Grid:
    """Runs as columns."""
    found = _lookup(figures)
    made = [
        Row(
            head=Head(text=row[3], note=row[4]),
            cells=tuple(share(found.get((run.id, *row[:3]))) for run in told.exam.runs),
        )
        for row in rows
    ]
    return Grid(
        title=title,
        corner="",
        columns=tuple(_head(run, told) for run in told.exam.runs),
        rows=tuple(row for row in made if any(cell.text for cell in row.cells)),
        note=note,
    )


def _lookup(figures: Iterable[Figure]) -> Lookup:
    return {(item.run, item.level, item.name, item.metric): item for item in figures}


def _head(run: Run, told: Analysis) -> Head:
    several = len({other.history for other in told.exam.runs}) > 1
    kind = "oracle" if run.oracle else "blind baseline" if run.baseline else ""
    note = " · ".join(part for part in (run.history if several else "", kind) if part)
    return Head(text=run.model, note=note, mark=run.id)


def _names(figures: Iterable[Figure]) -> list[str]:
    return list(dict.fromkeys(item.name for item in figures))


def _stage(told: Analysis, name: str) -> str:
    return "right throughout" if name == NONE else f"{name} {stage_name(told.exam.protocol, int(name))}"


def _label(dimension: Dimension, label: str) -> str:
    if dimension.title == "Path":
        return f"{label} {PATHS[label]}" if label in PATHS else label
    if dimension.title == "Format":
        return FORMATS.get(label, label)
    return label
