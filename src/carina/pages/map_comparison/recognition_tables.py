"""The tables of a comparison of maps that concern recognition, thresholds, boxes and answers of chat models."""

from collections.abc import Iterator

from carina.explanations.analysis.answers import PointingAndAnswers
from carina.explanations.analysis.boxes import METRICS
from carina.explanations.analysis.calibration import Calibration
from carina.explanations.analysis.correlation import Relation
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.explanations.analysis.measures import Measure, pointing_measure
from carina.explanations.analysis.recognition import LEAST
from carina.explanations.analysis.thresholds import ThresholdCurve
from carina.explanations.scoring import MODEL
from carina.pages.map_comparison.tables import OVER_FINDINGS, map_share_cell, run_heading
from carina.pages.run_comparison.cells import (
    Cell,
    Heading,
    Row,
    Table,
    difference_cell,
    format_interval,
    format_percent,
    format_points,
    format_points_interval,
)
from carina.stats import Interval

# ---- recognition -----------------------------------------------------------------------------------------------------


def recognition_table(analysis: MapsAnalysis) -> Table:
    """Recognition by finding; runs of one model with several methods have the same scores and are shown once."""
    shown = {run.model: run for run in reversed(analysis.group.runs) if run.recognition_scores.height}
    runs = [run for run in analysis.group.runs if run in shown.values()]
    metrics = ("recognition AUROC", "accuracy", "F1", "sensitivity", "specificity")
    names = sorted({one.name for one in analysis.recognition if one.name})
    rows = [
        Row(
            heading=Heading(text=metric),
            cells=tuple(
                map_share_cell(analysis.estimate(run, metric, level="recognition", name=name, average=""))
                for run in runs
            ),
            group=name,
        )
        for name in names
        for metric in metrics
    ]
    return Table(
        title="Recognition by finding",
        corner="Finding and metric",
        columns=tuple(Heading(text=run.model, mark=run.id) for run in runs),
        rows=tuple(row for row in rows if any(cell.text for cell in row.cells)),
        note="Percent. From the scores of the same passes as the maps. Accuracy, F1, sensitivity and specificity "
        "need a threshold: the one with the best F1 on the tuning split. Without such a split they are left out. "
        f"Findings with fewer than {LEAST} images on either side do not enter the mean over findings or the "
        "correlations.",
    )


def correlation_table(analysis: MapsAnalysis) -> Table:
    """Correlations of recognition and grounding."""
    measures = list(dict.fromkeys(one.measure for one in analysis.relations))
    known = {(one.run, one.measure): one for one in analysis.relations}
    rows = [
        Row(
            heading=Heading(
                text="Over models" if run is None else run.title, mark="" if run is None else run.id
            ),
            cells=tuple(_correlation_cell(known.get((run, one))) for one in measures),
            group="" if run is None else "Over findings",
        )
        for run in (None, *analysis.group.runs)
    ]
    return Table(
        title="Correlation of recognition with grounding",
        corner="Spearman's correlation",
        columns=tuple(Heading(text=one.title, note="with recognition AUROC") for one in measures),
        rows=tuple(row for row in rows if any(cell.text for cell in row.cells)),
        note="Over models: means over findings; a replicate draws the methods of one model together. The intervals are "
        "of draws of models or findings; with fewer than five of them there is none, with fewer than three there is "
        f"no correlation. Findings with fewer than {LEAST} images on either side are left out."
        f"{left_out_sentence(analysis)}",
    )


def left_out_sentence(analysis: MapsAnalysis) -> str:
    """A sentence that names the runs without the common probes; empty where there are none."""
    over = next((one for one in analysis.relations if one.run is None and one.left_out), None)
    if over is None:
        return ""
    named = ", ".join(f"{run.title} ({run.own.height:,} scored)" for run in over.left_out)
    held = next(run for run in analysis.group.runs if run.id == over.points[0].grounding.run)
    return (
        f" Over models are only the runs on the same probes, of which {held.own.height:,} are scored. Left "
        f"out, because they rest on other probes: {named}."
    )


def _correlation_cell(one: Relation | None) -> Cell:
    if one is None or one.correlation.value is None:
        return Cell()
    correlation = one.correlation
    low, high = correlation.low, correlation.high
    bounds = "" if low is None or high is None else f"{low:.2f} to {high:.2f}"
    return Cell(text=f"{correlation.value:.2f}", sub=bounds, n=f"n {correlation.n}")


