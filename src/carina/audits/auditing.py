"""Pass every case to every gate, by one process or by several.

Each of several processes reads all cases and passes them to its share of the gates. So no gate has to be merged from
parts, and the result does not depend on the number of processes.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from carina.audits.first_seen import FirstSeen
from carina.audits.gate import AnyGate
from carina.audits.result import Audit, GateResult, worst_status
from carina.cases.model import Case
from carina.store.errors import CarinaError
from carina.store.waiting import wait_for_result
from carina.store.workers import pool

_COLLECT_EVERY: Final = 16384
"""Cases between two garbage collections; errors about files leave reference cycles."""
_READING_COST: Final = 15.0
"""Microseconds that reading a question takes; a share of gates that costs less is not worth a process."""
_CHECK_EVERY: Final = 64
"""Cases between two checks whether the first process still waits for the result."""


class Work(NamedTuple):
    """Cases, and the gates that examine them."""

    cases: Iterable[Case]
    gates: Sequence[AnyGate]


class Totals(NamedTuple):
    """How much was examined."""

    cases: int
    steps: int
    patients: int
    strata: dict[str, int]


class _ShareResult(NamedTuple):
    """The results of one share of the gates."""

    totals: Totals
    results: dict[int, GateResult]
    """By the gate's place in the list of all gates."""


def audit_cases(cases: Iterable[Case], gates: Sequence[AnyGate], *, benchmark: str | None = None) -> Audit:
    """Pass all cases to all gates in this process.

    Args:
        cases: Cases, read once.
        gates: Fresh gates, as `make_gates` returns them.
        benchmark: Fingerprint of the benchmark that holds the cases.

    Returns:
        The results of all gates.

    Example:
        >>> from carina import open_benchmark
        >>> from carina.audits import AuditContext, list_gates, make_gates
        >>> gates = make_gates(list_gates(["percept"])[:3], AuditContext())
        >>> audit_cases(open_benchmark("bench"), gates).cases
        18
    """
    totals = _pass_cases(cases, gates)
    return _conclude(totals, [gate.result() for gate in gates], benchmark=benchmark)


def audit_in_processes(
    begin: Callable[[], Work],
    *,
    workers: int = 1,
    benchmark: str | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Audit:
    """As `audit_cases`, by several processes, of which this is one.

    Args:
        begin: Opens the cases and creates fresh gates, in each process. For several processes it must be picklable: a
            function of a module, or a `functools.partial` of one.
        workers: Largest number of processes.
        benchmark: Fingerprint of the benchmark that holds the cases.
        progress: Called after each case.
    """
    work = begin()
    own, *others = share_gates(work.gates, workers)
    if not others:
        parts = [_examine(work, own, progress)]
    else:
        # If this process fails or is interrupted, the folder is removed first, which ends the others.
        with (
            pool(workers=workers) as processes,
            ThreadPoolExecutor(1) as thread,
            TemporaryDirectory(prefix="carina-audit-") as folder,
        ):
            examine = partial(_examine_elsewhere, begin, Path(folder))
            pending = thread.submit(list, processes.in_order(examine, others))
            cases = _until_failure(work.cases, pending)
            parts = [_examine(Work(cases, work.gates), own, progress), *wait_for_result(pending)]
    results = {place: result for part in parts for place, result in part.results.items()}
    return _conclude(parts[0].totals, [results[place] for place in sorted(results)], benchmark=benchmark)


def share_gates(gates: Sequence[AnyGate], most: int) -> list[list[int]]:
    """Places of the gates in up to `most` shares of about the same cost; the costliest gates are assigned first."""
    decoders = {id(gate.decoder): gate.decoder for gate in gates}
    total = sum(gate.cost for gate in gates) + sum(map(_decoding_cost, decoders.values()))
    loads = [0.0] * max(1, min(most, int(total / (2 * _READING_COST))))
    decoded: list[set[int]] = [set() for _ in loads]
    shares: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(gates)), key=lambda place: -gates[place].cost):
        gate = gates[place]
        with_gate = [
            load + gate.cost + (0.0 if id(gate.decoder) in known else _decoding_cost(gate.decoder))
            for load, known in zip(loads, decoded, strict=True)
        ]
        to = with_gate.index(min(with_gate))
        loads[to] = with_gate[to]
        decoded[to].add(id(gate.decoder))
        shares[to].append(place)
    return [sorted(share) for share in shares]


def _decoding_cost(decoder: object) -> float:
    return float(getattr(decoder, "cost", 0.0))


def _pass_cases(cases: Iterable[Case], gates: Sequence[AnyGate]) -> Totals:
    strata: Counter[str] = Counter()
    patients = FirstSeen()
    n = steps = 0
    with _rare_garbage_collection() as count_case:
        for case in cases:
            n += 1
            steps += len(case.steps)
            strata[case.cell] += 1
            if case.patient is not None:
                patients.first(case.patient, n)
            for gate in gates:
                gate.see(case)
            count_case()
    return Totals(n, steps, len(patients), dict(sorted(strata.items())))


def _conclude(totals: Totals, results: Sequence[GateResult], *, benchmark: str | None) -> Audit:
    return Audit(
        benchmark=benchmark,
        status=worst_status(*(result.status for result in results)),
        cases=totals.cases,
        steps=totals.steps,
        patients=totals.patients,
        cells=totals.strata,
        gates=tuple(results),
    )


@contextmanager
def _rare_garbage_collection() -> Iterator[Callable[[], None]]:
    """Cases hold no reference cycles: searching for some every few hundred records takes longer than reading them."""
    was_enabled, n = gc.isenabled(), 0

    def count_case() -> None:
        nonlocal n
        n += 1
        if not n % _COLLECT_EVERY:
            gc.collect()

    gc.disable()
    try:
        yield count_case
    finally:
        if was_enabled:
            gc.enable()


def _examine_elsewhere(begin: Callable[[], Work], folder: Path, places: list[int]) -> _ShareResult:
    """In another process, as long as the folder exists."""
    work = begin()
    return _examine(Work(_while_exists(folder, work.cases), work.gates), places, lambda: None)


def _examine(work: Work, places: list[int], progress: Callable[[], object]) -> _ShareResult:
    gates = [work.gates[place] for place in places]
    totals = _pass_cases(_with_progress(work.cases, progress), gates)
    return _ShareResult(totals, {place: gate.result() for place, gate in zip(places, gates, strict=True)})


def _with_progress(cases: Iterable[Case], progress: Callable[[], object]) -> Iterator[Case]:
    for case in cases:
        yield case
        progress()


def _until_failure(cases: Iterable[Case], pending: "Future[list[_ShareResult]]") -> Iterator[Case]:
    """Cases until another process has failed; its error is then raised here."""
    for case in cases:
        if pending.done():
            pending.result()
        yield case


def _while_exists(folder: Path, cases: Iterable[Case]) -> Iterator[Case]:
    for place, case in enumerate(cases):
        if not place % _CHECK_EVERY and not folder.exists():
            raise CarinaError("the audit was interrupted")
        yield case
