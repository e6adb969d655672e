"""One start page for a directory: the study sets, benchmarks, audits, runs and reports that it holds, with their pages.

`show` writes it for a directory that is no set itself, and the demo ends in it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from carina.cases import Benchmark, open_benchmark
from carina.cases.protocol import find_protocol
from carina.pages.audit import HTML as AUDIT_PAGE
from carina.pages.output import claim_pages, is_page, lock_pages
from carina.pages.report import FIGURES, MAP_PAGE, RESULTS_PARQUET, RUN_PAGE, open_report
from carina.pages.report_links import relative_address
from carina.pages.run_audit import DIRECTORY as AUDIT
from carina.pages.start import Command, Link, RunEntry, Tile, preview_uri, render_start
from carina.pages.words import page_name
from carina.pages.write import CONTACT_SHEET, INDEX, LIMIT, Pages, write_case_pages, write_study_pages
from carina.runs import read_info
from carina.runs.analysis.read import model_name
from carina.store.counts import format_count
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.layout import what_is
from carina.store.names import safe_name
from carina.store.progress import Progress, no_progress
from carina.studies import Studies, open_studies

_TITLE: Final = "the start page"
LEVELS: Final = 3
"""Directories below the given one that are searched."""
PAGES: Final = "pages"
"""Folder of the pages that are written into the directory itself."""
_EXAMPLES: Final = 2
"""Pages that a tile names."""
_PREVIEW_WIDTH: Final = 960
"""Width in pixels of the part of a summary image that a preview shows."""
_CONTACT_SHEET_WIDTH: Final = 1320
"""The same of a contact sheet."""
_CHARTS: Final = {
    RUN_PAGE: ("percept-reach", "percept-headline", "trek-headline", "ground-headline"),
    MAP_PAGE: ("ground-maps-finding", "ground-finding", "ground-maps-headline", "ground-headline"),
}
"""Charts for the preview of a page of a report, the first that there is."""
_PROTOCOLS: Final = ("percept", "trek", "ground")
"""Protocols in the order in which their benchmarks are listed; others follow."""


@dataclass(frozen=True, kw_only=True)
class FolderContent:
    """What a directory holds."""

    studies: tuple[Path, ...]
    benchmarks: tuple[Path, ...]
    runs: tuple[Path, ...]
    maps: tuple[Path, ...]
    reports: tuple[Path, ...]
    pages: tuple[Path, ...]
    """Directories with an index of studies or cases."""

    @property
    def is_empty(self) -> bool:
        return not (self.studies or self.benchmarks or self.runs or self.maps or self.reports)


def find_content(folder: Path, levels: int = LEVELS) -> FolderContent:
    """Find the sets, runs, reports and pages in a directory and some levels below it, in order of their names."""
    found: dict[str, list[Path]] = {
        name: [] for name in ("studies", "benchmark", "run", "maps", "report", "pages")
    }
    for directory in _directories(folder, levels):
        kind = what_is(directory)
        if kind in found:
            found[kind].append(directory)
        elif _report_pages(directory):
            found["report"].append(directory)
        elif is_page(directory / INDEX):
            found["pages"].append(directory)
    names = ("studies", "benchmark", "run", "maps", "report", "pages")
    studies, benchmarks, runs, maps, reports, pages = (tuple(found[name]) for name in names)
    return FolderContent(
        studies=studies, benchmarks=benchmarks, runs=runs, maps=maps, reports=reports, pages=pages
    )


def _directories(folder: Path, levels: int) -> Iterator[Path]:
    """Directories below one, sorted; what lies within a set is part of it."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            path = folder / entry.name
            yield path
            if levels > 1 and what_is(path) is None:
                yield from _directories(path, levels - 1)


def _report_pages(directory: Path) -> list[Path]:
    return [directory / name for name in (RUN_PAGE, MAP_PAGE) if is_page(directory / name)]


