"""`carina demo`: the whole story on phantom data, with nothing else needed."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, progress

if TYPE_CHECKING:
    from carina.run import RunOptions
    from carina.studies import Studies

STUDIES = 200
SHOWN = 24
"""Studies with a page of their own; every percept case has one."""
READ = 12
"""Conversations that do."""
SEED = 251  # all eleven findings are among its first 24 studies
PER_CELL = 2
ASKED = 60
"""Conversations that models are examined in; percept cases all are."""
ANCHORED = "builtin/anchored"
PER_TARGET = 5
"""Probes of each finding that is there, and as many of its absence: the fewest that are compared by finding."""
DRAWS = 300
"""Draws of patients for an interval of a map's figures: enough to see how wide it is."""
EXPLAINED = (
    ("builtin/asymmetry", "asymmetry"),
    ("builtin/untrained", "similarity"),
    ("builtin/untrained", "occlusion"),
)


def register(app: typer.Typer) -> None:
    app.command(name="demo")(demo)


def demo(
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where everything is written.")
    ] = Path("demo"),
    json: Annotated[bool, typer.Option("--json", help="Print the paths as JSON.")] = False,
) -> None:
    """Make phantom studies, build examinations of lesions, reading conversations and probes of regions from them,
    examine the models that come with the package on all of them, and show it all.

    Needs no network, no GPU and no data. Run again, it keeps what is there.

    \b
    Examples:
      carina demo
      carina demo --out somewhere-else
    """
    from carina.cases import open_benchmark
    from carina.percept import LESIONS, BuildOptions, build_percept
    from carina.percept.select import wanted_examined
    from carina.phantom import write_phantom
    from carina.report import write_report
    from carina.show import bench_index, contact_sheet
    from carina.studies import open_studies
    from carina.trek import TrekOptions, build_trek

    workers = os.cpu_count() or 1
    with progress("Studies", STUDIES, quiet=json) as advance:
        write_phantom(out / "studies", n=STUDIES, seed=SEED, workers=workers, progress=advance)
    studies = open_studies(out / "studies")
    with progress("Pages of studies", SHOWN, quiet=json) as advance:
        sheet = contact_sheet(
            studies, out / "pages", limit=SHOWN, title="Carina demo", on_page=lambda _: advance(1)
        )
    with progress("Lesions examined", wanted_examined(PER_CELL) * len(LESIONS), quiet=json) as advance:
        options = BuildOptions(seed=SEED, per_cell=PER_CELL)
        built = build_percept(studies, out / "percept", options, workers=workers, progress=advance)
    counts = built.manifest.counts
    with progress("Pages of cases", counts.cases, quiet=json) as advance:
        index = bench_index(
            open_benchmark(out / "percept"),
            out / "pages" / "percept",
            limit=max(1, counts.cases),
            title="Carina demo: percept",
            on_page=lambda _: advance(1),
        )
    with progress("Conversations", STUDIES, quiet=json) as advance:
        talked = build_trek(studies, out / "trek", TrekOptions(seed=SEED), workers=workers, progress=advance)
    told = talked.report
    with progress("Pages of conversations", READ, quiet=json) as advance:
        talks = bench_index(
            open_benchmark(out / "trek"),
            out / "pages" / "trek",
            limit=READ,
            title="Carina demo: trek",
            on_page=lambda _: advance(1),
        )
    probes, maps = _explained(studies, out, workers, quiet=json)
    runs = _examined(out, workers, quiet=json)
    with progress("Report", len(runs) + len(maps), quiet=json) as advance:
        report = write_report([*runs, *maps], out / "report", progress=advance)
    if json:
        print_json(
            {
                "studies": out / "studies",
                "percept": out / "percept",
                "trek": out / "trek",
                "ground": out / "ground",
                "html": sheet.html,
                "png": sheet.png,
                "percept_html": index.html,
                "trek_html": talks.html,
                "runs": runs,
                "maps": maps,
                "report": report.html,
                "ground_html": report.ground,
            }
        )
        return
    typer.echo(f"{STUDIES} phantom studies: {out / 'studies'}")
    typer.echo(f"{counts.cases} percept cases with {counts.steps} questions: {out / 'percept'}")
    typer.echo(f"{told.conversations} conversations with {told.questions} questions: {out / 'trek'}")
    typer.echo(f"{probes} probes of regions: {out / 'ground'}")
    typer.echo(f"Contact sheet, picture: {sheet.png}")
    typer.echo(f"Look at the studies:    {sheet.html}")
    typer.echo(f"Look at the cases:      {index.html}")
    typer.echo(f"Read conversations:     {talks.html}")
    typer.echo(f"Compare the models:     {report.html}")
    typer.echo(f"Compare their maps:     {report.ground}")


