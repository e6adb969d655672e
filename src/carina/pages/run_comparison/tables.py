"""The tables of a comparison of runs, from their analysis."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from carina.cases.protocol import find_protocol, stage_title
from carina.pages.case_text import option_kind_title
from carina.pages.run_comparison.cells import (
    Cell,
    Heading,
    Row,
    Table,
    difference_cell,
    format_percent,
    number_cell,
    share_cell,
)
from carina.pages.run_comparison.labels import (
    COMPARISONS,
    FORMATS,
    HISTORIES,
    PATH_MEANINGS,
    STATUSES,
    path_title,
)
from carina.pages.words import join_names
from carina.runs.analysis.breakdown import ACCURACY, SUCCESS, Dimension, DimensionTitle, breakdown_metrics
from carina.runs.analysis.counts import FORMAT_METRICS, UNPARSED, list_error_kinds
from carina.runs.analysis.estimates import Estimate
from carina.runs.analysis.first_errors import CORRECTED, NO_ERROR, NOT_CORRECTED
from carina.runs.analysis.measures import Measure
from carina.runs.analysis.reach import ReachCurve
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.readers import ALPHA, METRICS, READERS
from carina.runs.analysis.result_rows import reader_estimate
from carina.runs.analysis.run_analysis import RunAnalysis

ByKey = Mapping[tuple[str, str, str, str], Estimate]
"""Estimates by run, level, name and metric."""
Selection = tuple[str, str, str, Heading]
"""Level, name and metric of a row or column, and its heading."""
_STILL_RIGHT = "share of cases still right"
_BREAKDOWN_METRICS = {ACCURACY: "Accuracy over steps", SUCCESS: "Case success: no error in the case"}


def reader_table(analysis: RunAnalysis) -> Table:
    """Readers against readers on the same cases; empty where the benchmark has one reader."""
    ceiling = analysis.ceiling
    estimates = [] if ceiling is None else ceiling.estimates
    known = _by_key(estimates)
    columns = [
        metric for metric in (*METRICS.values(), ALPHA) if any(one.metric == metric for one in estimates)
    ]
    names = ["", *(ceiling.findings if ceiling is not None else ())]
    return Table(
        title="Human ceiling: readers against readers",
        corner="Finding",
        columns=tuple(Heading(text=metric[:1].upper() + metric[1:]) for metric in columns),
        rows=tuple(
            Row(
                heading=Heading(text=name or "all cases"),
                cells=tuple(
                    # Agreement beyond chance may be below 0, where there is no bar.
                    replace(share_cell(known.get((READERS, READERS, name, metric))), bar=None)
                    for metric in columns
                ),
            )
            for name in names
        ),
        note="Percent, with 95% interval over patients. Every reader is compared with the others, whose regions are "
        "fused by the rule of the benchmark; readers whom the source compares with its truth, with that truth. Where "
        "the others are divided about presence, either answer counts one half. A reader who looked and drew nothing "
        "counts as a model without a box or map. A case counts once, with the mean of its readers; cases that one "
        "reader looked at do not count.",
    )


# ---- runs as rows, or as columns ------------------------------------------------------------------------------------


def _runs_as_rows(
    analysis: RunAnalysis,
    title: str,
    estimates: Iterable[Estimate],
    columns: Sequence[Selection],
    note: str,
) -> Table:
    known = _by_key(estimates)
    rows = [
        Row(
            heading=_run_heading(run),
            cells=tuple(share_cell(known.get((run.id, *column[:3]))) for column in columns),
            group=_history_group(run, analysis),
        )
        for run in analysis.group.runs
    ]
    return Table(
        title=title,
        corner="Model",
        columns=tuple(column[3] for column in columns),
        rows=tuple(row for row in rows if not row.is_empty),
        note=note,
    )


def _runs_as_columns(
    analysis: RunAnalysis,
    estimates: Iterable[Estimate],
    rows: Sequence[tuple[str, Selection]],
    *,
    title: str,
    corner: str,
    note: str,
) -> Table:
    """Each of `rows` comes with the group that it belongs to."""
    known = _by_key(estimates)
    filled = [
        Row(
            heading=row[3],
            cells=tuple(share_cell(known.get((run.id, *row[:3]))) for run in analysis.group.runs),
            group=group,
        )
        for group, row in rows
    ]
    has_histories = _has_several_histories(analysis)
    return Table(
        title=title,
        corner=corner,
        columns=tuple(_run_heading(run, with_history=has_histories) for run in analysis.group.runs),
        rows=tuple(row for row in filled if not row.is_empty),
        note=note,
    )


def _by_key(estimates: Iterable[Estimate]) -> ByKey:
    return {(item.run, item.level, item.name, item.metric): item for item in estimates}


def _run_heading(run: ComparedRun, *, with_history: bool = False) -> Heading:
    """The run's mark and name; its history where nothing else names it, and its model where it has a label."""
    kind = "oracle" if run.is_oracle else "blind baseline" if run.is_baseline else ""
    model = run.model if run.label else ""
    # The history may stand above the rows; what else the setting differs in stands nowhere else.
    setting = run.setting if with_history else run.setting.removeprefix(run.history).removeprefix(", ")
    history = f"history {setting}" if with_history else setting
    return Heading(
        text=run.name, note=" · ".join(part for part in (model, history, kind) if part), mark=run.id
    )


