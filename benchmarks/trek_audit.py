"""How fast trek conversations are audited, and how much memory that takes.

A few phantom studies are made, their truth is repeated under new ids, and conversations are built of them, without
images. For each size, `carina audit --no-files` runs with one and with two processes: questions a second, and the
largest memory of all processes together, start and page included. Beside it stands the time that only reading the same
cases takes, below which no audit can be. Then what each gate costs, and what the original's 428,966 conversations would
take.

    python benchmarks/trek_audit.py
    python benchmarks/trek_audit.py --sizes 1000 10000 --workers 1 2
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from carina.cases import Benchmark, open_benchmark
from carina.cases.audit import Gate, Thresholds, common_gates
from carina.phantom import PhantomOptions, make_studies
from carina.trek import TrekOptions, build_trek
from carina.trek.audit import trek_gates
from trek_build import ORIGINAL, repeated

PROFILED = 8192
"""Conversations that the costs of gates are measured on."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000], metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--phantoms", type=int, default=64, help="different studies that are repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base = [study for study, _ in make_studies(given.phantoms, 0, PhantomOptions(size=256))]
        print(f"{os.cpu_count()} cores; {given.phantoms} phantom studies repeated")
        print(
            f"{'conversations':>13} {'questions':>11} {'workers':>8} {'seconds':>8} {'questions/s':>12} {'MB':>6} "
            f"{'only reading':>13}",
            flush=True,
        )
        for size in given.sizes:
            studies = repeated(base, size, root / f"studies-{size}")
            bench = root / f"talks-{size}"
            build_trek(studies, bench, TrekOptions(), workers=max(given.workers))
            measure(open_benchmark(bench), given.workers, root / "page")
        costs(open_benchmark(bench))


def measure(bench: Benchmark, workers: list[int], out: Path) -> None:
    """Audits, and prints one line for each number of workers."""
    reading, questions = only_reading(bench)
    for number in workers:
        seconds, peak = audited(bench.directory, number, out)
        print(
            f"{len(bench):>13,} {questions:>11,} {number:>8} {seconds:>8.1f} {questions / seconds:>12,.0f} "
            f"{peak / 1e6:>6.0f} {reading:>11.1f} s",
            flush=True,
        )
        if len(bench) >= ORIGINAL // 10:
            print(f"{ORIGINAL:,} conversations would take {seconds * ORIGINAL / len(bench) / 60:.1f} minutes")


def only_reading(bench: Benchmark) -> tuple[float, int]:
    """Seconds that one core takes to read all cases, and how many questions they have."""
    began = time.perf_counter()
    questions = sum(len(case.steps) for case in bench)
    return time.perf_counter() - began, questions


def audited(bench: Path, workers: int, out: Path) -> tuple[float, int]:
    """Seconds that the command takes, and its largest memory in bytes."""
    command = [Path(sys.executable).with_name("carina"), "audit", bench, "--no-files", "-o", out]
    began, peak = time.perf_counter(), 0
    with subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.1)
    if process.returncode not in (0, 1):  # 1 where a gate fails
        raise SystemExit(f"carina audit ended with {process.returncode}")
    return time.perf_counter() - began, peak


def resident(process: int) -> int:
    """Bytes of a process and its children, whichever thread began them, that no other shares."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "smaps_rollup").read_text().splitlines()
        own = next(int(line.split()[1]) for line in fields if line.startswith("Pss:")) * 1024
        children = [child for task in folder.glob("task/*/children") for child in task.read_text().split()]
    except (OSError, StopIteration):
        return 0
    return own + sum(resident(int(child)) for child in children)


def costs(bench: Benchmark) -> None:
    """Microseconds of one core a question for every gate, and seconds for what it says in the end."""
    limits = Thresholds(slack=0.05, most_cases=1500)  # as the command sets them
    gates: list[Gate] = [*common_gates(limits), *trek_gates(limits)]
    spent = [0.0] * len(gates)
    questions = 0
    for case in islice(bench, PROFILED):
        questions += len(case.steps)
        for at, gate in enumerate(gates):
            began = time.thread_time()
            gate.see(case)
            spent[at] += time.thread_time() - began
    print(f"one core, {questions:,} questions: microseconds a question, and seconds in the end")
    rows = [(seconds / questions * 1e6, gate) for seconds, gate in zip(spent, gates, strict=True)]
    for each, gate in sorted(rows, key=lambda row: -row[0]):
        began = time.thread_time()
        gate.result()
        print(f"  {type(gate).__name__:<14} {each:>6.1f} {time.thread_time() - began:>6.1f}")
    print(f"  {'all':<14} {sum(each for each, _ in rows):>6.1f}")


if __name__ == "__main__":
    main()
