"""`carina.run`: evaluate a model on a benchmark; resumes an interrupted run and extends a smaller one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from carina.cases import Benchmark, Case, open_benchmark
from carina.models import ModelName, parse_model_name
from carina.models.conversation import ReasoningEffort
from carina.models.function import FUNCTION, BatchedFunction, ChatFunction, name_function
from carina.models.registry import count_processes, refuse_request_options
from carina.models.served.address import served_address
from carina.runs.claim import claim_run, identify_run, write_info
from carina.runs.examples import prepare_prompts
from carina.runs.failures import describe_failures, refuse_without_answers
from carina.runs.finished import find_finished_run
from carina.runs.info import describe_run, start_call
from carina.runs.log import Answered, read_log
from carina.runs.options import HistoryName, RunOptions, make_options, make_request_options, refuse_structured
from carina.runs.records import ImageDetail, ImageOrder, OnProgress, Profile, PromptStyle, Scope
from carina.runs.results import Run, close_run
from carina.runs.shards import run_in_process
from carina.runs.user_prompts import SystemPrompt, add_prompts
from carina.runs.walk import Walk, resume_walk
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path, image_directory
from carina.store.resume import lock_directory
from carina.store.workers import Engine
from carina.studies.vocabulary import Split

Notify = Callable[[str], object]
"""Gets a sentence about something that a user may not expect."""


@check_arguments
def run(
    bench: Location,
    model: str | ChatFunction | BatchedFunction,
    out: Location,
    *,
    label: str | None = None,
    history: HistoryName = "own",
    scope: Scope | None = None,
    on_wrong: Literal["continue", "stop"] = "continue",
    profile: Profile = "carina",
    blind: bool = False,
    max_side: PositiveInt | None = None,
    limit: PositiveInt | None = None,
    sample_per_stratum: PositiveInt | None = None,
    split: Split | None = None,
    seed: int = 0,
    temperature: float | None = 0.0,
    max_tokens: PositiveInt | None = None,
    top_p: float | None = None,
    top_k: PositiveInt | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    reasoning_tokens: PositiveInt | None = None,
    extra_body: Mapping[str, Any] | None = None,
    structured: bool = False,
    first_request: bool = True,
    system_prompt: SystemPrompt = None,
    prompt_style: PromptStyle = "plain",
    image_order: ImageOrder | None = None,
    image_detail: ImageDetail = "auto",
    examples: Location | None = None,
    examples_split: Split | None = None,
    examples_per_protocol: PositiveInt = 2,
    max_example_images: PositiveInt = 20,
    connections: PositiveInt = 16,
    processes: PositiveInt = 1,
    engine: Engine = "local",
    address: str | None = None,
    base_url: str | None = None,
    retries: int = 5,
    timeout: PositiveInt = 300,
    accept_terms: bool = False,
    trust_remote_code: bool = False,
    device: str | None = None,
    batch_size: PositiveInt | None = None,
    images: Location | None = None,
    verify_images: bool = True,
    progress: Progress = no_progress,
    notify: Notify | None = None,
) -> Run:
    """Evaluate a model on a benchmark and keep every answer.

    An interrupted run resumes at the turn where it stopped: no answer is asked for twice. A run with a larger `limit`
    or `sample_per_stratum`, or without them, is extended by the cases that it lacks. Cases that failed with a transport
    error are asked again.

    Args:
        bench: Benchmark to ask.
        model: Name of the model: `builtin/reader`, `openai/gpt-5`, `openai-api/NAME/MODEL` with `base_url`, `hf:PATH`,
            `onnx:PATH`. Or a function that takes a list of `carina.Message` and returns the answer as text; it may be
            async, or made by `carina.batched`.
        out: Directory to write the run to.
        label: Name of a function in the run and in reports; None for its qualified name.
        history: What earlier turns show: "own" (the model's answers), "gold" (wrong answers replaced by right ones),
            "hint" (the truth stated before the next question) or "none". "implicit" and "explicit" are CheXpercept's
            names for gold and hint at its four correction points.
        scope: When gold and hint correct earlier answers: before every "step", or when a new "stage" begins. None for
            "stage" with "implicit", "explicit" and the profile "chexpercept", and for "step" otherwise.
        on_wrong: After a wrong stage, "continue", so that every stage is measured, or "stop".
        profile: Whose rules put the messages together, read the answers and decide where they are corrected: "carina"
            or "chexpercept". With "chexpercept", the history "none" keeps the model's own answers, as in CheXpercept.
        blind: Replace every image by a grey one of the same size: the text-only baseline.
        max_side: Longest side of an image, in pixels; larger images are downscaled.
        limit: Number of cases to ask, from the start of the benchmark; None for all.
        sample_per_stratum: Number of cases of each stratum (lesion and path), sampled at random; None for all.
        split: Ask only cases of this split: "train", "val" or "test"; None for all.
        seed: Seed for all random choices.
        temperature: Sampling temperature; negative or None for the model's own default.
        max_tokens: Longest answer, reasoning included, in tokens; None for 2048, or 8192 with the profile chexpercept.
        top_p: Share of probability from which the next token is drawn, above 0 and up to 1; no effect at temperature 0.
        top_k: Number of likeliest tokens from which the next one is drawn; no effect at temperature 0.
        reasoning_effort: How much a model that reasons does so: "none", "minimal", "low", "medium", "high", "xhigh" or
            "max". None leaves it to the model.
        reasoning_tokens: Most tokens of reasoning before an answer, fewer than `max_tokens`.
        extra_body: Further fields of the body of each request to a server in OpenAI's layout. They are recorded in
            `run.json`, so they must hold no key.
        structured: Ask for JSON in a schema that is made from the question: an option by number or letter, a label, or
            boxes. Questions that are answered in free text are asked as usual.
        first_request: Whether to send a tiny request to a served model before anything else, which finds a wrong
            address, key or name within seconds.
        system_prompt: System prompt for all protocols of the benchmark: text is the prompt itself, a `Path` is a file
            of UTF-8 text, "" is no system prompt. None for the protocols' own.
        prompt_style: What is added to the system prompt: "plain" (nothing), "reasoning" (reason step by step before the
            answer) or "answer" (give the answer alone).
        image_order: Whether the images of a message come "before" its text or "after" it; None for "before", or
            "after" with the profile chexpercept.
        image_detail: Resolution at which a served model is asked to look at images: "low", "high", or "auto" for the
            provider's choice.
        examples: Benchmark from which cases are shown with their right answers before each case, never of a patient of
            whom a case is asked; None for no examples.
        examples_split: Draw examples from this split only; None for any.
        examples_per_protocol: Number of examples for the cases of each protocol.
        max_example_images: Largest number of images of the examples of a protocol.
        connections: Number of conversations to hold with a served model or an async function at the same time.
        processes: Number of processes, for a model that runs in-process.
        engine: Where the processes run: "local" (on this machine) or "ray" (on a Ray cluster).
        address: Address of a running Ray cluster, HOST:PORT, with engine "ray".
        base_url: Address of the server for `openai-api/...`, such as "http://localhost:8000/v1".
        retries: Number of retries after a transport error.
        timeout: Seconds for one attempt at an answer.
        accept_terms: Confirm that the terms of restricted sources allow sending their data to the model's provider. Not
            needed for a function, which gets the data in this process.
        trust_remote_code: Whether code that comes with an `hf:` model may run.
        device: Device of an in-process model: cpu, cuda, cuda:1 or mps.
        batch_size: Number of questions that an in-process model gets at a time; None for the model's own. The answers
            do not depend on it, up to rounding.
        images: Directory of the images, if they have moved.
        verify_images: Whether to compare every image file with the SHA-256 that its case states, when it is first
            opened. False saves reading each file once more, for very large sets; the run records it.
        progress: Progress display, such as `carina.progress_bar`; none by default.
        notify: Called with a sentence about something unexpected, such as a run that is extended; for example `print`.

    Returns:
        The run: `.scores()` by stage, `.to_frame()` with one row per step, `.failures`.

    Raises:
        CarinaError: The model, the benchmark or an option is wrong, the first request is not answered, no question at
            all is answered, the directory holds another run, or a function returned something other than text.

    Example:
        >>> answers = run("bench", "builtin/oracle", "runs/oracle")
        >>> answers.scores().get_column("accuracy").to_list()
        [1.0, 1.0, 1.0, 1.0]
    """
    name = name_function(model, label, needs="chat") or parse_model_name(str(model), needs="chat")
    options = make_options(
        history=history,
        scope=scope,
        on_wrong=on_wrong,
        profile=profile,
        blind=blind,
        max_side=max_side,
        limit=limit,
        sample_per_stratum=sample_per_stratum,
        seed=seed,
        temperature=temperature,
        max_tokens=max_tokens,
        images=image_directory(bench, images),
        split=split,
    )
    options = add_prompts(
        options,
        system_prompt=system_prompt,
        prompt_style=prompt_style,
        image_order=image_order,
        image_detail=image_detail,
        examples=examples,
        examples_split=examples_split,
        examples_per_protocol=examples_per_protocol,
        max_example_images=max_example_images,
    )
    options = replace(
        options,
        request=make_request_options(
            top_p=top_p,
            top_k=top_k,
            reasoning_effort=reasoning_effort,
            reasoning_tokens=reasoning_tokens,
            extra_body=extra_body,
            structured=structured,
            max_tokens=options.sampling.max_tokens,
        ),
        first_request=first_request,
        connections=connections,
        processes=count_processes(name, processes, engine),
        engine=engine,
        address=address,
        base_url=base_url,
        retries=retries,
        timeout=timeout,
        accept_terms=accept_terms,
        trust_remote_code=trust_remote_code,
        device=device,
        batch_size=batch_size,
        verify_images=verify_images,
    )
    return run_model(as_path(bench), name, as_path(out), options, progress=progress, notify=notify)


def run_model(
    benchmark: Path,
    model: str | ModelName,
    out: Path,
    options: RunOptions,
    *,
    progress: Progress = no_progress,
    notify: Notify | None = None,
) -> Run:
    """As `run`, with the options as one record."""
    on_notice = notify or (lambda _sentence: None)
    name = model if isinstance(model, ModelName) else parse_model_name(model, needs="chat")
    refuse_request_options(name, options.request)
    refuse_structured(options)
    address = served_address(name.location, options.base_url) if name.is_served else None
    bench = open_benchmark(benchmark, options.images, verify_images=options.verify_images)
    options = prepare_prompts(bench, name, options)
    info = describe_run(bench, name, out, options)
    with lock_directory(out):
        finished = find_finished_run(out, info)
        if finished is not None:
            with progress("Cases", finished.counts.cases) as advance:
                advance(finished.counts.cases)
            return finished
        info = claim_run(out, info, bench.ids, on_notice)
        answered = read_log(out, identify_run(info), every_line=info.log_names_run, repair=True)
        ids = info.cases if info.cases is not None else tuple(bench.ids())
        if not ids:
            raise CarinaError(f"{benchmark}: the benchmark has no cases to run")
        open_ids = _unfinished_cases(bench, ids, answered, options)
        if open_ids:
            bench.require_sound(open_ids)
            if name.is_served and options.first_request:
                from carina.runs.served import check_served  # noqa: PLC0415 - needs an extra

                check_served(bench, name.location, out, options, progress=progress, on_notice=on_notice)
            info = start_call(info, name, address, cases=len(ids), verify_images=options.verify_images)
            write_info(out, info)
            with progress("Cases", len(ids)) as advance:
                advance(len(ids) - len(open_ids))
                _ask(
                    bench,
                    name,
                    out,
                    options,
                    answered=answered,
                    cases=open_ids,
                    progress=lambda done: advance(done.cases, asked=done.asked, failed=done.failed),
                    on_notice=on_notice,
                )
        finished = close_run(bench, out, info, ids, on_notice, prompts=options.prompts)
    refuse_without_answers(name.text, finished.counts.answered, finished.failures)
    for sentence in describe_failures(finished.failures):
        on_notice(sentence)
    return finished


def _ask(
    bench: Benchmark,
    model: ModelName,
    out: Path,
    options: RunOptions,
    *,
    answered: Answered,
    cases: Sequence[str],
    progress: OnProgress,
    on_notice: Notify,
) -> None:
    """Ask a model about cases, with the runner for where it runs."""
    if model.is_served:
        from carina.runs.served import run_served  # noqa: PLC0415 - needs an extra

        run_served(
            bench,
            model.location,
            out,
            options,
            answered=answered,
            cases=cases,
            progress=progress,
            on_notice=on_notice,
        )
    elif model.kind == FUNCTION:
        from carina.runs.function import run_function  # noqa: PLC0415 - as above

        run_function(bench, model, out, options, answered=answered, cases=cases, progress=progress)
    else:
        run_in_process(bench, model.text, out, options, answered=answered, cases=cases, progress=progress)


def _unfinished_cases(
    bench: Benchmark, ids: Sequence[str], answered: Answered, options: RunOptions
) -> list[str]:
    """Cases that have questions left; those without any answer are not even read."""
    started = [name for name in ids if name in answered]
    finished: set[str] = set()
    for case in bench.pick(started) if started else ():
        if not _is_answered(case, answered):
            walk = Walk(case, options.policy, options.prompts)
            resume_walk(walk, answered)
            if not (walk.over and walk.complete):
                continue
        finished.add(case.id)
    return [name for name in ids if name not in finished]


def _is_answered(case: Case, answered: Answered) -> bool:
    """Whether every step of a case was answered."""
    entries = answered.get(case.id, {})
    return len(entries) == len(case.steps) and all(one.row.state == "answered" for one in entries.values())
