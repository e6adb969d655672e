"""`carina demo`: every part of Carina on synthetic data."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json, progress


def register(app: typer.Typer) -> None:
    app.command(name="demo")(demo)


def demo(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory for data, runs and pages.")
    ] = Path("demo"),
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the start page in the web browser at the end.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the paths of everything as JSON.")] = False,
) -> None:
    """Make synthetic studies and three benchmarks from them, evaluate the built-in models, and write pages of it all.

    Needs no network, no GPU and no data. A second call keeps what the first one wrote.

    \b
    Examples:
      carina demo
      carina demo --out somewhere-else
      carina demo --open
    """
    from carina import tour

    made = tour.demo(out, progress=partial(progress, quiet=json))
    if json:
        print_json(
            {
                "start": made.html,
                "studies": made.studies,
                "percept": made.percept,
                "trek": made.trek,
                "ground": made.ground,
                "html": made.study_pages.html,
                "png": made.study_pages.png,
                "percept_html": made.percept_pages.html,
                "trek_html": made.trek_pages.html,
                "probes_html": made.ground_pages.html,
                "runs": made.runs,
                "maps": made.maps,
                "report": made.report,
                "ground_html": made.map_report,
            }
        )
    else:
        counts = made.counts
        typer.echo(f"{counts['studies']} synthetic studies: {made.studies}")
        typer.echo(f"{counts['cases']} cases with {counts['case_questions']} questions: {made.percept}")
        typer.echo(
            f"{counts['conversations']} conversations with {counts['conversation_questions']} questions: {made.trek}"
        )
        typer.echo(f"{counts['probes']} region probes: {made.ground}")
        typer.echo(f"{len(made.runs)} runs and {len(made.maps)} map runs, compared in {made.report.parent}")
        typer.echo(f"Start page: {made.html}")
    if open_:
        typer.launch(made.html.resolve().as_uri())
