"""`carina check`: is a study set or a benchmark whole, and is it what its manifest says?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.cases import Benchmark
    from carina.studies import Studies


def register(app: typer.Typer) -> None:
    app.command(name="check", no_args_is_help=True)(check)


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Directory of a study set or of a benchmark.")],
    *,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the set says."),
    ] = None,
    no_images: Annotated[
        bool, typer.Option("--no-images", help="Leave the image files alone; without it, each is opened.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what is wrong as JSON.")] = False,
) -> None:
    """Check a study set or a benchmark: every part, row and image.

    Prints one line for each thing that is wrong, and exits with 1 if there is any.

    \b
    Examples:
      carina check my-studies
      carina check my-studies --no-images      quick, for a set with many images
      carina check my-benchmark --images elsewhere/images --json
    """
    if no_images and images is not None:
        raise CarinaError("--images says where images lie, --no-images that none is opened: give one of them")
    opened, nouns = _opened(path, images)
    problems = []
    for problem in opened.check(images=not no_images):
        problems.append(problem)
        if not json:
            typer.echo(problem.message)
    if json:
        print_json({nouns: len(opened), "problems": [vars(problem) for problem in problems]})
    elif not problems:
        typer.echo(f"{len(opened)} {nouns}: nothing wrong", err=True)
    if problems:
        raise typer.Exit(1)


def _opened(path: Path, images: Path | None) -> "tuple[Studies | Benchmark, str]":
    """What lies there, and what it holds."""
    from carina.store import what_is

    match what_is(path):
        case "studies":
            from carina.studies import open_studies

            return open_studies(path, images), "studies"
        case "benchmark":
            from carina.cases import open_benchmark

            return open_benchmark(path, images), "cases"
    raise CarinaError(f"{path}: neither a study set (studies.json) nor a benchmark (bench.json)")
