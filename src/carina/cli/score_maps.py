"""`carina score-maps`, `carina compare-profiles`, `carina list-metrics`: localisation maps that are files."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, print_table, progress
from carina.cli.shared_options import JsonOption, SeedOption
from carina.store.counts import format_count

if TYPE_CHECKING:
    from carina.maps import Cell
    from carina.maps.file_scores import FileScores

_LISTED: Final = 5
"""Unmatched names that are printed; all are in scores.json."""

Maps = Annotated[
    Path,
    typer.Option(
        "--maps",
        metavar="DIR",
        help="Directory of maps, .npy, .npz, .png or .tif, named <image>_<finding>_map or <image>, or listed in its "
        "index.csv (image, finding, map).",
    ),
]
RegionFile = Annotated[
    Path,
    typer.Option(
        "--regions",
        metavar="PATH",
        help="Regions: CheXlocalize's segmentations or annotations, COCO's JSON, or a directory of masks "
        "FINDING/IMAGE.png, which its index.csv (image, finding, mask) may list.",
    ),
]
Geometry = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="How a map lies on its image: whole, letterbox:LONGEST, letterbox:LONGEST:SIDE or crop:SHORTEST:SIDE.",
        show_default="maps have the size of their image",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(name="score-maps", cls=Command, no_args_is_help=True)(score_maps)
    app.command(name="compare-profiles", cls=Command, no_args_is_help=True)(compare_profiles)
    app.command(name="list-metrics", cls=Command)(list_metrics)


def score_maps(
    *,
    maps: Maps,
    regions: RegionFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Directory to write the scores to.")
    ],
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Scoring profile: carina, chexlocalize, medklip, mavl, radzero, afloc, torchray or quantus.",
        ),
    ] = "carina",
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Metric variant to score instead of a profile, such as iou.otsu.tp_only; repeat for several.",
        ),
    ] = None,
    geometry: Geometry = None,
    patients: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns id and patient.",
            show_default="from CheXpert's image names; any other image counts as a patient of its own",
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the split that these images belong to; needed by --thresholds, --tune, --cutoffs and "
            "--tune-cutoffs.",
        ),
    ] = "",
    thresholds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of thresholds that --tune wrote on another split, or tuning_results.csv of cheXlocalize.",
        ),
    ] = None,
    tune: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the thresholds that are best on these images to FILE, for --thresholds on another split.",
        ),
    ] = None,
    cutoffs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of probability cut-offs that --tune-cutoffs wrote on another split."
        ),
    ] = None,
    tune_cutoffs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the probability cut-offs that are best on these images to FILE, for --cutoffs on another "
            "split; maps must be .npz files with the probability in the array prob.",
        ),
    ] = None,
    replicates: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Number of bootstrap replicates of the patients, for intervals."
        ),
    ] = 10_000,
    seed: SeedOption = 0,
    on_error: Annotated[
        Literal["skip", "stop"], typer.Option(help="At a map that cannot be read: skip it, or stop.")
    ] = "skip",
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="Print every metric variant, of all maps and by finding, not the headline."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Score localisation maps from files.

    Compares them with regions from a file. Writes scores.csv and scores.parquet (one row per map, one column per metric
    variant), summary.csv (means with intervals by finding and lesion size) and scores.json (definitions, and everything
    that did not match). Prints the headline; --all prints all of it. To score maps beside controls, and to compare them
    in a report with those of models, use carina explain PROBES --model files:DIR.

    \b
    Examples:
      carina score-maps --maps maps --regions gt_segmentations_test.json --geometry whole -o scores
      carina score-maps --maps maps --regions gt.json --profile chexlocalize --split test \\
        --thresholds val.json --geometry whole -o scores
      carina score-maps --maps maps --regions coco.json --variant iou.otsu --variant auroc -o scores
    """
    from carina.maps import score_maps as score

    scored = score(
        maps,
        regions,
        out,
        profile=profile,
        variants=variant,
        geometry=geometry,
        patients=patients,
        split=split,
        thresholds=thresholds,
        tune=tune,
        cutoffs=cutoffs,
        tune_cutoffs=tune_cutoffs,
        replicates=replicates,
        seed=seed,
        on_error=on_error,
        progress=partial(progress, quiet=json),
    )
    if json:
        print_json({"written": scored.files, "scored": scored.scores.scored, "summary": scored.scores.cells})
        return
    shown = [cell for cell in scored.scores.cells if cell.level in ("all", "finding")]
    if all_ or variant:
        _print_cells(shown)
    else:
        _print_headline(shown, scored.scores)
    _print_unmatched(scored.scores)


