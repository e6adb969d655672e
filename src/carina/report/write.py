"""`carina report`: from runs to a page, tables and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from carina.errors import CarinaError
from carina.files import write_bytes
from carina.report.analysis import analyse
from carina.report.draw import captioned, png_bytes, svg
from carina.report.exam import Exam, exams
from carina.report.ground import is_maps, write_ground
from carina.report.page import render
from carina.report.page.browser import browser
from carina.report.page.charts import charts
from carina.report.page.choice import chosen_cases
from carina.report.page.styles import styles
from carina.report.read import read_runs
from carina.report.tables import write_tables
from carina.run.prices import TABLE, read_prices

HTML: Final = "report.html"
FIGURES: Final = "figures"
CASES: Final = 60


@dataclass(frozen=True, kw_only=True)
class ReportPaths:
    """What was written."""

    html: Path
    """The page of answers; that of maps where there are only maps."""
    tables: tuple[Path, ...]
    """One CSV a table, and the Parquet file that holds them all."""
    figures: tuple[Path, ...]
    """Each as SVG and as PNG."""
    ground: Path | None = None
    """The page of maps, where explain runs were given."""

    @property
    def counted(self) -> str:
        """How many tables and figures there are, which is fewer than there are files."""
        tables = sum(path.suffix == ".csv" for path in self.tables)
        figures = len({path.stem for path in self.figures})
        return f"{tables} tables and {figures} figures beside it"


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    cases: int | None = None,
    benchmarks: Sequence[Path] = (),
    images: Path | None = None,
    prices: Path | None = None,
    progress: Callable[[], None] = lambda: None,
) -> ReportPaths:
    """Compare runs: `report.html`, `tables/*.csv`, `tables.parquet`, and `figures/*.svg` and `.png`.

    Explain runs among them are compared in `ground.html`, joined with the answers of the others.
    `cases` is how many the page's browser holds, 60 unless given; `progress` is told when a run is worked out.
    `prices` is a table in the layout of `carina/run/prices.yaml`, which is taken where none is given. Everything is
    computed before anything is written, and the page comes last.
    """
    if out.exists() and not out.is_dir():
        raise CarinaError(f"{out}: is a file, expected a directory for the report")
    maps = [path for path in runs if is_maps(path)]
    asked = [path for path in runs if path not in maps]
    found = exams(read_runs(asked), benchmarks=benchmarks, images=images) if asked or not maps else []
    most = CASES if cases is None else cases
    known = read_prices(prices or TABLE)
    analyses = [analyse(exam, known, progress) for exam in found]
    series = [styles(exam.runs) for exam in found]
    drawn = [
        charts(told, style, name) for told, style, name in zip(analyses, series, _names(found), strict=True)
    ]
    shown = browser(found, series, chosen_cases(found, most)) if found else {}
    page = render(analyses, series, drawn, shown) if found else ""
    ground = None
    if maps:
        ground = write_ground(maps, out, benchmarks=benchmarks, images=images, exams=found, progress=progress)
        if not found:
            return ReportPaths(
                html=ground.html, tables=ground.tables, figures=ground.figures, ground=ground.html
            )
    tables = write_tables(analyses, out)
    figures = []
    for drawing in (captioned(drawing) for part in drawn for drawing in part.values()):
        for ending, content in ((".svg", svg(drawing, alone=True).encode()), (".png", png_bytes(drawing))):
            figures.append(out / FIGURES / f"{drawing.name}{ending}")
            write_bytes(figures[-1], content)
    write_bytes(out / HTML, page.encode())
    if ground is None:
        return ReportPaths(html=out / HTML, tables=tuple(tables), figures=tuple(figures))
    return ReportPaths(
        html=out / HTML,
        tables=(*tables, *ground.tables),
        figures=(*figures, *ground.figures),
        ground=ground.html,
    )


def _names(found: Sequence[Exam]) -> list[str]:
    """A short name for each exam's files: its protocol, numbered where that comes twice."""
    protocols = [exam.protocol for exam in found]
    return [
        protocol if protocols.count(protocol) == 1 else f"{protocol}-{protocols[: place + 1].count(protocol)}"
        for place, protocol in enumerate(protocols)
    ]
