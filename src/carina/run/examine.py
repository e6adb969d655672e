"""One run: a model, a benchmark, a policy. Chooses cases and runner, resumes what was interrupted, closes the table."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

import carina
from carina.cases import Benchmark, Case, open_benchmark
from carina.errors import CarinaError
from carina.files import alone_in, replacing
from carina.models.served import Sampling
from carina.run.builtin import NAMES as BUILTIN
from carina.run.calls import begun, ended
from carina.run.choose import chosen_cases
from carina.run.claim import claimed, read_info, write_info
from carina.run.inprocess.fingerprint import weights_of
from carina.run.log import Answered, read_log
from carina.run.prompts import system_prompt
from carina.run.records import Policy, RunCounts, RunInfo, StepRow
from carina.run.resume import resume
from carina.run.score.learned import TextScorer, text_metrics
from carina.run.shards import NAMES as BESIDE
from carina.run.shards import run_beside
from carina.run.table import StepTable
from carina.run.tally import Tally, Told
from carina.run.terms import served_at
from carina.run.walk import Walk
from carina.workers import Engine

TABLE: Final = "steps.parquet"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a model is run."""

    policy: Policy = field(default_factory=Policy)
    blind: bool = False
    """Whether all pictures are replaced by a grey card."""
    max_side: int | None = None
    limit: int | None = None
    sample_per_cell: int | None = None
    seed: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    connections: int = 16
    """Conversations at a time, with a served model."""
    processes: int = 1
    engine: Engine = "local"
    address: str | None = None
    """Of a Ray cluster."""
    base_url: str | None = None
    retries: int = 5
    timeout: int = 300
    """Seconds for one attempt at an answer."""
    accept_terms: bool = False
    """Whether images of restricted sources may be sent to the model's provider."""
    trust_remote_code: bool = False
    device: str | None = None
    images: Path | None = None


@dataclass(frozen=True)
class RunResult:
    """What a run has come to."""

    info: RunInfo
    counts: RunCounts
    failed: tuple[tuple[str, str], ...]
    """Cases that failed on the way, with the reason."""


def run_model(
    benchmark: Path,
    model: str,
    out: Path,
    options: RunOptions,
    *,
    progress: Told = lambda _done: None,
    tell: Callable[[str], object] = lambda _words: None,
) -> RunResult:
    """Examine a model; an interrupted call is taken up at the turn where it was, and one of fewer cases grows.

    `progress` is told of cases that have ended and of questions that were asked, `tell` in a sentence of what a user
    may not expect.
    """
    bench = open_benchmark(benchmark, options.images)
    info = run_info(bench, model, out, options)
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out) as alone:
        if not alone:
            raise CarinaError(f"{out}: another process is writing this run")
        info = claimed(out, info, bench.ids, tell)
        answered = read_log(out, mend=True)
        ids = info.cases if info.cases is not None else tuple(bench.ids())
        if not ids:
            raise CarinaError(f"{benchmark}: holds no case to ask about")
        left = _left(bench, ids, answered, options.policy)
        progress(Tally(cases=len(ids) - len(left)))
        if left:
            info = begun(info, model, served_at(model, options.base_url))
            write_info(out, info)
            _run(bench, model, out, options, answered=answered, left=left, told=progress)
        return close_run(bench, out, info, ids, tell)


def _left(bench: Benchmark, ids: Sequence[str], answered: Answered, policy: Policy) -> list[str]:
    """Cases that are not at their end; those without any answer are not even read."""
    begun = [name for name in ids if name in answered]
    over: set[str] = set()
    for case in bench.pick(begun) if begun else ():
        if not _is_answered(case, answered):
            walk = Walk(case, policy)
            resume(walk, answered)
            if not (walk.over and walk.complete):
                continue
        over.add(case.id)
    return [name for name in ids if name not in over]


def _is_answered(case: Case, answered: Answered) -> bool:
    """Whether every step of a case was answered."""
    entries = answered.get(case.id, {})
    return len(entries) == len(case.steps) and all(one.row.state == "answered" for one in entries.values())


def _run(
    bench: Benchmark,
    model: str,
    out: Path,
    options: RunOptions,
    *,
    answered: Answered,
    left: Sequence[str],
    told: Told,
) -> None:
    if not model.startswith(BESIDE):
        if "/" not in model.strip("/"):
            raise CarinaError(
                f"--model {model!r}: expected PROVIDER/NAME such as openai/{model or 'gpt-5'}, {', '.join(BUILTIN)}, "
                "hf:PATH or onnx:PATH"
            )
        from carina.run.served import run_served  # noqa: PLC0415  needs an extra

        run_served(bench, model, out, options, answered=answered, left=left, told=told)
        return
    run_beside(bench, model, out, options, answered=answered, left=left, told=told)


