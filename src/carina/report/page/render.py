"""The page as one file: templates filled with tables, charts and cases."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from carina.report.analysis import Analysis
from carina.report.draw import Drawing, Series, svg
from carina.report.draw.shapes import COLOURS, Mark
from carina.report.draw.svg import mark_svg
from carina.report.page import grids
from carina.report.page.cells import Grid, percent, spread
from carina.report.page.remarks import remarks
from carina.report.page.styles import primary
from carina.report.words import HISTORIES


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # The base page and its style are those of all pages.
    return Environment(
        loader=ChoiceLoader([PackageLoader("carina.report.page"), PackageLoader("carina.show")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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
    return _environment().get_template("report.html.j2").render(values)


def _exam(told: Analysis, styles: Mapping[str, Series], drawn: Mapping[str, Drawing]) -> dict[str, object]:
    exam = told.exam
    first = exam.outcomes[exam.runs[0].id].all_steps
    patients = first.select("patient").drop_nulls()["patient"].n_unique()
    return {
        "id": "-".join((exam.protocol, exam.runs[0].info.fingerprint[:8])),
        "protocol": exam.protocol,
        "title": exam.title,
        "cases": len(exam.cases),
        "patients": patients,
        "steps": first.height,
        "histories": [(name, HISTORIES[name]) for name in dict.fromkeys(run.history for run in exam.runs)],
        "runs": exam.runs,
        "lead": _lead(told),
        "marks": {run: Markup(mark_svg(_key(style))) for run, style in styles.items()},  # noqa: S704 - drawn here
        "charts": {name: Markup(svg(item, alone=False)) for name, item in drawn.items()},  # noqa: S704 - drawn here
        "headline": _filled(
            [grids.headline(told), grids.in_words(told), grids.opposing(told), grids.formats(told)]
        ),
        "reach": _filled(grids.reach(told)),
        "propagation": _filled([grids.propagation(told)]),
        "errors": _filled([grids.first_errors(told), grids.recovery(told), grids.after_error(told)]),
        "breakdowns": _filled([*grids.breakdowns(told), grids.questions(told), grids.kinds(told)]),
        "runs_grids": _filled([grids.reading(told), grids.cost(told)]),
        "comparison": _filled([grids.comparison(told), grids.detectable(told)]),
    }


def _filled(made: Iterable[Grid]) -> list[Grid]:
    return [grid for grid in made if not grid.empty]


def _lead(told: Analysis) -> str:
    """The leading figure of the best seeing run, and that of the best blind one, in a sentence."""
    measure = told.measures[0] if told.exam.protocol == "percept" else told.measures[-1]
    rated = [
        (figure.value, run, figure)
        for run in primary(told.exam.runs)
        if not run.oracle and (figure := told.headline[run.id, measure.key]).value is not None
    ]
    # Who was asked about a few cases only is not compared with who was asked about all.
    cases = {run.id: told.exam.outcomes[run.id].all_steps["case"].n_unique() for _, run, _ in rated}
    rated = [item for item in rated if cases[item[1].id] == max(cases.values())]
    seeing = [item for item in rated if not item[1].baseline]
    blind = [item for item in rated if item[1].baseline]
    parts = []
    for group, words in ((seeing, "Highest"), (blind, "highest without looking")):
        if group:
            value, run, figure = max(group, key=lambda item: item[0])
            bounds = spread(figure.low, figure.high)
            parts.append(f"{words}: {run.model} {percent(value)}%" + (f" ({bounds})" if bounds else ""))
    return f"{measure.title}, {measure.metric}. " + "; ".join(parts) + "." if parts else ""


def _key(style: Series) -> Mark:
    return Mark(7, 7, style.shape, style.colour, 4.5)


def _script_safe(value: Mapping[str, Any]) -> str:
    """JSON that no script element ends early on."""
    text = msgspec.json.encode(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
