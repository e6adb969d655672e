"""Runs of one protocol on one benchmark, put side by side."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from carina.cases import Benchmark, open_benchmark
from carina.errors import CarinaError
from carina.report.analyse.outcomes import Outcomes, outcomes
from carina.report.facts import Facts, facts_of
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
    cases: tuple[str, ...]
    """Ids of all cases that any run has, in order of the benchmark."""
    facts: Facts
    order: str = ""
    """In which order its questions are asked, where not all exams of a report ask stage by stage."""

    @property
    def title(self) -> str:
        name = self.bench.directory.resolve().name
        return " · ".join(
            part for part in (self.protocol, name if name != self.protocol else "", self.order) if part
        )

    @property
    def answered(self) -> bool:
        """Whether any step of any run was answered, so that there are figures."""
        return any(not found.steps.is_empty() for found in self.outcomes.values())


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
        ordered = sorted(here, key=lambda run: (HISTORIES.index(run.history), run.oracle, run.baseline))
        protocols = {name for run in here for name in run.steps["protocol"].unique()}
        made += [_exam(protocol, bench, ordered) for protocol in sorted(protocols or _promised(bench))]
    return _with_orders(made)


def _exam(protocol: str, bench: Benchmark, runs: Iterable[Run]) -> Exam:
    # A run without a single step belongs to whatever its benchmark holds.
    with_it = [run for run in runs if run.steps.is_empty() or protocol in run.steps["protocol"].unique()]
    held = {case for run in with_it for case in run.cases(protocol)}
    cases = tuple(case for case in bench.ids() if case in held)
    facts = facts_of(bench, cases)
    found = {run.id: outcomes(run.steps, protocol, facts.keys) for run in with_it}
    return Exam(protocol, bench, tuple(with_it), found, cases, facts)


def _promised(bench: Benchmark) -> Iterable[str]:
    """Protocols that a benchmark holds, or was to hold."""
    return bench.manifest.counts.protocols or [str(bench.manifest.options.get("protocol", "examination"))]


def _with_orders(made: Sequence[Exam]) -> list[Exam]:
    """Says of each exam in which order it asks, where any exam of its protocol is shuffled."""
    mixed = {exam.protocol for exam in made if exam.facts.orders.get("shuffled")}
    return [replace(exam, order=_order(exam.facts)) if exam.protocol in mixed else exam for exam in made]


def _order(facts: Facts) -> str:
    counted = {name: facts.orders.get(name, 0) for name in ("staged", "shuffled")}
    if all(counted.values()):
        return f"{counted['staged']} staged, {counted['shuffled']} shuffled"
    return f"{'shuffled' if counted['shuffled'] else 'staged'} order"


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