# ---- what a run is --------------------------------------------------------------------------------------------------


def run_info(bench: Benchmark, model: str, out: Path, options: RunOptions) -> RunInfo:
    manifest = bench.manifest
    selection: dict[str, int | str | None] = {
        "limit": options.limit,
        "sample_per_cell": options.sample_per_cell,
        "seed": options.seed,
    }
    chosen = chosen_cases(
        bench, limit=options.limit, sample_per_cell=options.sample_per_cell, seed=options.seed
    )
    return RunInfo(
        carina=carina.__version__,
        id=out.resolve().name,
        model=display_name(model),
        weights=weights_of(model),
        blind=options.blind,
        policy=options.policy,
        system={name: system_prompt(name) for name in sorted(manifest.counts.protocols)},
        max_side=options.max_side,
        sampling=msgspec.to_builtins(options.sampling),
        benchmark=os.path.relpath(bench.directory.resolve(), out.resolve()),
        benchmark_command=manifest.command,
        fingerprint=fingerprint(bench),
        cases=chosen,
        selection=selection,
        # Opened here only to be refused, if they must be, before anything is asked.
        text_models={metric.name: metric.weights for metric in text_metrics()},
    )


def display_name(model: str) -> str:
    """The model's name without the folders that it lies in on this machine."""
    kind, separator, place = model.partition(":")
    if f"{kind}{separator}" in BESIDE and Path(place).exists():
        return f"{kind}:{Path(place).resolve().name}"
    return model


def fingerprint(bench: Benchmark) -> str:
    """Of what is asked: the parts by content, wherever they lie."""
    return hashlib.sha256("".join(part.sha256 for part in bench.manifest.parts).encode()).hexdigest()


# ---- closing --------------------------------------------------------------------------------------------------------


def close_run(
    bench: Benchmark,
    out: Path,
    info: RunInfo,
    ids: Sequence[str],
    tell: Callable[[str], object] = lambda _words: None,
) -> RunResult:
    """Write the table of all steps in the order of the benchmark, count, and end the call that asked."""
    answered = read_log(out)
    metrics = text_metrics()
    statuses: Counter[str] = Counter()
    states: Counter[str] = Counter()
    failed: list[tuple[str, str]] = []
    seconds, tokens_in, tokens_out, images, complete = 0.0, 0, 0, 0, 0
    with replacing(out / TABLE) as temporary, StepTable(temporary, info, TextScorer(metrics, tell)) as table:
        for case in bench.pick(ids):
            rows = _rows(case, info.policy, answered)
            table.add(rows)
            complete += all(row.state != "incomplete" for row in rows)
            failed += [(case.id, row.error) for row in rows if row.error is not None]
            for row in rows:
                states[row.state] += 1
                statuses[row.status or ""] += row.state == "answered"
                seconds += row.seconds or 0.0
                tokens_in += row.input_tokens or 0
                tokens_out += row.output_tokens or 0
                images += row.images
    counts = RunCounts(
        cases=len(ids),
        complete=complete,
        steps=states.total(),
        answered=states["answered"],
        incomplete=states["incomplete"],
        not_reached=states["not_reached"],
        statuses={name: times for name, times in sorted(statuses.items()) if name},
        seconds=round(seconds, 3),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        image_sends=images,
    )
    compared = {metric.name: metric.weights for metric in metrics}
    closed = msgspec.structs.replace(
        ended(info) if info.calls and info.ended is None else info, text_models=compared
    )
    if closed != read_info(out):
        write_info(out, closed)
    return RunResult(closed, counts, tuple(failed))


def _rows(case: Case, policy: Policy, answered: Answered) -> list[StepRow]:
    """All steps of a case: as they were scored when they were answered, with those that were not asked."""
    rows = {number: entry.row for number, entry in answered.get(case.id, {}).items()}
    if len(rows) == len(case.steps):
        return [rows[number] for number in range(len(case.steps))]
    walk = Walk(case, policy)
    resume(walk, answered, failures=True)
    return [rows.get(row.number, row) for row in walk.rows()]


def read_rows(run: Path) -> list[StepRow]:
    """The rows of a closed run."""
    path = run / TABLE
    try:
        rows = pq.read_table(path).to_pylist()
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing: the run is not closed; call `carina run` again") from None
    return msgspec.convert(rows, list[StepRow])
