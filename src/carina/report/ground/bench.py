"""Where the benchmark of an explain run lies: its images are needed for pictures, its cases for answers.

Maps know their benchmark by fingerprint, wherever it lies. It is looked for among the benchmarks that were named, then
among the neighbours of the run: what lies in the directories above it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from carina.cases import Benchmark, open_benchmark
from carina.errors import CarinaError
from carina.store import BENCHMARK

_ABOVE: Final = 2
"""Directories above a run whose content is looked through: `runs/one` lies beside or within what holds `bench`."""


def benchmark_of(
    fingerprint: str, run: Path, named: Sequence[Benchmark], images: Path | None = None
) -> Benchmark | None:
    """The benchmark with a fingerprint, or None where it is not found."""
    for bench in named:
        if bench.manifest.fingerprint == fingerprint:
            return bench
    for path in _near(run.resolve()):
        try:
            bench = open_benchmark(path, images, verify=False)
        except CarinaError:
            continue  # a neighbour that cannot be read is none of ours
        if bench.manifest.fingerprint == fingerprint:
            return open_benchmark(path, images)
    return None


def _near(run: Path) -> Iterator[Path]:
    for above in list(run.parents)[:_ABOVE]:
        for manifest in sorted(above.glob(f"*/{BENCHMARK.file}")):
            if manifest.parent != run:
                yield manifest.parent
