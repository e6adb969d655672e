"""The charts of an exam, from its analysis."""

from collections.abc import Mapping, Sequence

from carina.report.analyse.errors import NONE
from carina.report.analyse.figures import Contrast
from carina.report.analyse.histories import HistoryPair
from carina.report.analyse.reach import Curve
from carina.report.analysis import Analysis
from carina.report.draw import (
    Difference,
    Drawing,
    Panel,
    Series,
    error_chart,
    headline_chart,
    histories_chart,
    reach_chart,
)
from carina.report.page.styles import primary
from carina.report.words import COMPARISONS, path_name, stage_name


def charts(told: Analysis, series: Mapping[str, Series], prefix: str) -> dict[str, Drawing]:
    """By what they show; those that have nothing to show are left out."""
    exam = told.exam
    if not exam.answered:
        return {}
    made = {
        "headline": headline_chart(
            f"{prefix}-headline",
            [
                (measure.title, {run.id: told.headline[run.id, measure.key] for run in exam.runs})
                for measure in told.measures
            ],
            series,
        )
    }
    chosen = {run.id: series[run.id] for run in primary(exam.runs)}
    stages = {figure.name for figure in told.first} - {NONE}
    names = {stage: stage_name(exam.protocol, int(stage)) for stage in sorted(stages, key=int)}
    made |= _reach(told, chosen, names, prefix)
    pairs = [pair for pair in told.histories if pair.alike is None]
    if pairs:
        made["histories"] = _histories(told, pairs, series, f"{prefix}-histories")
    if len(stages) > 1:
        shares = {run: [item for item in told.first if item.run == run] for run in chosen}
        made["first-error"] = error_chart(
            f"{prefix}-first-error", shares, {**names, NONE: "right throughout"}, chosen
        )
    return made


def _reach(
    told: Analysis, chosen: Mapping[str, Series], names: Mapping[str, str], prefix: str
) -> dict[str, Drawing]:
    """Curves of the runs that are drawn: over stages and steps, and over stages target by target."""
    histories = {run.history for run in told.exam.runs}
    drawn = f" Runs with history {told.exam.runs[0].history} are drawn." if len(histories) > 1 else ""
    note = "Percent of complete cases in which every answer so far was right"
    steps = ""
    if told.exam.protocol == "percept":
        steps = f" Steps: {', '.join(f'{step} {task}' for step, task in told.step_tasks.items())}."
    panels = []
    for name, curves in told.reach.items():
        shown = _shown(curves, chosen)
        if shown:
            over_stages = name == "stages"
            title = "All cases, by stage" if over_stages else f"Path {path_name(name)}, by step"
            panels.append(Panel(title, shown, names if over_stages else {}))
    made = {}
    if any(len(curve.places) > 1 for panel in panels for curve in panel.curves):
        made["reach"] = reach_chart(
            f"{prefix}-reach",
            panels,
            chosen,
            title="Share of cases still right after each stage or step, with 95% intervals",
            note=f"{note}; bands are 95% intervals.{drawn}{steps}",
        )
    by_target = [
        Panel(target, shown, names)
        for target, curves in told.target_reach.items()
        if (shown := _shown(curves, chosen))
    ]
    if by_target:
        made["target-reach"] = reach_chart(
            f"{prefix}-target-reach",
            by_target,
            chosen,
            title="Share of cases still right after each stage, by target",
            note=f"{note}; intervals are in the table.{drawn}",
            height=150.0,
            bands=False,
        )
    return made


def _shown(curves: Sequence[Curve], chosen: Mapping[str, Series]) -> list[Curve]:
    return [curve for curve in curves if curve.run in chosen and curve.places]


def _histories(
    told: Analysis, pairs: Sequence[HistoryPair], series: Mapping[str, Series], name: str
) -> Drawing:
    """A panel a comparison, a row a measure, a mark a model."""
    titles = {
        measure.key: f"{measure.title}, words" if measure in told.word_measures else measure.title
        for measure in (*told.measures, *told.word_measures)
    }
    panels = []
    for histories, (words, meaning) in COMPARISONS.items():
        rows: dict[str, dict[str, Contrast]] = {title: {} for title in titles.values()}
        for pair in pairs:
            if pair.histories == histories:
                for item in pair.differences:
                    rows[titles[item.level, item.name, item.metric]][pair.own.id] = item
        if any(rows.values()):
            panels.append(Difference(f"{words}: {meaning}", rows))
    models = {
        pair.own.id: Series(pair.own.model, series[pair.own.id].colour, series[pair.own.id].shape)
        for pair in pairs
    }
    present = [title for title in titles.values() if any(panel.rows[title] for panel in panels)]
    return histories_chart(name, panels, present, models)