def _has_several_histories(analysis: RunAnalysis) -> bool:
    return len({run.history for run in analysis.group.runs}) > 1


def _history_group(run: ComparedRun, analysis: RunAnalysis) -> str:
    """Line above the runs of one history, where there are several."""
    return f"History {run.history}: {HISTORIES[run.history]}" if _has_several_histories(analysis) else ""


def _names(estimates: Iterable[Estimate]) -> list[str]:
    return list(dict.fromkeys(item.name for item in estimates))


# ---- headline -------------------------------------------------------------------------------------------------------


def headline_table(analysis: RunAnalysis) -> Table:
    """Runs by measures, grouped by history; the best in bold where it is significantly the best."""
    note = (
        "Percent, with 95% interval over patients. On the bars the line is chance and the triangle the best constant "
        "answer. "
    )
    note += f"{find_protocol(analysis.group.protocol).headline_note} "
    note += "Bold with a star: above the next run of the same history, paired, after Holm's correction."
    table = _measure_table(analysis, analysis.measures, "Headline", note)
    rows = [
        replace(row, cells=(*row.cells, _unparsed_cell(analysis, run)), group=row.group or "Models")
        for row, run in zip(table.rows, analysis.group.runs, strict=True)
    ]
    return replace(
        table,
        columns=(*table.columns, Heading(text="Not parsed", note="share of answers")),
        rows=(*rows, *_reference_rows(analysis), *_ceiling_rows(analysis)),
    )


def paper_table(analysis: RunAnalysis) -> Table:
    """The headline table as a paper prints it, without bars and marks."""
    note = f"Percent (95% interval over patients). {find_protocol(analysis.group.protocol).headline_note}"
    if analysis.best:
        note += " Bold: above the next run of the same history, paired, after Holm's correction."
    return replace(headline_table(analysis), note=note)


def free_text_table(analysis: RunAnalysis) -> Table:
    note = (
        "Mean score of free text, times 100: agreement of findings where the key names any, else of attributes, else "
        "of words (ROUGE-L)."
    )
    return _measure_table(analysis, analysis.free_text_measures, "Free text, by stage", note)


def _measure_table(analysis: RunAnalysis, measures: Sequence[Measure], title: str, note: str) -> Table:
    rows = [
        Row(
            heading=_run_heading(run),
            cells=tuple(
                share_cell(
                    analysis.headline[run.id, measure.key], is_bold=(run.id, measure.key) in analysis.best
                )
                for measure in measures
            ),
            group=_history_group(run, analysis),
        )
        for run in analysis.group.runs
    ]
    columns = tuple(Heading(text=measure.title, note=measure.metric) for measure in measures)
    return Table(title=title, corner="Model", columns=columns, rows=tuple(rows), note=note)


