"""How fast trek conversations are built from stored studies, and how much memory that takes.

A few phantom studies are made, and their truth is repeated under new ids, without images, to study sets of growing
size. For each size: questions a second from stored studies to a finished benchmark, the largest memory of all processes
together, and the time that only writing the same Parquet takes. Then where the time goes, and what the original's
428,966 studies would take. Machines differ by a factor of two, so a bare loop that does nothing but fill templates and
build Arrow columns is timed in the same run.

    python benchmarks/trek_build.py
    python benchmarks/trek_build.py --sizes 1000 10000 --workers 2
"""

import argparse
import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from carina.cases.building import read_build_report
from carina.cases.store import CASES
from carina.phantom import PhantomOptions, make_studies
from carina.store import Writer
from carina.store.tables import to_table
from carina.studies import Provenance, Studies, Study, open_studies
from carina.studies.store import STUDIES
from carina.studies.vocabulary import ZONES
from carina.trek import TrekBuildReport, build_trek
from carina.trek.language import load_language
from carina.trek.neighbours import find_neighbours
from carina.trek.options import TrekOptions
from carina.trek.part import Job, make_cases, part_tasks, read_part_studies, survey_set
from carina.trek.sampling import Sampler

ORIGINAL = 428_966
"""Conversations of the published set."""
TARGET = 40_000
"""Questions a second on two cores."""
_PART = 1024
WRITER = Writer(STUDIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], metavar="N")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--phantoms", type=int, default=64, help="different studies that are repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        base = [study for study, _ in make_studies(given.phantoms, 0, PhantomOptions(size=256))]
        print(f"{given.workers} workers, {os.cpu_count()} cores; {given.phantoms} phantom studies repeated")
        print(
            f"{'studies':>9} {'questions':>11} {'seconds':>8} {'questions/s':>12} {'MB':>6} {'only writing':>13}"
        )
        rate = 0.0
        for size in given.sizes:
            studies = repeated(base, size, root / f"studies-{size}")
            rate = measure(studies, root / f"talks-{size}", given.workers)
        print(f"target {TARGET:,} questions/s: {rate / TARGET:.2f} of it at the largest size")
        bare = bare_loop()
        print(
            f"a bare loop fills {bare:,.0f} templates/s on one core: {bare * given.workers / rate:.1f} times as many"
        )
        profile(studies, root / "profile")


def repeated(base: list[Study], size: int, directory: Path) -> Studies:
    """A study set of this size; the same truth again and again, each time of other patients."""
    provenance = Provenance(
        command="benchmark", seed=None, options={"size": size}, sources=(), image_root="."
    )
    table = to_table(Study, base)
    parts = []
    for index, start in enumerate(range(0, size, _PART)):
        rows = range(start, min(start + _PART, size))
        part = table.take(pa.array([row % len(base) for row in rows]))
        for name in ("id", "patient", "prior", "later"):
            values = [getattr(base[row % len(base)], name) for row in rows]
            renamed = [
                None if value is None else f"{value}-{row // len(base)}"
                for row, value in zip(rows, values, strict=True)
            ]
            at = part.schema.get_field_index(name)
            part = part.set_column(at, part.schema.field(at), pa.array(renamed, pa.string()))
        part = part.cast(STUDIES.schema)
        parts.append(WRITER.write_table_part(directory, index, part, fingerprint=provenance.fingerprint))
    with WRITER.create(directory, provenance) as build:
        build.close(parts)
    return open_studies(directory, verify=False)


def measure(studies: Studies, out: Path, workers: int) -> float:
    """Builds, prints one line, and tells the questions a second."""
    with memory() as peak:
        began = time.perf_counter()
        built = build_trek(studies, out, workers=workers)
        seconds = time.perf_counter() - began
    report = read_build_report(built, TrekBuildReport)
    questions = report.questions
    print(
        f"{report.studies:>9,} {questions:>11,} {seconds:>8.1f} {questions / seconds:>12,.0f} "
        f"{peak[0] / 1e6:>6.0f} {only_writing(out):>11.1f} s",
        flush=True,
    )
    if report.studies >= ORIGINAL // 10:
        print(f"{ORIGINAL:,} studies would take {seconds * ORIGINAL / report.studies / 60:.1f} minutes")
    return questions / seconds


def bare_loop(number: int = 50_000, rounds: int = 5) -> float:
    """Questions a second on one core where each is only filled in, with its answer: the best round."""
    pool = load_language().pools[3, "location", "open"]
    draw = Sampler(0, "bare loop").pick
    places = [f"in the {zone}" for zone in ZONES]
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        columns: dict[str, list[object]] = {
            name: [] for name in ("id", "stage", "task", "question", "answer", "at")
        }
        for place in range(number):
            slots = {"the_finding": "the nodule", "at": draw(places)}
            columns["id"].append(f"t{place}")
            columns["stage"].append(3)
            columns["task"].append("location")
            columns["question"].append(draw(pool.questions).text.format_map(slots))
            columns["answer"].append(draw(pool.answers["any"]).format_map(slots))
            columns["at"].append([slots["at"]])
        pa.table(columns)
        best = min(best, time.process_time() - began)
    return number / best


def only_writing(bench: Path) -> float:
    """Seconds that one core takes to write the finished tables again."""
    spent = 0.0
    for part in sorted((bench / CASES.layout.folder).glob("*.parquet")):
        table = pq.read_table(part)
        began = time.perf_counter()
        pq.write_table(
            table,
            bench / "again.tmp",
            row_group_size=CASES.row_group,
            compression="zstd",
            compression_level=3,
            use_dictionary=CASES.with_dictionary,
            write_statistics=list(CASES.statistics),
            write_page_checksum=True,
        )
        spent += time.perf_counter() - began
    return spent


@contextmanager
def memory() -> Iterator[list[int]]:
    """The largest resident memory, in bytes, of this process and all its children together, while the block runs."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak[0] = max(peak[0], resident(os.getpid()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def resident(process: int) -> int:
    """Bytes of a process and its children that no other shares."""
    try:
        fields = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        own = next(int(line.split()[1]) for line in fields if line.startswith("Pss:")) * 1024
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (OSError, StopIteration):
        return 0
    return own + sum(resident(int(child)) for child in children)


def _spent(work: Callable[[], object]) -> float:
    """Seconds of this process that some work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def profile(studies: Studies, out: Path) -> None:
    """Where the time of one part goes, on one core."""
    options = TrekOptions()
    linked = find_neighbours(studies, None)
    job = Job(
        studies=str(studies.directory),
        out=str(out),
        fingerprint="",
        survey=survey_set(studies, linked, options),
        options=options,
    )
    task = next(part_tasks(job, linked))
    list(make_cases(task))
    gc.disable()
    reading = _spent(lambda: list(read_part_studies(task)))
    began = time.process_time()
    cases = list(make_cases(task))
    asking = time.process_time() - began - reading
    began = time.process_time()
    table = to_table(CASES.record, cases)
    columns = time.process_time() - began
    out.mkdir()
    parquet = _spent(
        lambda: pq.write_table(
            table, out / "part.parquet", compression="zstd", row_group_size=CASES.row_group
        )
    )
    gc.enable()
    questions = sum(len(case.steps) for case in cases)
    parts = {
        "reading studies": reading,
        "asking and phrasing": asking,
        "columns": columns,
        "Parquet": parquet,
    }
    total = sum(parts.values())
    print(f"one part, {questions:,} questions, microseconds of one core a question")
    for name, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        print(f"  {name:<22} {seconds / questions * 1e6:>6.1f}  {seconds / total:>5.0%}")


if __name__ == "__main__":
    main()
