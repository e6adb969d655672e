"""`carina report`: compare runs, and write pages, tables and figures."""

import webbrowser
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import polars as pl

from carina.cases import open_benchmark
from carina.explanations.analysis.estimates import MapEstimate
from carina.explanations.analysis.maps_analysis import analyse_maps
from carina.explanations.analysis.maps_groups import MapsGroup, find_benchmarks, group_maps_runs
from carina.explanations.analysis.read import is_maps, read_maps_runs
from carina.explanations.analysis.result_rows import map_result_rows
from carina.explanations.analysis.tables import long_maps_table, maps_tables
from carina.pages.charts import Figure
from carina.pages.map_comparison.figures import map_figures
from carina.pages.map_comparison.figures import style_runs as style_maps_runs
from carina.pages.map_comparison.gallery import make_galleries
from carina.pages.map_comparison.page import render_map_comparison
from carina.pages.map_comparison.tables import paper_table as map_paper_table
from carina.pages.output import claim_pages, lock_pages
from carina.pages.report_links import find_case_pages, link_groups
from carina.pages.run_comparison.case_browser import browser_data, select_cases
from carina.pages.run_comparison.cells import Table
from carina.pages.run_comparison.figures import run_figures, style_runs
from carina.pages.run_comparison.page import render_run_comparison
from carina.pages.run_comparison.table_text import ENDINGS, TableFormat, write_latex, write_markdown
from carina.pages.run_comparison.tables import paper_table
from carina.pages.start import Link
from carina.pages.words import join_names
from carina.runs.analysis.chexpercept import CSV_NAMES, SummaryRow
from carina.runs.analysis.estimates import Difference, Estimate
from carina.runs.analysis.read import assign_labels, find_runs, read_runs
from carina.runs.analysis.result_rows import ResultRow, result_rows
from carina.runs.analysis.run_analysis import analyse_group
from carina.runs.analysis.run_groups import RunGroup, group_runs
from carina.runs.analysis.tables import ReportTable, long_table, run_tables
from carina.runs.prices import TABLE, read_prices
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.frames import read_csv_frame, read_frame
from carina.store.names import safe_name
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_pandas, as_path

RUN_PAGE: Final = "report.html"
MAP_PAGE: Final = "ground.html"
TABLES: Final = "tables"
FIGURES: Final = "figures"
RUN_PARQUET: Final = "tables.parquet"
MAP_PARQUET: Final = "ground.parquet"
RESULTS: Final = "results"
"""Name of the tidy table."""
RESULTS_PARQUET: Final = "results.parquet"
PAPER_TABLE: Final = "headline"
"""Name of the table for a paper, without its ending."""
_TITLE: Final = "the report"
CASES: Final = 60
"""Cases of the browser, unless another number is given."""


@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """A report that was written: its pages, tables and figures.

    Example:
        >>> compared = report(["runs/reader"], "report")
        >>> sorted(compared.figures)
        ['percept-first-error', 'percept-headline', 'percept-reach', 'percept-target-reach']
    """

    directory: Path
    pages: tuple[Path, ...]
    """The page that compares answers and the page that compares maps, as far as there are such runs."""
    tables: Mapping[str, pl.DataFrame]
    """Tables by name, as the CSV files are named: `results`, `headline`, `reach`, `ground-headline` ..."""
    figures: Mapping[str, Figure]
    """Figures by name, as their files are named: `percept-headline`, `trek-reach` ... None in a report that was opened:
    their files are among `files`."""
    files: tuple[Path, ...]
    """Everything that was written."""
    notices: tuple[str, ...] = ()
    """Sentences about runs that are not finished or not compared with checksums; the pages say so too."""

    @property
    def path(self) -> Path:
        """The directory of the report."""
        return self.directory

    @property
    def map_page(self) -> Path | None:
        """The page that compares maps, where there are such runs."""
        return next((page for page in self.pages if page.name == MAP_PAGE), None)

    def open(self) -> None:
        """Open the first page in a browser."""
        webbrowser.open(self.pages[0].resolve().as_uri())

    def to_frame(self, name: str | None = None) -> pl.DataFrame:
        """One table.

        Args:
            name: A key of `tables`. Without it the tidy table, `results`: one row for each run and headline measure,
                with protocol, benchmark, model, history, label, stage, chance, blind baseline, human ceiling, and the
                share of answers that could not be parsed.

        Raises:
            CarinaError: The report has no such table.
        """
        name = RESULTS if name is None else name
        if name not in self.tables:
            raise CarinaError(
                f"{self.path}: no table {name!r} in this report, expected one of {', '.join(self.tables)}"
            )
        return self.tables[name]

    def to_pandas(self, name: str | None = None) -> Any:  # noqa: ANN401 - pandas is optional
        """As `to_frame`, as a pandas table."""
        return as_pandas(self.to_frame(name))

    def _summary(self) -> Mapping[str, object]:
        return {
            "pages": ", ".join(page.name for page in self.pages),
            "tables": len(self.tables),
            "figures": len(self.figures),
        }


