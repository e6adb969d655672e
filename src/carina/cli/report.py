"""`carina report`: runs side by side, as one page with tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from carina.cli.console import print_json, progress


def register(app: typer.Typer) -> None:
    app.command(name="report", no_args_is_help=True)(report)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Directories of finished runs, and of explained maps."),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the report is written.")],
    cases: Annotated[
        int, typer.Option(min=0, metavar="N", help="Cases that can be looked at in the page.")
    ] = 60,
    bench: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="BENCH",
            help="Where a run's benchmark lies, if not where the run says; repeat for several.",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the benchmark says."),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Prices of models, in the layout of those that --estimate goes by."
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser when it is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Compare runs: accuracy by stage, reach, propagation, errors and cost, with intervals, and the cases behind them.

    Writes report.html, which holds everything it needs and opens without a network; tables/*.csv and tables.parquet
    with every figure; and figures/ with the charts as SVG and PNG. Give the runs of blind baselines too
    (builtin/majority, or the same model with --blind): a model that is not above them has not shown that it looks.
    Two runs of a model, --history own and gold, show what its own errors cost it. What carina explain has written is
    compared in ground.html: maps beside controls, recognition and the answers of the same studies.

    \b
    Examples:
      carina report runs/gpt runs/majority -o report
      carina report runs -o report --cases 200 --open                 every run in a directory
      carina report runs/* -o report --bench ~/benchmarks/percept     a benchmark that has moved
      carina report maps/* runs/gpt -o report                         maps, and who points right and answers right
    """
    from carina.report import runs_in, write_report

    given = runs_in(runs)
    with progress("Runs", len(given), quiet=json) as advance:
        written = write_report(
            given, out, cases=cases, benchmarks=bench or [], images=images, prices=prices, progress=advance
        )
    if json:
        print_json(
            {
                "html": written.html,
                "ground": written.ground,
                "tables": written.tables,
                "figures": written.figures,
            }
        )
    else:
        typer.echo(written.html)
        if written.ground is not None and written.ground != written.html:
            typer.echo(written.ground)
        typer.echo(written.counted, err=True)
    if open_:
        typer.launch(written.html.resolve().as_uri())