def _explained(studies: "Studies", out: Path, workers: int, *, quiet: bool) -> tuple[int, list[Path]]:
    """Probes of regions, and maps of the explainers that need no weights, scored."""
    from carina.cases import open_benchmark
    from carina.ground.explain.controls import CONTROLS
    from carina.ground.explain.maps import open_maps
    from carina.ground.explain.running import ExplainOptions, explain
    from carina.ground.explain.scoring import score_maps
    from carina.ground.probes import GroundOptions, build_ground

    with progress("Probes", None, quiet=quiet) as advance:
        probed = build_ground(
            studies,
            out / "ground",
            GroundOptions(seed=SEED, per_target=PER_TARGET),
            workers=workers,
            progress=advance,
        )
    probes, maps = open_benchmark(out / "ground"), []
    with progress("Maps", len(EXPLAINED), quiet=quiet) as advance:
        for model, method in EXPLAINED:
            maps.append(out / "maps" / f"{model.rpartition('/')[2]}-{method}")
            explain(probes, model, maps[-1], ExplainOptions(method=method, seed=SEED), workers=workers)
            score_maps(
                probes,
                open_maps(maps[-1]),
                # All of them once; beside random weights the hardest to beat will do.
                controls=CONTROLS if len(maps) == 1 else ("mean-region",),
                seed=SEED,
                replicates=DRAWS,
                workers=workers,
            )
            advance(1)
    return probed.manifest.counts.cases, maps


@dataclass(frozen=True)
class _Exam:
    """One model on one benchmark, to be examined anywhere."""

    bench: Path
    model: str
    out: Path
    options: "RunOptions"


def _examine(exam: _Exam) -> Path:
    from carina.run import run_model

    run_model(exam.bench, exam.model, exam.out, exam.options)
    return exam.out


def _examined(out: Path, workers: int, *, quiet: bool) -> list[Path]:
    """Runs of the models that come with the package on all three benchmarks."""
    from carina.run import Policy, RunOptions
    from carina.run.builtin import NAMES
    from carina.workers import in_order

    plain, talking = RunOptions(seed=SEED), RunOptions(seed=SEED, limit=ASKED)
    asked = [
        *(("percept", model, plain, "") for model in NAMES),
        # Anchored in percept alone; beside its own history, the right one shows what errors cost.
        ("percept", ANCHORED, replace(plain, policy=Policy(history="gold")), "-gold"),
        ("percept", "builtin/reader", replace(plain, blind=True), "-blind"),
        *(("trek", model, talking, "") for model in NAMES if model != ANCHORED),
        *(("ground", model, plain, "") for model in NAMES if model != ANCHORED),
    ]
    exams = [
        _Exam(out / bench, model, out / "runs" / f"{bench}-{model.rpartition('/')[2]}{suffix}", how)
        for bench, model, how, suffix in asked
    ]
    runs = []
    with progress("Models examined", len(exams), quiet=quiet) as advance:
        for run in in_order(_examine, exams, workers=workers, ahead=1):
            runs.append(run)
            advance(1)
    return runs
