"""Time to score a localisation map of a radiograph of 3,000 x 3,000 pixels, and what reducing the image changes.

`carina explain` scores the maps of the model and of six controls. Printed are the seconds of one core for a map, beside
a lower bound in the same run: resampling the map to the reduced image once and sorting its pixels once, which every
exact curve needs. Then the same maps are scored at full size, and the largest difference of each figure is printed.

    python benchmarks/explain_scoring.py
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core is what is promised
os.environ.setdefault("OMP_NUM_THREADS", "1")

import cv2
import numpy as np

import carina
from carina.explanations import scoring
from carina.models.frame import Frame
from carina.studies import (
    Anatomy,
    Annotation,
    Assessed,
    Finding,
    Image,
    Provenance,
    Region,
    Study,
    write_png,
    write_studies,
)

SIDE = 3000
TARGET = 0.15
"""Largest time for a map, in seconds of one core."""


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--studies", type=int, default=8)
    arguments.add_argument("--side", type=int, default=SIDE)
    given = arguments.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_studies(root / "studies", given.studies, given.side)
        carina.build_ground(root / "studies", root / "bench", workers=1)
        reduced, seconds = explain(root, "reduced")
        bound = best_of(3, lambda: resample_and_sort(min(given.side, scoring.SCORED_SIDE)))
        scoring.SCORED_SIDE = given.side  # type: ignore[misc] # the same at full size
        full, seconds_full = explain(root, "full")
    scored = len(full)
    per_map, full_map = seconds / scored, seconds_full / scored
    images = f"{given.studies} images of {given.side} x {given.side}"
    print(f"{images}, {scored} maps with those of controls, seconds of one core for a map")
    print(f"  scoring, images reduced to 1,024 pixels   {per_map:.3f}   (at most {TARGET})")
    print(f"  lower bound: resample and sort once       {bound:.3f}   ratio {per_map / bound:.1f}")
    print(f"  scoring at full size                      {full_map:.3f}   ratio {full_map / per_map:.1f}")
    print_differences(reduced, full)
    return 1 if per_map > TARGET else 0


def make_studies(out: Path, n: int, side: int) -> None:
    """Studies with a black image, two lungs and a mass of another size and place in each."""
    studies = []
    for number in range(n):
        key = f"{number}.png"
        write_png(out / "images" / key, draw_image(side, number))
        image = Image(key=key, view="PA", width=side, height=side)
        mass = ellipse(side, 0.3 + 0.04 * (number % 10), 0.4, 0.02 + 0.01 * number, 0.03 + 0.012 * number)
        drawn = Annotation(image=image.key, region=mass, drawn="polygon", annotator="benchmark")
        lungs = tuple(
            Anatomy(
                name=name, image=image.key, region=ellipse(side, x, 0.5, 0.15, 0.35), annotator="benchmark"
            )
            for name, x in (("right lung", 0.3), ("left lung", 0.7))
        )
        finding = Finding(id="f1", name="mass", certainty="present", annotations=(drawn,))
        studies.append(
            Study(
                id=f"s{number}",
                patient=f"p{number}",
                source="benchmark",
                images=(image,),
                anatomy=lungs,
                assessed=Assessed(findings="listed", listed=("mass",)),
                findings=(finding,),
            )
        )
    write_studies(out, studies, Provenance(command="benchmark", image_root="images"))


def draw_image(side: int, number: int) -> np.ndarray:
    """Smooth noise, so that the map of the model has a shape."""
    coarse = np.random.default_rng(number).integers(0, 256, (24, 24), np.uint8)
    return cv2.resize(coarse, (side, side), interpolation=cv2.INTER_LINEAR)


def ellipse(side: int, x: float, y: float, across: float, down: float) -> Region:
    """An ellipse; all lengths are shares of the side."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    ring = np.stack([x + across * np.cos(angle), y + down * np.sin(angle)], axis=1) * side
    return Region.from_polygons([ring], height=side, width=side)


def explain(root: Path, name: str) -> tuple[Any, float]:
    """The table of scores, and the processor time of scoring alone."""
    taken = 0.0
    score = scoring._score_source

    def timed(task: Any) -> Any:
        nonlocal taken
        start = time.process_time()
        result = score(task)
        taken += time.process_time() - start
        return result

    scoring._score_source = timed
    try:
        run = carina.explain(root / "bench", "builtin/asymmetry", root / name, workers=1)
    finally:
        scoring._score_source = score
    return run.to_frame(), taken


def resample_and_sort(side: int) -> None:
    values = np.random.default_rng(0).random((14, 14), np.float32)
    np.sort(Frame.stretched(side, side, side=224).to_image(values).ravel())


def best_of(rounds: int, work: Callable[[], None]) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def print_differences(reduced: Any, full: Any) -> None:
    print("\nlargest difference to the score at full size, over all maps and controls")
    keys = ["source", "case", "finding"]
    reduced, full = reduced.sort(keys), full.sort(keys)
    names = [name for name in full.columns if full[name].dtype.is_float()]
    for name in names:
        apart = (reduced[name] - full[name]).abs().max()
        if apart is not None:
            print(f"  {name:<60} {apart:.4f}")


if __name__ == "__main__":
    sys.exit(main())
