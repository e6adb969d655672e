"""`carina ground`: localisation maps against regions, whoever made them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from carina.cli.console import one_of, print_json, print_table, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.ground.score import Cell
    from carina.ground.score.outside import Scored

_COMMANDS: Final = typer.Typer(
    no_args_is_help=True, help="Score localisation maps against regions.", rich_markup_mode=None
)
_SHOWN: Final = 5
"""Names of what did not match that are told; all are in scores.json."""

Maps = Annotated[
    Path,
    typer.Option(
        "--maps",
        metavar="DIR",
        help="Maps as .npy, .npz, .png or .tif, named <image>_<finding>_map or <image>.",
    ),
]
RegionFile = Annotated[
    Path,
    typer.Option(
        "--regions", metavar="FILE", help="CheXlocalize's segmentations or annotations, or COCO's JSON."
    ),
]
Geometry = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="How a map lies on its image: whole, letterbox:LONGEST, letterbox:LONGEST:SIDE or crop:SHORTEST:SIDE. "
        "Without it maps must have the size of their image.",
    ),
]


def register(app: typer.Typer) -> None:
    app.add_typer(_COMMANDS, name="ground")


@_COMMANDS.command(name="score", no_args_is_help=True)
def score(
    *,
    maps: Maps,
    regions: RegionFile,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the scores are written.")],
    profile: Annotated[
        str,
        typer.Option(
            help="carina, chexlocalize, medklip, mavl, radzero, afloc, torchray or quantus; see carina ground variants."
        ),
    ] = "carina",
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A variant in place of the profile, such as iou.otsu.tp_only; repeat for several.",
        ),
    ] = None,
    geometry: Geometry = None,
    patients: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns id and patient; without it, CheXpert's ids tell, or images stand alone.",
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What these images are called; --thresholds, --tune, --cutoffs and --tune-cutoffs need it.",
        ),
    ] = "",
    thresholds: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Thresholds that --tune wrote for another split."),
    ] = None,
    tune: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the thresholds that are best here, for another split."
        ),
    ] = None,
    cutoffs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Cut-offs of the findings' probabilities that --tune-cutoffs wrote for another split.",
        ),
    ] = None,
    tune_cutoffs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write the cut-offs that are best here; the maps are .npz with a probability under prob.",
        ),
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Draws of patients behind an interval.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same intervals.")] = 0,
    on_error: Annotated[str, typer.Option(help="skip or stop at a map that cannot be read.")] = "skip",
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Score maps that others made against regions that others drew.

    Writes scores.csv and scores.parquet with a row a map and a column a variant, summary.csv with means and intervals
    by finding and lesion size, and scores.json with the definitions and whatever did not match.

    \b
    Examples:
      carina ground score --maps maps --regions gt_segmentations_test.json --geometry whole -o scores
      carina ground score --maps maps --regions gt.json --profile chexlocalize --split test \\
        --thresholds val.json --geometry whole -o scores
      carina ground score --maps maps --regions coco.json --variant iou.otsu --variant auroc -o scores
    """
    from carina.ground.score.outside import score_maps, write_scored
    from carina.ground.score.region_files import read_regions
    from carina.ground.score.tuning import read_thresholds, write_thresholds

    if out.exists() and not out.is_dir():
        raise CarinaError(f"{out}: is a file, expected a directory for the scores")
    drawn = read_regions(regions)
    frozen = None if thresholds is None else read_thresholds(thresholds)
    gates = None if cutoffs is None else read_thresholds(cutoffs)
    with progress("Maps", _files(maps), quiet=json) as advance:
        scored, scorer = score_maps(
            maps,
            drawn,
            list(variant) if variant else profile,
            frame=geometry,
            patients=patients,
            split=split,
            tuned=frozen,
            cutoffs=gates,
            replicates=replicates,
            seed=seed,
            on_error=one_of("--on-error", on_error, "skip", "stop"),
            progress=advance,
        )
    about = {
        "maps": maps,
        "regions": regions,
        "profile": None if variant else profile,
        "geometry": geometry,
        "split": split,
        "thresholds": frozen,
        "cutoffs": gates,
        "replicates": replicates,
        "seed": seed,
    }
    written = write_scored(scored, out, about)
    for path, choose in ((tune, scorer.tune), (tune_cutoffs, scorer.tune_cutoffs)):
        if path is not None:
            write_thresholds(path, choose())
            written.append(path)
    if json:
        print_json({"written": written, "scored": scored.scored, "summary": scored.cells})
        return
    _print_cells([cell for cell in scored.cells if cell.level in ("all", "finding")])
    _print_unmatched(scored)


