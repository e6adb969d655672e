"""`carina demo`: the whole story on phantom data, with nothing else needed."""

import os
from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json, progress

STUDIES = 24
SEED = 5  # all eleven findings are among its first 24 studies


def register(app: typer.Typer) -> None:
    app.command(name="demo")(demo)


def demo(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where everything is written.")
    ] = Path("demo"),
    json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Make phantom studies and a contact sheet that shows them.

    Needs no network, no GPU and no data. Run again, it keeps what is there.

    \b
    Examples:
      carina demo
      carina demo --out somewhere-else
    """
    from carina.phantom import write_phantom
    from carina.show import contact_sheet
    from carina.studies import open_studies

    with progress("Studies", STUDIES, quiet=json) as advance:
        write_phantom(out / "studies", n=STUDIES, seed=SEED, workers=os.cpu_count() or 1, progress=advance)
    studies = open_studies(out / "studies")
    with progress("Pages", STUDIES, quiet=json) as advance:
        sheet = contact_sheet(
            studies, out / "pages", limit=STUDIES, title="Carina demo", on_page=lambda _: advance(1)
        )
    if json:
        print_json({"studies": out / "studies", "html": sheet.html, "png": sheet.png})
        return
    typer.echo(f"{STUDIES} phantom studies: {out / 'studies'}")
    typer.echo(f"Contact sheet, picture: {sheet.png}")
    typer.echo(f"Look at this page:      {sheet.html}")