def _unparsed_cell(analysis: RunAnalysis, run: ComparedRun) -> Cell:
    """The share of all answers of a run that could not be parsed."""
    share = next(one for one in analysis.parsing if one.run == run.id and one.name == UNPARSED)
    return replace(share_cell(share), bar=None)


def _ceiling_rows(analysis: RunAnalysis) -> list[Row]:
    """Readers against readers, in the measures that say of readers what they say of models."""
    cells = tuple(
        replace(share_cell(reader_estimate(analysis, measure)), bar=None) for measure in analysis.measures
    )
    row = Row(
        heading=Heading(text="Human ceiling", note="each reader against the others"),
        cells=(*cells, Cell()),
        group="Readers, on the same cases",
    )
    return [] if row.is_empty else [row]


def _reference_rows(analysis: RunAnalysis) -> list[Row]:
    """Chance and the best constant answer, over the cases of the run that has most."""
    headline, measures = analysis.headline, analysis.measures
    fullest = max(
        analysis.group.runs, key=lambda run: max(headline[run.id, measure.key].n for measure in measures)
    )
    estimates = [headline[fullest.id, measure.key] for measure in measures]
    references = (
        ("Chance", "a draw among the admissible answers", [one.chance for one in estimates]),
        ("Best constant answer", "the same to every question of a kind", [one.constant for one in estimates]),
    )
    return [
        Row(
            heading=Heading(text=name, note=note),
            cells=(
                *(Cell() if value is None else Cell(text=_small_percent(value)) for value in values),
                Cell(),
            ),
            group="Without an image, computed from the answer key",
        )
        for name, note, values in references
        if any(value is not None for value in values)
    ]


def _small_percent(value: float) -> str:
    """A rare event is not shown as 0."""
    return "<0.1" if 0 < value < 0.0005 else format_percent(value)


def opposing_paths_table(analysis: RunAnalysis) -> Table:
    columns = [
        ("stage", name, metric, Heading(text=f"{stage_title(analysis.group.protocol, int(name))}: {metric}"))
        for name in _names(analysis.opposing_paths)
        for metric in ("sensitivity", "specificity")
    ]
    return _runs_as_rows(
        analysis,
        "Sensitivity and specificity of detection and contour evaluation",
        analysis.opposing_paths,
        columns,
        "Percent. Sensitivity: the lesion is present, or the contour needs a revision, and the answer says so. "
        "Specificity: neither is the case, and the answer says so.",
    )


def format_table(analysis: RunAnalysis) -> Table:
    """Formats and their metrics as rows; empty where there is one format only."""
    present = {(item.name, item.metric) for item in analysis.formats if item.value is not None}
    rows = [
        (FORMATS[name], ("format", name, metric, Heading(text=metric)))
        for name, metric in FORMAT_METRICS
        if (name, metric) in present and len({form for form, _ in present}) > 1
    ]
    return _runs_as_columns(
        analysis,
        analysis.formats,
        rows,
        title="By answer format",
        corner="Metric",
        note="Times 100, each format by its own metrics. Answers that could not be parsed count as 0.",
    )


# ---- reach and errors -----------------------------------------------------------------------------------------------


def reach_tables(analysis: RunAnalysis) -> Iterator[Table]:
    """After each stage of all cases, and after each step of a path."""
    tasks = analysis.step_tasks
    for name, curves in analysis.reach.items():
        if name == "stages":
            level, title, note = "reach by stage, all", "Reach over all cases, by stage", ""
            headings = _stage_headings(analysis, curves)
        else:
            level, title = f"reach by step, {name}", f"Reach on path {path_title(name)}, by step"
            note = f" Path {name}: {PATH_MEANINGS[name]}." if name in PATH_MEANINGS else ""
            headings = {step: Heading(text=step, note=tasks.get(step, "")) for step in _positions(curves)}
        columns = [(level, position, _STILL_RIGHT, heading) for position, heading in headings.items()]
        estimates = [item for curve in curves for item in curve.estimates]
        note = f"Percent of complete cases in which every answer up to here is right.{note}"
        yield _runs_as_rows(analysis, title, estimates, columns, note)


