"""`carina audit`: audit a benchmark, print a table of gates and write the page."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, print_table, progress

if TYPE_CHECKING:
    from carina.audits import AuditResult


def register(app: typer.Typer) -> None:
    app.command(name="audit", no_args_is_help=True)(audit)


def audit(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Directory to write the audit to; by default BENCH/audit."
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of the images, if not the one that the benchmark names."),
    ] = None,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="Open every image file and render some views.")
    ] = True,
    render: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of views to render as a test.")
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
        typer.Option(metavar="NAME", help="Gate to run; repeat for several. By default all that apply."),
    ] = None,
    warn_level: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="P", help="Probability of a chance result below which a gate warns."
        ),
    ] = 0.05,
    fail_level: Annotated[
        float,
        typer.Option(
            min=0, max=1, metavar="P", help="Probability of a chance result below which a gate fails."
        ),
    ] = 0.01,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 for a warning, too.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of processes; by default one per core, or one for a small benchmark."
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser when it is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Audit a benchmark: can it be passed without the images, and are its answer keys sound?

    Every case passes through every gate once. Gates for all protocols check: integrity of cases, margins of answer
    keys, positions of right answers, constant and text-only answers against chance, revealing names, duplicates,
    patient overlap between splits, image files, cases per stratum. Gates for percept measure the stored masks and
    points again; gates for trek examine what conversations reveal. Writes audit.html and audit.json, prints a table,
    and exits with code 1 if a gate fails.

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
        typer.echo(f"{summarize_audit(result.audit)}\n{result.page}", err=True)
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
                typer.echo(f"{gate.name}: {objection.id}: {objection.what}")
        if gate.name == STATISTICS and gate.rows:
            listed = [(row.name, _format_value(row.value), str(row.n), row.note) for row in gate.rows]
            print_table(("statistic", "value", "n", "for comparison"), listed)


def _format_value(value: float) -> str:
    return f"{value:.3f}" if abs(value) <= 1 else f"{value:.1f}"
