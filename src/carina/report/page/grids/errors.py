"""Tables of where cases break and what mending would restore."""

from carina.report.analyse.errors import NONE
from carina.report.analysis import Analysis
from carina.report.page.cells import Grid, Head
from carina.report.page.grids.common import by_run, names
from carina.report.words import stage_name


def first_errors(told: Analysis) -> Grid:
    columns = [
        ("first error", stage, "share of cases", Head(text=_stage(told, stage)))
        for stage in names(told.first)
    ]
    return by_run(told, "First error", told.first, columns, "Percent of complete cases.")


def recovery(told: Analysis) -> Grid:
    metric = "share of cases wrong at this stage alone"
    columns = [("recovery", item, metric, Head(text=_stage(told, item))) for item in names(told.only)]
    return by_run(
        told,
        "Recovery: wrong at one stage alone",
        told.only,
        columns,
        "Percent of complete cases that would be right throughout if this stage alone were mended.",
    )


def after_error(told: Analysis) -> Grid:
    columns = [
        (
            "after first error",
            stage,
            metric,
            Head(text=_stage(told, stage), note=metric.rpartition(", ")[2]),
        )
        for stage in names(told.mended)
        for metric in ("right from there on, left alone", "right from there on, mended")
    ]
    return by_run(
        told,
        "After the first error: left alone and mended",
        told.mended,
        columns,
        "Of cases whose first error was at this stage, percent that were right at all later ones. Mended: with history "
        "gold, or hint where there is no such run.",
    )


def _stage(told: Analysis, name: str) -> str:
    return "right throughout" if name == NONE else f"{name} {stage_name(told.exam.protocol, int(name))}"
