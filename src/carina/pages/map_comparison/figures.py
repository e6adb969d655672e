"""The figures of a comparison of maps, from their analysis, and how each run and control is drawn in all of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.explanations.analysis.calibration import Calibration
from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.correlation import Relation
from carina.explanations.analysis.estimates import MapEstimate
from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.explanations.analysis.measures import pointing_measure
from carina.explanations.analysis.read import MapsRun
from carina.explanations.analysis.thresholds import ThresholdCurve, curve_points
from carina.explanations.scoring import MODEL
from carina.pages.charts import (
    MODEL_HUES,
    MODEL_SHAPES,
    Dot,
    Figure,
    Fill,
    Interval,
    IntervalPanel,
    LinePanel,
    Reference,
    ScatterPanel,
    SeriesStyle,
    Shape,
    Trace,
    interval_chart,
    line_chart,
    scatter_chart,
)
from carina.pages.map_comparison.recognition_tables import calibration_by_model, left_out_sentence
from carina.pages.map_comparison.tables import OVER_FINDINGS, breakdown_labels, fullest_run, scored_controls
from carina.pages.run_comparison.figures import to_interval

_FILLS: Final[tuple[Fill, ...]] = ("full", "hollow", "half", "dot")
_CONTROL_MARKS: Final[dict[str, tuple[str, Shape]]] = {
    "control/uniform": ("b2", "hexagon"),
    "control/random": ("b2", "saltire"),
    "control/centre": ("b1", "cross"),
    "control/lungs": ("b1", "diamond"),
    "control/mean-region": ("b1", "hexagon"),
    "control/oracle": ("oracle", "star"),
}
_DASH: Final = (5.0, 3.0)
_INTERVALS: Final = "A line is a 95% interval over patients; with fewer than five there is none."
_MOST_PANELS: Final = 6
_LINE_HEIGHT: Final = 210.0


def style_runs(runs: Sequence[MapsRun]) -> dict[str, SeriesStyle]:
    """Styles by id of the run: hue and shape show the model, the fill of the mark shows the method.

    Where there are more methods than fills, or more models than shapes, runs get marks that no other run has, as long
    as there are any. Lines of random weights are dashed.
    """
    models = list(dict.fromkeys(run.model for run in runs if not run.is_control))
    marks = _marks([run for run in runs if not run.is_control], models)
    styles = {}
    for run in runs:
        if run.is_control:
            styles[run.id] = _control_style(run.model, run.title, "hollow")
            continue
        shape, fill = marks[run.id]
        colour = MODEL_HUES[models.index(run.model) % len(MODEL_HUES)]
        styles[run.id] = SeriesStyle(run.title, colour, shape, _DASH if run.is_baseline else None, fill)
    return styles


def style_controls(sources: Sequence[str]) -> dict[str, SeriesStyle]:
    """Styles of controls that were scored beside a model, by source."""
    return {source: _control_style(source, source, "full") for source in sources}


def _marks(runs: Sequence[MapsRun], models: Sequence[str]) -> dict[str, tuple[Shape, Fill]]:
    """Shape and fill by id: first for runs that get the shape of their model, then for the others."""
    marks: dict[str, tuple[Shape, Fill]] = {}
    others = []
    for run in runs:
        place = models.index(run.model)
        same = [one.id for one in runs if one.model == run.model].index(run.id)
        if place < len(MODEL_SHAPES) and same < len(_FILLS):
            marks[run.id] = MODEL_SHAPES[place], _FILLS[same]
        else:
            others.append(run)
    every = [(shape, fill) for fill in _FILLS for shape in MODEL_SHAPES]
    free = [mark for mark in every if mark not in marks.values()]
    for place, run in enumerate(others):
        marks[run.id] = free[place] if place < len(free) else every[place % len(every)]
    return marks


def _control_style(source: str, title: str, fill: Fill) -> SeriesStyle:
    colour, shape = _CONTROL_MARKS.get(source, ("b2", "diamond"))
    return SeriesStyle(title, colour, shape, (1.5, 2.5) if colour == "oracle" else _DASH, fill)


def map_figures(analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], prefix: str) -> dict[str, Figure]:
    """Figures by subject; those that would be empty are left out. Names of files begin with the prefix."""
    if not analysis.group.measures or not any(run.scoring.scored for run in analysis.group.runs):
        return {}
    figures = {
        "headline": _headline_figure(analysis, styles, f"{prefix}-headline"),
        "finding": _breakdown_figure(analysis, styles, f"{prefix}-finding", "finding"),
        "size": _breakdown_figure(analysis, styles, f"{prefix}-size", "size"),
        "recognition": _recognition_figure(analysis, styles, f"{prefix}-recognition"),
        "threshold": _threshold_figure(analysis, styles, f"{prefix}-threshold"),
        "calibration": _calibration_figure(analysis, styles, f"{prefix}-calibration"),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _headline_figure(analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], name: str) -> Figure:
    """Runs, and below them the controls of the run that has most."""
    runs, average = analysis.group.runs, analysis.average
    fullest = fullest_run(analysis)
    sources = scored_controls(fullest) if fullest is not None else []
    series = {**styles, **style_controls(sources)}
    panels = []
    for measure in analysis.group.measures:
        values = {
            run.id: to_interval(analysis.estimate(run, measure.variant, average=average)) for run in runs
        }
        if fullest is not None:
            values |= {
                source: to_interval(
                    analysis.estimate(fullest, measure.variant, source=source, average=average)
                )
                for source in sources
            }
        panels.append(_own_rows(measure.title, values))
    recognition = {run.id: to_interval(analysis.mean_auroc(run)) for run in runs}
    if any(recognition.values()):
        panels.append(_own_rows("Recognition AUROC", recognition))
    return interval_chart(
        name,
        {key: style.name for key, style in series.items()},
        panels,
        series,
        title="Grounding of every run and of the controls, and recognition, with 95% intervals",
        note=(f"Of grounding the {OVER_FINDINGS}, without an interval. " if average == "macro" else "")
        + f"{_INTERVALS} Controls, in grey, need no model"
        + ("." if fullest is None else f"; they are those on the frames and grid of {fullest.title}."),
    )


def _own_rows(title: str, values: Mapping[str, Interval | None]) -> IntervalPanel:
    return IntervalPanel(title, {key: {key: one} for key, one in values.items() if one})


def _breakdown_figure(
    analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], name: str, level: str
) -> Figure | None:
    labels = breakdown_labels(analysis, level)
    measures = [one for one in (pointing_measure(analysis.group.measures), analysis.group.overlap) if one]
    if len(labels) < 2 or not measures:
        return None
    runs = analysis.group.runs
    panels = []
    for measure in measures:
        values = {
            label: {
                run.id: one
                for run in runs
                if (one := to_interval(analysis.estimate(run, measure.variant, level=level, name=label)))
            }
            for label in labels
        }
        references = {}
        for label in labels if measure.metric == "iou" else ():
            known = [analysis.whole_cells(run, level=level, name=label) for run in runs]
            reached = [value for value in known if value is not None]
            if reached:
                references[label] = [Reference("best set of whole cells", max(reached))]
        panels.append(IntervalPanel(measure.title, values, references))
    whole_cells = (
        " The line with a triangle is the best set of whole cells, on the grid where that is highest; a smooth map can "
        "lie a little above it."
        if panels[-1].references
        else ""
    )
    return interval_chart(
        name,
        {label: label for label in labels},
        panels,
        styles,
        title=f"Grounding by {'finding' if level == 'finding' else 'size of the truth'}, with 95% intervals",
        note=f"{_INTERVALS}{whole_cells}",
    )


def _recognition_figure(
    analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], name: str
) -> Figure | None:
    """Models first, then the findings of each run, by pointing."""
    measure = pointing_measure(analysis.group.measures)
    relations = [one for one in analysis.relations if one.measure == measure and len(one.points) > 1]
    relations.sort(key=lambda one: one.run is not None)
    if not relations or measure is None:
        return None
    left_out = left_out_sentence(analysis) if any(one.run is None for one in relations) else ""
    return scatter_chart(
        name,
        [_scatter_panel(one, styles) for one in relations][:_MOST_PANELS],
        x_title="recognition AUROC",
        y_title=measure.title.lower(),
        title="Recognition against grounding, over models and over findings",
        note="A mark is a model (means over findings) or a finding; thin lines are 95% intervals over patients, of "
        "five or more. The correlation is Spearman's, its interval from draws of models or findings; with fewer than "
        f"five there is none.{left_out} Marks too close to others have no name; all values are in the tables.",
    )


def _scatter_panel(relation: Relation, styles: Mapping[str, SeriesStyle]) -> ScatterPanel:
    dots = [
        Dot(
            point.name,
            point.recognition.value or 0.0,
            point.grounding.value or 0.0,
            styles[(point.grounding if relation.run is None else relation.points[0].grounding).run],
            _bounds(point.recognition),
            _bounds(point.grounding),
        )
        for point in relation.points
    ]
    title = "Models" if relation.run is None else relation.run.title
    return ScatterPanel(title, describe_correlation(relation), dots, has_legend=relation.run is None)


def _bounds(estimate: MapEstimate) -> tuple[float, float] | None:
    return None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high)


def describe_correlation(relation: Relation) -> str:
    """A correlation with interval and n, or that there is none."""
    correlation = relation.correlation
    low, high = correlation.low, correlation.high
    of = f"{correlation.n} runs of {correlation.clusters} models"
    if relation.run is not None:
        of = f"{correlation.n} findings"
    if correlation.value is None:
        return f"no correlation, n = {of}"
    bounds = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"Spearman {correlation.value:.2f}{bounds}, n = {of}"


def _threshold_figure(analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], name: str) -> Figure | None:
    """All runs in one panel where there are several, then each run with its controls."""
    own = [curve for curve in analysis.threshold_curves if curve.source == MODEL]
    if not own:
        return None
    panels = []
    if len(own) > 1:
        panels.append(_threshold_panel("All runs", "", [(curve, styles[curve.run.id]) for curve in own]))
    for curve in own:
        controls = [
            other for other in analysis.threshold_curves if other.run is curve.run and other.source in RIVALS
        ]
        control_styles = style_controls([other.source for other in controls])
        if controls:
            lines = [
                (curve, styles[curve.run.id]),
                *((other, control_styles[other.source]) for other in controls),
            ]
            panels.append(_threshold_panel(curve.run.title, _describe_thresholds(curve), lines))
    panels = panels[:_MOST_PANELS]
    return line_chart(
        name,
        panels,
        title="Mean overlap by threshold",
        note="Mean IoU of all maps at every threshold, on maps scaled from 0 at the lowest to 1 at the highest pixel. "
        + (
            "The triangle is the threshold that was tuned on another split, all findings together. "
            if any(curve.tuned is not None for curve in own)
            else ""
        )
        + "A flat curve: the choice matters little.",
        summary=_summarise(panels),
        height=_LINE_HEIGHT,
    )


def _describe_thresholds(curve: ThresholdCurve) -> str:
    best = f"best {100 * curve.best[1]:.1f}% at {curve.best[0]:.2f}"
    return best if curve.tuned is None else f"tuned {curve.tuned[0]:.2f}: {100 * curve.tuned[1]:.1f}%; {best}"


def _threshold_panel(
    title: str, subtitle: str, lines: Sequence[tuple[ThresholdCurve, SeriesStyle]]
) -> LinePanel:
    highest = max(curve.best[1] for curve, _ in lines)
    traces = [
        Trace(
            style,
            curve_points(curve.curve),
            highlights=() if curve.tuned is None else (curve.tuned,),
            is_smooth=True,
        )
        for curve, style in lines
    ]
    return LinePanel(
        title,
        traces,
        (0.0, 1.0),
        _number_ticks(0.0, 1.0),
        subtitle=subtitle,
        x_title="threshold",
        # Up to the next tenth, with room for the triangle.
        y_top=min(1.0, (int(10 * highest) + 1) / 10),
    )


def _number_ticks(low: float, high: float) -> dict[float, str]:
    return {
        low + (high - low) * share: f"{low + (high - low) * share:.3g}" for share in (0, 0.25, 0.5, 0.75, 1)
    }


def _calibration_figure(
    analysis: MapsAnalysis, styles: Mapping[str, SeriesStyle], name: str
) -> Figure | None:
    panels = [
        _calibration_panel(one, styles[one.run.id]) for one in calibration_by_model(analysis)[:_MOST_PANELS]
    ]
    if not panels:
        return None
    return line_chart(
        name,
        panels,
        title="How often findings are present, by the model's score",
        note="Bands of equal numbers of images, all findings together; upright lines are 95% intervals over patients. "
        "Dashes: a perfectly calibrated probability. Where a model gives no probability its scores are shown as they "
        "are; they can only show whether a higher score means that the finding is present more often.",
        summary=_summarise(panels),
        height=_LINE_HEIGHT,
    )


def _calibration_panel(calibration: Calibration, style: SeriesStyle) -> LinePanel:
    model = calibration.run.model
    trace = Trace(
        SeriesStyle(model, style.colour, style.shape),
        [(band.mean, band.frequency.value or 0.0) for band in calibration.bands],
        whiskers=[
            (band.mean, band.frequency.low, band.frequency.high)
            for band in calibration.bands
            if band.frequency.low is not None and band.frequency.high is not None
        ],
    )
    if calibration.is_probability:
        error = 100 * (calibration.error or 0.0)
        return LinePanel(
            model,
            [trace],
            (0.0, 1.0),
            {share: f"{100 * share:.0f}%" for share in (0, 0.25, 0.5, 0.75, 1)},
            subtitle=f"expected calibration error {error:.1f} points, n = {calibration.n}",
            x_title="probability of presence",
            has_diagonal=True,
        )
    low, high = calibration.bands[0].mean, calibration.bands[-1].mean
    return LinePanel(
        model,
        [trace],
        (low, high),
        _number_ticks(low, high),
        subtitle=f"scores, not probabilities; n = {calibration.n}",
        x_title="score",
    )


def _summarise(panels: Sequence[LinePanel]) -> str:
    return "; ".join(f"{panel.title}: {panel.subtitle}" for panel in panels if panel.subtitle)