@dataclass
class _Parts:
    """Contents of a report before anything is written, by path within its directory."""

    pages: dict[str, str] = field(default_factory=dict)
    tables: dict[str, ReportTable] = field(default_factory=dict)
    parquet: dict[str, ReportTable] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)
    """Beginnings of the names of the figures, one for each group of runs that answered questions."""
    notices: list[str] = field(default_factory=list)
    results: list[ResultRow] = field(default_factory=list)
    paper: list[tuple[str, Table]] = field(default_factory=list)
    """Headline tables with their captions."""
    texts: dict[str, str] = field(default_factory=dict)
    """Tables for a paper, by path."""
    run_links: list[list[Link]] = field(default_factory=list)
    """For each group of answers: links to maps of the same studies."""
    map_links: list[list[Link]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Paths of all files, within the directory of the report."""
        figures = [f"{FIGURES}/{name}.{ending}" for name in self.figures for ending in ("svg", "png")]
        return [
            *(f"{TABLES}/{name}.csv" for name in self.tables),
            *self.texts,
            *figures,
            *self.parquet,
            *self.pages,
        ]


@check_arguments
def report(
    runs: "Location | Sequence[Location]",
    out: Location,
    *,
    cases: int = CASES,
    benchmarks: Sequence[Location] = (),
    images: "Location | None" = None,
    prices: "Location | None" = None,
    labels: Sequence[str] = (),
    pages: Sequence[Location] = (),
    table: TableFormat | None = None,
    progress: Progress = no_progress,
) -> Report:
    """Compare runs: accuracy by stage, reach, errors, histories and cost, and localisation maps.

    Writes `report.html` for runs of `carina run` and `ground.html` for runs of `carina explain`; the latter are joined
    with the answers of the former about the same studies, and the pages link to each other. Beside the pages are
    `tables/*.csv`, `tables.parquet` and `ground.parquet` with every number, `results.parquet` with the headline as one
    tidy table, and `figures/` with the charts as SVG and PNG. Everything is computed before anything is written, and
    the same runs give the same bytes. A run whose last call was interrupted is reported as far as it goes; the pages
    and `notices` say what is missing.

    Args:
        runs: Runs, or directories that hold runs.
        out: Directory to write the report to.
        cases: Number of cases in the case browser of the page.
        benchmarks: Directories of benchmarks that have moved since their runs.
        images: Directory of the images, if they have moved.
        prices: Table of model prices in the layout of `carina/runs/prices.yaml`, which is used where none is given.
        labels: Names of the runs on the pages: one for each, in their order, or "RUN=NAME" for some, where RUN is the
            directory of a run or its last part. Without a label, a run is named after its model.
        pages: Directories of pages that `show` wrote of the cases; the report links to them.
        table: "latex" or "markdown" to write the headline as a table for a paper, to `tables/headline.tex` or `.md`.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The report: `open()` shows it in a browser, `tables` and `figures` hold its contents.

    Raises:
        CarinaError: A run, its benchmark or the price table cannot be read, the labels do not fit the runs, or `out` is
            a file.

    Example:
        >>> compared = report(["runs/reader", "runs/majority"], "report")
        >>> compared
        Report('report', pages='report.html', tables=13, figures=4)
        >>> compared.to_frame("reach").height > 0
        True
    """
    directory = as_path(out)
    given = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    parts = _Parts()
    paths = find_runs([as_path(run) for run in given], parts.notices.append)
    map_paths = [path for path in paths if is_maps(path)]
    run_paths = [path for path in paths if path not in map_paths]
    bench_paths = [as_path(path) for path in benchmarks]
    names = assign_labels(paths, labels)
    setup = _Setup(
        directory=directory,
        cases=cases,
        images=None if images is None else as_path(images),
        prices=None if prices is None else as_path(prices),
        pages=tuple(as_path(path) for path in pages),
        table=table,
    )
    with lock_pages(directory, _TITLE, (RUN_PAGE, MAP_PAGE), folders=(TABLES, FIGURES)):
        with progress("Runs", len(paths)) as advance:
            groups: list[RunGroup] = []
            maps_groups: list[MapsGroup] = []
            if run_paths or not map_paths:
                groups = group_runs(read_runs(run_paths, names), benchmarks=bench_paths, images=setup.images)
            if map_paths:
                known = [
                    *(open_benchmark(path, setup.images) for path in bench_paths),
                    *(one.bench for one in groups),
                ]
                maps_runs = read_maps_runs(map_paths, names)
                maps_groups = group_maps_runs(maps_runs, find_benchmarks(maps_runs, known, setup.images))
            parts.run_links, parts.map_links = link_groups(groups, maps_groups, RUN_PAGE, MAP_PAGE)
            if run_paths or not map_paths:
                _compare_runs(parts, groups, setup, advance)
            run_files = parts.names
            if map_paths:
                _compare_maps(parts, maps_groups, groups, setup, advance)
            _add_results(parts, setup)
        files = dict.fromkeys(parts.names, MAP_PAGE) | dict.fromkeys(run_files, RUN_PAGE)
        with claim_pages(directory, _TITLE, files):
            return _write(parts, directory)


@dataclass(frozen=True, kw_only=True)
class _Setup:
    """What every part of a report needs."""

    directory: Path
    cases: int
    images: Path | None
    prices: Path | None
    pages: tuple[Path, ...]
    table: TableFormat | None


def _compare_runs(
    parts: _Parts, groups: Sequence[RunGroup], setup: _Setup, advance: Callable[[], None]
) -> None:
    known = read_prices(setup.prices or TABLE)
    parts.notices += _run_notices(groups)
    analyses = [analyse_group(group, known, advance) for group in groups]
    styles = [style_runs(group.runs) for group in groups]
    parts.prefixes += _number_repeated([safe_name(group.protocol) for group in groups])
    figures = [run_figures(*each) for each in zip(analyses, styles, parts.prefixes, strict=True)]
    selected = select_cases(groups, setup.cases)
    case_pages = find_case_pages(chain.from_iterable(selected), setup.pages, setup.directory)
    browser = browser_data(groups, styles, selected, parts.notices.append, case_pages)
    parts.pages[RUN_PAGE] = render_run_comparison(analyses, styles, figures, browser, parts.run_links)
    parts.results += result_rows(analyses)
    parts.paper += [
        (f"Answers to {one.group.title}", paper_table(one)) for one in analyses if one.group.has_answers
    ]
    parts.tables |= run_tables(analyses)
    parts.parquet[RUN_PARQUET] = long_table(analyses)
    parts.figures |= {figure.name: figure for each in figures for figure in each.values()}


def _add_results(parts: _Parts, setup: _Setup) -> None:
    """The tidy table of everything, and the table for a paper."""
    results = ReportTable(ResultRow, parts.results)
    parts.tables = {RESULTS: results, **parts.tables}
    parts.parquet[RESULTS_PARQUET] = results
    if setup.table is not None:
        write = {"latex": write_latex, "markdown": write_markdown}[setup.table]
        parts.texts[f"{TABLES}/{PAPER_TABLE}.{ENDINGS[setup.table]}"] = write(parts.paper)


def _run_notices(groups: Sequence[RunGroup]) -> list[str]:
    """What is missing, one sentence a run, and what was not checked, with all runs of which it is true."""
    runs = {run.path: run for group in groups for run in group.runs}
    notices = [f"{path}: {text}" for path, run in runs.items() for text in run.unfinished]
    unchecked: dict[str, list[str]] = {}
    for path, run in runs.items():
        for text in run.unchecked:
            unchecked.setdefault(text, []).append(str(path))
    return notices + [f"{join_names(paths)}: {text}" for text, paths in unchecked.items()]


def _compare_maps(
    parts: _Parts,
    groups: Sequence[MapsGroup],
    run_groups: Sequence[RunGroup],
    setup: _Setup,
    advance: Callable[[], None],
) -> None:
    parts.notices += [
        f"{run.path}: {text}" for group in groups for run in group.runs for text in run.unchecked
    ]
    analyses = [analyse_maps(group, run_groups, advance) for group in groups]
    styles = [style_maps_runs(group.runs) for group in groups]
    # Answers about the same benchmark have the name of its protocol, which is "ground" too.
    prefix = "ground-maps" if "ground" in parts.prefixes else "ground"
    prefixes = _number_repeated([prefix] * len(groups), parts.prefixes)
    figures = [map_figures(*each) for each in zip(analyses, styles, prefixes, strict=True)]
    galleries = [make_galleries(group) for group in groups]
    shown = (item.case for own in galleries for gallery in own for item in gallery.items)
    case_pages = find_case_pages(shown, setup.pages, setup.directory)
    parts.pages[MAP_PAGE] = render_map_comparison(
        analyses, styles, figures, galleries, links=parts.map_links, case_pages=case_pages
    )
    parts.results += map_result_rows(analyses)
    parts.paper += [(f"Maps of {one.group.title or 'findings'}", map_paper_table(one)) for one in analyses]
    parts.tables |= maps_tables(analyses)
    parts.parquet[MAP_PARQUET] = long_maps_table(analyses)
    parts.figures |= {figure.name: figure for each in figures for figure in each.values()}


def _number_repeated(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Different names: those that come twice, or are taken, are numbered with numbers that give no other name."""
    alone = {name for name in names if names.count(name) == 1 and name not in taken}
    used = {*alone, *taken}
    numbered: list[str] = []
    for name in names:
        choices = (f"{name}-{number}" for number in count(1))
        numbered.append(name if name in alone else next(each for each in choices if each not in used))
        used.add(numbered[-1])
    return numbered


def _write(parts: _Parts, directory: Path) -> Report:
    """Write tables and figures, then the pages."""
    contents: dict[Path, bytes] = {
        directory / TABLES / f"{name}.csv": table.to_csv().encode() for name, table in parts.tables.items()
    }
    for name, figure in parts.figures.items():
        contents[directory / FIGURES / f"{name}.svg"] = figure.svg("light").encode()
        contents[directory / FIGURES / f"{name}.png"] = figure.png("light")
    contents |= {directory / name: text.encode() for name, text in parts.texts.items()}
    pages = {directory / name: html.encode() for name, html in parts.pages.items()}
    for name, table in parts.parquet.items():
        table.write_parquet(directory / name)
    for path, content in (contents | pages).items():
        write_bytes(path, content)
    return Report(
        directory=directory,
        pages=tuple(pages),
        tables={name: table.to_frame() for name, table in parts.tables.items()},
        figures=dict(parts.figures),
        files=(*contents, *(directory / name for name in parts.parquet), *pages),
        notices=tuple(parts.notices),
    )


def open_report(directory: Location) -> Report:
    """Open a report that `report` wrote, to compute with its tables.

    Args:
        directory: Directory of the report.

    Returns:
        The report, with its pages, tables and files. Figures are not drawn again: their files are among `files`.

    Raises:
        CarinaError: The directory holds no report, or a table of it cannot be read.

    Example:
        >>> compared = report(["runs/reader"], "report")
        >>> open_report("report").to_frame().equals(compared.to_frame())
        True
    """
    path = as_path(directory)
    results = path / RESULTS_PARQUET
    pages = tuple(page for name in (RUN_PAGE, MAP_PAGE) if (page := path / name).is_file())
    if not pages or not results.is_file():
        raise CarinaError(f"{path}: expected a report with {RESULTS_PARQUET}; write one with carina report")
    tables = {RESULTS: read_frame(results, "write the report again with carina report")}
    schemas = {tuple(table.names): table.to_frame().schema for table in _KINDS}
    for one in sorted((path / TABLES).glob("*.csv")):
        if one.stem != RESULTS:
            tables[one.stem] = read_csv_frame(one, "write the report again with carina report", schemas)
    beside = [*path.glob("*.parquet"), *(path / TABLES).glob("*"), *(path / FIGURES).glob("*")]
    return Report(
        directory=path, pages=pages, tables=tables, figures={}, files=(*sorted(beside), *pages), notices=()
    )


_KINDS: Final = (
    ReportTable(Estimate, ()),
    ReportTable(Difference, ()),
    ReportTable(MapEstimate, ()),
    ReportTable(SummaryRow, (), CSV_NAMES),
)
"""Tables of every kind, without rows."""
