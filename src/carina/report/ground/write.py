"""From explain runs to `ground.html`, with its tables and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from carina.cases import Benchmark, open_benchmark
from carina.files import write_bytes
from carina.report.draw import captioned, png_bytes, svg
from carina.report.exam import Exam
from carina.report.ground.analysis import analyse, probings
from carina.report.ground.bench import benchmark_of
from carina.report.ground.gallery import galleries
from carina.report.ground.page.charts import charts
from carina.report.ground.page.render import render
from carina.report.ground.page.styles import styles
from carina.report.ground.read import MapsRun, read_maps_runs
from carina.report.ground.tables import write_tables

HTML: Final = "ground.html"
FIGURES: Final = "figures"


@dataclass(frozen=True)
class GroundPaths:
    """What was written."""

    html: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]


def write_ground(
    runs: Sequence[Path],
    out: Path,
    *,
    benchmarks: Sequence[Path] = (),
    images: Path | None = None,
    exams: Sequence[Exam] = (),
    progress: Callable[[], None] = lambda: None,
) -> GroundPaths:
    """Compare explain runs: `ground.html`, `tables/ground-*.csv`, `ground.parquet`, and `figures/ground-*`.

    `exams` are what chat models were asked about the same studies.
    Everything is computed before anything is written, and the page comes last.
    """
    read = read_maps_runs(runs)
    named = [*(open_benchmark(path, images) for path in benchmarks), *(exam.bench for exam in exams)]
    found = probings(read, _benches(read, named, images))
    analyses = [analyse(one, exams, progress) for one in found]
    series = [styles(one.runs) for one in found]
    prefixes = ["ground" if len(found) == 1 else f"ground-{place + 1}" for place in range(len(found))]
    drawn = [
        charts(told, style, prefix) for told, style, prefix in zip(analyses, series, prefixes, strict=True)
    ]
    page = render(analyses, series, drawn, [galleries(one) for one in found])
    tables = write_tables(analyses, out)
    figures = []
    for drawing in (captioned(drawing) for part in drawn for drawing in part.values()):
        for ending, content in ((".svg", svg(drawing, alone=True).encode()), (".png", png_bytes(drawing))):
            figures.append(out / FIGURES / f"{drawing.name}{ending}")
            write_bytes(figures[-1], content)
    write_bytes(out / HTML, page.encode())
    return GroundPaths(out / HTML, tuple(tables), tuple(figures))


def _benches(
    runs: Sequence[MapsRun], named: Sequence[Benchmark], images: Path | None
) -> dict[str, Benchmark | None]:
    """By fingerprint."""
    made: dict[str, Benchmark | None] = {}
    for run in runs:
        if made.get(run.benchmark) is None:
            made[run.benchmark] = benchmark_of(run.benchmark, run.path, named, images)
    return made
