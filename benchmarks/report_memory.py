"""Memory and time of `carina report` on one run of many steps.

Writes a benchmark and a run of it in the exact format, about 3 KB a step as a served model leaves them, then reports
the run in a process of its own. Prints peak memory beside a lower bound: the bytes in memory of the columns that the
analysis reads of every step.

    python benchmarks/report_memory.py                    10,000, 100,000 and 1,000,000 steps
    python benchmarks/report_memory.py --steps 10000

Exit code 1 where a report takes more memory than `--limit`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from carina.cases import Benchmark, Case, Key, Option, Provenance, Step, open_benchmark, write_benchmark
from carina.cases.model import CaseImage, CaseView, Panel
from carina.models import parse_model_name
from carina.runs.analysis.read import ANALYSIS_COLUMNS
from carina.runs.claim import write_info
from carina.runs.info import describe_run
from carina.runs.options import RunOptions
from carina.runs.records import StepRow
from carina.runs.results import StepWriter, open_run
from carina.runs.steps_table import STEPS_FILE
from carina.studies import write_png

STEPS_OF_A_CASE = 8
TARGETS = ("edema", "consolidation", "pleural effusion", "pneumothorax")
PROMPT = "Question about the image, with its options and what was said before. " * 22
REPLY = "The cardiac silhouette and the mediastinum are described at length here. " * 18
OPTIONS = (Option(id="yes", text="Yes"), Option(id="no", text="No"))


def make_cases(number: int) -> Iterator[Case]:
    """Cases of percept with the same steps, four cases a patient."""
    image = CaseImage(key="image.png", width=64, height=64, view="PA")
    for place in range(number):
        right = ("yes", "no")[place % 2]
        steps = tuple(
            Step(
                id=str(step),
                stage=1 + step // 2,
                task=f"task {step}",
                format="choice",
                question=f"What of {step}?\nOptions:\n(1) Yes\n(2) No",
                options=OPTIONS,
                shows=("v1",) if step == 0 else (),
                uses=("v1",),
                key=Key(options=(right,)),
            )
            for step in range(STEPS_OF_A_CASE)
        )
        yield Case(
            id=f"c-{place:08d}",
            protocol="percept",
            study=f"study-{place:08d}",
            patient=f"patient-{place // 4:07d}",
            source="synthetic",
            target=TARGETS[place % len(TARGETS)],
            path="RR",
            images=(image,),
            views=(CaseView(id="v1", panels=(Panel(image=image.key),)),),
            steps=steps,
        )


def make_row(case: Case, number: int, step: Step, generator: np.random.Generator) -> StepRow:
    """An answered step with long texts, right four times in five."""
    is_right = bool(generator.random() < 0.8)
    answer = step.key.options[0] if is_right else {"yes": "no", "no": "yes"}[step.key.options[0]]
    unique = f"{case.id} {number} {generator.integers(1 << 60):x}"
    return StepRow(
        case=case.id, study=case.study, patient=case.patient, protocol=case.protocol, source=case.source,
        target=case.target, path=case.path, number=number, step=step.id, stage=step.stage, task=step.task,
        format=step.format, multiple=False, options=2, state="answered", prompt=f"{PROMPT}{unique}",
        seen_sha256=f"{generator.integers(1 << 60):064x}", views=step.shows, raw=f"{REPLY}{unique}. Answer: {answer}",
        status="ok", answer=(answer,), text=answer, gold=step.key.options[0], gold_options=step.key.options,
        correct=is_right, score=float(is_right), chance=0.5, stop="stop", seconds=float(generator.random()),
        input_tokens=400, output_tokens=300, images=1,
    )  # fmt: skip


def write_run(bench: Benchmark, out: Path) -> None:
    """A finished run of all cases, as `carina run` would leave it."""
    info = describe_run(bench, parse_model_name("openai-api/lab/vlm"), out, RunOptions())
    generator = np.random.default_rng(0)
    out.mkdir()
    with StepWriter(out / STEPS_FILE, info, lambda rows: rows) as writer:
        for case in bench:
            writer.add([make_row(case, number, step, generator) for number, step in enumerate(case.steps)])
    write_info(out, info)


def measure(run: Path, out: Path) -> tuple[float, float]:
    """Peak memory in GB, and seconds, of `carina report` in a process of its own."""
    script = (
        "import resource, sys; from pathlib import Path; from carina import report; "
        f"report([{str(run)!r}], {str(out)!r}); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) * 1024 / 1e9, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=1.5, help="Largest memory in GB.")
    parser.add_argument("--folder", type=Path, help="Directory for the data, to keep it.")
    given = parser.parse_args()
    print(f"{'steps':>10} {'file':>9} {'bound':>9} {'peak':>9} {'ratio':>6} {'time':>8}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        for steps in given.steps:
            folder = (given.folder or Path(scratch)) / str(steps)
            if not (folder / "run" / "run.json").exists():
                folder.mkdir(parents=True, exist_ok=True)
                write_benchmark(
                    folder / "bench", make_cases(steps // STEPS_OF_A_CASE), Provenance(command="benchmark")
                )
                write_png(folder / "bench" / "image.png", np.full((64, 64), 90, np.uint8))
                write_run(open_benchmark(folder / "bench"), folder / "run")
            # In a child, so that the memory of this process does not hide that of the report.
            size = (folder / "run" / STEPS_FILE).stat().st_size
            peak, seconds = measure(folder / "run", folder / "report")
            bound = open_run(folder / "run").table.read(ANALYSIS_COLUMNS).estimated_size() / 1e9
            worst = max(worst, peak)
            sizes = "".join(f" {value:>6.2f} GB" for value in (size / 1e9, bound, peak))
            print(f"{steps:>10,}{sizes} {peak / bound:>6.1f} {seconds:>6.1f} s", flush=True)
    sys.exit(int(worst > given.limit))


if __name__ == "__main__":
    main()
