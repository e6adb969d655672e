"""`carina build`: benchmarks from study sets, one command for each protocol."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, print_table, progress
from carina.cli.shared_options import (
    AcceptTermsOption,
    AddressOption,
    EngineOption,
    JsonOption,
    SeedOption,
    SplitOption,
    WorkersOption,
)
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from carina.cases import Benchmark, NoCasesError
    from carina.cases.build_report import BuildReport
    from carina.ground import GroundBuildReport
    from carina.percept import PerceptBuildReport
    from carina.trek import TrekBuildReport

_PROTOCOLS = typer.Typer(
    no_args_is_help=True, help="Build a benchmark from a study set.", rich_markup_mode=None
)

StudiesArgument = Annotated[Path, typer.Argument(metavar="STUDIES", help="Directory of the study set.")]
OnConflictOption = Annotated[
    Literal["skip", "ask"],
    typer.Option(
        help="Where the report of a study contradicts what is recorded: skip the question, or ask it. conflicts.csv "
        "lists all conflicts."
    ),
]
TrustOption = Annotated[
    str,
    typer.Option(
        metavar="ORDER",
        help="What counts with --on-conflict ask, the most trusted first: drawing, label and text with commas between.",
    ),
]
_TRUST = "drawing,label,text"
OutOption = Annotated[
    Path, typer.Option("--out", "-o", metavar="BENCH", help="Directory to write the benchmark to.")
]


def register(app: typer.Typer) -> None:
    app.add_typer(_PROTOCOLS, name="build")


@_PROTOCOLS.command(name="percept", cls=Command, no_args_is_help=True)
def percept(
    studies: StudiesArgument,
    *,
    out: OutOption,
    per_cell: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Number of cases per cell; a cell is one lesion on one path."),
    ] = 100,
    seed: SeedOption = 0,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="LESION", help="Lesion to ask about; repeat for several.", show_default="all"),
    ] = None,
    split: SplitOption = None,
    segmenter: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:PATH",
            help="Model that draws the masks from the studies' boxes and masks: sam:PATH, a directory with weights.",
            show_default="the studies' own masks",
        ),
    ] = None,
    deformer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:PATH",
            help="Model that deforms the masks: sam:PATH, a directory with weights.",
            show_default="a signed-distance warp",
        ),
    ] = None,
    readers: Annotated[
        Literal["first", "union", "consensus", "intersection"],
        typer.Option(
            help="Masks of several readers: first (by name, where they agree), union, consensus (more than half of "
            "them) or intersection."
        ),
    ] = "first",
    at_least: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Readers who must agree, with --readers consensus.",
            show_default="more than half",
        ),
    ] = None,
    on_conflict: OnConflictOption = "skip",
    trust: TrustOption = _TRUST,
    max_failures: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of cells (lesion and path) that may stay empty; above it, the exit code is 1.",
        ),
    ] = 1.0,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Build percept: step-by-step examinations of lesions.

    After CheXpercept. Needs studies with masks of lesions and of both lungs. Each case asks whether a lesion is
    present, whether a contour of it needs a major revision, where it needs one, which contour is right, and which
    attributes the lesion has. A case has one of three paths: lesion-free, contour without need of revision, contour to
    be revised. A cell (one lesion on one path) that the studies cannot fill is reported with the reasons and is not
    filled with weaker cases. If the command is interrupted, repeat it to resume.

    \b
    Lesions:
      cardiomegaly, consolidation, edema, atelectasis, pneumonia, opacity, effusion
      The names that studies have for the last two are accepted too: lung opacity, pleural effusion

    \b
    Examples:
      carina build percept studies -o bench --per-cell 10
      carina build percept studies -o bench --target edema --target effusion --split test
      carina build percept studies -o bench --segmenter sam:weights/medsam-vit-base
      carina build percept studies -o bench --readers consensus
    """
    from carina.cases import NoCasesError
    from carina.cases.building import read_build_report
    from carina.percept import PerceptBuildReport, build_percept

    error: NoCasesError | None = None
    try:
        bench = build_percept(
            studies,
            out,
            per_cell=per_cell,
            seed=seed,
            targets=target or None,
            split=split,
            segmenter=segmenter,
            deformer=deformer,
            readers=readers,
            at_least=at_least,
            on_conflict=on_conflict,
            trust=trust,
            workers=workers,
            progress=partial(progress, quiet=json),
        )
    except NoCasesError as found:
        bench, error = found.benchmark, found
    report = read_build_report(bench, PerceptBuildReport)
    if json:
        _print_json(bench, report)
    else:
        _print_percept(bench, report)
    _stop_if_empty(error)
    empty = sum(cell.built == 0 for cell in report.cells)
    if empty > max_failures * len(report.cells):
        print_line(f"Error: {empty} of {len(report.cells)} cells are empty", err=True)
        raise typer.Exit(1)


