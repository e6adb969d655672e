"""The charts of an exam, from its analysis."""

from collections.abc import Mapping

from carina.report.analyse.errors import NONE
from carina.report.analysis import Analysis
from carina.report.draw import Drawing, Series, error_chart, headline_chart, propagation_chart, reach_chart
from carina.report.page.styles import primary
from carina.report.words import stage_name


def charts(told: Analysis, series: Mapping[str, Series], prefix: str) -> dict[str, Drawing]:
    """By what they show; those that have nothing to show are left out."""
    exam = told.exam
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
    panels = []
    for name, curves in told.reach.items():
        shown = [curve for curve in curves if curve.run in chosen and curve.places]
        if shown:
            title = "All cases, by stage" if name == "stages" else f"Path {name}, by step"
            panels.append((title, shown, names if name == "stages" else {}))
    if any(len(curve.places) > 1 for _, curves, _ in panels for curve in curves):
        made["reach"] = reach_chart(f"{prefix}-reach", panels, chosen)
    if told.propagation:
        rows = [
            (
                f"{measure.title}, words" if measure in told.word_measures else measure.title,
                {
                    pair.mended.id: item
                    for pair in told.propagation
                    for item in pair.differences
                    if (item.level, item.name, item.metric) == measure.key
                },
            )
            for measure in (*told.measures, *told.word_measures)
        ]
        pairs = {
            pair.mended.id: Series(
                f"{pair.own.model}: own less {pair.mended.history}",
                series[pair.own.id].colour,
                series[pair.own.id].shape,
            )
            for pair in told.propagation
        }
        made["propagation"] = propagation_chart(
            f"{prefix}-propagation", [(title, found) for title, found in rows if found], pairs
        )
    if len(stages) > 1:
        shares = {run: [item for item in told.first if item.run == run] for run in chosen}
        made["first-error"] = error_chart(
            f"{prefix}-first-error", shares, {**names, NONE: "right throughout"}, chosen
        )
    return made
