"""The tables of a comparison of maps: headline, breakdowns, comparisons and checks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from carina.explanations.analysis.checks import PAIRED_CHECKS, RunChecks
from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.estimates import MapEstimate
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.explanations.analysis.measures import WHOLE_CELLS, Measure, pointing_measure
from carina.explanations.analysis.read import MapsRun
from carina.explanations.scoring import MODEL
from carina.pages.run_comparison.cells import (
    MINUS,
    Cell,
    Heading,
    Row,
    Table,
    bar_cell,
    difference_cell,
)
from carina.runs.analysis.estimates import Difference

CONTROLS: Final = {
    "control/uniform": "the same everywhere",
    "control/random": "noise",
    "control/centre": "the middle of the image",
    "control/lungs": "the lungs",
    "control/mean-region": "where the finding lies in other patients",
    "control/oracle": "the truth, on the grid of the map",
}
"""What the map of each control shows."""
OVER_FINDINGS: Final = "mean over findings"
READERS_NOTE: Final = "each against the others, on the probes that several readers drew"


def run_heading(run: MapsRun) -> Heading:
    kind = "control" if run.is_control else "random weights" if run.is_baseline else ""
    return Heading(text=run.title, note=kind, mark=run.id)


def measure_headings(analysis: MapsAnalysis, *, note: str = "") -> tuple[Heading, ...]:
    return tuple(
        Heading(
            text=one.title,
            note="; ".join(part for part in (one.note, note) if part),
            title=f"{one.variant}: {one.definition}",
        )
        for one in analysis.group.measures
    )


def fullest_run(analysis: MapsAnalysis) -> MapsRun | None:
    """The run with the most scored maps among those that have controls."""
    with_controls = [run for run in analysis.group.runs if scored_controls(run)]
    return max(with_controls, key=lambda run: run.scoring.scored, default=None)


def scored_controls(run: MapsRun) -> list[str]:
    """Sources of the controls that were scored beside a run."""
    held = set(run.summary["source"].unique())
    return [source for source in CONTROLS if source in held]


def map_share_cell(
    estimate: MapEstimate | None, *, control: float | None = None, whole_cells: float | None = None
) -> Cell:
    """An estimate between 0 and 1 with a bar; on the bar a line for the best control, a triangle for whole cells."""
    if estimate is None:
        return Cell()
    references = {"best control": control, "best set of whole cells": whole_cells}
    count = f"n = {estimate.n:,} of {estimate.patients:,} patients"
    return bar_cell(estimate, references, key=estimate_key(estimate), count=count)


def estimate_key(estimate: MapEstimate) -> str:
    """Names the row of a table that a cell shows."""
    return "|".join(
        (estimate.run, estimate.source, estimate.level, estimate.name, estimate.metric, estimate.average)
    )


# ---- headline --------------------------------------------------------------------------------------------------------


def headline_table(analysis: MapsAnalysis) -> Table:
    is_macro = analysis.average == "macro"
    rows = [
        *_run_rows(analysis, analysis.average),
        *_reader_rows(analysis, analysis.average, with_recognition=True),
    ]
    fullest = fullest_run(analysis)
    if fullest is not None:
        rows += _control_rows(analysis, fullest)
    remarks = dict.fromkeys(note for run in analysis.group.runs for note in run.scoring.notes)
    return Table(
        title="Headline",
        corner="Model and method",
        columns=(
            *measure_headings(analysis, note=OVER_FINDINGS if is_macro else ""),
            Heading(text="Recognition AUROC", note=OVER_FINDINGS),
        ),
        rows=tuple(rows),
        note=(
            f"Percent: the mean over findings, without an interval, because profile {analysis.group.profile} reports "
            "findings only; these are below, each with its interval."
            if is_macro
            else "Percent, with 95% interval over patients; every image has the same weight."
        )
        + " On the bars the line is the best of the controls that know where findings usually lie and nothing about "
        "the image (mean region, lungs, centre), on the same frames and grid"
        + (
            "; the triangle is the best set of whole cells of this grid; a smooth map can lie a little above it."
            if any(
                analysis.whole_cells(run, average=analysis.average) is not None for run in analysis.group.runs
            )
            else "."
        )
        + "".join(f" {remark[0].upper()}{remark[1:]}." for remark in remarks),
    )


def paper_table(analysis: MapsAnalysis) -> Table:
    """The headline table as a paper prints it, without bars and marks."""
    is_macro = analysis.average == "macro"
    note = "Percent: the mean over findings." if is_macro else "Percent (95% interval over patients)."
    return replace(headline_table(analysis), note=note)


def macro_table(analysis: MapsAnalysis) -> Table:
    """Means over findings; empty where the headline shows them already."""
    rows: list[Row] = []
    if analysis.average == "micro":
        rows += _run_rows(analysis, "macro", with_recognition=False)
        rows += _reader_rows(analysis, "macro")
    return Table(
        title="Mean over findings",
        corner="Model and method",
        columns=measure_headings(analysis),
        rows=tuple(rows),
        note="Percent: the mean of the findings' means. Bootstrap replicates that miss a finding are left out of "
        "the interval; with fewer than 100 others there is none.",
    )


def _run_rows(analysis: MapsAnalysis, average: str, *, with_recognition: bool = True) -> Iterator[Row]:
    for run in analysis.group.runs:
        cells = [
            map_share_cell(
                analysis.estimate(run, one.variant, average=average),
                control=None if run.is_control else analysis.best_control(run, one.variant, average=average),
                whole_cells=analysis.whole_cells(run, average=average) if one.metric == "iou" else None,
            )
            for one in analysis.group.measures
        ]
        if with_recognition:
            cells.append(map_share_cell(analysis.mean_auroc(run)))
        yield Row(
            heading=run_heading(run),
            cells=tuple(cells),
            group="Controls as runs" if run.is_control else "Models",
        )


def _reader_rows(analysis: MapsAnalysis, average: str, *, with_recognition: bool = False) -> Iterator[Row]:
    """Readers against readers; nothing where the benchmark has one reader."""
    cells = [
        map_share_cell(analysis.reader_estimate(one.variant, average=average))
        for one in analysis.group.measures
    ]
    if any(cell.text for cell in cells):
        yield Row(
            heading=Heading(text="readers", note=READERS_NOTE),
            cells=(*cells, *((Cell(),) if with_recognition else ())),
            group="Human ceiling",
        )


def _control_rows(analysis: MapsAnalysis, run: MapsRun) -> Iterator[Row]:
    for source in scored_controls(run):
        cells = [
            map_share_cell(analysis.estimate(run, one.variant, source=source, average=analysis.average))
            for one in analysis.group.measures
        ]
        yield Row(
            heading=Heading(text=source, note=CONTROLS[source], mark=source),
            cells=(*cells, Cell()),
            group=f"Controls on the frames and grid of {run.title}",
        )


def other_control_table(analysis: MapsAnalysis) -> Table:
    """Controls on the frames and grids of the other runs."""
    shown = fullest_run(analysis)
    rows = [
        row
        for run in analysis.group.runs
        if run is not shown and not run.is_control
        for row in _control_rows(analysis, run)
    ]
    return Table(
        title="Controls of the other runs",
        corner="Control",
        columns=(*measure_headings(analysis), Heading(text="")),
        rows=tuple(rows),
        note="Percent. Compare every run with the controls on its own frames, grid and probes.",
    )


def control_difference_table(analysis: MapsAnalysis) -> Table:
    """Model minus control on the same probes."""
    rows = []
    for item in analysis.controls:
        for source in RIVALS:
            own = {one.metric: one for one in item.differences if one.other == source}
            if own:
                cells = tuple(
                    difference_cell(own.get(measure.variant)) for measure in analysis.group.measures
                )
                rows.append(
                    Row(
                        heading=Heading(text=f"minus {source}", note=CONTROLS[source]),
                        cells=cells,
                        group=item.run.title,
                    )
                )
    return Table(
        title="Models minus controls",
        corner="Difference",
        columns=measure_headings(analysis),
        rows=tuple(rows),
        note="Percentage points, paired on the same probes, with 95% interval over patients; p after Holm's correction "
        "over all differences of a run. Bold with a star: below 0.05.",
    )


# ---- breakdown -------------------------------------------------------------------------------------------------------


_SIZES: Final = "share of the image that the truth covers"


def breakdown_tables(analysis: MapsAnalysis) -> Iterator[Table]:
    """Pointing and overlap by finding, by size of the truth and by properties of the lesion.

    Overlap is shown with the best set of whole cells of the grid.
    """
    chosen = [one for one in (pointing_measure(analysis.group.measures), analysis.group.overlap) if one]
    for level, corner, note in (
        ("finding", "Finding", ""),
        ("size", "Truth", f"{_SIZES[:1].upper()}{_SIZES[1:]}. "),
        ("finding and size", "Finding and size", f"Sizes: {_SIZES}. "),
    ):
        names = breakdown_labels(analysis, level)
        for measure in chosen:
            yield _breakdown_table(analysis, measure, level, names, corner=corner, note=note)
    for dimension in analysis.dimensions:
        note = f"{dimension.note[:1].upper()}{dimension.note[1:]}. " if dimension.note else ""
        for measure in chosen:
            yield _breakdown_table(
                analysis,
                measure,
                dimension.title.lower(),
                dimension.labels,
                corner=dimension.title,
                note=note,
            )


def breakdown_labels(analysis: MapsAnalysis, level: str) -> list[str]:
    """Labels of a level: findings by name, sizes from small to large. Absent findings have no size."""
    order: dict[str, None] = {}
    for one in analysis.estimates:
        if one.level == level and one.source == MODEL and not one.name.endswith("none"):
            order.setdefault(one.name)
    if level == "finding":
        return sorted(order)
    if level == "size":
        return sorted(order, key=_size)
    return list(order)


def _size(label: str) -> float:
    """Lower limit of a bin of sizes."""
    if label.startswith("<"):
        return 0.0
    digits = label.lstrip("> ").rstrip("%").partition("-")[0]
    # The last bin begins where the one before it ends.
    return (
        float(digits) + (1e-6 if label.startswith(">") else 0.0)
        if digits.replace(".", "").isdigit()
        else -1.0
    )


def _breakdown_table(
    analysis: MapsAnalysis, measure: Measure, level: str, names: Sequence[str], *, corner: str, note: str
) -> Table:
    areas = measure.metric == "iou"
    whole = _whole_cells(analysis, level, names) if areas else {}
    has_readers = level == "finding" and analysis.reader_estimate(measure.variant) is not None
    rows = []
    for name in names:
        cells = [
            map_share_cell(
                analysis.estimate(run, measure.variant, level=level, name=name),
                control=None
                if run.is_control
                else analysis.best_control(run, measure.variant, level=level, name=name),
                whole_cells=analysis.whole_cells(run, level=level, name=name) if areas else None,
            )
            for run in analysis.group.runs
        ]
        cells += [
            map_share_cell(analysis.estimate(run, WHOLE_CELLS.variant, level=level, name=name))
            for run in whole
        ]
        if has_readers:
            cells.append(map_share_cell(analysis.reader_estimate(measure.variant, name=name)))
        rows.append(Row(heading=Heading(text=name), cells=tuple(cells)))
    whole_cells_note = (
        "; the triangle, and the columns on the right, are the best set of whole cells of the grid: a smooth map can "
        "lie a little above it"
        if whole
        else ""
    )
    return Table(
        title=f"{measure.title} by {level}",
        corner=corner,
        columns=(
            *(run_heading(run) for run in analysis.group.runs),
            *(Heading(text=WHOLE_CELLS.title, note=words) for words in whole.values()),
            *((Heading(text="Readers", note="each against the others"),) if has_readers else ()),
        ),
        rows=tuple(rows),
        note=f"{note}Percent, with 95% interval over patients; the line on a bar is the best of the controls mean "
        f"region, lungs and centre{whole_cells_note}. With fewer than five patients there is no interval.",
    )


def _whole_cells(analysis: MapsAnalysis, level: str, names: Sequence[str]) -> dict[MapsRun, str]:
    """One run of each grid, with the names of the runs that share it: they have the same values."""
    seen: dict[tuple[float | None, ...], list[MapsRun]] = {}
    for run in analysis.group.runs:
        values = tuple(analysis.whole_cells(run, level=level, name=name) for name in names)
        if any(value is not None for value in values):
            seen.setdefault(values, []).append(run)
    if len(seen) == 1:
        return {runs[0]: "of every run" for runs in seen.values()}
    return {runs[0]: ", ".join(run.title for run in runs) for runs in seen.values()}


# ---- compare ---------------------------------------------------------------------------------------------------------


def comparison_table(analysis: MapsAnalysis) -> Table:
    names = {run.id: run.title for run in analysis.group.runs}
    pairs = list(dict.fromkeys((item.one, item.other) for item in analysis.differences))
    known = {(item.one, item.other, item.metric): item for item in analysis.differences}
    rows = tuple(
        Row(
            heading=Heading(
                text=f"{names[one]} minus {names[other]}", note=_describe_shared_probes(known, one, other)
            ),
            cells=tuple(
                difference_cell(known.get((one, other, measure.variant)))
                for measure in analysis.group.measures
            ),
        )
        for one, other in pairs
    )
    return Table(
        title="Runs compared",
        corner="Pair",
        columns=measure_headings(analysis),
        rows=rows,
        note="Percentage points, paired on the probes that both runs have, with 95% interval over patients; p after "
        "Holm's correction over all pairs of a column. Bold with a star: below 0.05.",
    )


def _describe_shared_probes(known: dict[tuple[str, str, str], Difference], one: str, other: str) -> str:
    most = max(item.n for (a, b, _), item in known.items() if (a, b) == (one, other))
    return f"{most:,} probes"


def pretraining_tables(analysis: MapsAnalysis) -> Iterator[Table]:
    """Groups by kind of training data, and their differences."""
    pretraining = analysis.pretraining
    if pretraining is None:
        return
    known = {(one.name, one.metric): one for one in pretraining.estimates}
    yield Table(
        title="By pretraining",
        corner="Trained on",
        columns=measure_headings(analysis),
        rows=tuple(
            Row(
                heading=Heading(text=group.tag, note=", ".join(run.title for run in group.runs)),
                cells=tuple(
                    map_share_cell(known.get((group.tag, one.variant))) for one in analysis.group.measures
                ),
            )
            for group in pretraining.groups
        ),
        note="Percent: means over the runs of a group, on the probes that all runs with a tag have, with 95% interval "
        "over patients. The interval is that of the mean of these models; it does not say what other models would do.",
    )
    pairs = dict.fromkeys((item.one, item.other) for item in pretraining.differences)
    apart = {(item.one, item.other, item.metric): item for item in pretraining.differences}
    yield Table(
        title="Differences by pretraining",
        corner="Pair",
        columns=measure_headings(analysis),
        rows=tuple(
            Row(
                heading=Heading(text=f"{one} minus {other}"),
                cells=tuple(
                    difference_cell(apart.get((one, other, measure.variant)))
                    for measure in analysis.group.measures
                ),
            )
            for one, other in pairs
        ),
        note="Percentage points, paired on the same probes, with 95% interval over patients; p after Holm's correction "
        "over all pairs of a column.",
    )


# ---- checks ----------------------------------------------------------------------------------------------------------


_SIMILARITIES: Final = {"pearson": "Pearson", "spearman": "Spearman", "ssim": "Structural similarity"}
_WEIGHTS: Final = "weights."
_WHOLE: Final = "whole"
_AREA_FORMAT: Final = ".4f"
_SIMILARITY_FORMAT: Final = ".2f"
_OVER: Final = "Means over the checked probes, with 95% interval over patients where there are five or more."


def deletion_table(analysis: MapsAnalysis) -> Table:
    """Deletion and insertion, compared with random maps."""
    rows = []
    for one in analysis.checks:
        differences = {item.metric: item for item in one.differences}
        cells = [
            cell
            for name in PAIRED_CHECKS
            for cell in (
                *_check_cells(one, (name, f"{name}.random"), _AREA_FORMAT),
                _minus_random_cell(differences.get(name)),
            )
        ]
        rows.append(_check_row(one, cells))
    return Table(
        title="Image: deletion and insertion",
        corner="Model and method",
        columns=tuple(
            Heading(text=name.capitalize(), note=note)
            for name in PAIRED_CHECKS
            for note in ("the map", "a random map", "map minus random, paired")
        ),
        rows=tuple(rows),
        note="Cells are deleted from the image, or inserted into a blurred one, the highest of the map first; the "
        "value is the area under the model's score. A map that shows what the model looks at has a lower area of "
        "deletion and a higher one of insertion than a random map: a difference below 0, then one above 0. "
        f"{_OVER} Differences are paired on probes; p after Holm's correction over both. Bold with a star: below 0.05.",
    )


def likeness_table(analysis: MapsAnalysis) -> Table:
    """Similarity with the map of another text, and of shuffled weights."""
    kinds = (("swap", "another finding"), (f"{_WEIGHTS}{_WHOLE}", "all weights shuffled"))
    rows = [
        _check_row(
            one,
            _check_cells(
                one, [f"{kind}.{name}" for kind, _ in kinds for name in _SIMILARITIES], _SIMILARITY_FORMAT
            ),
        )
        for one in analysis.checks
    ]
    return Table(
        title="Text and weights: similarity with the map of another text, and of shuffled weights",
        corner="Model and method",
        columns=tuple(
            Heading(text=title, note=words) for _, words in kinds for title in _SIMILARITIES.values()
        ),
        rows=tuple(rows),
        note="Near 1 the map does not depend on the text (another finding on the same image), or on the learnt weights "
        "(image tower with shuffled weights); near 0 it depends on them. Blank where there is no second "
        f"finding, or no image tower to shuffle. {_OVER}",
    )


def weight_stage_table(analysis: MapsAnalysis) -> Table:
    """Weights shuffled part by part."""
    rows = [
        Row(
            heading=Heading(text=stage),
            cells=tuple(
                _check_cells(one, [f"{_WEIGHTS}{stage}.{name}" for name in _SIMILARITIES], _SIMILARITY_FORMAT)
            ),
            group=one.run.title,
        )
        for one in analysis.checks
        for stage in _stages(one.estimates)
    ]
    return Table(
        title="Weights, shuffled part by part from the output on",
        corner="Shuffled down to",
        columns=tuple(Heading(text=title) for title in _SIMILARITIES.values()),
        rows=tuple(rows),
        note="Similarity with the map of the unchanged model: a map that depends on the learnt weights becomes less "
        f"similar with every part that is shuffled. {_OVER}",
    )


def peak_table(analysis: MapsAnalysis) -> Table:
    """Height and spread of maps where the finding is present and where it is absent."""
    names = [f"{what}.{side}" for what in ("peak", "spread") for side in ("present", "absent")]
    return Table(
        title="Presence: maps where the finding is present and where it is absent",
        corner="Model and method",
        columns=tuple(
            Heading(text=what, note=note)
            for what in ("Highest value", "Spread over cells")
            for note in ("finding present", "finding absent")
        ),
        rows=tuple(_check_row(one, _check_cells(one, names, ".3g")) for one in analysis.checks),
        note="The map of a finding should be higher, and stand out more, where the finding is present; where both "
        f"are similar, the height of a peak does not show whether there is anything to see. {_OVER}",
    )


def _check_row(one: RunChecks, cells: Sequence[Cell]) -> Row:
    head = run_heading(one.run)
    return Row(
        heading=Heading(text=head.text, note=f"{one.probes:,} probes", mark=head.mark), cells=tuple(cells)
    )


def _stages(figures: Sequence[MapEstimate]) -> list[str]:
    """Parts in the order in which they were shuffled."""
    names = [one.metric for one in figures if one.metric.startswith(_WEIGHTS)]
    stages = dict.fromkeys(name.removeprefix(_WEIGHTS).rpartition(".")[0] for name in names)
    return [name for name in stages if name != _WHOLE]


def _check_cells(one: RunChecks, names: Sequence[str], form: str) -> list[Cell]:
    known = {item.metric: item for item in one.estimates}
    return [_check_cell(known.get(name), form) for name in names]


def _check_cell(figure: MapEstimate | None, form: str) -> Cell:
    if figure is None or figure.value is None:
        return Cell()
    bounds = _format_range(figure.low, figure.high, form)
    return replace(map_share_cell(figure), text=_format_number(figure.value, form), sub=bounds, bar=None)


def _minus_random_cell(item: Difference | None) -> Cell:
    if item is None:
        return Cell()
    form = f"+{_AREA_FORMAT}"
    bounds = _format_range(item.low, item.high, form)
    return replace(difference_cell(item), text=_format_number(item.value, form), sub=bounds)


def _format_number(value: float, form: str) -> str:
    """A number with a typographic minus sign; zero without a sign."""
    text = f"{value:{form}}"
    return text.replace("-", MINUS) if float(text) else text.lstrip("+-")


def _format_range(low: float | None, high: float | None, form: str) -> str:
    return (
        "" if low is None or high is None else f"{_format_number(low, form)} to {_format_number(high, form)}"
    )
