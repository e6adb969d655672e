"""`carina audit`: audit a benchmark, print a table of gates and write the page."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, print_table, progress
from carina.cli.shared_options import (
    BenchArgument,
    FilesOption,
    ImagesOption,
    JsonOption,
    OpenOption,
    WorkersOption,
)

if TYPE_CHECKING:
    from carina.audits import AuditResult


def register(app: typer.Typer) -> None:
    app.command(name="audit", cls=Command, no_args_is_help=True)(audit)


def audit(
    bench: BenchArgument,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Directory to write the audit to.",
            show_default="BENCH/audit",
        ),
    ] = None,
    images: ImagesOption = None,
    files: FilesOption = True,
    render: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Number of views (images as a model gets them) to render as a test; none with --no-files.",
        ),
    ] = 300,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file that sets limits of gates, such as `answer-balance: {majority: 0.6}`.",
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Gate to run; repeat for several.", show_default="all that apply"),
    ] = None,
    warn_level: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="A gate warns if chance alone would give such a result with a probability below P.",
        ),
    ] = 0.05,
    fail_level: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="A gate fails if chance alone would give such a result with a probability below P.",
        ),
    ] = 0.01,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 also for a warning.")] = False,
    workers: WorkersOption = None,
    open_: OpenOption = False,
    json: JsonOption = False,
) -> None:
    """Test whether a benchmark is sound.

    Can it be passed without the images, and are its answer keys right? A gate is one check of the whole benchmark.
    Gates for all protocols check: integrity of cases, margins of answer keys, positions of right answers, constant and
    text-only answers against chance, revealing names, duplicates, patient overlap between splits, image files, cases
    per stratum. Gates for percept measure the stored masks and points again; gates for trek examine what conversations
    reveal. Writes audit.html and audit.json, prints a table, and exits with code 1 if a gate fails.

    \b
    Examples:
      carina audit my-benchmark
      carina audit my-benchmark --no-files          without opening images
      carina audit my-benchmark -o audits/today --open
      carina audit my-conversations --limits limits.yaml
      carina audit my-benchmark --gate answer-position --gate text-only-baseline
      carina audit my-benchmark --json
    """
    from carina.pages.audit import summarize_audit
    from carina.pages.run_audit import audit as audit_benchmark

    result = audit_benchmark(
        bench,
        out,
        images=images,
        files=files,
        render=render,
        limits=limits,
        gates=gate,
        warn_level=warn_level,
        fail_level=fail_level,
        workers=workers,
        progress=partial(progress, quiet=json),
    )
    if json:
        print_json({"html": result.page, "json": result.path / "audit.json", "audit": result.audit})
    else:
        _print(result)
        print_line(f"{summarize_audit(result.audit)}\n{result.page}", err=True)
    if open_:
        typer.launch(result.page.resolve().as_uri())
    if not result.passed or (strict and result.status == "warn"):
        raise typer.Exit(1)


def _print(result: "AuditResult") -> None:
    from carina.audits.trek.conversation_statistics import NAME as STATISTICS
    from carina.pages.audit import STATUS_SIGNS, format_rate

    rows = [
        (
            f"{STATUS_SIGNS[gate.status]} {gate.status}",
            gate.name,
            f"{gate.count} of {gate.n}",
            format_rate(gate),
            gate.meaning,
        )
        for gate in result.gates
    ]
    print_table(("status", "gate", "objections", "rate", "meaning"), rows)
    for gate in result.gates:
        if gate.status in ("fail", "warn"):
            for objection in gate.worst[:3]:
                print_line(f"{gate.name}: {objection.id}: {objection.what}")
        if gate.name == STATISTICS and gate.rows:
            listed = [(row.name, _format_value(row.value), str(row.n), row.note) for row in gate.rows]
            print_table(("statistic", "value", "n", "for comparison"), listed)


def _format_value(value: float) -> str:
    return f"{value:.3f}" if abs(value) <= 1 else f"{value:.1f}"
