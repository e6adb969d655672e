"""`carina run`: evaluate a model on a benchmark, step by step."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer

from carina.cli.command import Command
from carina.cli.console import print_json, print_line, print_table, progress
from carina.cli.run_scores import describe_scores, print_failures, print_scores
from carina.cli.shared_options import (
    AcceptTermsOption,
    AddressOption,
    EngineOption,
    ImagesOption,
    JsonOption,
    SeedOption,
    VerifyImagesOption,
)
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from carina.runs import Estimate, Run, ShownPrompt
    from carina.runs.analysis.stage_scores import ScoreSummary
    from carina.runs.options import HistoryName

_EXTRA_BODY_EXAMPLE: Final = """expected an object, such as '{"min_p": 0.1}'"""


class History(StrEnum):
    """History policies; typer takes no literals for an option that may be repeated."""

    OWN = "own"
    GOLD = "gold"
    HINT = "hint"
    NONE = "none"
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


def register(app: typer.Typer) -> None:
    app.command(name="run", cls=Command, no_args_is_help=True)(run)


def run(
    context: typer.Context,
    bench: Annotated[
        list[Path],
        typer.Argument(
            metavar="BENCH",
            help="Directory of a benchmark, or of several; or a YAML file that describes runs.",
        ),
    ],
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", metavar="MODEL", help="Model to evaluate; see Models above. Repeat for several."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="RUN",
            help="Directory to write the run to; for several runs, the directory that holds theirs. Not needed with "
            "--estimate and --show-prompt.",
        ),
    ] = None,
    history: Annotated[
        list[History],
        typer.Option(
            help="History policy, what earlier turns show: own (the model's answers), gold (wrong answers silently "
            "replaced by right ones), hint (the truth stated before the next question) or none. implicit and explicit "
            "are CheXpercept's names for gold and hint at its four correction points. Repeat for several.",
            show_default="own",
        ),
    ] = [History.OWN],  # noqa: B006 - typer makes a new list of it
    scope: Annotated[
        Literal["step", "stage"] | None,
        typer.Option(
            help="When gold and hint correct earlier answers: before every step, or when a new stage begins.",
            show_default="step; stage with implicit, explicit and the profile chexpercept",
        ),
    ] = None,
    on_wrong: Annotated[
        Literal["continue", "stop"],
        typer.Option(help="After a wrong stage: continue, so that every stage is measured, or stop."),
    ] = "continue",
    profile: Annotated[
        Literal["carina", "chexpercept"],
        typer.Option(
            help="Whose rules put the messages together, read the answers and decide where they are corrected: "
            "Carina's, or those after CheXpercept. With chexpercept, `--history none` keeps the model's own answers, "
            "as there."
        ),
    ] = "carina",
    blind: Annotated[
        bool,
        typer.Option(
            "--blind", help="Replace every image by a grey one of the same size: the text-only baseline."
        ),
    ] = False,
    max_side: Annotated[
        int | None,
        typer.Option(metavar="PIXELS", help="Longest side of an image; larger images are downscaled."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Ask only the first N cases of the benchmark.", show_default="all"
        ),
    ] = None,
    sample_per_stratum: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Ask only N cases of each stratum (lesion and path), sampled at random.",
            show_default="all",
        ),
    ] = None,
    split: Annotated[
        Literal["train", "val", "test"] | None,
        typer.Option(help="Ask only cases of this split.", show_default="all"),
    ] = None,
    seed: SeedOption = 0,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="T", help="Sampling temperature; -1 for the model's own default."),
    ] = 0.0,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Longest answer, reasoning included, in tokens.",
            show_default="2048; 8192 with the profile chexpercept",
        ),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of probability from which the next token is drawn; no effect at temperature 0.",
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Number of likeliest tokens from which the next one is drawn; no effect at temperature 0.",
        ),
    ] = None,
    reasoning_effort: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
        typer.Option(
            help="How much a model that reasons does so; few models know all words.",
            show_default="the model's own",
        ),
    ] = None,
    reasoning_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Most tokens of reasoning before an answer, fewer than --max-tokens."
        ),
    ] = None,
    extra_body: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="Further fields of each request to a server with the OpenAI API, as a JSON object. They are recorded "
            "in run.json: give no key here.",
        ),
    ] = None,
    structured: Annotated[
        bool,
        typer.Option(
            "--structured",
            help="Ask for JSON in a schema that is made from the question, where its answer is no free text.",
        ),
    ] = False,
    first_request: Annotated[
        bool,
        typer.Option(
            "--first-request/--no-first-request",
            help="Send a tiny request to a served model before anything else, which finds a wrong address, key or name "
            "within seconds.",
        ),
    ] = True,
    system_prompt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with a system prompt, UTF-8, for all protocols of the benchmark; an empty file for none.",
            show_default="the protocol's own",
        ),
    ] = None,
    prompt_style: Annotated[
        Literal["plain", "reasoning", "answer"],
        typer.Option(
            help="What is added to the system prompt: plain (nothing), reasoning (reason step by step before the "
            "answer) or answer (give the answer alone)."
        ),
    ] = "plain",
    image_order: Annotated[
        Literal["before", "after"] | None,
        typer.Option(
            help="Whether the images of a message come before its text or after it.",
            show_default="before; after with the profile chexpercept",
        ),
    ] = None,
    image_detail: Annotated[
        Literal["auto", "low", "high"],
        typer.Option(
            help="Resolution at which a served model is asked to look at images; auto: its provider's choice."
        ),
    ] = "auto",
    examples: Annotated[
        Path | None,
        typer.Option(
            metavar="BENCH",
            help="Benchmark from which cases are shown with their right answers before each case, never of a patient "
            "of whom a case is asked.",
            show_default="no examples",
        ),
    ] = None,
    examples_split: Annotated[
        Literal["train", "val", "test"] | None,
        typer.Option(help="With --examples: draw them from this split.", show_default="any"),
    ] = None,
    examples_per_protocol: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="With --examples: number of them for the cases of each protocol."
        ),
    ] = 2,
    max_example_images: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="With --examples: most images of those of a protocol together."
        ),
    ] = 20,
    connections: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Number of conversations to hold with a served model at the same time."
        ),
    ] = 16,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of processes, for a model that runs in-process; served models have --connections.",
        ),
    ] = 1,
    engine: EngineOption = "local",
    address: AddressOption = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of the server for openai-api/..., such as http://localhost:8000/v1.",
        ),
    ] = None,
    retries: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of retries after a transport error.")
    ] = 5,
    timeout: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="Time limit for one attempt at an answer.")
    ] = 300,
    accept_terms: AcceptTermsOption = False,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Allow an hf: model to run the code that comes with it."),
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Device of an in-process model: cpu, cuda, cuda:1 or mps."),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of questions that an in-process model gets at a time.",
            show_default="the model's own",
        ),
    ] = None,
    images: ImagesOption = None,
    verify_images: VerifyImagesOption = True,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print calls, tokens and cost; send nothing.")
    ] = False,
    show_prompt: Annotated[
        bool,
        typer.Option(
            "--show-prompt", help="Print the messages of one case as they would be sent; send nothing."
        ),
    ] = False,
    case: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="With --show-prompt: the case to show.", show_default="the first one"
        ),
    ] = None,
    price_in: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DOLLARS", help="With --estimate: price in US dollars per million tokens sent."
        ),
    ] = None,
    price_out: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DOLLARS", help="With --estimate: price in US dollars per million tokens written."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Evaluate models on benchmarks, step by step.

    Every answer is kept. An interrupted run resumes with the same command, at the question where it stopped: no answer
    is asked for twice. Questions that could not be delivered to the model are listed, never counted as wrong, and
    asked again by the same command. A larger --limit or --sample-per-stratum, or none, extends a run by the cases that
    it lacks.

    At the end, the scores by stage are printed: the numbers of `carina report`, beside chance and a blind baseline.
    The blind baseline is a run of the same cases in a directory beside this run, by the same model with --blind or
    else by builtin/majority; without such a run, it is the best constant answer to each kind of question.

    With several benchmarks, models or histories, every combination is a run of its own in a directory below --out. A
    run that fails does not stop the others. A YAML file describes the same, with options for single models.

    \b
    Models:
      builtin/random, builtin/majority, builtin/oracle    chance, the most frequent answer, the answer key
      builtin/reader                                      classical image processing
      builtin/anchored                                    the same, but it trusts its earlier answers
      openai/gpt-5, anthropic/..., google/..., ollama/... any provider of inspect-ai (extra served)
      openai-api/NAME/MODEL with --base-url URL           any server with the OpenAI API, such as vLLM
      hf:PATH or hf:HUB-ID                                model of transformers, in-process (extra torch)
      onnx:PATH                                           classifier of findings, in-process (extra onnx)
      function:MODULE.NAME                                Python function of a module in the working directory

    \b
    An extra is installed with pip install 'carina[NAME]', in a clone with pip install -e '.[NAME]'.

    \b
    Examples:
      carina run percept --model builtin/reader -o runs/reader
      carina run percept --model openai/gpt-5 --estimate
      carina run percept --model openai/gpt-5 --system-prompt mine.txt --show-prompt
      carina run percept --model openai/gpt-5 --history gold --sample-per-stratum 20 -o runs/gpt-5-gold
      carina run trek --model openai-api/local/medgemma --base-url http://localhost:8000/v1 -o runs/medgemma
      carina run percept trek --model openai/gpt-5 --model builtin/majority --history own --history gold -o runs
      carina run experiment.yaml
    """
    from carina import runs
    from carina.cli import run_several
    from carina.runs.analysis.stage_scores import summarise_run

    if len(bench) == 1 and runs.is_experiment_file(bench[0]):
        run_several.run_file(context, bench[0], out, as_json=json)
        return
    if not model:
        raise CarinaError("--model: missing; name the model to evaluate")
    histories: list[HistoryName] = [one.value for one in history]
    several = max(len(bench), len(model), len(histories)) > 1
    if show_prompt:
        if several:
            raise CarinaError("--show-prompt: expected one benchmark, one model and one history")
        shown = runs.show_prompt(
            bench[0],
            model[0],
            case=case,
            history=histories[0],
            scope=scope,
            profile=profile,
            blind=blind,
            max_side=max_side,
            split=split,
            seed=seed,
            system_prompt=system_prompt,
            prompt_style=prompt_style,
            image_order=image_order,
            image_detail=image_detail,
            examples=examples,
            examples_split=examples_split,
            examples_per_protocol=examples_per_protocol,
            max_example_images=max_example_images,
            images=images,
        )
        _print_prompt(shown, as_json=json)
        return
    if estimate:
        if several:
            raise CarinaError("--estimate: expected one benchmark, one model and one history")
        found = runs.estimate(
            bench[0],
            model[0],
            history=histories[0],
            scope=scope,
            on_wrong=on_wrong,
            profile=profile,
            max_side=max_side,
            limit=limit,
            sample_per_stratum=sample_per_stratum,
            split=split,
            seed=seed,
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            prompt_style=prompt_style,
            image_order=image_order,
            image_detail=image_detail,
            examples=examples,
            examples_split=examples_split,
            examples_per_protocol=examples_per_protocol,
            max_example_images=max_example_images,
            images=images,
            price_in=price_in,
            price_out=price_out,
        )
        _print_estimate(found, as_json=json)
        return
    if out is None:
        raise CarinaError(
            "--out: missing; name the directory of the run, or pass --estimate or --show-prompt"
        )
    options: dict[str, Any] = dict(  # noqa: C408 - keywords of `carina.run`
        scope=scope,
        on_wrong=on_wrong,
        profile=profile,
        blind=blind,
        max_side=max_side,
        limit=limit,
        sample_per_stratum=sample_per_stratum,
        split=split,
        seed=seed,
        temperature=temperature,
        max_tokens=max_tokens,
        top_p=top_p,
        top_k=top_k,
        reasoning_effort=reasoning_effort,
        reasoning_tokens=reasoning_tokens,
        extra_body=_read_extra_body(extra_body),
        structured=structured,
        first_request=first_request,
        system_prompt=system_prompt,
        prompt_style=prompt_style,
        image_order=image_order,
        image_detail=image_detail,
        examples=examples,
        examples_split=examples_split,
        examples_per_protocol=examples_per_protocol,
        max_example_images=max_example_images,
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
        batch_size=batch_size,
        images=images,
        verify_images=verify_images,
    )
    if several:
        run_several.run_combinations(bench, model, histories, out, options, as_json=json)
        return
    finished = runs.run(
        bench[0],
        model[0],
        out,
        history=histories[0],
        **options,
        progress=partial(progress, quiet=json),
        notify=lambda sentence: print_line(sentence, err=True),
    )
    _print_run(finished, summarise_run(finished.path, images), as_json=json)


