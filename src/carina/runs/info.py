"""The description of a run, `run.json`: what is asked of which model, and when, where and with which versions."""

import hashlib
import os
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from carina.cases import Benchmark, open_benchmark
from carina.models import MODELS, ModelName
from carina.models.registry import fingerprint_model
from carina.models.served.address import without_secrets
from carina.runs.images import EXAMPLE
from carina.runs.options import RunOptions, select_cases
from carina.runs.prompts import system_prompt
from carina.runs.records import Call, ExamplesInfo, PromptInfo, RunInfo
from carina.runs.score.learned import text_metrics
from carina.version import __version__


def describe_run(bench: Benchmark, model: ModelName, out: Path, options: RunOptions) -> RunInfo:
    """The description of a run that has not begun."""
    manifest = bench.manifest
    selection: dict[str, int | str | None] = {
        "limit": options.limit,
        "sample_per_cell": options.sample_per_stratum,
        "split": options.split,
        "seed": options.seed,
    }
    protocols = sorted(manifest.counts.protocols)
    return RunInfo(
        carina=__version__,
        log_names_run=True,
        id=out.resolve().name,
        model=model.name,
        weights=fingerprint_model(model),
        blind=options.blind,
        policy=options.policy,
        system={name: system_prompt(name, options.prompts, options.policy.profile) for name in protocols},
        prompts=_describe_prompts(options, out),
        max_side=options.max_side,
        sampling=msgspec.to_builtins(options.sampling),
        request=options.request.to_record(),
        benchmark=os.path.relpath(bench.directory.resolve(), out.resolve()),
        benchmark_command=manifest.command,
        fingerprint=fingerprint(bench),
        cases=select_cases(
            bench,
            limit=options.limit,
            sample_per_stratum=options.sample_per_stratum,
            seed=options.seed,
            split=options.split,
        ),
        selection=selection,
        # Opened here so that a folder that is not what it should be is refused before anything is asked.
        text_models={metric.name: metric.weights for metric in text_metrics()},
    )


def _describe_prompts(options: RunOptions, out: Path) -> PromptInfo:
    prompts, request = options.prompts, options.examples
    examples = None
    if request is not None:
        ids: dict[str, tuple[str, ...]] = {}
        for one in prompts.examples:
            ids[one.protocol] = (*ids.get(one.protocol, ()), one.case.removeprefix(EXAMPLE))
        examples = ExamplesInfo(
            benchmark=os.path.relpath(request.benchmark.resolve(), out.resolve()),
            fingerprint=fingerprint(open_benchmark(request.benchmark, verify=False)),
            split=request.split,
            per_protocol=request.per_protocol,
            max_images=request.max_images,
            ids=ids,
        )
    return PromptInfo(
        own_system=prompts.system is not None,
        style=prompts.style,
        image_order=prompts.image_order,
        image_detail=prompts.image_detail,
        examples=examples,
    )


def fingerprint(bench: Benchmark) -> str:
    """Fingerprint of a benchmark: the content of its parts, wherever they lie."""
    return hashlib.sha256("".join(part.sha256 for part in bench.manifest.parts).encode()).hexdigest()


def start_call(
    info: RunInfo, model: ModelName, base_url: str | None, *, cases: int, verify_images: bool
) -> RunInfo:
    """The run with a call that starts now, and the number of its cases from now on."""
    versions = {"carina": __version__}
    versions |= {package: _version(package) for package in MODELS[model.kind].packages}
    call = Call(
        started=_now(), base_url=without_secrets(base_url), versions=versions, verify_images=verify_images
    )
    return msgspec.structs.replace(info, calls=(*info.calls, call), case_count=cases)


def end_call(info: RunInfo) -> RunInfo:
    """The run whose last call ends now."""
    *before, last = info.calls
    return msgspec.structs.replace(info, calls=(*before, msgspec.structs.replace(last, ended=_now())))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
