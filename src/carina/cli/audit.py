"""`carina audit`: what a benchmark would let a model score without looking, and what in it is wrong."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carina.cli.console import print_json, print_table, progress
from carina.errors import BenchmarkError, CarinaError

if TYPE_CHECKING:
    from carina.cases import Benchmark
    from carina.cases.audit import Audit, Gate, Thresholds, Work
    from carina.percept.rules import Rules
    from carina.trek.audit import Limits

_LARGE: Final = 0.05
"""Share by which trek's answers may be off chance: its sets are so large that any difference is sure."""
_KEPT: Final = 1500
"""Questions of each of trek's many tasks that text is learned from."""
_FEW: Final = 20_000
"""Questions that one process has looked at before another one has started."""


def register(app: typer.Typer) -> None:
    app.command(name="audit", no_args_is_help=True)(audit)


def audit(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where the page is written; without it, in BENCH/audit."
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the benchmark says."),
    ] = None,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="Also open every image file and draw some views.")
    ] = True,
    render: Annotated[int, typer.Option(min=0, metavar="N", help="Views that are drawn as a trial.")] = 300,
    limits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML with limits of trek's gates: `majority: 0.6`, one a line."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one a core, or one for a small set.")
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser when it is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Audit a benchmark: can it be answered without looking, and are its keys sound?

    Every case passes every gate once: soundness, key margins, balance of answer positions, constant and
    text-only answers against chance, telling names, duplicates, splits, images and views, quotas; for percept also
    contours, points, options, attributes and rules of thumb, measured anew from the stored masks; for trek balance by
    target, what the conversation gives away, stages, images, order, time, wording, templates and support, and the
    statistics of the set. Writes audit.html and audit.json, prints a table, and exits with 1 if a gate fails.

    \b
    Examples:
      carina audit my-benchmark
      carina audit my-benchmark --no-files          without opening images
      carina audit my-benchmark -o audits/today --open
      carina audit my-conversations --limits limits.yaml
      carina audit my-benchmark --json
    """
    import msgspec

    from carina.cases import open_benchmark
    from carina.cases.audit import Thresholds, audit_shared
    from carina.show.audit import summary, write_audit

    opened = open_benchmark(bench, images)
    target = out or opened.directory / "audit"
    if target.exists() and not target.is_dir():
        raise CarinaError(f"{target}: is a file, expected a directory for the page")
    thresholds = Thresholds(render=render)
    if set(opened.manifest.counts.protocols) == {"trek"}:
        thresholds = msgspec.structs.replace(thresholds, slack=_LARGE, most_cases=_KEPT)
    begin = partial(_work, bench, images, thresholds, files=files, limits=_limits(opened, limits))
    cores = 1 if opened.manifest.counts.steps < _FEW else os.cpu_count() or 1
    with progress("Audit", len(opened), quiet=json) as advance:
        result = audit_shared(
            begin, workers=workers or cores, benchmark=opened.manifest.fingerprint, progress=advance
        )
    written = write_audit(result, target, title=opened.directory.resolve().name)
    if json:
        print_json({"html": written.html, "json": written.json, "audit": result})
    else:
        _print(result)
        typer.echo(f"{summary(result)}\n{written.html}", err=True)
    if open_:
        typer.launch(written.html.resolve().as_uri())
    if result.status == "fail" or (strict and result.status == "warn"):
        raise typer.Exit(1)


def _work(
    bench: Path, images: Path | None, thresholds: "Thresholds", *, files: bool, limits: "Limits | None"
) -> "Work":
    """The cases and fresh gates, in whichever process."""
    from carina.cases import open_benchmark
    from carina.cases.audit import Work

    opened = open_benchmark(bench, images)
    return Work(opened, _gates(opened, thresholds, files=files, limits=limits))


def _gates(
    bench: "Benchmark", thresholds: "Thresholds", *, files: bool, limits: "Limits | None"
) -> "list[Gate]":
    """The gates of every protocol, and those of the protocols that the benchmark holds."""
    from carina.cases.audit import common_gates, left_out

    options = bench.manifest.options
    per_cell = options.get("per_cell")
    gates = common_gates(
        thresholds,
        images=bench if files else None,
        cases=len(bench),
        per_cell=per_cell if isinstance(per_cell, int) else None,
        cells=_cells(options),
        skipped=left_out(bench.directory),
    )
    if "percept" in bench.manifest.counts.protocols:
        from carina.percept.audit import percept_gates

        gates += percept_gates(thresholds, rules=_rules(bench))
    if "trek" in bench.manifest.counts.protocols:
        from carina.trek.audit import trek_gates

        gates += trek_gates(thresholds, limits=limits)
    return gates


def _limits(bench: "Benchmark", path: Path | None) -> "Limits | None":
    """trek's limits: the defaults, and what a file sets anew; None where there is no file."""
    if path is None:
        return None
    if "trek" not in bench.manifest.counts.protocols:
        raise CarinaError(f"{bench.directory}: holds no trek cases, so --limits has nothing to set")
    import msgspec
    import yaml

    from carina.trek.audit import Limits

    try:
        stated = yaml.safe_load(path.read_text(encoding="utf-8"))
        return msgspec.convert(stated or {}, Limits)
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CarinaError(f"{path}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise CarinaError(f"{path}: not limits of trek's gates: {error}") from error


def _cells(options: "dict[str, Any]") -> tuple[str, ...]:
    """The cells that a percept build set out to fill; none for other benchmarks."""
    if options.get("protocol") != "percept" or not isinstance(options.get("targets"), list):
        return ()
    return tuple(f"{target}/{path}" for target in options["targets"] for path in ("LF", "RF", "RR"))


def _rules(bench: "Benchmark") -> "Rules":
    """The acceptance rules that the benchmark says it was built by."""
    import msgspec

    from carina.percept.rules import Rules

    stated = bench.manifest.options.get("rules", {})
    if isinstance(stated, dict):
        # Another version's builder may have had rules that no case can break.
        stated = {name: value for name, value in stated.items() if name in Rules.__struct_fields__}
    try:
        return msgspec.convert(stated, Rules)
    except msgspec.ValidationError as error:
        raise BenchmarkError(
            f"{bench.directory}: options.rules of the manifest are not percept's: {error}"
        ) from error


def _print(result: "Audit") -> None:
    from carina.show.audit import MARKS, rate

    rows = [
        (
            f"{MARKS[gate.status]} {gate.status}",
            gate.name,
            f"{gate.count} of {gate.n}",
            rate(gate),
            gate.meaning,
        )
        for gate in result.gates
    ]
    print_table(("status", "gate", "objections", "rate", "meaning"), rows)
    for gate in result.gates:
        if gate.status in ("fail", "warn"):
            for found in gate.worst[:3]:
                typer.echo(f"{gate.name}: {found.id}: {found.what}")
        if gate.name == "statistics" and gate.rows:
            listed = [(row.name, _figure(row.value), str(row.n), row.note) for row in gate.rows]
            print_table(("statistic", "value", "of", "beside it"), listed)


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) <= 1 else f"{value:.1f}"
