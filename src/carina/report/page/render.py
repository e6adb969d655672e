"""The page as one file: templates filled with tables, charts and cases."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from carina.report.analysis import Analysis
from carina.report.draw import Drawing, Series, svg
from carina.report.draw.shapes import COLOURS
from carina.report.draw.svg import mark_svg
from carina.report.exam import Exam
from carina.report.page import grids
from carina.report.page.breaks import breakable
from carina.report.page.cells import Grid
from carina.report.page.lead import lead
from carina.report.page.remarks import remarks
from carina.report.words import HISTORIES, PATH_MEANINGS
from carina.show.case_words import PATHS


@lru_cache(maxsize=4)
def environment(*packages: str) -> Environment:
    """For templates of these packages, then of this one; the base page and its style are those of all pages."""
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader(name) for name in (*packages, "carina.report.page", "carina.show")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    return made


def render(
    analyses: Sequence[Analysis],
    series: Sequence[Mapping[str, Series]],
    charts: Sequence[Mapping[str, Drawing]],
    browser: Mapping[str, Any],
) -> str:
    """The whole page. `series` and `charts` are those of the analyses, in their order."""
    warned = sorted(
        (one for told in analyses for one in remarks(told)), key=lambda item: item.level != "grave"
    )
    exams = [_exam(*parts) for parts in zip(analyses, series, charts, strict=True)]
    protocols = [told.exam.protocol for told in analyses]
    for exam in exams:
        exam["name"] = exam["protocol" if protocols.count(str(exam["protocol"])) == 1 else "title"]
    every = [run for told in analyses for run in told.exam.runs]
    named = {
        plain: list(dict.fromkeys(run.model for run in every if (run.baseline or run.oracle) is plain))
        for plain in (False, True)
    }
    values = {
        "exams": exams,
        "remarks": warned,
        "models": named[False] or named[True],
        "beside": named[True] if named[False] else [],
        "colours": COLOURS,
        "browser": Markup(_script_safe(browser)),  # noqa: S704 - made safe for a script element
        "shown": len(browser["cases"]),
        "total": sum(len(told.exam.cases) for told in analyses),
    }
    return environment().get_template("report.html.j2").render(values)


def _exam(told: Analysis, styles: Mapping[str, Series], drawn: Mapping[str, Drawing]) -> dict[str, object]:
    exam = told.exam
    held = pl.concat([found.all_steps.select("case", "step", "patient") for found in exam.outcomes.values()])
    return {
        "id": "-".join((exam.protocol, exam.runs[0].info.fingerprint[:8])),
        "protocol": exam.protocol,
        "title": exam.title,
        "answered": exam.answered,
        "cases": len(exam.cases),
        "patients": held["patient"].drop_nulls().n_unique(),
        "steps": held.select("case", "step").n_unique(),
        "histories": [(name, HISTORIES[name]) for name in dict.fromkeys(run.history for run in exam.runs)],
        "paths": _paths(exam),
        "runs": exam.runs,
        "lead": lead(told),
        "marks": {run: Markup(mark_svg(style.mark(7, 7))) for run, style in styles.items()},  # noqa: S704 - drawn here
        "charts": {name: _chart(item) for name, item in drawn.items()},
        "headline": _filled(
            [grids.headline(told), grids.in_words(told), grids.opposing(told), grids.formats(told)]
        ),
        "reach": _filled(grids.reach(told)),
        "target_reach": _filled([grids.target_reach(told)]),
        "histories_grids": _filled([grids.histories(told)]),
        "same": grids.same_under_both(told),
        "errors": _filled([grids.first_errors(told), grids.recovery(told), grids.after_error(told)]),
        "breakdowns": _filled([*grids.breakdowns(told), grids.questions(told), grids.kinds(told)]),
        "runs_grids": _filled([grids.reading(told), grids.cost(told)]),
        "comparison": _filled([grids.comparison(told), grids.detectable(told)]),
    }


def _chart(drawing: Drawing) -> dict[str, str]:
    drawn = Markup(svg(drawing, alone=False))  # noqa: S704 - drawn here
    return {"svg": drawn, "title": drawing.title, "note": drawing.note}


def _filled(made: Iterable[Grid]) -> list[Grid]:
    return [grid for grid in made if not grid.empty]


def _paths(exam: Exam) -> list[tuple[str, str, str]]:
    """Codes of paths that cases of the exam have, in words and explained."""
    held = {
        path for found in exam.outcomes.values() for path in found.all_steps["path"].drop_nulls().unique()
    }
    return [(code, PATHS[code], PATH_MEANINGS[code]) for code in PATHS if code in held]


def _script_safe(value: Mapping[str, Any]) -> str:
    """JSON that no script element ends early on."""
    text = msgspec.json.encode(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