@_COMMANDS.command(name="compare", no_args_is_help=True)
def compare(
    *,
    maps: Maps,
    regions: RegionFile,
    geometry: Geometry = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Score the same maps by the rules of several projects: how much of a number is the rule?

    \b
    Examples:
      carina ground compare --maps maps --regions gt_segmentations_test.json --geometry whole
      carina ground compare --maps maps --regions coco.json --json
    """
    from carina.ground.score.outside import compare_maps
    from carina.ground.score.region_files import read_regions

    drawn = read_regions(regions)
    with progress("Maps", _files(maps), quiet=json) as advance:
        rows = compare_maps(maps, drawn, frame=geometry, progress=advance)
    if json:
        print_json(rows)
        return
    sizes = list(rows[0].by_size)
    headings = ("protocol", "all", *(f"{size} (n={rows[0].n[size]})" for size in sizes))
    print_table(
        headings, [(row.protocol, _figure(row.all), *map(_figure, row.by_size.values())) for row in rows]
    )


@_COMMANDS.command(name="convert-pickles", no_args_is_help=True)
def convert_pickles(
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of cheXlocalize's <image>_<finding>_map.pkl.")
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the .npz files are written.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Make pickled maps readable without running what is in them.

    Files are read by a process with limits on memory, time and size, which rebuilds arrays and tensors from their
    bytes and refuses whatever else a pickle names. Exits with 1 if a file is refused.

    \b
    Examples:
      carina ground convert-pickles gradcam_maps_val -o maps
    """
    from carina.ground.score.pickles import convert_pickles as convert

    with progress("Pickles", _files(source), quiet=json) as advance:
        written, refused = convert(source, out, progress=advance)
    if json:
        print_json({"written": written, "refused": refused})
    else:
        typer.echo(f"{len(written)} maps written to {out}")
        for path, reason in refused.items():
            typer.echo(f"{path}: {reason}", err=True)
    if refused:
        raise typer.Exit(1)


@_COMMANDS.command(name="convert-checkpoint", no_args_is_help=True)
def convert_checkpoint(
    checkpoint: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A pickled checkpoint: .pt, .pth, .bin, .ckpt, or a zip of one."),
    ],
    *,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="What it holds: a kind of carina explain, or bert for a text tower."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the model, or a file that ends in .safetensors."
        ),
    ],
) -> None:
    """Make an old checkpoint of a CLIP-style model readable without running what is in it.

    Reads the weights with torch's restricted loader and writes them as safetensors, with the settings and vocabularies
    that lie beside them. Needs carina[torch].

    \b
    Examples:
      carina ground convert-checkpoint carzero_best_model.ckpt --kind carzero -o weights/carzero
      carina ground convert-checkpoint pytorch_model.bin --kind bert -o weights/medklip/text.safetensors
    """
    from carina.models.clip.convert import convert_checkpoint as convert

    typer.echo(convert(checkpoint, out, kind))


@_COMMANDS.command(name="variants")
def variants(
    *,
    profile: Annotated[str | None, typer.Option(help="Only those of a profile.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List profiles, or the variants of one with their definitions.

    \b
    Examples:
      carina ground variants
      carina ground variants --profile chexlocalize
    """
    from carina.ground.score import PROFILES
    from carina.ground.score import profile as named

    if profile is None:
        rows = [(one.name, str(len(one.variants)), one.about) for one in PROFILES.values()]
        headings = ("profile", "variants", "what is particular about it")
    else:
        rows = [(variant.name, "", variant.definition) for variant in named(profile).variants]
        headings = ("variant", "", "definition")
    if json:
        print_json({row[0]: row[2] for row in rows})
    else:
        print_table(headings, rows)


def _files(directory: Path) -> int:
    return sum(1 for _ in directory.iterdir()) if directory.is_dir() else 0


def _print_cells(cells: "list[Cell]") -> None:
    rows = [
        (
            cell.variant,
            cell.group or f"all ({cell.average})",
            _figure(cell.value),
            f"{_figure(cell.low)} to {_figure(cell.high)}",
            str(cell.n),
            str(cell.patients),
        )
        for cell in cells
    ]
    print_table(("variant", "finding", "value", "95% interval", "n", "patients"), rows)


def _print_unmatched(scored: "Scored") -> None:
    typer.echo(f"{scored.scored} maps scored", err=True)
    for what, names in (
        ("maps have no image among the regions", scored.unknown),
        ("maps name no finding of their image, which has not just one", scored.unclear),
        ("regions have no map", scored.missing),
        ("maps cannot be read and are left out", scored.bad),
    ):
        if names:
            listed = "; ".join(names[:_SHOWN]) + ("; ..." if len(names) > _SHOWN else "")
            typer.echo(f"{len(names)} {what}: {listed}", err=True)
    if scored.strays:
        typer.echo(f"{scored.strays} maps without a region count as false in any_mask and gated", err=True)
    if scored.unmapped:
        typer.echo(
            f"{scored.unmapped} regions without a map, empty ones among them, count as predictions of nothing in "
            "any_mask, gated and pooled",
            err=True,
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
