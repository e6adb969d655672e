"""Models that run beside the benchmark: in this process, in several, or on a cluster, each with a share of the cases.

Every share has a log of its own, so nothing but the file system is shared; the table is made from all logs at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carina.cases import Benchmark, open_benchmark
from carina.run.builtin import PREFIX, open_builtin
from carina.run.examinee import Examinee
from carina.run.log import Answered, StepLog, log_path
from carina.run.pictures import CasePictures
from carina.run.resume import walks
from carina.run.tally import Tally, Told
from carina.run.wavefront import run_wavefront
from carina.workers import in_order

if TYPE_CHECKING:
    from carina.run.examine import RunOptions

NAMES: Final = (PREFIX, "hf:", "onnx:")
"""How models begin that run beside the benchmark."""
_SHARE: Final = 64
"""Cases a worker takes at a time: enough to fill batches, few enough to keep all workers busy."""


@dataclass(frozen=True)
class Share:
    """Some cases for one worker."""

    bench: Path
    model: str
    out: Path
    options: "RunOptions"
    cases: tuple[str, ...]
    answered: Answered
    """What is there of these cases already."""
    number: int


def run_beside(
    bench: Benchmark,
    model: str,
    out: Path,
    options: "RunOptions",
    *,
    answered: Answered,
    left: Sequence[str],
    told: Told,
) -> None:
    """Examine a model on the cases that are left."""
    if options.engine == "local" and options.processes == 1:
        _examine(bench, Share(bench.directory, model, out, options, tuple(left), answered, 0), told)
        return
    shares = (
        _share(
            Share(bench.directory.resolve(), model, out.resolve(), options, tuple(cases), answered, number)
        )
        for number, cases in enumerate(left[at : at + _SHARE] for at in range(0, len(left), _SHARE))
    )
    ended = in_order(
        examine_share,
        shares,
        workers=options.processes,
        ahead=2,
        engine=options.engine,
        address=options.address,
    )
    for tally in ended:
        told(tally)


def _share(whole: Share) -> Share:
    """A share with no more of the log than its own cases need, to be sent to a worker."""
    own = {case: dict(whole.answered[case]) for case in whole.cases if case in whole.answered}
    return replace(whole, answered=own)


def examine_share(share: Share) -> Tally:
    """Examine the cases of one share, wherever this runs; what came of it."""
    bench = open_benchmark(share.bench, share.options.images, verify=False)
    tallies: list[Tally] = []
    _examine(bench, share, tallies.append)
    return Tally(*(sum(column) for column in zip(*tallies, strict=True)))


def _examine(bench: Benchmark, share: Share, told: Told) -> None:
    options = share.options
    examinee = _examinee(share.bench, share.model, options)
    pictures = CasePictures(bench, max_side=options.max_side, blind=options.blind)
    todo = walks(bench, share.cases, share.answered, options.policy)
    with StepLog(log_path(share.out, share.number)) as log:
        run_wavefront(todo, examinee, pictures, log, told=told)


@lru_cache(maxsize=1)
def _examinee(bench: Path, model: str, options: "RunOptions") -> Examinee:
    """Opened once a process: weights are large, and what is usual takes a look at every case."""
    if model.startswith(PREFIX):
        return open_builtin(model, open_benchmark(bench, options.images, verify=False), seed=options.seed)
    from carina.run.inprocess import open_examinee  # noqa: PLC0415  needs an extra

    return open_examinee(
        model,
        sampling=options.sampling,
        trust_remote_code=options.trust_remote_code,
        device=options.device,
    )