def target_reach_table(analysis: RunAnalysis) -> Table:
    """After each stage, for each target."""
    curves = [curve for each in analysis.target_reach.values() for curve in each]
    headings = _stage_headings(analysis, curves)
    known = _by_key(item for curve in curves for item in curve.estimates)
    rows = [
        Row(
            heading=_run_heading(run, with_history=_has_several_histories(analysis)),
            cells=tuple(
                share_cell(known.get((run.id, f"reach by stage, target {target}", stage, _STILL_RIGHT)))
                for stage in headings
            ),
            group=target,
        )
        for target in analysis.target_reach
        for run in analysis.group.runs
    ]
    return Table(
        title="Reach by target",
        corner="Target and model",
        columns=tuple(headings.values()),
        rows=tuple(row for row in rows if not row.is_empty),
        note="Percent of the complete cases about a target in which every answer up to here is right. Blank: no such "
        "stage.",
    )


def _stage_headings(analysis: RunAnalysis, curves: Sequence[ReachCurve]) -> dict[str, Heading]:
    return {
        stage: Heading(text=_stage_label(analysis, stage)) for stage in sorted(_positions(curves), key=int)
    }


def _positions(curves: Sequence[ReachCurve]) -> list[str]:
    return list(dict.fromkeys(position for curve in curves for position in curve.positions))


def _stage_label(analysis: RunAnalysis, stage: str) -> str:
    if stage == NO_ERROR:
        return "no error"
    return f"{stage} {stage_title(analysis.group.protocol, int(stage))}"


def first_error_table(analysis: RunAnalysis) -> Table:
    columns = [
        ("first error", stage, "share of cases", Heading(text=_stage_label(analysis, stage)))
        for stage in _names(analysis.first_errors)
    ]
    note = "Percent of complete cases."
    return _runs_as_rows(analysis, "First error", analysis.first_errors, columns, note)


def single_error_table(analysis: RunAnalysis) -> Table:
    metric = "share of cases wrong at this stage alone"
    columns = [
        ("recovery", stage, metric, Heading(text=_stage_label(analysis, stage)))
        for stage in _names(analysis.single_errors)
    ]
    return _runs_as_rows(
        analysis,
        "Recovery: errors at one stage only",
        analysis.single_errors,
        columns,
        "Percent of complete cases that would have no error if this one stage were corrected.",
    )


def after_first_error_table(analysis: RunAnalysis) -> Table:
    columns = [
        ("after first error", stage, metric, Heading(text=_stage_label(analysis, stage), note=note))
        for stage in _names(analysis.after_first_error)
        for metric, note in ((NOT_CORRECTED, "not corrected"), (CORRECTED, "corrected"))
    ]
    return _runs_as_rows(
        analysis,
        "After the first error: not corrected and corrected",
        analysis.after_first_error,
        columns,
        "Of cases with their first error at this stage, percent that are right at all later stages. Corrected: with "
        "history gold, or hint where there is no such run.",
    )


# ---- histories and comparisons --------------------------------------------------------------------------------------


def history_table(analysis: RunAnalysis) -> Table:
    """Comparisons as groups, models as rows; without models whose answers are the same under both histories."""
    measures = (*analysis.measures, *analysis.free_text_measures)
    columns = [
        Heading(
            text=measure.title,
            note=f"{measure.metric}{' of free text' if measure in analysis.free_text_measures else ''}",
        )
        for measure in measures
    ]
    rows = []
    for pair in analysis.histories:
        if pair.identical_answers is not None:
            continue
        known = {item.key: item for item in pair.differences}
        words, meaning = COMPARISONS[pair.histories]
        rows.append(
            Row(
                heading=Heading(text=pair.own.name, mark=pair.own.id),
                cells=tuple(difference_cell(known.get(measure.key)) for measure in measures),
                group=f"{words}: {meaning}",
            )
        )
    return Table(
        title="Differences between histories",
        corner="Model",
        columns=tuple(columns),
        rows=tuple(rows),
        note="Percentage points, paired on the same cases, with 95% interval over patients and p after Holm's "
        "correction over the measures of a row. Bold with a star: p below 0.05. Own minus gold below zero: the model's "
        "own earlier errors cost it accuracy. Own minus none above zero: the conversation helps. Hint minus own above "
        "zero: a hint after an error helps with the next questions.",
    )


