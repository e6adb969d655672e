"""`carina check`: is a study set whole, and is it what its manifest says?"""

from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json


def register(app: typer.Typer) -> None:
    app.command(name="check", no_args_is_help=True)(check)


def check(
    studies: Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of a study set.")],
    *,
    images: Annotated[
        bool, typer.Option("--images/--no-images", help="Also open every image and compare its checksum.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print what is wrong as JSON.")] = False,
) -> None:
    """Check a study set: every part, row and image.

    Prints one line for each thing that is wrong, and exits with 1 if there is any.

    \b
    Examples:
      carina check my-studies
      carina check my-studies --no-images      quick, for a set with many images
      carina check my-studies --json
    """
    from carina.studies import open_studies

    opened = open_studies(studies)
    problems = []
    for problem in opened.check(images=images):
        problems.append(problem)
        if not json:
            typer.echo(problem.message)
    if json:
        print_json({"studies": len(opened), "problems": [vars(problem) for problem in problems]})
    elif not problems:
        typer.echo(f"{len(opened)} studies: nothing wrong", err=True)
    if problems:
        raise typer.Exit(1)
