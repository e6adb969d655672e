"""The frame of an audit: every case passes all gates once; gates keep counts, not cases.

A gate is any object with `see(case)` and `result()`. Those of `common_gates` hold for every protocol; a protocol adds
its own. Nothing here knows a protocol or a file.
"""

import gc
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from carina.cases.audit.chance import wilson
from carina.cases.audit.record import Audit, Found, GateResult, Row, Status, gravest
from carina.cases.audit.register import Firsts
from carina.cases.model import Case

_COLLECTED: Final = 16384
"""Cases after which cycles are looked for, which errors of files leave."""


class Gate(Protocol):
    """Sees every case once, and then says what it found."""

    def see(self, case: Case) -> None: ...

    def result(self) -> GateResult: ...


class Tally(NamedTuple):
    """How much was seen."""

    cases: int
    steps: int
    patients: int
    cells: dict[str, int]


def audit(cases: Iterable[Case], gates: Sequence[Gate], *, benchmark: str | None = None) -> Audit:
    """Show all cases to all gates, in one pass. `benchmark` is the fingerprint of what the cases come from."""
    tally = show(cases, gates)
    return concluded(tally, [gate.result() for gate in gates], benchmark=benchmark)


def show(cases: Iterable[Case], gates: Sequence[Gate]) -> Tally:
    """Let the gates see all cases."""
    cells: Counter[str] = Counter()
    patients = Firsts()
    n = steps = 0
    with _rare_collection() as shown:
        for case in cases:
            n += 1
            steps += len(case.steps)
            cells[case.cell] += 1
            if case.patient is not None:
                patients.first(case.patient, n)
            for gate in gates:
                gate.see(case)
            shown()
    return Tally(n, steps, len(patients), dict(sorted(cells.items())))


def concluded(tally: Tally, results: Sequence[GateResult], *, benchmark: str | None) -> Audit:
    """The audit, from what all gates found."""
    return Audit(
        benchmark=benchmark,
        status=gravest(*(result.status for result in results)),
        cases=tally.cases,
        steps=tally.steps,
        patients=tally.patients,
        cells=tally.cells,
        gates=tuple(results),
    )


@contextmanager
def _rare_collection() -> Iterator[Callable[[], None]]:
    """Cases hold no cycles: looking for some after every few hundred records would take longer than reading them."""
    was, seen = gc.isenabled(), 0

    def shown() -> None:
        nonlocal seen
        seen += 1
        if not seen % _COLLECTED:
            gc.collect()

    gc.disable()
    try:
        yield shown
    finally:
        if was:
            gc.enable()


class Objections:
    """What a gate objects to: counts all records, keeps the worst few by badness and then in order of appearance."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._heap: list[tuple[float, int, Found]] = []
        self._last: str | None = None
        self.total = 0
        self.records = 0
        """Records with at least one objection; objections to one record come one after the other."""

    def add(self, record: str, what: str, badness: float = 0.0) -> None:
        """Note one; a higher badness is kept rather than a lower one."""
        self.total += 1
        self.records += record != self._last
        self._last = record
        entry = (badness, -self.total, Found(id=record, what=what))
        if len(self._heap) < self._keep:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    @property
    def worst(self) -> tuple[Found, ...]:
        return tuple(found for *_, found in sorted(self._heap, key=lambda entry: entry[:2], reverse=True))

    def __bool__(self) -> bool:
        return self.total > 0


def defects(
    name: str,
    n: int,
    objections: Objections,
    *,
    threshold: str,
    good: str,
    bad: str,
    unit: str = "cases",
    grave: Status = "fail",
    rows: tuple[Row, ...] = (),
) -> GateResult:
    """The result of a gate that tolerates no defect: passed, or failed with the share of defective records."""
    count = min(objections.records, n)
    low, high = wilson(count, n)
    status: Status = grave if objections else "pass"
    return GateResult(
        name=name,
        status=status if n else "not applicable",
        n=n,
        unit=unit,
        count=count,
        rate=count / n if n else None,
        low=low if n else None,
        high=high if n else None,
        threshold=threshold,
        meaning=(bad if objections else good) if n else f"There are no {unit} to which this applies.",
        rows=rows,
        worst=objections.worst,
    )


def measured(
    name: str,
    rows: Sequence[Row],
    *,
    n: int,
    threshold: str,
    good: str,
    bad: str,
    none: str,
    warned: str = "",
) -> GateResult:
    """The result of a gate that measures baselines: as grave as its gravest row."""
    status = gravest(*(row.status for row in rows))
    wrong = sorted((row for row in rows if row.status in ("warn", "fail")), key=lambda row: row.p or 0.0)
    low, high = wilson(len(wrong), len(rows))
    return GateResult(
        name=name,
        status=status,
        n=len(rows),
        unit=f"baselines on {n} cases",
        count=len(wrong),
        rate=len(wrong) / len(rows) if rows else None,
        low=low if rows else None,
        high=high if rows else None,
        threshold=threshold,
        meaning={"pass": good, "not applicable": none, "warn": warned or bad, "fail": bad}[status],
        rows=tuple(rows),
        worst=tuple(Found(id=row.name, what=row.note or f"{row.value:.3f}") for row in wrong),
    )


def judged(p: float, *, warn: float, fail: float) -> Status:
    """From a corrected tail probability to a status."""
    return "fail" if p <= fail else "warn" if p <= warn else "pass"
