"""`carina run`: examine a model, step by step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast, get_args

import typer

from carina.cli.console import print_json, print_table, progress
from carina.errors import CarinaError

if TYPE_CHECKING:
    from carina.run import Policy, RunOptions, RunResult

_CHEXPERCEPT: Final = {"none": "own", "implicit": "gold", "explicit": "hint"}
"""What the settings of CheXpercept are called here."""
_SHOWN: Final = 10
"""Failed cases that are named."""


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
        str,
        typer.Option(
            help="What the next turn sees: own (the model's answers), gold (wrong ones silently replaced), hint (the "
            "truth told before the next question) or none. Also implicit and explicit, as CheXpercept calls gold and "
            "hint at its four places."
        ),
    ] = "own",
    scope: Annotated[
        str | None,
        typer.Option(help="Whether gold and hint mend before every step, or stage by stage: step or stage."),
    ] = None,
    on_wrong: Annotated[
        str, typer.Option(help="After a wrong stage: continue (every stage is measured) or stop.")
    ] = "continue",
    profile: Annotated[
        str,
        typer.Option(
            help="carina, or chexpercept: its parser and places; its setting `none` is then called none."
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
    max_tokens: Annotated[int, typer.Option(help="Longest answer.")] = 2048,
    connections: Annotated[
        int, typer.Option(min=1, help="Conversations at a time, with a served model.")
    ] = 16,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the cases.")] = 1,
    engine: Annotated[
        str, typer.Option(help="Where models that run beside the benchmark share the cases: local or ray.")
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
    json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Examine a model on a benchmark, and keep every answer.

    Interrupted, the same command resumes at the turn where it was: no answer is asked for twice. What fails on the way
    is listed, never counted as wrong, and asked again by the next call.

    \b
    Models:
      builtin/random, builtin/majority, builtin/oracle    blind draws, the usual answer, the key
      builtin/reader                                      classical image processing
      openai/gpt-5, anthropic/..., google/..., ollama/... any provider of inspect-ai (pip install 'carina[served]')
      openai-api/NAME/MODEL with --base-url URL           any server in the OpenAI layout, such as vLLM
      hf:PATH or hf:HUB-ID                                in this process (pip install 'carina[torch]')
      onnx:PATH                                           in this process (pip install 'carina[onnx]')

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
        engine="ray" if engine == "ray" else "local",
        address=address,
        base_url=base_url,
        retries=retries,
        timeout=timeout,
        accept_terms=accept_terms,
        trust_remote_code=trust_remote_code,
        device=device,
        images=images,
    )
    _known("--engine", engine, ("local", "ray"))
    total = _cases(bench, options)
    if estimate:
        _estimate(bench, model, options, as_json=json)
        return
    if out is None:
        raise CarinaError("--out: where shall the run be written? (--estimate needs none)")
    with progress("Cases", total, quiet=json) as advance:
        result = run_model(bench, model, out, options, progress=advance)
    _tell(out, result, as_json=json)


def _known(option: str, given: str, words: tuple[str, ...]) -> None:
    if given not in words:
        raise CarinaError(f"{option} {given!r}: expected {', '.join(words[:-1])} or {words[-1]}")


def _policy(history: str, scope: str | None, on_wrong: str, profile: str) -> "Policy":
    from carina.run import Policy
    from carina.run.records import History, Profile, Scope

    _known("--profile", profile, get_args(Profile))
    named = history
    if profile == "chexpercept" or history in ("implicit", "explicit"):
        scope = scope or "stage"
        named = _CHEXPERCEPT.get(history, history)
    _known("--history", named, get_args(History))
    _known("--scope", scope or "step", get_args(Scope))
    _known("--on-wrong", on_wrong, ("continue", "stop"))
    return Policy(
        history=cast("History", named),
        scope=cast("Scope", scope or "step"),
        on_wrong="stop" if on_wrong == "stop" else "continue",
        profile=cast("Profile", profile),
    )


def _cases(bench: Path, options: "RunOptions") -> int:
    from carina.cases import open_benchmark
    from carina.run.choose import chosen_cases

    benchmark = open_benchmark(bench, verify=False)
    chosen = chosen_cases(
        benchmark, limit=options.limit, sample_per_cell=options.sample_per_cell, seed=options.seed
    )
    return len(benchmark) if chosen is None else len(chosen)


def _estimate(bench: Path, model: str, options: "RunOptions", *, as_json: bool) -> None:
    from carina.run.estimate import estimate

    found = estimate(bench, model, options)
    if as_json:
        print_json(found)
        return
    rows = [(name.replace("_", " "), found.words(name)) for name in found.__struct_fields__]
    print_table(("what", "how much"), rows)


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
