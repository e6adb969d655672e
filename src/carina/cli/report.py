"""`carina report`: compare runs in one page with tables and figures."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, progress
from carina.cli.shared_options import ImagesOption, JsonOption, OpenOption
from carina.store.counts import format_count


def register(app: typer.Typer) -> None:
    app.command(name="report", cls=Command, no_args_is_help=True)(report)


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Runs of `carina run` and `carina explain`, or directories that hold such runs.",
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write the report to.")
    ],
    cases: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of cases in the case browser of the page.")
    ] = 60,
    bench: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="BENCH",
            help="Directory of a benchmark that has moved since its runs; repeat for several.",
        ),
    ] = None,
    images: ImagesOption = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of model prices, in the layout of the one that carina run --estimate uses.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name of a run on the pages; repeat for all runs in their order, or give RUN=NAME for some.",
            show_default="the model",
        ),
    ] = None,
    pages: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Directory of pages of cases that carina show wrote, to link to; repeat for several.",
        ),
    ] = None,
    table: Annotated[
        Literal["latex", "markdown"] | None,
        typer.Option(help="Write the headline as a table for a paper, too: tables/headline.tex or .md."),
    ] = None,
    open_: OpenOption = False,
    json: JsonOption = False,
) -> None:
    """Compare runs, as a page with tables and charts.

    The page shows, with intervals: accuracy by stage, how far cases stay right (reach), the cost of earlier errors
    (propagation), errors and cost; and it has a case browser. Writes report.html, which is self-contained and opens
    offline; results.parquet with the headline as one tidy table; tables/*.csv and tables.parquet with every number;
    and figures/ with the charts as SVG and PNG. Include runs of blind baselines (builtin/majority, or the same model
    with --blind): a model that is not above them has not shown that it looks at the images. Two runs of a model, with
    --history own and gold, show the cost of its own errors. Runs of carina explain are compared in ground.html: maps
    beside controls, recognition, and the answers about the same studies.

    \b
    Examples:
      carina report runs/gpt runs/majority -o report
      carina report runs -o report --cases 200 --open                 every run in a directory
      carina report runs/* -o report --bench ~/benchmarks/percept     a benchmark that was moved
      carina report maps/* runs/gpt -o report                         maps together with answers
      carina report runs/a runs/b -o report --label GPT --label Ours --table latex
    """
    from carina.pages.report import report as write_report

    written = write_report(
        runs,
        out,
        cases=cases,
        benchmarks=bench or (),
        images=images,
        prices=prices,
        labels=label or (),
        pages=pages or (),
        table=table,
        progress=partial(progress, quiet=json),
    )
    if json:
        print_json(
            {
                "html": written.pages[0],
                "ground": written.map_page,
                "tables": [
                    path for path in written.files if path.suffix in (".csv", ".parquet", ".tex", ".md")
                ],
                "figures": [path for path in written.files if path.suffix in (".svg", ".png")],
                "notices": written.notices,
            }
        )
    else:
        for page in written.pages:
            print_line(page)
        print_line(
            f"{format_count(len(written.tables), 'table')} and {format_count(len(written.figures), 'figure')} "
            "beside it",
            err=True,
        )
        for notice in written.notices:
            print_line(notice, err=True)
    if open_:
        written.open()
