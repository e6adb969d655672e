"""`carina demo`: every part of Carina on synthetic data."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, progress
from carina.cli.shared_options import JsonOption, OpenOption, SeedOption, WorkersOption
from carina.store.counts import format_count


def register(app: typer.Typer) -> None:
    app.command(name="demo", cls=Command)(demo)


def demo(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write data, runs and pages to.")
    ] = Path("demo"),
    studies: Annotated[int, typer.Option(min=1, metavar="N", help="Number of synthetic studies.")] = 200,
    size: Annotated[int, typer.Option(metavar="PIXELS", help="Side of the square images.")] = 512,
    per_cell: Annotated[
        int, typer.Option(min=1, metavar="N", help="Percept cases per cell (one lesion on one path).")
    ] = 2,
    seed: SeedOption = 251,
    workers: WorkersOption = None,
    open_: OpenOption = False,
    json: JsonOption = False,
) -> None:
    """Try every part of Carina on synthetic data.

    Makes synthetic studies and three benchmarks from them, evaluates the built-in models, and writes pages that show
    everything. Needs no network, no GPU and no data. A second call keeps what the first one wrote.

    \b
    Examples:
      carina demo
      carina demo --studies 24 --size 128 --per-cell 1 -o small-demo
      carina demo --open
    """
    from carina import tour

    made = tour.demo(
        out,
        studies=studies,
        seed=seed,
        size=size,
        per_cell=per_cell,
        workers=workers,
        progress=partial(progress, quiet=json),
    )
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
        print_line(
            f"{format_count(counts['studies'], 'synthetic study', 'synthetic studies')}: {made.studies}"
        )
        print_line(
            f"{format_count(counts['cases'], 'case')} with "
            f"{format_count(counts['case_questions'], 'question')}: {made.percept}"
        )
        print_line(
            f"{format_count(counts['conversations'], 'conversation')} with "
            f"{format_count(counts['conversation_questions'], 'question')}: {made.trek}"
        )
        print_line(f"{format_count(counts['probes'], 'region probe')}: {made.ground}")
        print_line(f"{len(made.runs)} runs and {len(made.maps)} map runs, compared in {made.report.parent}")
        print_line(f"Start page: {made.html}")
    if open_:
        typer.launch(made.html.resolve().as_uri())
