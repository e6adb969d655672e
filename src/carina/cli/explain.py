"""`carina explain`: localisation maps of a model, scored against the regions that experts drew."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carina.cli.console import one_of, print_json, print_table, progress

if TYPE_CHECKING:
    import polars as pl

    from carina.cases import Benchmark
    from carina.ground.explain.checks import Checks
    from carina.ground.explain.faithfulness import FaithfulnessOptions
    from carina.ground.explain.running import Explained, ExplainOptions
    from carina.ground.explain.scoring import Scoring

_HEADLINE = {
    "pointing game": "hit.bilinear_full.full_image.expected.positives.per_image",
    "IoU, tuned": "iou.bilinear_full.full_image.tuned_iou_minmax256.positives.per_image",
    "IoU, Otsu": "iou.bilinear_full.full_image.otsu.positives.per_image",
    "pixel AUROC": "auroc.bilinear_full.full_image.per_image",
    "mass": "mass.bilinear_full.full_image.per_image",
}
"""What is printed of Carina's own profile; everything is in the files."""


def register(app: typer.Typer) -> None:
    app.command(name="explain", no_args_is_help=True)(explain)


def explain(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="A benchmark made by carina build ground.")],
    *,
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="NAME", help="What is explained, by one of the names above."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="RUN", help="Where maps and scores are written.")
    ],
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How, by one of the names above.", show_default="the model's own"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the method; repeat for several."),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            help="How maps are scored: carina, chexlocalize, medklip, mavl, radzero, afloc, torchray, quantus."
        ),
    ] = "carina",
    tune_on: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Split whose maps choose the thresholds and are not scored: train, val or test.",
            show_default="none: tuned variants are left out",
        ),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option("--controls/--no-controls", help="Score maps that need no model beside the model's."),
    ] = True,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most probes, of each finding in turn.", show_default="all")
    ] = None,
    on_error: Annotated[
        str, typer.Option(help="skip or stop at a probe that cannot be asked: no image, or no words for it.")
    ] = "skip",
    check: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Check so many maps: do they depend on the image, the text and the weights?",
            show_default="none",
        ),
    ] = None,
    check_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of deletion and insertion, such as imputation=noisy-linear; repeat for several.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For methods and controls that draw by chance.")] = 0,
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the images lie, if not where BENCH says.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a running Ray cluster.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that make maps; by default one a core.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Do a model's localisation maps agree with the regions that experts drew? After XBench.

    Makes a map for every probe, scores it by every variant of a profile beside controls that need no model, and tells
    how well the same model knows that the finding is there at all. Interrupted, the same command resumes.

    \b
    Models:
      clip:PATH, siglip:PATH, biomedclip:PATH, chexzero:PATH, medclip:PATH, biovil:PATH, biovil-t:PATH,
      gloria:PATH, afloc:PATH, medklip:PATH, kad:PATH, mavl:PATH, carzero:PATH
                          weights in a folder of this machine; needs carina[torch]. Of a folder with several
                          checkpoints of one model, such as CheXzero's, the mean is taken
      hf:PATH             a chat model, LLaVA or Gemma 3; needs carina[torch]
      builtin/untrained   random weights: what a method shows of nothing
      builtin/asymmetry   what one side of the chest has and the other has not
      control/NAME        uniform, centre, lungs, mean-region, random, oracle

    \b
    Methods of models with weights:
      similarity, word-attention, cross-attention, maskclip, gem, grad-cam, legrad, relevance, rollout, gscorecam,
      rise, occlusion; of chat models attention

    \b
    Examples:
      carina explain probes --model builtin/asymmetry -o maps/asymmetry
      carina explain probes --model biomedclip:weights/biomedclip --method gem --tune-on val -o maps/gem
      carina explain probes --model carzero:weights/carzero --profile chexlocalize -o maps/carzero
      carina explain probes --model biovil:weights/biovil --option sigma=0 --limit 100 -o maps/biovil
      carina explain probes --model biovil:weights/biovil --check 20 --check-option steps=49 -o maps/biovil
      carina explain probes --model hf:weights/llava --option layers=14-20 --workers 1 -o maps/llava
    """
    from carina.cases import open_benchmark
    from carina.ground.explain.controls import CONTROLS
    from carina.ground.explain.faithfulness import FaithfulnessOptions
    from carina.ground.explain.maps import open_maps
    from carina.ground.explain.methods.options import configured
    from carina.ground.explain.running import ExplainOptions, chosen_cases
    from carina.ground.explain.running import explain as run
    from carina.ground.explain.scoring import SUMMARY, check_tuning, score_maps
    from carina.ground.score.profiles import profile as known

    if address is not None and engine != "ray":
        raise typer.BadParameter(
            "is the address of a Ray cluster: give --engine ray too", param_hint="--address"
        )
    known(profile)
    if check_option and check is None:
        raise typer.BadParameter("is an option of --check N: give that too", param_hint="--check-option")
    if check is not None:
        from carina.ground.explain.checks import require_weights

        require_weights(model)
    checking = configured(
        FaithfulnessOptions, _options("--check-option", check_option or []), "checks", seed=seed
    )
    opened = open_benchmark(bench, images)
    if tune_on is not None:
        check_tuning(opened, tune_on)
    options = ExplainOptions(
        method=method, method_options=_options("--option", option or []), seed=seed, limit=limit
    )
    with progress("Maps", len(chosen_cases(opened, limit)), quiet=json) as advance:
        made = run(
            opened,
            model,
            out,
            options,
            images=images,
            workers=workers or os.cpu_count() or 1,
            engine=one_of("--engine", engine, "local", "ray"),
            address=address,
            on_error=one_of("--on-error", on_error, "skip", "stop"),
            progress=advance,
        )
    _tell_skipped(out, made)
    beside = CONTROLS if controls and not model.startswith("control/") else ()
    with progress("Scores", 1 + len(beside), quiet=json) as advance:
        found = score_maps(
            opened,
            open_maps(out),
            profile_name=profile,
            tune_on=tune_on,
            controls=beside,
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            progress=advance,
        )
    checks = None
    if check is not None:
        checks = _checks(opened, out, model, options, number=check, checking=checking, quiet=json)
    if json:
        told = {"run": out, "skipped": len(made.skipped), "scoring": found}
        print_json(told | ({} if checks is None else {"checks": checks}))
    else:
        import polars as pl

        _tell(out, found, pl.read_parquet(out / SUMMARY))
        if checks is not None:
            _tell_checks(checks)


def _checks(
    bench: "Benchmark",
    out: Path,
    model: str,
    options: "ExplainOptions",
    *,
    number: int,
    checking: "FaithfulnessOptions",
    quiet: bool,
) -> "Checks":
    from carina.ground.explain.checks import check_maps, write_checks
    from carina.ground.explain.clip import open_clip_explainer
    from carina.ground.explain.maps import open_maps

    maps = open_maps(out)
    explainer = open_clip_explainer(model, options.method, options.method_options, seed=options.seed)
    with progress("Checks", min(number, len(maps)), quiet=quiet) as advance:
        found = check_maps(
            bench, maps, explainer, number, options=checking, seed=options.seed, progress=advance
        )
    write_checks(out, found)
    return found.checks


def _tell_skipped(out: Path, made: "Explained") -> None:
    if made.skipped:
        from carina.cases.building import SKIPPED

        first, reason = made.skipped[0]
        typer.echo(
            f"{len(made.skipped)} probes skipped, such as {first}: {reason} ({out / SKIPPED} has all)",
            err=True,
        )


def _options(flag: str, given: list[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is not NAME=VALUE", param_hint=flag)
        parsed[name] = value
    return parsed


def _tell(out: Path, found: "Scoring", summary: "pl.DataFrame") -> None:
    typer.echo(out)
    for line in _remarks(found):
        typer.echo(line, err=True)
    if found.profile == "carina":
        _tell_headline(
            found,
            summary,
            {name: column for name, column in _HEADLINE.items() if column in found.variants},
        )
    else:
        _tell_variants(found, summary)
    known = [item for item in found.recognition if item.auroc.value is not None]
    if known:
        told = [[item.finding, str(item.present), str(item.absent), _interval(item.auroc)] for item in known]
        print_table(("recognition", "there", "absent", "AUROC"), told)


def _remarks(found: "Scoring") -> Iterator[str]:
    yield f"{found.model}, {found.method}: {found.scored} maps of findings that are there"
    if found.tuned_on is not None:
        yield f"thresholds tuned on {found.tuned} maps of split {found.tuned_on}"
    if found.shared:
        yield f"{found.shared} maps are not scored: thresholds were tuned on maps of the same patients"
    if found.blank:
        yield f"{found.blank} of the scored maps hold no number at all"


def _tell_headline(found: "Scoring", summary: "pl.DataFrame", headline: dict[str, str]) -> None:
    """A line for the model and for each control."""
    cells = {
        (row["source"], row["variant"]): _figure(row)
        for row in summary.filter(level="all", average="micro").to_dicts()
    }
    rows = [
        [_called(found, source)] + [cells.get((source, column), "") for column in headline.values()]
        for source in _sources(summary)
    ]
    print_table(("", *headline), rows)


def _tell_variants(found: "Scoring", summary: "pl.DataFrame") -> None:
    """A line for each variant of a published profile; the mean over findings where it has no figure of all together."""
    whole = summary.filter(level="all", average="micro")
    if whole.is_empty():
        import polars as pl

        findings = summary.filter(level="finding", average="micro")
        whole = findings.group_by("source", "variant").agg(pl.col("value").mean())
        typer.echo("means over findings; figures of each, with intervals, are in summary.parquet", err=True)
    cells = {
        (row["source"], row["variant"]): _figure({"low": None, "high": None, **row})
        for row in whole.to_dicts()
    }
    sources = _sources(summary)
    rows = [
        [variant, *(cells.get((source, variant), "-") for source in sources)] for variant in found.variants
    ]
    print_table(("", *(_called(found, source) for source in sources)), rows)


def _sources(summary: "pl.DataFrame") -> list[str]:
    return list(dict.fromkeys(summary["source"].to_list()))


def _called(found: "Scoring", source: str) -> str:
    return found.model if source == "model" else source


def _tell_checks(checks: "Checks") -> None:
    """All but the steps of a cascade, which are in the files."""
    rows = [
        [figure.name, _interval(figure.mean), str(figure.mean.n)]
        for figure in checks.figures
        if not figure.name.startswith("weights.") or figure.name.startswith("weights.whole.")
    ]
    print_table(("check", "mean", "n"), rows)


def _figure(row: dict[str, object]) -> str:
    value, low, high = row["value"], row["low"], row["high"]
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if low is None else f" ({low:.3f} to {high:.3f})")


def _interval(found: object) -> str:
    import msgspec

    return _figure(msgspec.to_builtins(found))
