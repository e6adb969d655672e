"""The page that compares maps, as one HTML file: templates filled with tables, figures and pictures."""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.explanations.analysis.maps_analysis import MapsAnalysis
from carina.pages.charts import Figure, SeriesStyle
from carina.pages.frame import render_page
from carina.pages.map_comparison import recognition_tables, tables
from carina.pages.map_comparison.figures import style_controls
from carina.pages.map_comparison.gallery import Gallery
from carina.pages.map_comparison.notices import map_notices
from carina.pages.run_comparison.cells import break_long_words
from carina.pages.run_comparison.labels import short_title
from carina.pages.run_comparison.notices import group_notices
from carina.pages.run_comparison.page import (
    COMPARISON_COLOURS,
    count_warnings,
    drop_empty_tables,
    figure_values,
    mark_values,
)
from carina.pages.run_comparison.page import PACKAGE as RUN_COMPARISON
from carina.pages.start import Link

PACKAGE: Final = "carina.pages.map_comparison"


def render_map_comparison(
    analyses: Sequence[MapsAnalysis],
    styles: Sequence[Mapping[str, SeriesStyle]],
    figures: Sequence[Mapping[str, Figure]],
    galleries: Sequence[Sequence[Gallery]],
    *,
    links: Sequence[Sequence[Link]] = (),
    case_pages: Mapping[str, str] | None = None,
) -> str:
    """Render the page.

    Args:
        analyses: One for each group of runs.
        styles: For each analysis: how its runs are drawn, by id.
        figures: For each analysis: its figures by subject.
        galleries: For each analysis: pictures of the maps of its runs.
        links: For each analysis: where its studies are on other pages; none by default.
        case_pages: Addresses of the pages of cases; none by default.

    Returns:
        The HTML of the page, which needs no other file.
    """
    runs = [run for analysis in analyses for run in analysis.group.runs]
    models = list(dict.fromkeys(run.label or run.model for run in runs if not run.is_baseline))
    references = list(dict.fromkeys(run.label or run.model for run in runs if run.is_baseline))
    subjects = list(dict.fromkeys(analysis.group.title or "maps" for analysis in analyses))
    title = short_title(models or references, subjects)
    values = {
        "groups": [
            {**_group_values(place, *parts), "links": links[place] if links else ()}
            for place, parts in enumerate(zip(analyses, styles, figures, galleries, strict=True))
        ],
        "title": title,
        "case_pages": case_pages or {},
        "models": models or references,
        "references": references if models else [],
        "break_long_words": break_long_words,
    }
    return render_page(
        "map_comparison.html.j2",
        values,
        title=f"Maps: {title}",
        styles=("comparison.css", "map_comparison.css"),
        scripts=("unfold_for_print.js",),
        packages=(PACKAGE, RUN_COMPARISON),
        colours=COMPARISON_COLOURS,
    )


def _group_values(
    place: int,
    analysis: MapsAnalysis,
    styles: Mapping[str, SeriesStyle],
    figures: Mapping[str, Figure],
    galleries: Sequence[Gallery],
) -> dict[str, object]:
    runs = analysis.group.runs
    notices = group_notices(map_notices(analysis, galleries))
    return {
        "id": f"maps-{place + 1}",
        "title": analysis.group.title or "maps",
        "profile": analysis.group.profile,
        "runs": runs,
        "marks": mark_values({**styles, **style_controls(list(tables.CONTROLS))}),
        "figures": {name: figure_values(figure) for name, figure in figures.items()},
        "probes": len({case for run in runs for case in run.own["case"]}),
        "patients": len({patient for run in runs for patient in run.own["patient"]}),
        "findings": len({finding for run in runs for finding in run.own["finding"]}),
        "measures": analysis.group.measures,
        "notices": notices,
        "warnings": count_warnings(notices),
        "headline_tables": drop_empty_tables(
            [
                tables.headline_table(analysis),
                tables.macro_table(analysis),
                tables.control_difference_table(analysis),
                tables.other_control_table(analysis),
            ]
        ),
        "breakdown_tables": drop_empty_tables(tables.breakdown_tables(analysis)),
        "recognition_tables": drop_empty_tables(
            [recognition_tables.correlation_table(analysis), recognition_tables.recognition_table(analysis)]
        ),
        "threshold_tables": drop_empty_tables([recognition_tables.threshold_table(analysis)]),
        "box_tables": drop_empty_tables(
            [recognition_tables.box_table(analysis), recognition_tables.box_difference_table(analysis)]
        ),
        "answer_tables": drop_empty_tables(recognition_tables.answer_tables(analysis)),
        "pretraining_tables": drop_empty_tables(tables.pretraining_tables(analysis)),
        "calibration_tables": drop_empty_tables([recognition_tables.calibration_table(analysis)]),
        "galleries": [one for one in galleries if one.items],
        "comparison_tables": drop_empty_tables([tables.comparison_table(analysis)]),
        "check_tables": drop_empty_tables(
            [
                tables.deletion_table(analysis),
                tables.likeness_table(analysis),
                tables.peak_table(analysis),
                tables.weight_stage_table(analysis),
            ]
        ),
        "has_different_models": any(not one.is_same_model for one in analysis.answers),
        "has_same_model": any(one.is_same_model for one in analysis.answers),
    }
