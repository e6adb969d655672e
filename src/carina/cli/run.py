"""`carina run`: examine a model, step by step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from carina.cli.console import print_json, print_table, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.run import History, Policy, RunOptions, RunResult
    from carina.run.records import Profile, Scope

_CHEXPERCEPT: Final = {"none": "own", "implicit": "gold", "explicit": "hint"}
"""What the settings of CheXpercept are called here."""
_SHOWN: Final = 10
"""Failed cases that are named."""
_OLD: Final = 12
"""Months after which prices are not those of today."""


def register(app: typer.Typer) -> None:
    app.command(name="run", no_args_is_help=True)(run)


def run(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="Directory of a benchmark.")],
    *,
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="Who is examined; see Models."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="RUN", help="Where the run is written; not needed to estimate."),
    ] = None,
    history: Annotated[
        Literal["own", "gold", "hint", "none", "implicit", "explicit"],
        typer.Option(
            help="What the next turn sees: own (the model's answers), gold (wrong ones silently replaced), hint (the "
            "truth told before the next question) or none; implicit and explicit, as CheXpercept calls gold and hint "
            "at its four places."
        ),
    ] = "own",
    scope: Annotated[
        Literal["step", "stage"] | None,
        typer.Option(help="Whether gold and hint mend before every step, or stage by stage."),
    ] = None,
    on_wrong: Annotated[
        Literal["continue", "stop"],
        typer.Option(help="After a wrong stage: go on, so that every stage is measured, or stop."),
    ] = "continue",
    profile: Annotated[
        Literal["carina", "chexpercept"],
        typer.Option(
            help="Whose parser and places; with chexpercept, `--history none` is its setting of that name."
        ),
    ] = "carina",
    blind: Annotated[
        bool, typer.Option("--blind", help="Replace every picture by a grey card: the text-only baseline.")
    ] = False,
    max_side: Annotated[
        int | None, typer.Option(metavar="PIXELS", help="Downscale pictures to this longest side.")
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N cases.")] = None,
    sample_per_cell: Annotated[
        int | None, typer.Option(metavar="N", help="N cases of every lesion and path, by lot.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the lot, and of models that draw.")] = 0,
    temperature: Annotated[
        float | None, typer.Option(help="0 by default; negative leaves it to the model.")
    ] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, reasoning and all.")] = 2048,
    connections: Annotated[
        int, typer.Option(min=1, help="Conversations at a time, with a served model.")
    ] = 16,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the cases.")] = 1,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Where models that run in this program share the cases.")
    ] = "local",
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Of a Ray cluster.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="Address of a served model.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="Of an answer that fails on the way.")] = 5,
    timeout: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="For one attempt at an answer.")
    ] = 300,
    accept_terms: Annotated[
        bool,
        typer.Option(
            "--accept-terms",
            help="Send images of restricted sources to the model's provider: their terms allow it, and you say so.",
        ),
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let an hf: model run code that comes with it.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="Of an hf: model: cpu, cuda, cuda:1.")] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the images lie, if not where the benchmark says."),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print calls, tokens and cost, and send nothing.")
    ] = False,
    price_in: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DOLLARS", help="For --estimate: price of a million tokens that are sent."
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        typer.Option(min=0, metavar="DOLLARS", help="For --estimate: of a million that the model writes."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Examine a model on a benchmark, and keep every answer.

    Interrupted, the same command resumes at the turn where it was: no answer is asked for twice. What fails on the way
    is listed, never counted as wrong, and asked again by the next call. With a larger --limit or --sample-per-cell, or
    without, a run grows by the cases that it lacks.

    \b
    Models:
      builtin/random, builtin/majority, builtin/oracle    blind draws, the usual answer, the key
      builtin/reader                                      classical image processing
      builtin/anchored                                    the same, believing what was said before
      openai/gpt-5, anthropic/..., google/..., ollama/... any provider of inspect-ai (extra served)
      openai-api/NAME/MODEL with --base-url URL           any server in the OpenAI layout, such as vLLM
      hf:PATH or hf:HUB-ID                                in this process (extra torch)
      onnx:PATH                                           in this process (extra onnx)

    \b
    An extra is installed with pip install 'carina[NAME]', in a clone with pip install -e '.[NAME]'.

    \b
    Examples:
      carina run percept --model builtin/reader -o runs/reader
      carina run percept --model openai/gpt-5 --estimate
      carina run percept --model openai/gpt-5 --history gold --sample-per-cell 20 -o runs/gpt-5-gold
      carina run trek --model openai-api/local/medgemma --base-url http://localhost:8000/v1 -o runs/medgemma
    """
    from carina.models.served import Sampling
    from carina.run import RunOptions, run_model

    options = RunOptions(
        policy=_policy(history, scope, on_wrong, profile),
        blind=blind,
        max_side=max_side,
        limit=limit,
        sample_per_cell=sample_per_cell,
        seed=seed,
        sampling=Sampling(
            temperature=temperature if temperature is not None and temperature >= 0 else None,
            max_tokens=max_tokens,
        ),
        connections=connections,
        processes=processes,
        engine=engine,
        address=address,
        base_url=base_url,
        retries=retries,
        timeout=timeout,
        accept_terms=accept_terms,
        trust_remote_code=trust_remote_code,
        device=device,
        images=images,
    )
    total = _cases(bench, options)
    if estimate:
        _estimate(bench, model, options, _price(price_in, price_out), as_json=json)
        return
    if out is None:
        raise CarinaError("--out: where shall the run be written? (--estimate needs none)")
    with progress("Cases", total, quiet=json) as advance:
        result = run_model(
            bench,
            model,
            out,
            options,
            progress=lambda tally: advance(tally.cases, asked=tally.asked, failed=tally.failed),
            tell=lambda words: typer.echo(words, err=True),
        )
    _tell(out, result, as_json=json)