@_PROTOCOLS.command(name="trek", cls=Command, no_args_is_help=True)
def trek(
    studies: StudiesArgument,
    *,
    out: OutOption,
    seed: SeedOption = 0,
    split: SplitOption = None,
    shuffled: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of conversations with their questions in random order.",
        ),
    ] = 0.0,
    frame: Annotated[
        Literal["pixel", "percent", "thousand"],
        typer.Option(help="Units of boxes: pixel, percent or thousand (0 to 1000)."),
    ] = "percent",
    most_images: Annotated[
        int, typer.Option(min=1, metavar="N", help="Show at most N images of a study.")
    ] = 2,
    indication: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of conversations that state why the patient was examined (the indication).",
        ),
    ] = 0.25,
    extractor: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How findings are read where a study has only report text: rules, or model:NAME.",
        ),
    ] = "rules",
    paraphrase: Annotated[
        str | None,
        typer.Option(
            metavar="model:NAME",
            help="Model that rewords the questions; a question whose answer might change keeps its wording.",
            show_default="no rewording",
        ),
    ] = None,
    on_conflict: OnConflictOption = "skip",
    trust: TrustOption = _TRUST,
    accept_terms: AcceptTermsOption = False,
    engine: EngineOption = "local",
    address: AddressOption = None,
    on_error: Annotated[
        Literal["skip", "stop"],
        typer.Option(help="At a study whose records contradict each other: skip it, or stop."),
    ] = "skip",
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Build trek: conversations in a radiologist's eight stages.

    After CXRTrek. The stages are image quality, findings, attributes and location, relations, comparison, expected
    course, recommendations and report. Each study gets the stages that its truth supports. Findings are read from
    report text, too; what it contradicts is not asked about. Yes and no are balanced over the set, and no question
    gives away the answer to a later one. If the command is interrupted, repeat it to resume.

    \b
    Examples:
      carina build trek studies -o conversations
      carina build trek studies -o conversations --split test --frame thousand
      carina build trek studies -o conversations --engine ray --address ray-head:6379
      carina build trek reports -o conversations --extractor model:openai/gpt-5
      carina build trek studies -o conversations --on-conflict ask --trust label,drawing,text
    """
    from carina.cases import NoCasesError
    from carina.cases.building import read_build_report
    from carina.trek import TrekBuildReport, build_trek

    error: NoCasesError | None = None
    try:
        bench = build_trek(
            studies,
            out,
            seed=seed,
            split=split,
            shuffled=shuffled,
            frame=frame,
            most_images=most_images,
            indication=indication,
            extractor=extractor,
            paraphrase=paraphrase,
            on_conflict=on_conflict,
            trust=trust,
            accept_terms=accept_terms,
            engine=engine,
            address=address,
            on_error=on_error,
            workers=workers,
            progress=partial(progress, quiet=json),
        )
    except NoCasesError as found:
        bench, error = found.benchmark, found
    report = read_build_report(bench, TrekBuildReport)
    if json:
        _print_json(bench, report)
    else:
        _print_trek(bench, report)
    _stop_if_empty(error)


@_PROTOCOLS.command(name="ground", cls=Command, no_args_is_help=True)
def ground(
    studies: StudiesArgument,
    *,
    out: OutOption,
    per_target: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="At most N positive probes for each finding.", show_default="all"
        ),
    ] = None,
    absent: Annotated[
        float,
        typer.Option(min=0, max=10, metavar="NUMBER", help="Number of negative probes per positive probe."),
    ] = 1.0,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="FINDING", help="Finding to ask about; repeat for several.", show_default="all"),
    ] = None,
    ask: Annotated[
        Literal["finding", "phrase"],
        typer.Option(help="What is to be found: finding (by its name) or phrase (a sentence of the report)."),
    ] = "finding",
    readers: Annotated[
        Literal["union", "consensus", "intersection", "weighted-boxes", "first", "each"],
        typer.Option(
            help="Regions of several readers: union, consensus (more than half of them), intersection, weighted-boxes "
            "(boxes that overlap, averaged), first (by name), or each (a probe for each reader)."
        ),
    ] = "union",
    at_least: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Readers who must agree, with --readers consensus or weighted-boxes.",
            show_default="more than half",
        ),
    ] = None,
    box_overlap: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1,
            metavar="IOU",
            help="Least overlap (IoU) of boxes that weighted-boxes takes for the same thing.",
        ),
    ] = 0.5,
    on_conflict: OnConflictOption = "skip",
    trust: TrustOption = _TRUST,
    lateral: Annotated[bool, typer.Option("--lateral", help="Ask about lateral views too.")] = False,
    seed: SeedOption = 0,
    split: SplitOption = None,
    on_error: Annotated[
        Literal["skip", "stop"],
        typer.Option(help="At a study whose regions do not fit its images: skip it, or stop."),
    ] = "skip",
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Build ground: probes of findings and their regions.

    After XBench. Needs studies with regions that experts drew, as masks, polygons or boxes. A positive probe asks
    whether a finding is present and where it is; a negative probe asks about a finding that is certainly absent. A
    CLIP-style model answers with a localisation map (carina explain), a chat model with boxes (carina run). If the
    command is interrupted, repeat it to resume.

    \b
    Examples:
      carina build ground studies -o probes
      carina build ground studies -o probes --split test --target nodule --target "pleural effusion"
      carina build ground studies -o probes --ask phrase
      carina build ground studies -o probes --readers consensus --at-least 2
    """
    from carina.cases import NoCasesError
    from carina.cases.building import read_build_report
    from carina.ground import GroundBuildReport, build_ground

    error: NoCasesError | None = None
    try:
        bench = build_ground(
            studies,
            out,
            per_target=per_target,
            absent=absent,
            targets=target or None,
            ask=ask,
            readers=readers,
            at_least=at_least,
            box_overlap=box_overlap,
            on_conflict=on_conflict,
            trust=trust,
            lateral=lateral,
            seed=seed,
            split=split,
            on_error=on_error,
            workers=workers,
            progress=partial(progress, quiet=json),
        )
    except NoCasesError as found:
        bench, error = found.benchmark, found
    report = read_build_report(bench, GroundBuildReport)
    if json:
        _print_json(bench, report)
    else:
        _print_ground(bench, report)
    _stop_if_empty(error)


