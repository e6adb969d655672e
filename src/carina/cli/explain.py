"""`carina explain`: localisation maps of a model, scored against the regions that experts drew."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from carina.cli.command import Command
from carina.cli.console import format_share, print_json, print_line, print_table, progress
from carina.cli.shared_options import (
    AddressOption,
    EngineOption,
    ImagesOption,
    JsonOption,
    SeedOption,
    VerifyImagesOption,
    WorkersOption,
)
from carina.store.counts import format_count

if TYPE_CHECKING:
    import polars as pl

    from carina.explanations.checks import Checks
    from carina.explanations.map_run import MapRun
    from carina.explanations.scoring import Scoring


def register(app: typer.Typer) -> None:
    app.command(name="explain", cls=Command, no_args_is_help=True)(explain)


def explain(
    bench: Annotated[
        Path, typer.Argument(metavar="BENCH", help="Benchmark of probes, built by carina build ground.")
    ],
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="MODEL", help="Model to explain; see Models above.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="RUN", help="Directory to write the maps and scores to.")
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Explanation method; see Methods above.",
            show_default="the method that the model was published with",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of the method; repeat for several."),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Scoring profile: carina, chexlocalize, medklip, mavl, radzero, afloc, torchray or quantus.",
        ),
    ] = "carina",
    tune_on: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Split on which thresholds are tuned, and whose maps are not scored: train, val or test.",
            show_default="no split: metrics with tuned thresholds are left out",
        ),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls/--no-controls",
            help="Score also controls: maps that need no model.",
        ),
    ] = True,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Make at most N maps, for probes of each finding in turn.",
            show_default="all",
        ),
    ] = None,
    on_error: Annotated[
        Literal["skip", "stop"],
        typer.Option(
            help="At a probe whose image cannot be read, or for which the model has no prompt: skip it, or stop."
        ),
    ] = "skip",
    check: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Test N maps: do they depend on the image, on the text and on the weights?",
            show_default="no checks",
        ),
    ] = None,
    check_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of the deletion and insertion checks, such as imputation=noisy-linear; repeat for several.",
        ),
    ] = None,
    seed: SeedOption = 0,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Device of a CLIP-style or chat model: cpu, cuda, cuda:1 or mps.",
            show_default="cpu",
        ),
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Number of probes that a CLIP-style model gets at a time."),
    ] = 16,
    images: ImagesOption = None,
    verify_images: VerifyImagesOption = True,
    engine: EngineOption = "local",
    address: AddressOption = None,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Make and score localisation maps of a model.

    A probe is one finding on one image. Makes one map for each probe, scores it against the regions that experts drew,
    after XBench, by all metrics of a profile, beside controls that need no model, and reports how well the same model
    recognises that the finding is present. If the command is interrupted, repeat it to resume.

    \b
    Models:
      clip:PATH, siglip:PATH, biomedclip:PATH, chexzero:PATH, medclip:PATH, biovil:PATH, biovil-t:PATH,
      gloria:PATH, afloc:PATH, medklip:PATH, kad:PATH, mavl:PATH, carzero:PATH
                          CLIP-style models with weights in a local folder; need carina[torch]. Maps of several
                          checkpoints in one folder, as CheXzero is published, are averaged
      hf:PATH             chat model, LLaVA or Gemma 3; needs carina[torch]
      builtin/untrained   random weights: what a method shows without a trained model
      builtin/asymmetry   differences between the two sides of the chest
      files:DIR           maps that others made: .npy, .npz, .png or .tif, named <image>_<finding>_map;
                          or listed in its index.csv; option geometry=HOW, as for score-maps
      control/NAME        uniform, centre, lungs, mean-region, random, oracle

    \b
    Methods for CLIP-style models:
      similarity, word-attention, cross-attention, maskclip, gem, grad-cam, legrad, relevance, rollout, gscorecam,
      rise, occlusion
    Method for chat models:
      attention

    \b
    Examples:
      carina explain probes --model builtin/asymmetry -o maps/asymmetry
      carina explain probes --model biomedclip:weights/biomedclip --method gem --tune-on val -o maps/gem
      carina explain probes --model carzero:weights/carzero --profile chexlocalize -o maps/carzero
      carina explain probes --model biovil:weights/biovil --option sigma=0 --limit 100 -o maps/biovil
      carina explain probes --model biovil:weights/biovil --check 20 --check-option steps=49 -o maps/biovil
      carina explain probes --model hf:weights/llava --option layers=14-20 --workers 1 -o maps/llava
    """
    from carina.explanations import explain as make_map_run

    run = make_map_run(
        bench,
        model,
        out,
        method=method,
        options=_options("--option", option or []),
        profile=profile,
        tune_on=tune_on,
        controls=controls,
        checks=check,
        check_options=_options("--check-option", check_option or []),
        seed=seed,
        limit=limit,
        images=images,
        verify_images=verify_images,
        on_error=on_error,
        device=device,
        batch_size=batch_size,
        workers=workers,
        engine=engine,
        address=address,
        progress=partial(progress, quiet=json),
    )
    if run.skipped:
        first, reason = run.skipped[0]
        print_line(
            f"{format_count(len(run.skipped), 'probe')} skipped, such as {first}: {reason} "
            f"(all are in {out / 'skipped.csv'})",
            err=True,
        )
    if json:
        content = {"run": out, "skipped": len(run.skipped), "scoring": run.scoring}
        print_json(content | ({} if check is None else {"checks": run.checks}))
    else:
        _print_run(run)
        if check is not None and run.checks is not None:
            _print_checks(run.checks)


