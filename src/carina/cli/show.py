"""`carina show`: write pages of studies with their findings, or of cases with their answer keys."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, progress
from carina.cli.shared_options import ImagesOption, JsonOption, OpenOption
from carina.store.counts import format_count

if TYPE_CHECKING:
    from carina.pages import Page


def register(app: typer.Typer) -> None:
    app.command(name="show", cls=Command, no_args_is_help=True)(show)


def show(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Directory of a study set or of a benchmark, or a directory that holds some."
        ),
    ],
    id_: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Id of one study or case. Without it, an index and the first pages are written.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write the pages to.")
    ] = Path("pages"),
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Write pages of at most N studies or cases.")
    ] = 24,
    images: ImagesOption = None,
    open_: OpenOption = False,
    json: JsonOption = False,
) -> None:
    """Write pages that show studies, cases or a directory.

    The page of a study has its images with and without outlines, its report, and its findings in tables. The page of a
    case has every step: views, question, options with the right ones marked, and the facts that the answer key rests
    on. "Hide answers" turns it into a test for the reader. Each page is also written as a PNG image. Pages are
    self-contained and open offline. Where the file of a study's image is missing, an empty frame stands in its place.
    For a directory that holds study sets, benchmarks, audits, runs and reports, one start page links all of them;
    sets without pages get some.

    \b
    Examples:
      carina show my-studies                       contact sheet and pages of the first 24 studies, in pages/
      carina show my-studies p000003-s1            one study
      carina show my-bench --limit 100 -o cases    index and pages of the first 100 cases
      carina show my-bench c-0f3a9be21c7d4e55      one case
      carina show my-bench --images ~/images       a benchmark whose images are elsewhere
      carina show my-bench --open                  open the index in the browser
      carina show project -o project               start page project/index.html for everything in project
    """
    from carina import pages

    written = pages.show(
        path, out, id=id_, limit=limit, images=images, progress=partial(progress, quiet=json)
    )
    if json and id_ is not None:
        print_json(_paths(written.pages[0]))
    elif json:
        sheet = {} if written.png is None else {"png": written.png}
        print_json(
            {
                "html": written.html,
                **sheet,
                "pages": [_paths(page) for page in written.pages],
                "missing_images": written.missing_images,
            }
        )
    else:
        print_line(written.html)
        if written.png is not None:
            print_line(written.png)
        if written.noun == "set":
            print_line(
                f"{format_count(written.total, 'study set or benchmark', 'study sets and benchmarks')}.",
                err=True,
            )
        elif id_ is None:
            plural = "studies" if written.noun == "study" else "cases"
            total = format_count(written.total, written.noun, plural)
            print_line(f"Wrote pages of {len(written.pages)} of {total}.", err=True)
        if written.missing_images:
            missing = format_count(written.missing_images, "image file")
            print_line(f"Missing: {missing}. The pages show an empty frame for each.", err=True)
    if open_:
        typer.launch(written.path.resolve().as_uri())


def _paths(page: "Page") -> dict[str, object]:
    return {"id": page.id, "html": page.html, "png": page.png}