def _stop_if_empty(error: "NoCasesError | None") -> None:
    """Say why there is no case, after the report of the build, and end."""
    if error is not None:
        print_line(f"Error: {error}", err=True)
        raise typer.Exit(1)


def _print_conflicts(report: "BuildReport") -> None:
    for name, kinds in report.conflicts.items():
        for summary, number in kinds.items():
            print_line(
                f"{name}: {format_count(number, 'study', 'studies')} {summary} (conflicts.csv)", err=True
            )


def _print_json(bench: "Benchmark", report: "BuildReport") -> None:
    print_json({"benchmark": bench.directory, "counts": bench.manifest.counts, "report": report})


def _print_percept(bench: "Benchmark", report: "PerceptBuildReport") -> None:
    counts = bench.manifest.counts
    print_line(bench.directory)
    print_line(
        f"{format_count(counts.cases, 'case')}, {format_count(counts.steps, 'question')}, "
        f"{format_count(counts.patients, 'patient')}",
        err=True,
    )
    if report.without_lesions is not None:
        print_line(report.without_lesions, err=True)
    rows: dict[str, list[str]] = {}
    for cell in report.cells:
        short = "" if cell.built == cell.wanted else f" of {cell.wanted}"
        rows.setdefault(cell.target, [cell.target]).append(f"{cell.built}{short}")
    print_table(
        ("lesion", "LF (lesion-free)", "RF (no revision needed)", "RR (revision required)"),
        list(rows.values()),
    )
    for cell in report.unfilled:
        reasons = ", ".join(
            f"{reason} {n}" for reason, n in sorted(cell.reasons.items(), key=lambda kv: -kv[1])
        )
        print_line(
            f"{cell.target} {cell.path}: {cell.built} of {cell.wanted} from "
            f"{format_count(cell.candidates, 'candidate')}" + (f"; not usable: {reasons}" if reasons else ""),
            err=True,
        )
    for why, number in report.not_asked.items():
        task, _, reason = why.partition(": ")
        print_line(f"{task}: {format_count(number, 'question')} not asked: {reason}", err=True)
    _print_conflicts(report)


