"""An audit by several processes: each reads all cases and shows them to its share of the gates.

So no gate has to be put together from parts, and what it says does not depend on how many processes there are. A gate
may say what it costs (`cost`, in microseconds a question) and what it shares with others (`decoder`, with a cost too).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from carina.cases.audit.frame import Gate, Tally, concluded, show
from carina.cases.audit.record import Audit, GateResult
from carina.cases.model import Case
from carina.errors import CarinaError
from carina.workers import pool

_USUAL: Final = 1.0
"""Of a gate that does not say what it costs."""
_READING: Final = 15.0
"""Microseconds that reading a question takes; a share that costs less is not worth a process."""
_LOOKED: Final = 64
"""Cases between two looks whether somebody still waits for the result."""


class Work(NamedTuple):
    """What is shown to whom."""

    cases: Iterable[Case]
    gates: Sequence[Gate]


class _Found(NamedTuple):
    """What comes of one share."""

    tally: Tally
    results: dict[int, GateResult]
    """By the gate's place."""


def audit_shared(
    begin: Callable[[], Work],
    *,
    workers: int = 1,
    benchmark: str | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Audit:
    """As `audit`, by up to so many processes; this one is one of them.

    `begin` opens the cases and makes fresh gates, in each process. For more than one it must be picklable: a function
    of a module, or a `functools.partial` of one. `progress` is called after each case.
    """
    work = begin()
    mine, *others = shares(work.gates, workers)
    if not others:
        found = [_seen(work, mine, progress)]
    else:
        # When this process fails or is interrupted the folder goes first, which ends the others; then they are awaited.
        with (
            pool(workers=workers) as processes,
            ThreadPoolExecutor(1) as aside,
            TemporaryDirectory(prefix="carina-audit-") as folder,
        ):
            share = partial(_share, begin, Path(folder))
            awaited = aside.submit(list, processes.in_order(share, others))
            cases = _unless_failed(work.cases, awaited)
            found = [_seen(Work(cases, work.gates), mine, progress), *awaited.result()]
    results = {place: result for part in found for place, result in part.results.items()}
    return concluded(found[0].tally, [results[place] for place in sorted(results)], benchmark=benchmark)


def shares(gates: Sequence[Gate], most: int) -> list[list[int]]:
    """Places of the gates in up to so many shares of about the same cost; the costliest gates are dealt first."""
    decoders = {id(decoder): decoder for decoder in map(_decoder, gates)}
    total = sum(map(_cost, gates)) + sum(map(_decoding, decoders.values()))
    loads = [0.0] * max(1, min(most, int(total / (2 * _READING))))
    decoded: list[set[int]] = [set() for _ in loads]
    dealt: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(gates)), key=lambda place: -_cost(gates[place])):
        decoder = _decoder(gates[place])
        with_it = [
            load + _cost(gates[place]) + (0.0 if id(decoder) in known else _decoding(decoder))
            for load, known in zip(loads, decoded, strict=True)
        ]
        to = with_it.index(min(with_it))
        loads[to] = with_it[to]
        decoded[to].add(id(decoder))
        dealt[to].append(place)
    return [sorted(share) for share in dealt]


def _cost(gate: Gate) -> float:
    return float(getattr(gate, "cost", _USUAL))


def _decoder(gate: Gate) -> object:
    return getattr(gate, "decoder", None)


def _decoding(decoder: object) -> float:
    return float(getattr(decoder, "cost", 0.0))


def _share(begin: Callable[[], Work], folder: Path, places: list[int]) -> _Found:
    """In another process, as long as the folder is there."""
    work = begin()
    return _seen(Work(_as_long_as(folder, work.cases), work.gates), places, lambda: None)


def _seen(work: Work, places: list[int], progress: Callable[[], object]) -> _Found:
    gates = [work.gates[place] for place in places]
    tally = show(_told(work.cases, progress), gates)
    return _Found(tally, {place: gate.result() for place, gate in zip(places, gates, strict=True)})


def _told(cases: Iterable[Case], progress: Callable[[], object]) -> Iterator[Case]:
    for case in cases:
        yield case
        progress()


def _unless_failed(cases: Iterable[Case], awaited: "Future[list[_Found]]") -> Iterator[Case]:
    """Cases until another process has failed, whose error is then raised here."""
    for case in cases:
        if awaited.done():
            awaited.result()
        yield case


def _as_long_as(folder: Path, cases: Iterable[Case]) -> Iterator[Case]:
    for place, case in enumerate(cases):
        if not place % _LOOKED and not folder.exists():
            raise CarinaError("the audit was ended")
        yield case
