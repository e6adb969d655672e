"""The page that compares runs, as one HTML file: templates filled with tables, figures and cases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import polars as pl
from markupsafe import Markup

from carina.pages.case_text import PATH_TITLES
from carina.pages.charts import COLOURS, Figure, SeriesStyle, mark_svg
from carina.pages.frame import render_page
from carina.pages.run_comparison import tables
from carina.pages.run_comparison.cells import Table, break_long_words
from carina.pages.run_comparison.labels import HISTORIES, PATH_MEANINGS, short_title
from carina.pages.run_comparison.notices import NoticeGroup, group_notices, run_notices, summarise_headline
from carina.pages.start import Link
from carina.runs.analysis.run_analysis import RunAnalysis
from carina.runs.analysis.run_groups import RunGroup

PACKAGE: Final = "carina.pages.run_comparison"
COMPARISON_COLOURS: Final = {
    **COLOURS,
    "bar": ("#8fb4d1", "#3f7096"),
    "warn-bg": ("#fff6e0", "#2b2410"),
}
"""Colours of charts, bars and notices, besides those of every page."""


def render_run_comparison(
    analyses: Sequence[RunAnalysis],
    styles: Sequence[Mapping[str, SeriesStyle]],
    figures: Sequence[Mapping[str, Figure]],
    browser: Mapping[str, Any],
    links: Sequence[Sequence[Link]] = (),
) -> str:
    """Render the page.

    Args:
        analyses: One for each group of runs.
        styles: For each analysis: how its runs are drawn, by id.
        figures: For each analysis: its figures by subject.
        browser: What the case browser shows (`case_browser.browser_data`).
        links: For each analysis: where its studies are on other pages; none by default.

    Returns:
        The HTML of the page, which needs no other file.
    """
    links = links or [()] * len(analyses)
    groups = [_group_values(*parts) for parts in zip(analyses, styles, figures, links, strict=True)]
    protocols = [analysis.group.protocol for analysis in analyses]
    for group in groups:
        group["name"] = group["protocol" if protocols.count(str(group["protocol"])) == 1 else "title"]
    runs = [run for analysis in analyses for run in analysis.group.runs]
    models = list(dict.fromkeys(run.name for run in runs if not (run.is_baseline or run.is_oracle)))
    references = list(dict.fromkeys(run.name for run in runs if run.is_baseline or run.is_oracle))
    title = short_title(models or references, list(dict.fromkeys(protocols)))
    values = {
        "groups": groups,
        "title": title,
        "models": models or references,
        "references": references if models else [],
        "browser": Markup(script_safe_json(browser)),  # noqa: S704 - made safe for a script element
        "shown": len(browser["cases"]),
        "left_out": browser["left_out"],
        "total": sum(len(analysis.group.cases) for analysis in analyses),
        "break_long_words": break_long_words,
    }
    return render_page(
        "run_comparison.html.j2",
        values,
        title=f"Report: {title}",
        styles=("comparison.css", "case_browser.css"),
        scripts=("unfold_for_print.js", "case_browser.js"),
        packages=(PACKAGE,),
        colours=COMPARISON_COLOURS,
    )


def _group_values(
    analysis: RunAnalysis,
    styles: Mapping[str, SeriesStyle],
    figures: Mapping[str, Figure],
    links: Sequence[Link],
) -> dict[str, object]:
    group = analysis.group
    notices = group_notices(run_notices(analysis))
    steps = pl.concat([one.all_steps.select("case", "step", "patient") for one in group.outcomes.values()])
    return {
        "id": group_id(group),
        "links": links,
        "protocol": group.protocol,
        "title": group.title,
        "has_answers": group.has_answers,
        "cases": len(group.cases),
        "patients": steps["patient"].drop_nulls().n_unique(),
        "steps": steps.select("case", "step").n_unique(),
        "histories": [(name, HISTORIES[name]) for name in dict.fromkeys(run.history for run in group.runs)],
        "paths": _paths(group),
        "runs": group.runs,
        "summary": summarise_headline(analysis),
        "notices": notices,
        "warnings": count_warnings(notices),
        "marks": mark_values(styles),
        "figures": {name: figure_values(figure) for name, figure in figures.items()},
        "headline_tables": drop_empty_tables(
            [
                tables.headline_table(analysis),
                tables.reader_table(analysis),
                tables.free_text_table(analysis),
                tables.opposing_paths_table(analysis),
                tables.format_table(analysis),
            ]
        ),
        "reach_tables": drop_empty_tables(tables.reach_tables(analysis)),
        "target_reach_tables": drop_empty_tables([tables.target_reach_table(analysis)]),
        "history_tables": drop_empty_tables([tables.history_table(analysis)]),
        "identical_answers": tables.identical_answer_sentences(analysis),
        "error_tables": drop_empty_tables(
            [
                tables.first_error_table(analysis),
                tables.single_error_table(analysis),
                tables.after_first_error_table(analysis),
            ]
        ),
        "breakdown_tables": drop_empty_tables(
            [
                *tables.breakdown_tables(analysis),
                tables.task_table(analysis),
                tables.error_kind_table(analysis),
            ]
        ),
        "run_tables": drop_empty_tables([tables.parsing_table(analysis), tables.cost_table(analysis)]),
        "comparison_tables": drop_empty_tables(
            [tables.comparison_table(analysis), tables.detectable_difference_table(analysis)]
        ),
    }


def group_id(group: RunGroup) -> str:
    """Id of the section of a group of runs."""
    return "-".join((group.protocol, group.runs[0].info.fingerprint[:8]))


def figure_values(figure: Figure) -> dict[str, str]:
    """What templates need of a figure."""
    svg = Markup(figure.svg("page"))  # noqa: S704 - drawn by carina.pages.charts
    return {"svg": svg, "title": figure.title, "note": figure.note}


def mark_values(styles: Mapping[str, SeriesStyle]) -> dict[str, Markup]:
    """The marks of runs as templates put them beside their names."""
    return {key: Markup(mark_svg(style)) for key, style in styles.items()}  # noqa: S704 - drawn by carina.pages.charts


def count_warnings(notices: Iterable[NoticeGroup]) -> int:
    """Number of warnings, of all kinds."""
    return sum(len(one.texts) for one in notices if one.level == "warning")


def drop_empty_tables(candidates: Iterable[Table]) -> list[Table]:
    """The tables that have any value."""
    return [table for table in candidates if not table.is_empty]


def _paths(group: RunGroup) -> list[tuple[str, str, str]]:
    """Code, name and meaning of the paths that cases of the group have."""
    held = {path for one in group.outcomes.values() for path in one.all_steps["path"].drop_nulls().unique()}
    return [(code, PATH_TITLES[code], PATH_MEANINGS[code]) for code in PATH_TITLES if code in held]


def script_safe_json(value: Mapping[str, Any]) -> str:
    """JSON that cannot end a script element."""
    text = msgspec.json.encode(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