def threshold_table(analysis: MapsAnalysis) -> Table:
    """Tuned thresholds (where there are any), and the best threshold on the scored maps."""
    own = [one for one in analysis.threshold_curves if one.source == MODEL]
    tuned = any(one.tuned is not None for one in own)
    rows = []
    for one in own:
        best = (
            Cell(text=f"{one.best[0]:.2f}"),
            Cell(text=format_percent(one.best[1])),
            Cell(text=format_percent(one.good_share)),
        )
        cells = (*_tuned_threshold_cells(one), *best) if tuned else best
        rows.append(Row(heading=run_heading(one.run), cells=cells))
    return Table(
        title="Thresholds",
        corner="Model and method",
        columns=(
            *(
                (
                    Heading(text="Tuned threshold", note="all findings together"),
                    Heading(text="IoU there", note="percent"),
                    Heading(text="Gap", note="points lost by tuning on another split"),
                )
                if tuned
                else ()
            ),
            Heading(text="Best threshold", note="on the scored maps: an oracle"),
            Heading(text="IoU there", note="percent"),
            Heading(text="As good", note="percent of thresholds within 90% of the best"),
        ),
        rows=tuple(rows),
        note="From the curve of all findings together"
        + (
            "; tuned measures elsewhere on this page use a threshold for each finding of the tuning split."
            if tuned
            else "."
        ),
    )


def _tuned_threshold_cells(one: ThresholdCurve) -> tuple[Cell, Cell, Cell]:
    if one.tuned is None:
        return Cell(), Cell(), Cell()
    threshold, reached = one.tuned
    return (
        Cell(text=f"{threshold:.2f}"),
        Cell(text=format_percent(reached)),
        Cell(text=format_points(reached - one.best[1])),
    )


def calibration_by_model(analysis: MapsAnalysis) -> list[Calibration]:
    """One calibration for each model: its runs with several methods have the same scores."""
    first = {one.run.model: one for one in reversed(analysis.calibrations)}
    return [one for one in analysis.calibrations if first[one.run.model] is one]


def calibration_table(analysis: MapsAnalysis) -> Table:
    rows = [
        Row(
            heading=Heading(text=f"{band.low:.4g} to {band.high:.4g}"),
            cells=(
                Cell(text=f"{band.mean:.4g}"),
                Cell(
                    text=format_percent(band.frequency.value or 0.0),
                    sub=format_interval(band.frequency.low, band.frequency.high),
                    n=f"n {band.frequency.n}",
                ),
            ),
            group=f"{one.run.model}: "
            + ("probabilities" if one.is_probability else "scores, not probabilities"),
        )
        for one in calibration_by_model(analysis)
        for band in one.bands
    ]
    return Table(
        title="Presence by score",
        corner="Band",
        columns=(Heading(text="Mean"), Heading(text="Finding is present", note="percent of images")),
        rows=tuple(rows),
        note="",
    )


# ---- boxes -----------------------------------------------------------------------------------------------------------


def box_table(analysis: MapsAnalysis) -> Table:
    """Maps and named boxes in one table; empty where no model named boxes."""
    area = analysis.group.overlap
    dice = [one for one in analysis.group.measures if one.metric == "dice"]
    chosen = [pointing_measure(analysis.group.measures), area if area and area.metric == "iou" else None]
    chosen.append(
        next((one for one in dice if area and _rule(one) == _rule(area)), dice[0] if dice else None)
    )
    rows = []
    for run in analysis.group.runs if analysis.boxes else ():
        cells = [
            Cell()
            if one is None
            else map_share_cell(analysis.estimate(run, one.variant, average=analysis.average))
            for one in chosen
        ]
        rows.append(Row(heading=run_heading(run), cells=(*cells, Cell()), group="Maps"))
    known = {(one.run, one.metric): one for one in analysis.box_estimates}
    for box_run in analysis.boxes:
        cells = [map_share_cell(known.get((box_run.run.id, metric))) for metric in METRICS]
        note = f"history {box_run.run.history}"
        rows.append(
            Row(
                heading=Heading(text=box_run.title, note=note),
                cells=tuple(cells),
                group="Boxes named in words",
            )
        )
    notes = ["" if one is None else f"{one.title.lower()}; or " for one in chosen]
    return Table(
        title="Maps and boxes on the same probes",
        corner="Model",
        columns=(
            Heading(text="Points right", note=f"{notes[0]}centre of a box in the truth"),
            Heading(text="IoU", note=f"{notes[1]}all named boxes together"),
            Heading(text="Dice", note=f"{notes[2]}all named boxes together"),
            Heading(text="Box IoU", note="best named box for each of the truth's"),
        ),
        rows=tuple(rows),
        note="Percent, over the probes that each has of those whose maps are scored, with 95% interval over patients"
        + (f"; of maps the {OVER_FINDINGS}, without an interval" if analysis.average == "macro" else "")
        + ". "
        "Where several boxes are named, the share of their centres that lie in the truth. An answer without boxes "
        "scores 0; a transport error is left out. Boxes cannot follow an outline, and maps are cut at a threshold: "
        "compare both with the best set of whole cells.",
    )