def write_folder_page(
    folder: Path,
    out: Path,
    *,
    limit: int = LIMIT,
    images: Path | None = None,
    title: str | None = None,
    lead: str = "",
    commands: Sequence[Command] = (),
    progress: Progress = no_progress,
) -> Pages:
    """Write the start page of a directory, and pages of the sets that have none yet.

    Args:
        folder: The directory.
        out: Directory to write to; where it is `folder`, pages of sets go to `pages` within it.
        limit: Studies or cases of each set that get a page, where it has none.
        images: Directory of the images of the benchmarks, if they have moved.
        title: Heading; the name of the directory unless given.
        lead: A sentence or two below the heading; what the page links unless given.
        commands: What to try next; what the directory lacks unless given.
        progress: Progress display.

    Returns:
        The start page, and the pages of sets that were written.

    Raises:
        CarinaError: The directory holds nothing to show, or something of it cannot be read.
    """
    content = find_content(folder)
    if content.is_empty:
        raise CarinaError(
            f"{folder}: neither a study set (studies.json) nor a benchmark (bench.json), and no directory of such, of "
            "runs or of reports"
        )
    sets = _open_sets(content, images)
    base = out / PAGES if out.resolve() == folder.resolve() else out
    written: list[Pages] = []
    tiles = []
    for one in sets:
        shown = _find_pages(one, content.pages)
        if shown is None:
            target = base / safe_name(os.path.relpath(one.directory, folder).replace(os.sep, "-"))
            made = _write_pages(one, target, limit, progress)
            written.append(made)
            shown = target
        tiles.append(_set_tile(one, shown, out))
    tiles += [tile for report in content.reports for tile in _report_tiles(report, out)]
    reported = _reported(content.reports)
    runs = [
        *(_run_entry(run, out, is_reported=run.name in reported) for run in content.runs),
        *(_map_entry(run, out, is_reported=run.name in reported) for run in content.maps),
    ]
    name = folder.resolve().name
    html = render_start(
        tiles,
        title=title or name,
        lead=lead or "The study sets, benchmarks, runs and reports of this directory, and their pages.",
        runs=runs,
        commands=commands or _missing_steps(folder, content, reported),
    )
    index = out / INDEX
    with lock_pages(out, _TITLE, [INDEX]), claim_pages(out, _TITLE, {INDEX: INDEX}):
        write_bytes(index, html.encode())
    pages = tuple(page for one in written for page in one.pages)
    missing = sum(one.missing_images for one in written)
    return Pages(html=index, pages=pages, noun="set", total=len(sets), missing_images=missing)


# ---- study sets and benchmarks ----


def _open_sets(content: FolderContent, images: Path | None) -> list[Studies | Benchmark]:
    benchmarks = [open_benchmark(path, images) for path in content.benchmarks]
    return [*map(open_studies, content.studies), *sorted(benchmarks, key=_place)]


def _place(bench: Benchmark) -> tuple[int, str]:
    protocols = list(bench.manifest.counts.protocols)
    known = [_PROTOCOLS.index(name) for name in protocols if name in _PROTOCOLS]
    return min(known, default=len(_PROTOCOLS)), str(bench.directory)


def _find_pages(opened: Studies | Benchmark, directories: Sequence[Path]) -> Path | None:
    """The directory that holds the page of the first study or case of a set."""
    names = [f"{page_name(name)}.html" for name in islice(opened.ids(), 1)]
    return next(
        (path for path in directories if names and all((path / name).is_file() for name in names)), None
    )


def _write_pages(opened: Studies | Benchmark, target: Path, limit: int, progress: Progress) -> Pages:
    title = opened.directory.resolve().name
    if isinstance(opened, Benchmark):
        return write_case_pages(opened, target, limit=limit, title=title, progress=progress)
    return write_study_pages(opened, target, limit=limit, title=title, progress=progress)


def _set_tile(opened: Studies | Benchmark, pages: Path, out: Path) -> Tile:
    name = opened.directory.resolve().name
    ids = [one for one in islice(opened.ids(), LIMIT) if (pages / f"{page_name(one)}.html").is_file()]
    more = [
        Link(text=one, href=relative_address(pages / f"{page_name(one)}.html", out))
        for one in ids[:_EXAMPLES]
    ]
    if isinstance(opened, Benchmark):
        audit = opened.directory / AUDIT / AUDIT_PAGE
        more += [Link(text="Audit", href=relative_address(audit, out))] if audit.is_file() else []
        counts = opened.manifest.counts
        protocols = [find_protocol(one) for one in counts.protocols]
        text = " ".join(
            f"{one.title}: {', '.join(stage.title.lower() for stage in one.stages)}."
            if one.stages
            else f"{one.title}."
            for one in protocols
        )
        count = f"{format_count(counts.cases, 'case')}, {format_count(counts.steps, 'question')}"
        preview = _longest_preview([pages / f"{page_name(one)}.png" for one in ids])
    else:
        text = "Images with outlined findings, devices and anatomy, the report, and every finding in a table."
        count = format_count(len(opened), "study", "studies")
        preview = preview_uri(pages / CONTACT_SHEET, width=_CONTACT_SHEET_WIDTH)
    link = relative_address(pages / INDEX, out)
    return Tile(title=name, count=count, text=text, link=link, more=tuple(more), preview=preview)


