"""Runs of one protocol on one benchmark, put side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from carina.cases import Benchmark, open_benchmark
from carina.errors import CarinaError
from carina.report.analyse.outcomes import Outcomes, outcomes
from carina.report.read import Run
from carina.run.examine import fingerprint

HISTORIES = ("own", "gold", "hint", "none")


@dataclass(frozen=True, eq=False)
class Exam:
    """What belongs into the same tables."""

    protocol: str
    bench: Benchmark
    runs: tuple[Run, ...]
    """By history, then models as given, baselines after them and the oracle last."""
    outcomes: dict[str, Outcomes]
    """By id of the run."""

    @property
    def title(self) -> str:
        name = self.bench.directory.resolve().name
        return name if name == self.protocol else f"{self.protocol} · {name}"

    @property
    def cases(self) -> list[str]:
        """Ids of all cases that any run has, in order of the benchmark."""
        held = {case for found in self.outcomes.values() for case in found.all_steps["case"].unique()}
        return [case for case in self.bench.ids() if case in held]


def exams(runs: Sequence[Run], *, benchmarks: Sequence[Path] = (), images: Path | None = None) -> list[Exam]:
    """Runs by benchmark and protocol, in order of their first run.

    `benchmarks` says where benchmarks lie now, where that is not what the runs say.
    """
    elsewhere = [open_benchmark(path, images) for path in benchmarks]
    moved = {fingerprint(bench): bench for bench in elsewhere}
    made = []
    for wanted in dict.fromkeys(run.info.fingerprint for run in runs):
        here = [run for run in runs if run.info.fingerprint == wanted]
        bench = moved.get(wanted) or _opened(here[0], images)
        for run in here:
            _known(run, bench)
        for protocol in sorted({name for run in here for name in run.steps["protocol"].unique()}):
            ordered = sorted(here, key=lambda run: (HISTORIES.index(run.history), run.oracle, run.baseline))
            with_it = [run for run in ordered if protocol in run.steps["protocol"].unique()]
            found = {run.id: outcomes(run.steps, protocol) for run in with_it}
            made.append(Exam(protocol, bench, tuple(with_it), found))
    return made


def _opened(run: Run, images: Path | None) -> Benchmark:
    if not run.benchmark.is_dir():
        raise CarinaError(
            f"{run.path}: its benchmark is not at {run.info.benchmark}, expected it there; "
            "--bench says where it lies now"
        )
    bench = open_benchmark(run.benchmark, images)
    if fingerprint(bench) != run.info.fingerprint:
        raise CarinaError(
            f"{run.path}: was run on benchmark {run.info.fingerprint[:12]}, and {run.info.benchmark} is now "
            f"{fingerprint(bench)[:12]}; --bench says where the former lies"
        )
    return bench


def _known(run: Run, bench: Benchmark) -> None:
    strange = sorted(set(run.steps["case"].unique()) - set(bench.ids()))
    if strange:
        raise CarinaError(f"{run.path}: case {strange[0]!r} is not in the benchmark {bench.directory}")
