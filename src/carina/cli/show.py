"""`carina show`: pages with pictures of studies and their truth."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.show import StudyPage
    from carina.studies import Studies


def register(app: typer.Typer) -> None:
    app.command(name="show", no_args_is_help=True)(show)


def show(
    studies: Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of a study set.")],
    study: Annotated[
        str | None, typer.Argument(metavar="ID", help="Id of one study; without it, a contact sheet.")
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the pages are written.")
    ] = Path("pages"),
    limit: Annotated[int, typer.Option(min=1, help="Studies on the contact sheet.")] = 24,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser when it is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Write pages that show studies and their truth.

    A study's page holds its images raw and marked, its report, and its truth in tables; a contact sheet shows
    many at a glance. The pages hold everything they need and open without a network.

    \b
    Examples:
      carina show my-studies                       contact sheet and pages of the first 24 studies, in pages/
      carina show my-studies -o sheet --limit 100
      carina show my-studies p000003-s1            one study
      carina show my-studies --open                and look at it
    """
    from carina.studies import open_studies

    if out.exists() and not out.is_dir():
        raise CarinaError(f"{out}: is a file, expected a directory for the pages")
    if (out / "studies.json").exists():
        raise CarinaError(f"{out}: is a study set; choose another directory for the pages")
    opened = open_studies(studies)
    page = _contact_sheet(opened, out, limit, json) if study is None else _study(opened, study, out, json)
    if open_:
        typer.launch(page.resolve().as_uri())


def _study(studies: "Studies", study_id: str, out: Path, json: bool) -> Path:
    from carina.show import study_page

    if study_id not in studies:
        raise _unknown(studies, study_id)
    page = study_page(studies, studies[study_id], out)
    if json:
        print_json(_paths(page))
    else:
        typer.echo(page.html)
        typer.echo(page.png)
    return page.html


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
        written = len(sheet.pages)
        typer.echo(f"{written} study page{'s' if written > 1 else ''} beside them", err=True)
    return sheet.html


def _paths(page: "StudyPage") -> dict[str, object]:
    return {"id": page.id, "html": page.html, "png": page.png}


def _unknown(studies: "Studies", study_id: str) -> CarinaError:
    ids = studies.ids()
    close = get_close_matches(study_id, ids, n=3)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif ids:
        hint = f"it holds {len(ids)} studies, the first is {ids[0]}"
    else:
        hint = "it is empty"
    return CarinaError(f"{studies.directory}: no study {study_id!r}; {hint}")