def compare_profiles(
    *,
    maps: Maps,
    regions: RegionFile,
    geometry: Geometry = None,
    json: JsonOption = False,
) -> None:
    """Score maps by the rules of several projects.

    Shows how much of a score is due to the scoring rule: the maps are the same in every line.

    \b
    Examples:
      carina compare-profiles --maps maps --regions gt_segmentations_test.json --geometry whole
      carina compare-profiles --maps maps --regions coco.json --json
    """
    from carina.maps import compare_profiles as compare

    rows = compare(maps, regions, geometry=geometry, progress=partial(progress, quiet=json)).rules
    if json:
        print_json(rows)
        return
    sizes = list(rows[0].by_size)
    headings = ("scoring rule", "all", *(f"{size} (n={rows[0].n[size]})" for size in sizes))
    print_table(
        headings, [(row.protocol, _figure(row.all), *map(_figure, row.by_size.values())) for row in rows]
    )


def list_metrics(
    *,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Scoring profile whose metric variants are listed."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List scoring profiles and metric variants.

    Without --profile, the profiles; with it, the metric variants of that profile and their definitions.

    \b
    Examples:
      carina list-metrics
      carina list-metrics --profile chexlocalize
    """
    from carina.maps import list_metrics as list_

    definitions = list_(profile=profile).definitions
    if json:
        print_json(definitions)
    else:
        print_table(("profile" if profile is None else "variant", "definition"), list(definitions.items()))


def _print_headline(cells: "list[Cell]", scores: "FileScores") -> None:
    """The measures that a report shows first: of all maps, or by finding where the profile reports findings alone."""
    from carina.explanations.analysis.measures import select_measures

    known = [cell.variant for cell in cells if cell.value is not None]
    titles = {one.variant: one.title for one in select_measures(scores.variants.items(), known=known)}
    level = "all" if any(cell.level == "all" for cell in cells) else "finding"
    rows = [
        (
            titles[cell.variant],
            cell.group or "all",
            _figure(cell.value),
            f"{_figure(cell.low)} to {_figure(cell.high)}",
            str(cell.n),
            str(cell.patients),
        )
        for cell in cells
        if cell.level == level and cell.average == "micro" and cell.variant in titles
    ]
    print_table(("measure", "finding", "value", "95% interval", "n", "patients"), rows)
    left = len(cells) - len(rows)
    if left:
        print_line(f"{format_count(left, 'more line')}: --all, or summary.csv", err=True)


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


def _print_unmatched(scores: "FileScores") -> None:
    print_line(f"{format_count(scores.scored, 'map')} scored", err=True)
    for meaning, names in (
        ("maps have no image among the regions", scores.maps_without_image),
        ("maps do not name a finding, and their image has several", scores.maps_without_finding),
        ("regions have no map", scores.regions_without_map),
        ("maps cannot be read and are not scored", scores.unreadable_maps),
    ):
        if names:
            listed = "; ".join(names[:_LISTED]) + ("; ..." if len(names) > _LISTED else "")
            print_line(f"{len(names)} {meaning}: {listed}", err=True)
    if scores.counted_without_region:
        print_line(
            f"{scores.counted_without_region} maps without a region count as false positives in any_mask and gated",
            err=True,
        )
    if scores.counted_without_map:
        print_line(
            f"{scores.counted_without_map} regions without a map (empty regions included) count as empty predictions "
            "in any_mask, gated and pooled",
            err=True,
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