def identical_answer_sentences(analysis: RunAnalysis) -> list[str]:
    """A sentence for every model whose answers are the same under histories that are compared."""
    identical: dict[str, list[str]] = {}
    for pair in analysis.histories:
        if pair.identical_answers is not None:
            other = next(name for name in pair.histories if name != "own")
            subject = f"{pair.own.name}: all {pair.identical_answers:,} answers"
            identical.setdefault(subject, []).append(other)
    return [
        f"{subject} are the same with history own as with {join_names(others)}: the history has no influence on "
        "this model, and there is no difference to show."
        for subject, others in identical.items()
    ]


def comparison_table(analysis: RunAnalysis) -> Table:
    runs = {run.id: run for run in analysis.group.runs}
    known = {(item.one, item.other, item.key): item for item in analysis.differences}
    pairs = list(dict.fromkeys((item.one, item.other) for item in analysis.differences))
    rows = [
        Row(
            heading=Heading(text=f"{runs[one].name} minus {runs[other].name}"),
            cells=tuple(
                difference_cell(known.get((one, other, measure.key))) for measure in analysis.measures
            ),
            group=f"History {runs[one].history}: {HISTORIES[runs[one].history]}",
        )
        for one, other in pairs
    ]
    return Table(
        title="Models compared",
        corner="Pair",
        columns=tuple(Heading(text=measure.title, note=measure.metric) for measure in analysis.measures),
        rows=tuple(rows),
        note="Percentage points, paired on the same cases, with 95% interval over patients; p after Holm's correction "
        "over all pairs of a column. Bold with a star: below 0.05.",
    )


def detectable_difference_table(analysis: RunAnalysis) -> Table:
    rows = [
        Row(
            heading=Heading(text=item.measure.title, note=item.measure.metric),
            cells=(
                Cell(text=f"{item.n:,}"),
                Cell(text=f"{item.patients:,}"),
                Cell(text=format_percent(item.accuracy)),
                Cell(text="–" if item.difference is None else format_percent(item.difference)),
            ),
        )
        for item in analysis.detectable
        if item.n
    ]
    return Table(
        title="Smallest differences that this benchmark can detect",
        corner="Measure",
        columns=(
            Heading(text="n"),
            Heading(text="patients"),
            Heading(text="mean accuracy", note="percent, of these runs"),
            Heading(text="smallest difference", note="percentage points, detected with 80% probability"),
        ),
        rows=tuple(rows),
        note="For two models of this accuracy whose errors are independent, tested in pairs at 0.05; between models "
        "that find the same cases hard, smaller differences are detected. A dash: not even the largest possible "
        "difference would be detected.",
    )


# ---- breakdowns -----------------------------------------------------------------------------------------------------


def breakdown_tables(analysis: RunAnalysis) -> Iterator[Table]:
    for dimension in analysis.dimensions:
        metrics = breakdown_metrics(analysis.group.protocol, dimension)
        level = f"by {dimension.title.lower()}"
        rows = [
            (
                _BREAKDOWN_METRICS[metric] if len(metrics) > 1 else "",
                (level, label, metric, _label_heading(dimension, label)),
            )
            for metric in metrics
            for label in dimension.labels
        ]
        note = f"{dimension.note[:1].upper()}{dimension.note[1:]}. " if dimension.note else ""
        if dimension.title == DimensionTitle.PATH:
            known = [label for label in dimension.labels if label in PATH_MEANINGS]
            note += " ".join(f"{label}: {PATH_MEANINGS[label]}." for label in known) + " "
        yield _runs_as_columns(
            analysis,
            analysis.breakdown,
            rows,
            title=f"By {dimension.title.lower()}",
            corner=dimension.title,
            note=f"{note}Percent, with 95% interval over patients; the line on a bar is chance.",
        )


def _label_heading(dimension: Dimension, label: str) -> Heading:
    if dimension.title == DimensionTitle.PATH:
        return Heading(text=path_title(label), title=PATH_MEANINGS.get(label, ""))
    return Heading(text=FORMATS.get(label, label) if dimension.title == DimensionTitle.FORMAT else label)