def _rule(measure: Measure) -> str:
    """A variant without its metric."""
    return measure.variant.partition(".")[2]


def box_difference_table(analysis: MapsAnalysis) -> Table:
    titles = {run.id: run.title for run in analysis.group.runs} | {
        one.run.id: one.title for one in analysis.boxes
    }
    metrics = list(dict.fromkeys(item.metric for item in analysis.box_differences))
    known = {(item.one, item.other, item.metric): item for item in analysis.box_differences}
    pairs = dict.fromkeys((item.one, item.other) for item in analysis.box_differences)
    named = {one.variant: one.title for one in analysis.group.measures}
    return Table(
        title="Maps minus boxes",
        corner="Pair",
        columns=tuple(Heading(text=named[metric]) for metric in metrics),
        rows=tuple(
            Row(
                heading=Heading(text=f"{titles[one]} minus {titles[other]}"),
                cells=tuple(difference_cell(known.get((one, other, metric))) for metric in metrics),
            )
            for one, other in pairs
        ),
        note="Percentage points, paired on the probes that both have, with 95% interval over patients; p after Holm's "
        "correction over all pairs of a column.",
    )


# ---- answers ---------------------------------------------------------------------------------------------------------


def answer_tables(analysis: MapsAnalysis) -> Iterator[Table]:
    """One table for each group of runs: right and wrong answers for hits and for misses."""
    for group in dict.fromkeys(one.group for one in analysis.answers):
        rows = [
            Row(
                heading=Heading(
                    text=one.run.model,
                    note=_describe_history(one) + ("same model" if one.is_same_model else ""),
                ),
                cells=(
                    *(Cell(text=f"{count:,}") for pair in one.counts for count in pair),
                    *(_accuracy_cell(interval) for interval in one.accuracy),
                    _points_cell(one.difference),
                ),
                group=f"Pointing model: {one.pointer.title}",
            )
            for one in _sort_by_pointer(analysis)
            if one.group is group
        ]
        yield Table(
            title=f"Pointing and answering: {group.title}",
            corner="Answering model",
            columns=(
                Heading(text="Points right, answers right"),
                Heading(text="Points right, answers wrong"),
                Heading(text="Points wrong, answers right"),
                Heading(text="Points wrong, answers wrong"),
                Heading(text="Accuracy", note="where it points right"),
                Heading(text="Accuracy", note="where it points wrong"),
                Heading(text="Difference", note="percentage points"),
            ),
            rows=tuple(rows),
            note="Questions with a right answer about findings of studies that were pointed at; boxes are left out, "
            "because they point themselves. Percent, with 95% interval over patients. Large and plain findings are "
            "easier both to point at and to answer about: a difference says that the two go together, not that "
            "one causes the other. With fewer than five patients there is no interval.",
        )


def _sort_by_pointer(analysis: MapsAnalysis) -> list[PointingAndAnswers]:
    """In order of the pointers."""
    order = list(dict.fromkeys(one.pointer.id for one in analysis.answers))
    return sorted(analysis.answers, key=lambda one: order.index(one.pointer.id))


def _describe_history(one: PointingAndAnswers) -> str:
    return "" if one.run.history == "own" else f"history {one.run.history} "


def _accuracy_cell(interval: Interval) -> Cell:
    if interval.value is None:
        return Cell()
    return Cell(
        text=format_percent(interval.value),
        sub=format_interval(interval.low, interval.high),
        n=f"n {interval.n}",
    )


def _points_cell(interval: Interval) -> Cell:
    if interval.value is None:
        return Cell()
    return Cell(text=format_points(interval.value), sub=format_points_interval(interval.low, interval.high))