def _read_extra_body(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise CarinaError(f"--extra-body: not JSON ({error}); {_EXTRA_BODY_EXAMPLE}") from None
    if not isinstance(fields, dict):
        raise CarinaError(f"--extra-body: no JSON object; {_EXTRA_BODY_EXAMPLE}")
    return fields


def _print_prompt(shown: "ShownPrompt", *, as_json: bool) -> None:
    if as_json:
        print_json(shown.to_dict())
        return
    print_line(shown)


def _print_estimate(found: "Estimate", *, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
    else:
        print_table(("quantity", "amount"), found.rows())
    if found.warning:
        print_line(found.warning, fg=typer.colors.YELLOW, err=True)


def _print_run(finished: "Run", summary: "ScoreSummary", *, as_json: bool) -> None:
    counts, failures = finished.counts, finished.failures
    if as_json:
        print_json(
            {
                "run": finished.path,
                "model": finished.info.model,
                "counts": counts,
                "failed": failures,
                **describe_scores(summary),
            }
        )
    else:
        print_line(finished.path)
        unparsed = sum(number for status, number in counts.statuses.items() if status != "ok")
        print_line(
            f"{format_count(counts.cases, 'case')}, {counts.answered} of {format_count(counts.steps, 'step')} answered"
            + (f", {counts.not_reached} not reached" if counts.not_reached else "")
            + (f", {format_count(unparsed, 'answer')} could not be parsed" if unparsed else ""),
            err=True,
        )
        print_scores(summary)
    if print_failures(failures):
        raise typer.Exit(1)
