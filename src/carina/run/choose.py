"""Which cases of a benchmark are run: all, the first few, or a fair sample of every cell.

More of either holds all that fewer choose, for the same seed, so that a run can be grown.
"""

from collections import defaultdict
from collections.abc import Sequence

from carina.cases import Benchmark, Case
from carina.errors import CarinaError
from carina.seeding import shares


def chosen_cases(
    benchmark: Benchmark, *, limit: int | None, sample_per_cell: int | None, seed: int
) -> tuple[str, ...] | None:
    """Ids of the chosen cases in the order of the benchmark; None where all are."""
    if limit is None and sample_per_cell is None:
        return None
    for name, number in (("--limit", limit), ("--sample-per-cell", sample_per_cell)):
        if number is not None and number < 1:
            raise CarinaError(f"{name} {number}: expected 1 or more")
    rows = benchmark.table(["id", "protocol", "target", "path"]).collect().rows()
    if sample_per_cell is None:
        return tuple(row[0] for row in rows[:limit])
    drawn = _drawn([(row[0], _cell(*row[1:])) for row in rows], sample_per_cell, seed)
    taken = frozenset(drawn[:limit])
    return tuple(row[0] for row in rows if row[0] in taken)


def _cell(protocol: str, target: str | None, path: str | None) -> str:
    return Case(
        id="",
        study="",
        patient=None,
        source="",
        images=(),
        steps=(),
        protocol=protocol,
        target=target,
        path=path,
    ).cell


def _drawn(cases: Sequence[tuple[str, str]], number: int, seed: int) -> list[str]:
    """The same number of each cell, by a lot that depends on the case alone; first one of every cell, then a second."""
    cells: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for name, cell in cases:
        cells[cell].append((shares(seed, "sample", name)(), name))
    ranked = [
        (rank, *drawn) for lots in cells.values() for rank, drawn in enumerate(sorted(lots)) if rank < number
    ]
    return [name for _, _, name in sorted(ranked)]
