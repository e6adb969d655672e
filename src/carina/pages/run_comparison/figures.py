"""The figures of a comparison of runs, from their analysis, and how each run is drawn in all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from carina.cases.protocol import find_protocol, stage_title
from carina.explanations.analysis.estimates import MapEstimate
from carina.pages.charts import (
    MODEL_HUES,
    MODEL_SHAPES,
    Dash,
    Figure,
    Fill,
    Interval,
    IntervalPanel,
    LinePanel,
    Reference,
    SeriesStyle,
    Shape,
    Trace,
    interval_chart,
    line_chart,
    list_shares,
    stacked_bar_chart,
)
from carina.pages.run_comparison.labels import COMPARISONS, path_title
from carina.runs.analysis.estimates import Estimate
from carina.runs.analysis.first_errors import NO_ERROR
from carina.runs.analysis.histories import HistoryPair
from carina.runs.analysis.reach import ReachCurve
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.run_analysis import RunAnalysis

_BLIND_SHAPES: Final[tuple[Shape, ...]] = ("diamond", "cross", "saltire", "hexagon")
_GREYS: Final = 2
_FILLS: Final[dict[str, Fill]] = {
    "own": "full",
    "gold": "hollow",
    "implicit": "bottom",
    "hint": "half",
    "explicit": "top",
    "none": "dot",
}
_DASHES: Final[tuple[Dash | None, ...]] = (None, (11.0, 3.0), (4.0, 2.0), (14.0, 6.0), (7.0, 5.0))
"""Lines of models, in turn: they differ in a print without colours, too."""
_NAMED_STAGE_WIDTH: Final = 1.7
"""Names of stages need more room than the numbers of steps."""


def style_runs(runs: Sequence[ComparedRun]) -> dict[str, SeriesStyle]:
    """Styles by id of the run: hue, shape and line show the model, the fill of the mark shows the history.

    Blind baselines are grey and dashed, the oracle is a star. So no two runs differ by their colour alone.
    """
    seeing = list(dict.fromkeys(run.name for run in runs if not run.is_baseline and not run.is_oracle))
    blind = list(dict.fromkeys(run.name for run in runs if run.is_baseline and not run.is_oracle))
    has_settings = len({run.setting for run in runs}) > 1
    styles = {}
    for run in runs:
        name = f"{run.name} · {run.setting}" if has_settings else run.name
        fill = _FILLS[run.history]
        if run.is_oracle:
            styles[run.id] = SeriesStyle(name, "oracle", "star", (1.5, 2.5), fill)
        elif run.is_baseline:
            place = blind.index(run.name)
            shape = _BLIND_SHAPES[place % len(_BLIND_SHAPES)]
            styles[run.id] = SeriesStyle(name, f"b{place % _GREYS + 1}", shape, (5.0, 3.0), fill)
        else:
            place = seeing.index(run.name)
            shape = MODEL_SHAPES[place % len(MODEL_SHAPES)]
            dash = _DASHES[place % len(_DASHES)]
            styles[run.id] = SeriesStyle(name, MODEL_HUES[place % len(MODEL_HUES)], shape, dash, fill)
    return styles


def run_figures(analysis: RunAnalysis, styles: Mapping[str, SeriesStyle], prefix: str) -> dict[str, Figure]:
    """Figures by subject; those that would be empty are left out. Names of files begin with the prefix."""
    group = analysis.group
    if not group.has_answers:
        return {}
    figures = {"headline": _headline_figure(analysis, styles, f"{prefix}-headline")}
    primary = {run.id: styles[run.id] for run in group.primary_runs}
    stages = {item.name for item in analysis.first_errors} - {NO_ERROR}
    titles = {stage: stage_title(group.protocol, int(stage)) for stage in sorted(stages, key=int)}
    figures |= _reach_figures(analysis, primary, titles, prefix)
    pairs = [pair for pair in analysis.histories if pair.identical_answers is None]
    if pairs:
        figures["histories"] = _history_figure(analysis, pairs, styles, f"{prefix}-histories")
    if len(stages) > 1:
        shares = {
            run: {item.name: item.value or 0.0 for item in analysis.first_errors if item.run == run}
            for run in primary
        }
        figures["first-error"] = stacked_bar_chart(
            f"{prefix}-first-error",
            shares,
            {**titles, NO_ERROR: "no error"},
            primary,
            title="Share of cases by the stage of their first error",
            note="Percent of complete cases; stages from left to right, then the cases without an error.",
        )
    return figures


def _headline_figure(analysis: RunAnalysis, styles: Mapping[str, SeriesStyle], name: str) -> Figure:
    panels = []
    for measure in analysis.measures:
        estimates = {run.id: analysis.headline[run.id, measure.key] for run in analysis.group.runs}
        panels.append(
            IntervalPanel(
                measure.title,
                {run: {run: one} for run, item in estimates.items() if (one := to_interval(item))},
                {run: _references(item) for run, item in estimates.items() if item.value is not None},
            )
        )
    return interval_chart(
        name,
        {run: style.name for run, style in styles.items()},
        panels,
        styles,
        title="Accuracy of every run by stage, with 95% intervals",
        note="A line is a 95% interval over patients. Dashes: chance. Upright line with a triangle: the best constant "
        "answer, where there is one.",
    )


def to_interval(estimate: Estimate | MapEstimate | None) -> Interval | None:
    """The value of an estimate with its bounds; None where there is no value."""
    if estimate is None or estimate.value is None:
        return None
    return Interval(estimate.value, estimate.low, estimate.high)


def _references(estimate: Estimate) -> list[Reference]:
    references = []
    if estimate.constant is not None:
        references.append(Reference("best constant answer", estimate.constant))
    if estimate.chance is not None:
        references.append(Reference("chance", estimate.chance, is_dashed=True))
    return references


def _reach_figures(
    analysis: RunAnalysis, styles: Mapping[str, SeriesStyle], titles: Mapping[str, str], prefix: str
) -> dict[str, Figure]:
    """Curves of the runs in `styles`: over stages and steps, and over the stages of each target."""
    histories = {run.history for run in analysis.group.runs}
    drawn = (
        f" Drawn are the runs with history {analysis.group.runs[0].history}." if len(histories) > 1 else ""
    )
    note = "Percent of complete cases in which every answer so far is right"
    steps = ""
    if find_protocol(analysis.group.protocol).has_stage_outcomes:
        steps = f" Steps: {', '.join(f'{step} {task}' for step, task in analysis.step_tasks.items())}."
    panels = []
    for name, curves in analysis.reach.items():
        if name == "stages":
            panels += _reach_panel("All cases, by stage", curves, styles, titles, has_bands=True)
        else:
            panels += _reach_panel(f"Path {path_title(name)}, by step", curves, styles, {}, has_bands=True)
    figures = {}
    if any(len(trace.points) > 1 for panel in panels for trace in panel.traces):
        figures["reach"] = line_chart(
            f"{prefix}-reach",
            panels,
            title="Share of cases still right after each stage or step, with 95% intervals",
            note=f"{note}; bands are 95% intervals.{drawn}{steps}",
            summary=_summarise_ends(panels[0]),
            legend=list(styles.values()),
        )
    by_target = [
        panel
        for target, curves in analysis.target_reach.items()
        for panel in _reach_panel(target, curves, styles, titles, has_bands=False)
    ]
    if by_target:
        figures["target-reach"] = line_chart(
            f"{prefix}-target-reach",
            by_target,
            title="Share of cases still right after each stage, by target",
            note=f"{note}; intervals are in the table.{drawn}",
            summary=_summarise_ends(by_target[0]),
            height=150.0,
            legend=list(styles.values()),
        )
    return figures


def _reach_panel(
    title: str,
    curves: Sequence[ReachCurve],
    styles: Mapping[str, SeriesStyle],
    titles: Mapping[str, str],
    *,
    has_bands: bool,
) -> list[LinePanel]:
    """One panel; none where no run has a curve. All stages of `titles` get a place, whether or not a curve has them."""
    drawn = [curve for curve in curves if curve.run in styles and curve.positions]
    if not drawn:
        return []
    positions = tuple(titles) or max((curve.positions for curve in drawn), key=len)
    at = {position: float(place) for place, position in enumerate(positions, start=1)}
    start = (0.0, 1.0)
    traces = []
    for curve in drawn:
        style = styles[curve.run]
        known = [item for item in curve.estimates if item.value is not None]
        band = [
            (at[item.name], item.low, item.high)
            for item in known
            if item.low is not None and item.high is not None
        ]
        points = [(at[item.name], item.value or 0.0) for item in known]
        has_band = has_bands and style.colour in MODEL_HUES
        traces.append(Trace(style, points, start, band if has_band else ()))
    chance = next((curve for curve in drawn if curve.estimates[-1].chance is not None), None)
    return [
        LinePanel(
            title,
            traces,
            (0.0, len(positions) + 0.25),
            {0.0: "start", **{at[position]: titles.get(position, position) for position in positions}},
            # The same for all runs, so drawn once.
            chance=[start, *((at[item.name], item.chance or 0.0) for item in chance.estimates)]
            if chance
            else (),
            weight=max(3, len(positions)) * (_NAMED_STAGE_WIDTH if titles else 1.0),
        )
    ]


def _summarise_ends(panel: LinePanel) -> str:
    ends = [(trace.style.name, trace.points[-1][1]) for trace in panel.traces if trace.points]
    return f"{panel.title}, at the end: {list_shares(ends)}"


def _history_figure(
    analysis: RunAnalysis, pairs: Sequence[HistoryPair], styles: Mapping[str, SeriesStyle], name: str
) -> Figure:
    """One panel a comparison, one row a measure, one mark a model."""
    titles = {
        measure.key: f"{measure.title}, free text"
        if measure in analysis.free_text_measures
        else measure.title
        for measure in (*analysis.measures, *analysis.free_text_measures)
    }
    models = {
        pair.own.id: replace(styles[pair.own.id], name=pair.own.name, dash=None, fill="full")
        for pair in pairs
    }
    panels = []
    for histories, (words, meaning) in COMPARISONS.items():
        rows: dict[str, dict[str, Interval]] = {title: {} for title in titles.values()}
        for pair in pairs:
            if pair.histories == histories:
                for item in pair.differences:
                    rows[titles[item.key]][pair.own.id] = Interval(item.value, item.low, item.high)
        if any(rows.values()):
            panels.append(IntervalPanel(f"{words}: {meaning}", rows))
    present = [title for title in titles.values() if any(panel.values[title] for panel in panels)]
    first = "; ".join(
        f"{panel.title}: "
        + ", ".join(
            f"{models[run].name} {100 * one.value:+.1f} points"
            for run, one in panel.values.get(present[0], {}).items()
        )
        for panel in panels
    )
    return interval_chart(
        name,
        {title: title for title in present},
        panels,
        models,
        title="Accuracy of a model under one history minus its accuracy under another, by stage",
        note="Percentage points around zero, on the same cases; a line is a 95% interval over patients.",
        summary=first,
        unit="points",
    )
