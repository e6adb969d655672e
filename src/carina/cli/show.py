"""`carina show`: pages with pictures of studies and their truth, or of cases and their keys."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.cases import Benchmark
    from carina.show import CasePage, StudyPage
    from carina.studies import Studies


def register(app: typer.Typer) -> None:
    app.command(name="show", no_args_is_help=True)(show)


def show(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Directory of a study set or of a benchmark.")],
    id_: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of one study or case; without it, many at a glance."),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the pages are written.")
    ] = Path("pages"),
    limit: Annotated[int, typer.Option(min=1, help="Studies or cases at a glance.")] = 24,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where a benchmark's images lie, if not where it says."),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser when it is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Write pages that show studies and their truth, or cases and their keys.

    A study's page holds its images raw and marked, its report, and its truth in tables. A case's page holds the whole
    examination: views, questions, options with the key marked, and what the key rests on; "Hide keys" turns it into
    an examination of its reader. Without an id, many are shown at a glance. Each has a picture (PNG) beside its page.
    The pages hold everything they need and open without a network.

    \b
    Examples:
      carina show my-studies                       contact sheet and pages of the first 24 studies, in pages/
      carina show my-studies p000003-s1            one study
      carina show my-bench --limit 100 -o cases    index and pages of the first 100 cases
      carina show my-bench c-0f3a9be21c7d4e55      one case
      carina show my-bench --images ~/films        a benchmark whose images lie elsewhere
      carina show my-bench --open                  and look at it
    """
    from carina.store import what_is

    if out.exists() and not out.is_dir():
        raise CarinaError(f"{out}: is a file, expected a directory for the pages")
    there = what_is(out)
    if there is not None:
        called = {"studies": "study set", "maps": "set of localisation maps"}.get(there, there)
        raise CarinaError(f"{out}: is a {called}; choose another directory for the pages")
    match what_is(path):
        case "benchmark":
            page = _show_benchmark(path, id_, out, images, limit=limit, json=json)
        case "studies":
            page = _show_studies(path, id_, out, images, limit=limit, json=json)
        case "maps":
            raise CarinaError(f"{path}: holds localisation maps; carina report shows them")
        case None:
            raise CarinaError(f"{path}: neither a study set (studies.json) nor a benchmark (bench.json)")
    if open_:
        typer.launch(page.resolve().as_uri())


def _show_benchmark(
    path: Path, case_id: str | None, out: Path, images: Path | None, *, limit: int, json: bool
) -> Path:
    from carina.cases import open_benchmark

    if images is not None and not images.is_dir():
        raise CarinaError(f"{images}: no such directory, expected the one that the benchmark's images lie in")
    cases = open_benchmark(path, images)
    return _index(cases, out, limit, json) if case_id is None else _case(cases, case_id, out, json)


def _show_studies(
    path: Path, study_id: str | None, out: Path, images: Path | None, *, limit: int, json: bool
) -> Path:
    from carina.studies import open_studies

    studies = open_studies(path)
    if images is not None:
        raise CarinaError(f"--images: is for benchmarks, and {path} is a study set")
    return (
        _contact_sheet(studies, out, limit, json)
        if study_id is None
        else _study(studies, study_id, out, json)
    )


def _case(cases: "Benchmark", case_id: str, out: Path, json: bool) -> Path:
    from carina.show import case_page

    if case_id not in cases:
        raise CarinaError(
            f"{cases.directory}: no case {case_id!r}; {_nearest(case_id, cases.ids(), 'cases')}"
        )
    return _tell_page(case_page(cases, cases[case_id], out), json)


def _index(cases: "Benchmark", out: Path, limit: int, json: bool) -> Path:
    from carina.show import bench_index

    with progress("Pages", min(limit, len(cases)), quiet=json) as advance:
        index = bench_index(
            cases, out, limit=limit, title=cases.directory.resolve().name, on_page=lambda _: advance()
        )
    if json:
        print_json({"html": index.html, "pages": [_paths(page) for page in index.pages]})
    else:
        typer.echo(index.html)
        _tell_number(len(index.pages), "case", "it")
    return index.html


def _study(studies: "Studies", study_id: str, out: Path, json: bool) -> Path:
    from carina.show import study_page

    if study_id not in studies:
        hint = _nearest(study_id, studies.ids(), "studies")
        raise CarinaError(f"{studies.directory}: no study {study_id!r}; {hint}")
    return _tell_page(study_page(studies, studies[study_id], out), json)


def _contact_sheet(studies: "Studies", out: Path, limit: int, json: bool) -> Path:
    from carina.show import contact_sheet

    with progress("Pages", min(limit, len(studies)), quiet=json) as advance:
        sheet = contact_sheet(
            studies,
            out,
            limit=limit,
            title=studies.directory.resolve().name,
            on_page=lambda _: advance(),
        )
    if json:
        pages = [_paths(page) for page in sheet.pages]
        print_json({"html": sheet.html, "png": sheet.png, "pages": pages})
    else:
        typer.echo(sheet.html)
        typer.echo(sheet.png)
        _tell_number(len(sheet.pages), "study", "them")
    return sheet.html


def _tell_page(page: "StudyPage | CasePage", json: bool) -> Path:
    if json:
        print_json(_paths(page))
    else:
        typer.echo(page.html)
        typer.echo(page.png)
    return page.html


def _tell_number(written: int, what: str, beside: str) -> None:
    typer.echo(f"{written} {what} page{'s' if written != 1 else ''} beside {beside}", err=True)


def _paths(page: "StudyPage | CasePage") -> dict[str, object]:
    return {"id": page.id, "html": page.html, "png": page.png}


def _nearest(wrong: str, ids: Sequence[str], what: str) -> str:
    close = get_close_matches(wrong, ids, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"it holds {len(ids)} {what}, the first is {ids[0]}" if ids else "it is empty"
