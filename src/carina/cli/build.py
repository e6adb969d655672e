"""`carina build`: benchmarks from study sets, one command a protocol."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import print_json, print_table, progress

if TYPE_CHECKING:
    from carina.percept import Built

_PROTOCOLS = typer.Typer(
    no_args_is_help=True, help="Build a benchmark from a study set.", rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    app.add_typer(_PROTOCOLS, name="build")


@_PROTOCOLS.command(name="percept", no_args_is_help=True)
def percept(
    studies: Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of a study set.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="BENCH", help="Where the benchmark is written.")
    ],
    per_cell: Annotated[int, typer.Option(min=1, help="Cases for each lesion and path.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    target: Annotated[
        list[str] | None, typer.Option(metavar="LESION", help="A lesion to ask about; repeat for several.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only studies of this split: train, val or test.")] = None,
    segmenter: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:PATH",
            help="Model that draws the masks from the studies' boxes and masks: sam:PATH, weights in a folder.",
            show_default="the studies' own masks",
        ),
    ] = None,
    deformer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:PATH",
            help="Model that deforms masks: sam:PATH.",
            show_default="the signed-distance warp",
        ),
    ] = None,
    max_failures: Annotated[
        float, typer.Option(min=0, max=1, help="Share of cells that may stay empty without exit code 1.")
    ] = 1.0,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build sequential examinations of lesions, after CheXpercept.

    Needs studies with masks of lesions and of both lungs. Each case asks whether a lesion is there, whether a contour
    of it needs a major revision, where, what the right contour is, and for its attributes. A cell (lesion and path)
    that the studies cannot fill is reported with the reasons; nothing weaker is taken instead. Interrupted, the same
    command resumes.

    \b
    Lesions:
      cardiomegaly, consolidation, edema, atelectasis, pneumonia, opacity, effusion

    \b
    Examples:
      carina build percept studies -o bench --per-cell 10
      carina build percept studies -o bench --target edema --target effusion --split test
      carina build percept studies -o bench --segmenter sam:weights/medsam-vit-base
    """
    from carina.percept import LESIONS, BuildOptions, build_percept
    from carina.percept.select import wanted_examined
    from carina.studies import open_studies

    options = BuildOptions(
        seed=seed,
        per_cell=per_cell,
        targets=tuple(target or LESIONS),
        split=split,
        segmenter=segmenter,
        deformer=deformer,
    )
    total = wanted_examined(per_cell) * len(options.targets)
    with progress("Lesions examined", total, quiet=json) as advance:
        built = build_percept(
            open_studies(studies), out, options, workers=workers or os.cpu_count() or 1, progress=advance
        )
    if json:
        print_json({"benchmark": out, "counts": built.manifest.counts, "report": built.report})
    else:
        _tell(built, out)
    empty = sum(cell.built == 0 for cell in built.report.cells)
    if not built.manifest.counts.cases or empty > max_failures * len(built.report.cells):
        typer.echo(f"Error: {empty} of {len(built.report.cells)} cells are empty", err=True)
        raise typer.Exit(1)


def _tell(built: "Built", out: Path) -> None:
    counts = built.manifest.counts
    typer.echo(out)
    typer.echo(f"{counts.cases} cases, {counts.steps} questions, {counts.patients} patients", err=True)
    rows: dict[str, list[str]] = {}
    for cell in built.report.cells:
        short = "" if cell.built == cell.wanted else f" of {cell.wanted}"
        rows.setdefault(cell.target, [cell.target]).append(f"{cell.built}{short}")
    print_table(("lesion", "lesion-free", "no revision", "revision"), list(rows.values()))
    for cell in built.report.unfilled:
        reasons = ", ".join(
            f"{reason} {n}" for reason, n in sorted(cell.reasons.items(), key=lambda kv: -kv[1])
        )
        typer.echo(
            f"{cell.target} {cell.path}: {cell.built} of {cell.wanted} from {cell.candidates} candidates"
            + (f"; not usable: {reasons}" if reasons else ""),
            err=True,
        )