def _longest_preview(images: Sequence[Path]) -> str | None:
    """Preview of the page with the largest image, which has the most to show."""
    known = [path for path in images if path.is_file()]
    largest = max(known, key=lambda path: path.stat().st_size, default=None)
    return preview_uri(largest, width=_PREVIEW_WIDTH) if largest else None


# ---- reports and runs ----


def _report_tiles(directory: Path, out: Path) -> Iterator[Tile]:
    runs = _runs_of_report(directory)
    name = directory.resolve().name
    for page in _report_pages(directory):
        is_maps = page.name == MAP_PAGE
        charts = (directory / FIGURES / f"{chart}.png" for chart in _CHARTS[page.name])
        chart = next((path for path in charts if path.is_file()), None)
        yield Tile(
            title=f"{name}: localisation maps" if is_maps else f"{name}: answers of models",
            count=format_count(len({run for run, level in runs if (level == "maps") == is_maps}), "run"),
            text="Maps against the regions of the truth: hits, overlap, recognition, and controls that need no model."
            if is_maps
            else "Accuracy by stage with intervals, reach, first errors, the cost of own errors, and a case browser.",
            link=relative_address(page, out),
            preview=preview_uri(chart) if chart else None,
            is_chart=True,
        )


def _reported(reports: Sequence[Path]) -> set[str]:
    """Names of the directories of all runs that are in a report; two of one name are told apart by their parents."""
    return {run.rpartition("/")[2] for report in reports for run, _ in _runs_of_report(report)}


def _runs_of_report(report: Path) -> set[tuple[str, str]]:
    """Ids and levels of the runs of a report; none for one that an earlier version wrote without its tidy table."""
    if not (report / RESULTS_PARQUET).is_file():
        return set()
    return set(open_report(report).to_frame().select("run", "level").iter_rows())


def _run_entry(run: Path, out: Path, *, is_reported: bool) -> RunEntry:
    info = read_info(run)
    setting = f"{info.policy.history} history" + (", without images" if info.blind else "")
    return RunEntry(
        benchmark=Path(info.benchmark).name,
        model=model_name(info),
        setting=setting,
        directory=_shown(run, out),
        is_reported=is_reported,
    )


def _map_entry(run: Path, out: Path, *, is_reported: bool) -> RunEntry:
    from carina.explanations.maps import open_maps  # noqa: PLC0415 - imports the metrics of maps

    options = open_maps(run).manifest.options
    return RunEntry(
        benchmark="maps",
        model=str(options.get("model", "")),
        setting=str(options.get("method", "")),
        directory=_shown(run, out),
        is_reported=is_reported,
    )


def _shown(path: Path, out: Path) -> str:
    return Path(os.path.relpath(path.resolve(), out.resolve())).as_posix()


def _missing_steps(folder: Path, content: FolderContent, reported: set[str]) -> list[Command]:
    """Commands for what the directory does not hold yet."""
    commands = [
        Command(text=f"carina audit {bench}", purpose="Check the benchmark for balance, leaks and shortcuts.")
        for bench in content.benchmarks
        if not (bench / AUDIT / AUDIT_PAGE).is_file()
    ]
    left = [run for run in (*content.runs, *content.maps) if run.name not in reported]
    if left:
        runs = " ".join(dict.fromkeys(str(run.parent if run.parent != folder else run) for run in left))
        commands.append(
            Command(
                text=f"carina report {runs} -o {folder / 'report'}",
                purpose="Compare the runs that no report holds yet.",
            )
        )
    return commands