def _policy(
    history: str,
    scope: "Scope | None",
    on_wrong: Literal["continue", "stop"],
    profile: "Profile",
) -> "Policy":
    from carina.run import Policy

    if profile == "chexpercept" or history in ("implicit", "explicit"):
        scope = scope or "stage"
        history = _CHEXPERCEPT.get(history, history)
    return Policy(history=cast("History", history), scope=scope or "step", on_wrong=on_wrong, profile=profile)


def _cases(bench: Path, options: "RunOptions") -> int:
    from carina.cases import open_benchmark
    from carina.run.choose import chosen_cases

    benchmark = open_benchmark(bench, verify=False)
    chosen = chosen_cases(
        benchmark, limit=options.limit, sample_per_cell=options.sample_per_cell, seed=options.seed
    )
    return len(benchmark) if chosen is None else len(chosen)


def _price(into: float | None, out: float | None) -> tuple[float, float] | None:
    if into is None and out is None:
        return None
    if into is None or out is None:
        raise CarinaError("--price-in and --price-out: one is of no use without the other, expected both")
    return into, out


def _estimate(
    bench: Path, model: str, options: "RunOptions", price: tuple[float, float] | None, *, as_json: bool
) -> None:
    from datetime import UTC, datetime

    from carina.run.estimate import GIVEN, estimate
    from carina.run.prices import months_since

    found = estimate(bench, model, options, price=price)
    if as_json:
        print_json(found)
    else:
        print_table(("what", "how much"), found.rows())
    age = (
        0 if found.prices == GIVEN or not found.cost else months_since(found.prices, datetime.now(UTC).date())
    )
    if age > _OLD:
        typer.secho(
            f"The prices are those of {found.prices}, {age} months ago: look at your provider's page, and give "
            "--price-in and --price-out",
            fg=typer.colors.YELLOW,
            err=True,
        )


def _tell(out: Path, result: "RunResult", *, as_json: bool) -> None:
    counts = result.counts
    if as_json:
        print_json({"run": out, "model": result.info.model, "counts": counts, "failed": result.failed})
    else:
        typer.echo(out)
        unread = sum(times for status, times in counts.statuses.items() if status != "ok")
        typer.echo(
            f"{counts.cases} cases, {counts.answered} of {counts.steps} steps answered"
            f"{f', {counts.not_reached} not reached' if counts.not_reached else ''}"
            f"{f', {unread} answers without a readable choice' if unread else ''}",
            err=True,
        )
    for case, reason in result.failed[:_SHOWN]:
        typer.secho(f"failed: {case}: {reason}", fg=typer.colors.YELLOW, err=True)
    if result.failed:
        more = len(result.failed) - _SHOWN
        also = f" ({more} more)" if more > 0 else ""
        typer.echo(
            f"{len(result.failed)} cases failed on the way{also}; the same command asks them again", err=True
        )
        raise typer.Exit(1)
