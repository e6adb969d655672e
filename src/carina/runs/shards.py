"""In-process models: in this process, in several, or on a cluster, each worker with a share of the cases.

Every share has its own log, so nothing but the file system is shared; the table is made from all logs at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from carina.cases import Benchmark, open_benchmark
from carina.models.registry import open_model
from carina.runs.claim import identify_run, read_info
from carina.runs.examples import open_images
from carina.runs.in_process import InProcessModel, run_batches
from carina.runs.log import Answered, StepLog, log_path
from carina.runs.options import RunOptions
from carina.runs.records import OnProgress, ProgressCount
from carina.runs.walk import resume_walks
from carina.store.workers import in_order

_SHARE: Final = 64
"""Cases a worker takes at a time: enough to fill batches, few enough to keep all workers busy."""


@dataclass(frozen=True)
class Share:
    """Some cases for one worker."""

    bench: Path
    model: str
    out: Path
    options: RunOptions
    cases: tuple[str, ...]
    answered: Answered
    """Earlier answers to these cases."""
    number: int


def run_in_process(
    bench: Benchmark,
    model: str,
    out: Path,
    options: RunOptions,
    *,
    answered: Answered,
    cases: Sequence[str],
    progress: OnProgress,
) -> None:
    """Run an in-process model on cases."""
    if options.engine == "local" and options.processes == 1:
        _run_share(bench, Share(bench.directory, model, out, options, tuple(cases), answered, 0), progress)
        return
    shares = (
        _with_own_answers(
            Share(bench.directory.resolve(), model, out.resolve(), options, tuple(part), answered, number)
        )
        for number, part in enumerate(cases[at : at + _SHARE] for at in range(0, len(cases), _SHARE))
    )
    finished = in_order(
        run_share,
        shares,
        workers=options.processes,
        ahead=2,
        engine=options.engine,
        address=options.address,
    )
    for done in finished:
        progress(done)


def _with_own_answers(whole: Share) -> Share:
    """A share with no more of the log than its own cases need, to be sent to a worker."""
    own = {case: dict(whole.answered[case]) for case in whole.cases if case in whole.answered}
    return replace(whole, answered=own)


def run_share(share: Share) -> ProgressCount:
    """Run the cases of one share, in whatever process this is."""
    bench = open_benchmark(
        share.bench, share.options.images, verify=False, verify_images=share.options.verify_images
    )
    reports: list[ProgressCount] = []
    _run_share(bench, share, reports.append)
    return ProgressCount(*(sum(column) for column in zip(*reports, strict=True)))


def _run_share(bench: Benchmark, share: Share, progress: OnProgress) -> None:
    options = share.options
    model = _open_once(share.bench, share.model, options)
    images = open_images(bench, options)
    walks = resume_walks(bench, share.cases, share.answered, options.policy, options.prompts)
    with StepLog(log_path(share.out, share.number), identify_run(read_info(share.out))) as log:
        run_batches(walks, model, images, log, progress=progress)


@lru_cache(maxsize=1)
def _open_once(bench: Path, model: str, options: RunOptions) -> InProcessModel:
    """Each process opens a model once: weights are large, and `builtin/majority` reads every case."""
    opened: InProcessModel = open_model(
        model,
        needs="chat",
        sampling=options.sampling,
        request=options.request,
        trust_remote_code=options.trust_remote_code,
        device=options.device,
        seed=options.seed,
        benchmark=open_benchmark(bench, options.images, verify=False, verify_images=options.verify_images),
    )
    if options.batch_size is not None:
        opened.batch = options.batch_size
    return opened
