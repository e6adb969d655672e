"""The page as one file: templates filled with tables, charts and pictures."""

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from carina.report.draw import Drawing, Series, svg
from carina.report.draw.shapes import COLOURS
from carina.report.draw.svg import mark_svg
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.gallery import Gallery
from carina.report.ground.page import grids
from carina.report.ground.page.remarks import remarks
from carina.report.ground.page.styles import control_styles
from carina.report.page.cells import Grid
from carina.report.page.render import environment


def render(
    analyses: Sequence[GroundAnalysis],
    series: Sequence[Mapping[str, Series]],
    charts: Sequence[Mapping[str, Drawing]],
    shown: Sequence[Sequence[Gallery]],
) -> str:
    """The whole page. `series`, `charts` and `shown` are those of the analyses, in their order."""
    every = [run for told in analyses for run in told.probing.runs]
    models = list(dict.fromkeys(run.model for run in every if not run.baseline))
    plain = list(dict.fromkeys(run.model for run in every if run.baseline))
    values = {
        "probings": [
            _probing(place, *parts)
            for place, parts in enumerate(zip(analyses, series, charts, shown, strict=True))
        ],
        "remarks": remarks(analyses, shown),
        "models": models or plain,
        "beside": plain if models else [],
        "colours": COLOURS,
    }
    return environment("carina.report.ground.page").get_template("ground.html.j2").render(values)


def _probing(
    place: int,
    told: GroundAnalysis,
    styles: Mapping[str, Series],
    drawn: Mapping[str, Drawing],
    shown: Sequence[Gallery],
) -> dict[str, object]:
    runs = told.probing.runs
    marks = {**styles, **control_styles(list(grids.CONTROLS))}
    return {
        "id": f"maps-{place + 1}",
        "title": told.probing.title or "maps",
        "profile": told.probing.profile,
        "runs": runs,
        "marks": {key: Markup(mark_svg(style.mark(7, 7))) for key, style in marks.items()},  # noqa: S704 - drawn here
        "charts": {name: _chart(item) for name, item in drawn.items()},
        "probes": len({case for run in runs for case in run.own["case"]}),
        "patients": len({patient for run in runs for patient in run.own["patient"]}),
        "findings": len({finding for run in runs for finding in run.own["finding"]}),
        "measures": told.probing.measures,
        "headline": _filled(
            [grids.headline(told), grids.macro(told), grids.against(told), grids.every_control(told)]
        ),
        "breakdowns": _filled(grids.breakdowns(told)),
        "recognition": _filled([grids.relations(told), grids.recognised(told)]),
        "thresholds": _filled([grids.thresholds(told)]),
        "boxes": _filled([grids.with_boxes(told), grids.maps_less_boxes(told)]),
        "answers": _filled(grids.answers(told)),
        "pretraining": _filled(grids.pretrained(told)),
        "calibration": _filled([grids.calibrated(told)]),
        "galleries": [one for one in shown if one.shown],
        "comparison": _filled([grids.comparison(told)]),
        "checks": _filled(
            [grids.faithful(told), grids.otherwise(told), grids.peaks(told), grids.stages(told)]
        ),
        "apart": any(not one.same for one in told.joints),
        "together": any(one.same for one in told.joints),
    }


def _chart(drawing: Drawing) -> dict[str, str]:
    drawn = Markup(svg(drawing, alone=False))  # noqa: S704 - drawn here
    return {"svg": drawn, "title": drawing.title, "note": drawing.note}


def _filled(made: Iterable[Grid]) -> list[Grid]:
    return [grid for grid in made if not grid.empty]