def task_table(analysis: RunAnalysis) -> Table:
    """Tasks as groups of rows, runs as columns."""
    names = list(dict.fromkeys((item.name, item.metric) for item in analysis.tasks))
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in names))}
    names.sort(key=lambda item: (order[item[0]], item[1] != "accuracy", item[1]))
    rows = [(name, ("task", name, metric, Heading(text=metric))) for name, metric in names]
    return _runs_as_columns(
        analysis, analysis.tasks, rows, title="By task", corner="Task and metric", note="Percent."
    )


def error_kind_table(analysis: RunAnalysis) -> Table:
    rows = [
        (task, (f"kind, {task}", kind, "share of wrong answers", Heading(text=option_kind_title(kind))))
        for task, kind in list_error_kinds(analysis.error_kinds)
    ]
    return _runs_as_columns(
        analysis,
        analysis.error_kinds,
        rows,
        title="Kinds of wrong options",
        corner="Kind of error",
        note="Percent of the wrong answers to a task that chose an option of this kind.",
    )


# ---- parsing and cost -----------------------------------------------------------------------------------------------


def parsing_table(analysis: RunAnalysis) -> Table:
    """Answers by parsing result; results that no run has are named in the note."""
    known = _by_key(analysis.parsing)
    results = [
        *(("status", status, "answers", title) for status, title in STATUSES.items()),
        ("state", "not_reached", "steps", "steps not reached"),
        ("state", "incomplete", "steps", "steps incomplete"),
    ]
    present = {(item.level, item.name) for item in analysis.parsing if item.value}
    columns = [column for column in results if column[:2] in present or column[:2] == ("status", "ok")]
    absent = [column[3] for column in results if column not in columns]
    headings = [Heading(text=title) for *_, title in columns]
    has_form = any(item.level == "form" and item.value is not None for item in analysis.parsing)
    if has_form:
        headings.append(Heading(text="in the requested form", note="percent, where a form was requested"))
    rows = []
    for run in analysis.group.runs:
        cells = [number_cell(known.get((run.id, *key[:3])), has_share=True) for key in columns]
        if has_form:
            cells.append(share_cell(known.get((run.id, "form", "obeyed", "share of answers"))))
        rows.append(Row(heading=_run_heading(run), cells=tuple(cells), group=_history_group(run, analysis)))
    none = f" None in any run: {', '.join(absent)}." if absent else ""
    return Table(
        title="How answers were parsed",
        corner="Model",
        columns=tuple(headings),
        rows=tuple(rows),
        note="Number of answers by result, and percent of all. All but the parsed ones count as wrong; incomplete "
        f"steps count as neither.{none}",
    )


def cost_table(analysis: RunAnalysis) -> Table:
    """Columns without any value are left out."""
    known = _by_key(analysis.cost)
    candidates = (
        ("input tokens", "sum", 0, Heading(text="input tokens", note="sum")),
        ("output tokens", "sum", 0, Heading(text="output tokens", note="sum")),
        ("dollars", "at list price", 4, Heading(text="US dollars", note="at list price")),
        ("image sends", "sum", 0, Heading(text="image sends", note="sum")),
        ("seconds", "sum", 1, Heading(text="time, seconds", note="sum")),
        ("seconds", "median of a step", 2, Heading(text="time, seconds", note="median of a step")),
    )
    present = {(item.name, item.metric) for item in analysis.cost if item.value is not None}
    columns = [column for column in candidates if column[:2] in present]
    rows = [
        Row(
            heading=_run_heading(run),
            cells=tuple(
                number_cell(known.get((run.id, "cost", name, metric)), digits=digits)
                for name, metric, digits, _ in columns
            ),
            group=_history_group(run, analysis),
        )
        for run in analysis.group.runs
    ]
    return Table(
        title="Cost and time",
        corner="Model",
        columns=tuple(heading for *_, heading in columns),
        rows=tuple(rows),
        note="Of answered steps. An image counts as sent with every question of the conversation that it is in. "
        "Tokens, and dollars at list prices without discounts, are shown where they are known.",
    )
