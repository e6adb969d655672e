"""Speed and memory of an audit of trek conversations.

A few phantom studies are generated, their truth is repeated under new ids, and conversations are built from them,
without images. For each size, `carina audit --no-files` runs with one and with two processes: questions per second, and
the largest memory of all processes together, start and page included, and the same in each quarter of the time: what
grows with the conversations would grow from one quarter to the next. The last column is the time for reading the same
cases, which no audit can undercut. Then follow the cost of each gate, and the time for the original's 428,966
conversations. `--growth` prints instead how much memory each gate takes after 60,000 and after 180,000 conversations.

    python benchmarks/trek_audit.py
    python benchmarks/trek_audit.py --sizes 1000 10000 --workers 1 2
    python benchmarks/trek_audit.py --growth
"""

import argparse
import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from carina.audits import AuditContext, GateInfo, list_gates, make_gates
from carina.cases import Benchmark, Case, open_benchmark
from carina.phantom import PhantomOptions, make_studies
from carina.trek import build_trek
from trek_build import ORIGINAL, repeated

QUARTERS = 4
GROWTH_CASES = 2_000
"""Conversations that are seen again and again, each time under other names."""
GROWTH_SEEN = (20_000, 60_000, 120_000, 180_000)
PROFILED = 8192
"""Conversations on which the costs of gates are measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000], metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument(
        "--phantoms", type=int, default=64, help="number of different studies that are repeated"
    )
    parser.add_argument(
        "--growth", action="store_true", help="only the memory of each gate, by conversations seen"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base = [study for study, _ in make_studies(given.phantoms, 0, PhantomOptions(size=256))]
        print(f"{os.cpu_count()} cores; {given.phantoms} phantom studies repeated")
        if given.growth:
            build_trek(repeated(base, GROWTH_CASES, root / "studies"), root / "conversations", workers=1)
            print_growth(open_benchmark(root / "conversations"))
            return
        print(
            f"{'conversations':>13} {'questions':>11} {'workers':>8} {'seconds':>8} {'questions/s':>12} {'MB':>6} "
            f"{'MB by quarter':>20} {'only reading':>13}",
            flush=True,
        )
        for size in given.sizes:
            studies = repeated(base, size, root / f"studies-{size}")
            bench = root / f"conversations-{size}"
            build_trek(studies, bench, workers=max(given.workers))
            measure(open_benchmark(bench), given.workers, root / "page")
        print_costs(open_benchmark(bench))


def measure(bench: Benchmark, workers: list[int], out: Path) -> None:
    """Audit with each number of workers, and print one line for each."""
    reading, questions = time_reading(bench)
    for number in workers:
        seconds, memory = time_audit(bench.directory, number, out)
        quarters = [f"{part.max() / 1e6:.0f}" for part in np.array_split(memory, QUARTERS)]
        print(
            f"{len(bench):>13,} {questions:>11,} {number:>8} {seconds:>8.1f} {questions / seconds:>12,.0f} "
            f"{memory.max() / 1e6:>6.0f} {' '.join(quarters):>20} {reading:>11.1f} s",
            flush=True,
        )
        if len(bench) >= ORIGINAL // 10:
            print(f"{ORIGINAL:,} conversations would take {seconds * ORIGINAL / len(bench) / 60:.1f} minutes")


def time_reading(bench: Benchmark) -> tuple[float, int]:
    """Seconds that one core takes to read all cases, and how many questions they have."""
    began = time.perf_counter()
    questions = sum(len(case.steps) for case in bench)
    return time.perf_counter() - began, questions


def time_audit(bench: Path, workers: int, out: Path) -> tuple[float, np.ndarray]:
    """Seconds that the command takes, and its memory in bytes, ten times a second."""
    command = [Path(sys.executable).with_name("carina"), "audit", bench, "--no-files", "-o", out]
    began, memory = time.perf_counter(), [0] * QUARTERS
    with subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            memory.append(resident_memory(process.pid))
            time.sleep(0.1)
    if process.returncode not in (0, 1):  # 1 where a gate fails
        raise SystemExit(f"carina audit ended with {process.returncode}")
    return time.perf_counter() - began, np.array(memory)


def resident_memory(process: int) -> int:
    """Proportional memory of a process and its children in bytes, whichever thread started them."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "smaps_rollup").read_text().splitlines()
        own = next(int(line.split()[1]) for line in fields if line.startswith("Pss:")) * 1024
        children = [child for task in folder.glob("task/*/children") for child in task.read_text().split()]
    except (OSError, StopIteration):
        return 0
    return own + sum(resident_memory(int(child)) for child in children)


def print_costs(bench: Benchmark) -> None:
    """Print the cost of every gate: microseconds of one core per question, and seconds for its result."""
    declared = list_gates({"trek"})
    limits = {info.name: info.read_limits({}, {"trek"}, where="defaults") for info in declared}
    gates = make_gates(declared, AuditContext(), limits)
    spent = [0.0] * len(gates)
    questions = 0
    for case in islice(bench, PROFILED):
        questions += len(case.steps)
        for at, gate in enumerate(gates):
            began = time.thread_time()
            gate.see(case)
            spent[at] += time.thread_time() - began
    print(f"one core, {questions:,} questions: microseconds per question, and seconds for the result")
    rows = [(seconds / questions * 1e6, gate) for seconds, gate in zip(spent, gates, strict=True)]
    for each, gate in sorted(rows, key=lambda row: -row[0]):
        began = time.thread_time()
        gate.result()
        print(f"  {gate.name:<24} {each:>6.1f} {time.thread_time() - began:>6.1f}")
    print(f"  {'all':<24} {sum(each for each, _ in rows):>6.1f}")


def print_growth(bench: Benchmark) -> None:
    """Print the anonymous memory of a process for each gate, after the gate has seen so many conversations."""
    cases = list(bench)
    print(f"{'MB after conversations':<24} {' '.join(f'{seen:>9,}' for seen in GROWTH_SEEN)}")
    for info in list_gates({"trek"}):
        process = multiprocessing.get_context("fork").Process(target=measure_growth, args=(info, cases))
        process.start()
        process.join()


def measure_growth(info: GateInfo, cases: list[Case]) -> None:
    limits = {info.name: info.read_limits({}, {"trek"}, where="defaults")}
    (gate,) = make_gates([info], AuditContext(), limits)
    memory = []
    for number in range(max(GROWTH_SEEN)):
        gate.see(rename(cases[number % len(cases)], number))
        if number + 1 in GROWTH_SEEN:
            gc.collect()
            memory.append(anonymous_memory())
    print(f"{info.name:<24} {' '.join(f'{one / 1e6:>9.1f}' for one in memory)}", flush=True)


def rename(case: Case, number: int) -> Case:
    """The same conversation about another study."""
    images = tuple(msgspec.structs.replace(image, key=f"{number}/{image.key}") for image in case.images)
    names = {"id": f"trek-{number:07d}", "study": f"s{number:07d}", "patient": f"p{number // 2:07d}"}
    return msgspec.structs.replace(case, images=images, **names)


def anonymous_memory() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) * 1024


if __name__ == "__main__":
    main()
