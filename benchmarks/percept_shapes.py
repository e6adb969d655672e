"""Do contours of percept reveal the answers on lesions as radiologists drew them?

Polygons of ChestX-Det on the lung masks of the COVID-19 collection (both read in place, beside the checkout) become a
study set, percept is built from it, and every rule about the shape of a contour is scored without the radiograph: the
share of option sets in which it finds the right mask, beside chance, and how well it separates the paths. A small
classifier over all shape features is scored by cross-validation over patients. For comparison, the same for phantoms.
How many lesions became cases is printed as well, and why the others did not.

    python benchmarks/percept_shapes.py
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

from carina.audits import AuditOptions, audit_benchmark
from carina.cases import Benchmark
from carina.percept import build_percept
from carina.phantom import Mix, PhantomOptions
from carina.phantom.make import write_phantom
from carina.studies import Anatomy, Annotation, Finding, Image, Provenance, Region, Study, write_studies

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIDE = 1024
NAMES = {
    "Cardiomegaly": "cardiomegaly",
    "Consolidation": "consolidation",
    "Atelectasis": "atelectasis",
    "Effusion": "pleural effusion",
}
"""Classes of ChestX-Det that percept asks about."""
GATE = "contour-shortcuts"


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--data", type=Path, default=DATA, help="Folder with chestx-det and covid.")
    arguments.add_argument("--lesions", type=int, default=1200, help="Most drawn lesions to use.")
    arguments.add_argument("--phantoms", type=int, default=0, help="Phantom studies to compare with.")
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    failed = False
    with TemporaryDirectory() as directory:
        root = Path(directory)
        if chosen.phantoms:
            mix = Mix(normal=0, pa_with_lateral=0, pa_alone=1, with_prior=0, hedged=0)
            options = PhantomOptions(size=512, mix=mix)
            write_phantom(root / "phantoms", n=chosen.phantoms, seed=chosen.seed, options=options, workers=2)
            failed |= report("phantoms", root / "phantoms", root / "phantom bench", chosen.seed)
        write_studies(root / "drawn", drawn_studies(chosen.data, chosen.lesions), Provenance(command="drawn"))
        failed |= report("drawn by radiologists", root / "drawn", root / "drawn bench", chosen.seed)
    return int(failed)


def report(name: str, studies: Path, directory: Path, seed: int) -> bool:
    """Build, print what was built and what the contours reveal; returns whether they reveal too much."""
    before = time.monotonic()
    bench = build_percept(studies, directory, per_cell=1000, seed=seed, workers=2)
    print(f"== {name}: {len(bench)} cases in {time.monotonic() - before:.0f} s")
    print_yield(bench)
    found = audit_benchmark(directory, AuditOptions(files=False), workers=1)
    for gate in found.gates:
        if gate.name == GATE:
            for row in gate.rows:
                print(f"  {row.name:<62}{row.n:>5} {row.value:.3f} (chance {row.chance:.2f})  {row.status}")
        elif gate.status not in ("pass", "not applicable"):
            print(f"  gate {gate.name}: {gate.status}: {[worst.what for worst in gate.worst[:3]]}")
    return found.gate(GATE).status == "fail"


def print_yield(bench: Benchmark) -> None:
    reasons: Counter[str] = Counter()
    for cell in bench.build_report.cells:
        if cell.path == "RR":
            reasons.update(cell.reasons)
            print(f"  {cell.target}: {cell.candidates} candidates")
    steps = Counter(step.id for case in bench for step in case.steps if case.path != "LF")
    print(f"  questions by step: {dict(sorted(steps.items()))}")
    print(f"  left out: {', '.join(f'{reason} {n}' for reason, n in reasons.most_common())}")


# ---- real shapes ----


def drawn_studies(data: Path, most: int) -> Iterator[Study]:
    """Studies with the polygons of one class each, on lungs that people drew too."""
    lungs = list(drawn_lungs(data / "covid"))
    made = 0
    for part in ("test", "train"):
        for entry in json.loads((data / "chestx-det" / f"ChestX_Det_{part}.json").read_text("utf-8")):
            for symbol in dict.fromkeys(entry["syms"]):
                if symbol not in NAMES:
                    continue
                if made == most:
                    return
                drawn = zip(entry["syms"], entry["polygons"], strict=True)
                rings = [polygon for named, polygon in drawn if named == symbol]
                name = f"{part}-{entry['file_name']}-{symbol.lower()}"
                yield make_study(name, NAMES[symbol], rings, lungs[made % len(lungs)])
                made += 1


def make_study(name: str, finding: str, rings: list[list[list[float]]], lungs: dict[str, Region]) -> Study:
    key = f"{name}.png"
    region = Region.from_polygons(rings, height=SIDE, width=SIDE)
    mark = Annotation(image=key, region=region, drawn="polygon", annotator="radiologist")
    return Study(
        id=name,
        patient=name,
        source="chestx-det",
        order=0,
        images=(Image(key=key, view="PA", width=SIDE, height=SIDE),),
        findings=(Finding(id="f1", name=finding, certainty="present", annotations=(mark,)),),
        anatomy=tuple(
            Anatomy(name=side, image=key, region=lung, annotator="V7 Labs") for side, lung in lungs.items()
        ),
    )


def drawn_lungs(covid: Path) -> Iterator[dict[str, Region]]:
    """Both lungs of every mask with two large pieces side by side, in the frame of the polygons."""
    for path in sorted((covid / "semantic_masks_v7labs_lungs").iterdir()):
        grey = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
        mask = cv2.resize((grey == 255).astype(np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_NEAREST)
        _, labels, stats, centres = cv2.connectedComponentsWithStats(mask, connectivity=4)
        largest = 1 + np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable")[:2]
        areas = stats[largest, cv2.CC_STAT_AREA]
        if len(areas) == 2 and areas.min() > 0.25 * areas.max() and areas.min() > 0.03 * SIDE**2:
            right, left = sorted(largest, key=lambda label: centres[label][0])
            yield {
                "right lung": Region.from_mask(labels == right),
                "left lung": Region.from_mask(labels == left),
            }


if __name__ == "__main__":
    sys.exit(main())
