"""Groups of runs of maps that are compared with each other: runs on one benchmark, scored by one profile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from carina.cases import Benchmark, open_benchmark
from carina.cases.layout import LAYOUT as BENCHMARK
from carina.explanations.analysis.measures import Measure, overlap_measure, select_measures, shared_measures
from carina.explanations.analysis.read import MapsRun
from carina.store.errors import CarinaError

_LEVELS_UP: Final = 2
"""Directories above a run whose content is searched: `runs/one` lies beside or within what holds `bench`."""


@dataclass(frozen=True, eq=False)
class MapsGroup:
    """Runs of maps on one benchmark, scored by one profile."""

    runs: tuple[MapsRun, ...]
    """Models as given, then controls, then the oracle."""
    bench: Benchmark | None
    """None where it was not found."""
    measures: tuple[Measure, ...]

    @property
    def profile(self) -> str:
        return self.runs[0].scoring.profile

    @cached_property
    def overlap(self) -> Measure | None:
        """The overlap of areas that all runs have, so that they can be compared by it; any where there is none."""
        held = [run.known_variants for run in self.runs if run.scoring.scored]
        return overlap_measure(shared_measures(self.measures, held)) or overlap_measure(self.measures)

    @property
    def title(self) -> str:
        """Name of the benchmark, and of the profile where it is not Carina's own."""
        command = self.runs[0].manifest.command.split()
        name = command[2] if self.bench is None and len(command) > 2 else ""
        name = self.bench.directory.resolve().name if self.bench is not None else name
        return " · ".join(part for part in (name, "" if self.profile == "carina" else self.profile) if part)


def group_maps_runs(runs: Sequence[MapsRun], benches: dict[str, Benchmark | None]) -> list[MapsGroup]:
    """Runs by benchmark and profile, in order of their first run; `benches` are benchmarks by fingerprint."""
    groups = []
    for key in dict.fromkeys((run.benchmark, run.scoring.profile) for run in runs):
        own = [run for run in runs if (run.benchmark, run.scoring.profile) == key]
        ordered = sorted(own, key=lambda run: (run.is_oracle, run.is_control, run.is_baseline))
        variants = {name: words for run in own for name, words in run.scoring.variants.items()}
        known = sorted({name for run in own for name in run.known_variants})
        measures = select_measures(variants.items(), known=known)
        groups.append(MapsGroup(tuple(ordered), benches.get(key[0]), tuple(measures)))
    return groups


def find_benchmarks(
    runs: Sequence[MapsRun], named: Sequence[Benchmark], images: Path | None = None
) -> dict[str, Benchmark | None]:
    """The benchmarks of runs by fingerprint; None where one is not found."""
    benches: dict[str, Benchmark | None] = {}
    for run in runs:
        if benches.get(run.benchmark) is None:
            benches[run.benchmark] = find_benchmark(run.benchmark, run.path, named, images)
    return benches


def find_benchmark(
    fingerprint: str, run: Path, named: Sequence[Benchmark], images: Path | None = None
) -> Benchmark | None:
    """The benchmark with a fingerprint: one of those named, or one that lies near the run.

    Maps know their benchmark by its fingerprint, wherever it lies. Its images are needed for pictures, its cases for
    answers.
    """
    for bench in named:
        if bench.manifest.fingerprint == fingerprint:
            return bench
    for path in _benchmarks_near(run.resolve()):
        try:
            bench = open_benchmark(path, images, verify=False)
        except CarinaError:
            continue  # a neighbour that cannot be read is not the one
        if bench.manifest.fingerprint == fingerprint:
            return open_benchmark(path, images)
    return None


def _benchmarks_near(run: Path) -> Iterator[Path]:
    for above in list(run.parents)[:_LEVELS_UP]:
        for manifest in sorted(above.glob(f"*/{BENCHMARK.file}")):
            if manifest.parent != run:
                yield manifest.parent