def _options(flag: str, texts: list[str]) -> dict[str, str]:
    parsed: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=flag)
        parsed[name] = value
    return parsed


def _print_run(run: "MapRun") -> None:
    from carina.explanations.map_run import HEADLINE

    scoring, summary = run.scoring, run.summary()
    print_line(run.path)
    for line in _remarks(scoring):
        print_line(line, err=True)
    if scoring.profile == "carina":
        _print_headline(
            scoring,
            summary,
            {title: variant for title, variant in HEADLINE.items() if variant in scoring.variants},
        )
    else:
        _print_variants(scoring, summary)
    known = [item for item in scoring.recognition if item.auroc.value is not None]
    if known:
        rows = [[item.finding, str(item.present), str(item.absent), _interval(item.auroc)] for item in known]
        print_table(("recognition", "present", "absent", "AUROC"), rows)


def _remarks(scoring: "Scoring") -> Iterator[str]:
    yield f"{scoring.model}, {scoring.method}: {format_count(scoring.scored, 'map')} of present findings scored"
    yield from scoring.notes
    if scoring.tuned_on is not None:
        yield f"thresholds tuned on {format_count(scoring.tuned, 'map')} of split {scoring.tuned_on}"
    if scoring.shared:
        yield f"{format_count(scoring.shared, 'map')} not scored: thresholds were tuned on maps of the same patients"
    if scoring.blank:
        yield f"{format_count(scoring.blank, 'scored map')} without a finite number"


def _print_headline(scoring: "Scoring", summary: "pl.DataFrame", headline: dict[str, str]) -> None:
    """One line for the model and one for each control."""
    cells = {
        (row["source"], row["variant"]): _figure(row)
        for row in summary.filter(level="all", average="micro").to_dicts()
    }
    rows = [
        [_title(scoring, source)] + [cells.get((source, column), "") for column in headline.values()]
        for source in _sources(summary)
    ]
    print_table(("", *headline), rows)


def _print_variants(scoring: "Scoring", summary: "pl.DataFrame") -> None:
    """One line for each metric variant; the mean over findings where the profile has no value for all findings."""
    whole = summary.filter(level="all", average="micro")
    if whole.is_empty():
        import polars as pl

        findings = summary.filter(level="finding", average="micro")
        whole = findings.group_by("source", "variant").agg(pl.col("value").mean())
        print_line("means over findings; values by finding, with intervals, are in summary.parquet", err=True)
    cells = {
        (row["source"], row["variant"]): _figure({"low": None, "high": None, **row})
        for row in whole.to_dicts()
    }
    sources = _sources(summary)
    rows = [
        [variant, *(cells.get((source, variant), "-") for source in sources)] for variant in scoring.variants
    ]
    print_table(("", *(_title(scoring, source) for source in sources)), rows)


def _sources(summary: "pl.DataFrame") -> list[str]:
    return list(dict.fromkeys(summary["source"].to_list()))


def _title(scoring: "Scoring", source: str) -> str:
    return scoring.model if source == "model" else source


def _print_checks(checks: "Checks") -> None:
    """All checks but the single steps of the weight cascade, which are in the files."""
    rows = [
        [figure.name, _interval(figure.mean), str(figure.mean.n)]
        for figure in checks.figures
        if not figure.name.startswith("weights.") or figure.name.startswith("weights.whole.")
    ]
    print_table(("check", "mean", "n"), rows)


def _figure(row: dict[str, Any]) -> str:
    return format_share(row["value"], row["low"], row["high"])


def _interval(interval: object) -> str:
    import msgspec

    return _figure(msgspec.to_builtins(interval))
