"""Groups of runs that are compared with each other: runs of one protocol on one benchmark."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from carina.cases import Benchmark, open_benchmark
from carina.runs.analysis.case_facts import CaseFacts, collect_case_facts
from carina.runs.analysis.outcomes import Outcomes, derive_outcomes
from carina.runs.analysis.read import ComparedRun
from carina.runs.info import fingerprint
from carina.runs.results import describe_missing_cases
from carina.store.errors import CarinaError

HISTORIES = ("own", "gold", "implicit", "hint", "explicit", "none")
"""History policies in the order in which runs are listed."""


@dataclass(frozen=True, eq=False)
class RunGroup:
    """Runs of one protocol on one benchmark, with the outcomes of their steps."""

    protocol: str
    bench: Benchmark
    runs: tuple[ComparedRun, ...]
    """By history; within it models as given, then baselines, then the oracle."""
    outcomes: dict[str, Outcomes]
    """By id of the run."""
    cases: tuple[str, ...]
    """Ids of all cases that any run has, in order of the benchmark."""
    facts: CaseFacts
    order: str = ""
    """Order of the questions, where some groups of the report ask them shuffled."""

    @property
    def title(self) -> str:
        """Protocol, name of the benchmark where it differs, and order of the questions."""
        name = self.bench.directory.resolve().name
        return " · ".join(
            part for part in (self.protocol, name if name != self.protocol else "", self.order) if part
        )

    @property
    def has_answers(self) -> bool:
        """Whether any step of any run was answered."""
        return any(not outcomes.steps.is_empty() for outcomes in self.outcomes.values())

    @property
    def primary_runs(self) -> list[ComparedRun]:
        """The runs of the history that comes first: own answers, where there are any."""
        return [run for run in self.runs if run.history == self.runs[0].history]


def group_runs(
    runs: Sequence[ComparedRun], *, benchmarks: Sequence[Path] = (), images: Path | None = None
) -> list[RunGroup]:
    """Runs by benchmark and protocol, in order of their first run.

    Args:
        runs: Runs as `read_runs` gives them.
        benchmarks: Directories of benchmarks that are no longer where the runs say.
        images: Folder of the images, where it is not the one that the benchmark names.
    """
    moved = {fingerprint(bench): bench for bench in (open_benchmark(path, images) for path in benchmarks)}
    groups = []
    for wanted in dict.fromkeys(run.info.fingerprint for run in runs):
        own = [run for run in runs if run.info.fingerprint == wanted]
        bench = moved.get(wanted) or _open_benchmark_of(own[0], images, verify_images=_verify_images(own))
        own = [_with_missing_cases(run, bench) for run in own]
        ordered = sorted(own, key=lambda run: (HISTORIES.index(run.history), run.is_oracle, run.is_baseline))
        protocols = {name for run in own for name in run.protocols}
        groups += [_group(name, bench, ordered) for name in sorted(protocols or _declared_protocols(bench))]
    return _name_orders(groups)


def _group(protocol: str, bench: Benchmark, runs: Iterable[ComparedRun]) -> RunGroup:
    # A run without a single step belongs to every protocol of its benchmark.
    own = [run for run in runs if not run.protocols or protocol in run.protocols]
    held = {case for run in own for case in run.cases(protocol)}
    cases = tuple(case for case in bench.ids() if case in held)
    facts, keys = collect_case_facts(bench, cases)
    outcomes = {run.id: derive_outcomes(run.read_steps(), protocol, keys) for run in own}
    return RunGroup(protocol, bench, tuple(own), outcomes, cases, facts)


def _declared_protocols(bench: Benchmark) -> Iterable[str]:
    return bench.manifest.counts.protocols or [str(bench.manifest.options.get("protocol", "examination"))]


def _name_orders(groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Name the order of the questions in each group of a protocol of which any group is shuffled."""
    shuffled = {group.protocol for group in groups if group.facts.orders.get("shuffled")}
    return [
        replace(group, order=_describe_order(group.facts)) if group.protocol in shuffled else group
        for group in groups
    ]


def _describe_order(facts: CaseFacts) -> str:
    counts = {name: facts.orders.get(name, 0) for name in ("staged", "shuffled")}
    if all(counts.values()):
        return f"{counts['staged']} staged, {counts['shuffled']} shuffled"
    return f"{'shuffled' if counts['shuffled'] else 'staged'} order"


def _verify_images(runs: Sequence[ComparedRun]) -> bool:
    """Whether to compare images with their checksums: not where a run was told not to."""
    return all(call.verify_images is not False for run in runs for call in run.info.calls)


def _open_benchmark_of(run: ComparedRun, images: Path | None, *, verify_images: bool) -> Benchmark:
    if not run.benchmark.is_dir():
        raise CarinaError(
            f"{run.path}: its benchmark is not at {run.info.benchmark}; give its present directory with --bench"
        )
    bench = open_benchmark(run.benchmark, images, verify_images=verify_images)
    if fingerprint(bench) != run.info.fingerprint:
        raise CarinaError(
            f"{run.path}: was run on benchmark {run.info.fingerprint[:12]}, but {run.info.benchmark} is now "
            f"{fingerprint(bench)[:12]}; give the directory of the former with --bench"
        )
    return bench


def _with_missing_cases(run: ComparedRun, bench: Benchmark) -> ComparedRun:
    """The run with the number of selected cases that its table lacks; every case of its table must be known."""
    ids, held = bench.ids(), set(run.index["case"])
    missing = Counter(
        case.protocol
        for case in bench.pick(set(ids if run.info.cases is None else run.info.cases) & set(ids) - held)
        if case.steps
    )
    unknown = sorted(held - set(ids))
    if unknown:
        raise CarinaError(
            f"{run.path}: case {unknown[0]!r} is not in the benchmark {bench.directory}; expected the benchmark "
            "that was run"
        )
    if not missing:
        return run
    sentence = describe_missing_cases(missing.total(), len(held) + missing.total())
    return replace(run, missing=dict(missing), unfinished=(sentence,))
