"""How fast probes are built from stored studies, and how much memory that takes.

A few phantom studies are made, and their truth is repeated under new ids, without images, to study sets of growing
size. For each size: probes a second from stored studies to a finished benchmark, the largest memory of all processes
together, and the time that only reading the same studies takes on one core, which no build can undercut: regions are
read once to select probes and once to make them.

    python benchmarks/ground_build.py
    python benchmarks/ground_build.py --sizes 1000 10000 --workers 2
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from carina.ground import build_ground
from carina.phantom import PhantomOptions, make_studies
from carina.studies import Studies
from trek_build import memory, repeated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000], metavar="N")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--phantoms", type=int, default=64, help="different studies that are repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base = [study for study, _ in make_studies(given.phantoms, 0, PhantomOptions(size=256))]
        print(f"{given.workers} workers, {os.cpu_count()} cores; {given.phantoms} phantom studies repeated")
        print(
            f"{'studies':>9} {'probes':>9} {'seconds':>8} {'probes/s':>9} {'MB':>6} {'only reading':>13} {'ratio':>6}"
        )
        for size in given.sizes:
            measure(repeated(base, size, root / f"studies-{size}"), root / f"probes-{size}", given.workers)


def measure(studies: Studies, out: Path, workers: int) -> None:
    """Build, and print one line."""
    with memory() as peak:
        began = time.perf_counter()
        probes = len(build_ground(studies, out, workers=workers))
        seconds = time.perf_counter() - began
    reading = only_reading(studies)
    print(
        f"{len(studies):>9,} {probes:>9,} {seconds:>8.1f} {probes / seconds:>9,.0f} {peak[0] / 1e6:>6.0f} "
        f"{reading:>11.1f} s {seconds / reading:>6.1f}",
        flush=True,
    )


def only_reading(studies: Studies) -> float:
    """Seconds that one core takes to read the fields of all studies that a build needs."""
    began = time.perf_counter()
    for _ in studies.without("devices", "relations", "recommendations", "report"):
        pass
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