def _print_trek(bench: "Benchmark", report: "TrekBuildReport") -> None:
    from carina.studies.assessment import NOT_LOOKED_FOR
    from carina.trek.protocol import TREK
    from carina.trek.turn import DEVICES_UNKNOWN, FINDINGS_UNKNOWN

    counts = bench.manifest.counts
    print_line(bench.directory)
    print_line(
        f"{format_count(report.conversations, 'conversation')}, {format_count(report.questions, 'question')}; "
        f"{report.with_reference} with a prior study, {report.with_later} with a follow-up study",
        err=True,
    )
    rows = [
        [str(stage.number), stage.title, str(questions), f"{questions / max(1, counts.steps):.1%}"]
        for stage in TREK.stages
        for questions in [counts.stages.get(str(stage.number), 0)]
    ]
    print_table(("stage", "title", "questions", "share"), rows)
    if report.images_of_unknown_view:
        print_line(
            f"{format_count(report.images_of_unknown_view, 'image')} not shown: the view is unknown", err=True
        )
    if report.priors_in_other_splits:
        print_line(
            f"{format_count(report.priors_in_other_splits, 'study', 'studies')} without a comparison: the prior study "
            "lies in another split (carina check lists such patients)",
            err=True,
        )
    for task, reasons in report.not_asked.items():
        for reason, number in reasons.items():
            print_line(f"{task}: {format_count(number, 'question')} not asked: {reason}", err=True)
    unknown = {NOT_LOOKED_FOR, FINDINGS_UNKNOWN, DEVICES_UNKNOWN}
    if any(unknown & reasons.keys() for reasons in report.not_asked.values()) and _has_looked_for(bench):
        print_line("More can be asked where --looked-for states at import what was looked for", err=True)
    for reason, number in report.skipped.items():
        print_line(
            f"{number} of {format_count(report.studies, 'study', 'studies')} left out: {reason} (skipped.csv)",
            err=True,
        )
    _print_conflicts(report)


def _has_looked_for(bench: "Benchmark") -> bool:
    """Whether a source of the studies has an option that says what was looked for."""
    from carina.sources import SOURCES

    for one in bench.manifest.sources:
        with suppress(CarinaError):  # a source that is not installed here
            if any(option.name == "looked_for" for option in SOURCES[one.name].options):
                return True
    return False


def _print_ground(bench: "Benchmark", report: "GroundBuildReport") -> None:
    from carina.studies.assessment import NOT_LOOKED_FOR

    counts = bench.manifest.counts
    is_unknown = any(NOT_LOOKED_FOR in item.no_controls for item in report.targets)
    remedy = "; state it with --looked-for at import" if is_unknown and _has_looked_for(bench) else ""
    print_line(bench.directory)
    print_line(f"{format_count(counts.cases, 'probe')}, {format_count(counts.patients, 'patient')}", err=True)
    print_table(
        ("finding", "present", "absent"),
        [[item.target, str(item.present), str(item.absent)] for item in report.targets],
    )
    for name, nearest in report.unknown_targets.items():
        meant = f", did you mean {nearest!r}?" if nearest else "."
        print_line(
            f"Notice: {name}: asked about, although this is not a known name{meant} Say at import what it means",
            err=True,
        )
    for item in report.targets:
        for reason, number in item.left_out.items():
            print_line(f"{item.target}: {number} left out: {reason} (skipped.csv)", err=True)
    unknown = {
        item.target: number for item in report.targets if (number := item.no_controls.get(NOT_LOOKED_FOR, 0))
    }
    if unknown:
        studies = format_count(max(unknown.values()), "study", "studies")
        upto = "up to " if len(set(unknown.values())) > 1 else ""
        print_line(
            f"{format_count(len(unknown), 'finding')} without negative probes from {upto}{studies}: "
            f"{NOT_LOOKED_FOR}{remedy}",
            err=True,
        )
    for one in report.presence:
        alpha = "" if one.alpha is None else f", Krippendorff's alpha {one.alpha:.2f}"
        images = format_count(one.images, "study", "studies")
        print_line(
            f"{one.target}: readers agree on presence in {one.agreement or 0:.0%} of pairs{alpha} ({images})",
            err=True,
        )
    _print_conflicts(report)
