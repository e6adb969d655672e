"""`carina build`: benchmarks from study sets, one command a protocol."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import one_of, print_json, print_table, progress

if TYPE_CHECKING:
    from carina.ground.probes import Built as BuiltGround
    from carina.percept import Built
    from carina.trek import Built as BuiltTrek

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


@_PROTOCOLS.command(name="trek", no_args_is_help=True)
def trek(
    studies: Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of a study set.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="BENCH", help="Where the benchmark is written.")
    ],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    split: Annotated[str | None, typer.Option(help="Only studies of this split: train, val or test.")] = None,
    shuffled: Annotated[
        float, typer.Option(min=0, max=1, help="Share of conversations with their turns in random order.")
    ] = 0.0,
    frame: Annotated[
        str, typer.Option(help="Units of boxes: pixel, percent or thousand (0 to 1000).")
    ] = "percent",
    most_images: Annotated[int, typer.Option(min=1, help="Images shown of a study.")] = 2,
    indication: Annotated[
        float, typer.Option(min=0, max=1, help="Share of conversations in which the indication is told.")
    ] = 0.25,
    extractor: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How report text becomes findings where a set has only text: rules, or model:NAME.",
        ),
    ] = "rules",
    paraphrase: Annotated[
        str | None,
        typer.Option(
            metavar="model:NAME",
            help="Reword questions by a model; a question whose key might change stays.",
            show_default="the wording that ships",
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a running Ray cluster.")] = None,
    on_error: Annotated[str, typer.Option(help="skip or stop at a study that contradicts itself.")] = "skip",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build conversations that follow a radiologist's reading in eight stages, after CXRTrek.

    Image quality, what is there, its attributes, how it hangs together, what has changed, what to expect, what to do,
    the report: each study gets the stages that its truth supports. Where a set has only report text, findings are
    read from it. Yes and no are balanced over the set, and no question tells a later key. Interrupted, the same
    command resumes.

    \b
    Examples:
      carina build trek studies -o talks
      carina build trek studies -o talks --split test --frame thousand
      carina build trek studies -o talks --engine ray --address ray-head:6379
      carina build trek reports -o talks --extractor model:openai/gpt-5
    """
    from carina.studies import open_studies
    from carina.trek import TrekOptions, build_trek

    if address is not None and engine != "ray":
        raise typer.BadParameter(
            "is the address of a Ray cluster: give --engine ray too", param_hint="--address"
        )
    options = TrekOptions(
        seed=seed,
        split=split,
        shuffled=shuffled,
        frame=one_of("--frame", frame, "pixel", "percent", "thousand"),
        most_images=most_images,
        indication=indication,
        extractor=extractor,
        paraphrase=paraphrase,
    )
    opened = open_studies(studies)
    total = opened.manifest.counts.studies
    with progress("Conversations", total, quiet=json) as advance:
        built = build_trek(
            opened,
            out,
            options,
            workers=workers or os.cpu_count() or 1,
            engine=one_of("--engine", engine, "local", "ray"),
            address=address,
            on_error=one_of("--on-error", on_error, "skip", "stop"),
            progress=advance,
        )
    if json:
        print_json({"benchmark": out, "counts": built.manifest.counts, "report": built.report})
    else:
        _tell_trek(built, out)
    if not built.report.conversations:
        typer.echo(f"Error: none of {built.report.studies} studies can be asked about", err=True)
        raise typer.Exit(1)


@_PROTOCOLS.command(name="ground", no_args_is_help=True)
def ground(
    studies: Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of a study set.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="BENCH", help="Where the benchmark is written.")
    ],
    per_target: Annotated[
        int | None,
        typer.Option(min=1, help="Most probes of a finding that is there.", show_default="all"),
    ] = None,
    absent: Annotated[
        float,
        typer.Option(min=0, max=10, help="Probes of an absent finding for each of one that is there."),
    ] = 1.0,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FINDING", help="A finding to look for; repeat for several.", show_default="all"
        ),
    ] = None,
    ask: Annotated[
        str, typer.Option(help="What is looked for: finding (by name) or phrase (a sentence of the report).")
    ] = "finding",
    fusion: Annotated[
        str, typer.Option(help="Regions of several readers as one: union, majority, intersection or first.")
    ] = "union",
    lateral: Annotated[bool, typer.Option("--lateral", help="Ask about lateral views too.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    split: Annotated[str | None, typer.Option(help="Only studies of this split: train, val or test.")] = None,
    on_error: Annotated[str, typer.Option(help="skip or stop at a study whose regions do not fit.")] = "skip",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build probes of findings and their regions, after XBench.

    Needs studies with regions that experts drew, as masks, polygons or boxes. Each probe asks whether a finding is
    there, and where it is; controls ask the same where it is absent beyond doubt. A CLIP-style model answers with a
    map (carina explain), a chat model with boxes (carina run). Interrupted, the same command resumes.

    \b
    Examples:
      carina build ground studies -o probes
      carina build ground studies -o probes --split test --target nodule --target "pleural effusion"
      carina build ground studies -o probes --ask phrase --fusion majority
    """
    from carina.ground.probes import GroundOptions, build_ground
    from carina.studies import open_studies

    options = GroundOptions(
        seed=seed,
        per_target=per_target,
        absent=absent,
        targets=tuple(target or ()),
        split=split,
        fusion=one_of("--fusion", fusion, "union", "majority", "intersection", "first"),
        ask=one_of("--ask", ask, "finding", "phrase"),
        lateral=lateral,
    )
    with progress("Probes", None, quiet=json) as advance:
        built = build_ground(
            open_studies(studies),
            out,
            options,
            workers=workers or os.cpu_count() or 1,
            on_error=one_of("--on-error", on_error, "skip", "stop"),
            progress=advance,
        )
    if json:
        print_json({"benchmark": out, "counts": built.manifest.counts, "report": built.report})
    else:
        _tell_ground(built, out)
    if not built.manifest.counts.cases:
        typer.echo(
            f"Error: none of {built.report.studies} studies has a region that can be asked about", err=True
        )
        raise typer.Exit(1)


def _tell_ground(built: "BuiltGround", out: Path) -> None:
    counts = built.manifest.counts
    typer.echo(out)
    typer.echo(f"{counts.cases} probes, {counts.patients} patients", err=True)
    print_table(
        ("finding", "there", "absent"),
        [[item.target, str(item.present), str(item.absent)] for item in built.report.targets],
    )
    for item in built.report.targets:
        for reason, number in item.left_out.items():
            typer.echo(f"{item.target}: {number} left out: {reason} (skipped.csv)", err=True)


_STAGES = (
    "images and quality",
    "what is there",
    "attributes and places",
    "relations",
    "comparison",
    "outlook",
    "advice",
    "report",
)


def _tell_trek(built: "BuiltTrek", out: Path) -> None:
    report, counts = built.report, built.manifest.counts
    typer.echo(out)
    typer.echo(
        f"{report.conversations} conversations, {report.questions} questions; {report.with_reference} with a "
        f"reference study, {report.with_later} with a later one",
        err=True,
    )
    rows = [
        [str(number), name, str(asked), f"{asked / max(1, counts.steps):.1%}"]
        for number, name in enumerate(_STAGES, start=1)
        for asked in [counts.stages.get(str(number), 0)]
    ]
    print_table(("stage", "about", "questions", "share"), rows)
    for reason, number in report.skipped.items():
        typer.echo(f"{number} of {report.studies} studies left out: {reason} (skipped.csv)", err=True)


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
