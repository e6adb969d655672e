"""`carina check`: checks a study set or a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json
from carina.store.errors import CarinaError


def register(app: typer.Typer) -> None:
    app.command(name="check", no_args_is_help=True)(check)


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Directory of a study set or of a benchmark.")],
    *,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of the images, if not the one that the set states."),
    ] = None,
    no_images: Annotated[bool, typer.Option("--no-images", help="Do not open the image files.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the problems as JSON.")] = False,
) -> None:
    """Check every part, row and image of a study set or a benchmark.

    Prints one line a problem, and exits with 1 if there is any.

    \b
    Examples:
      carina check my-studies
      carina check my-studies --no-images      quick, for a set with many images
      carina check my-benchmark --images elsewhere/images --json
    """
    from carina.cases import check as check_set

    if no_images and images is not None:
        raise CarinaError(
            "--images names the directory of the images, --no-images opens none; give one of the two"
        )
    result = check_set(
        path,
        images=images,
        files=not no_images,
        on_problem=None if json else lambda problem: typer.echo(problem.message),
    )
    if json:
        record = {"studies": "study", "cases": "case"}[result.noun]
        problems = [{"message": each.message, record: each.record} for each in result.problems]
        print_json({result.noun: result.records, "problems": problems})
    elif result.is_sound:
        typer.echo(f"{result.records} {result.noun}: nothing wrong", err=True)
    if not result.is_sound:
        raise typer.Exit(1)
