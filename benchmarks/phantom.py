"""How fast are phantoms made? Images per second of one core, with all masks, truth, reports and PNG files.

Printed beside a lower bound measured in the same run: only encoding and writing the same PNG files and regions,
which any way of making the same study set would have to do.

    python benchmarks/phantom.py
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2

from carina.phantom import PhantomOptions, write_phantom
from carina.studies import Region, open_studies, write_png

TARGET = {512: 8.0, 1024: 2.0}


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--studies", type=int, default=32)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    cv2.setNumThreads(1)  # per core
    print(
        f"{'size':>6}{'images':>8}{'images/s':>10}{'target':>8}{'bound, images/s':>17}{'share of bound':>16}"
    )
    short = 0
    for size, target in TARGET.items():
        with tempfile.TemporaryDirectory() as directory:
            options = PhantomOptions(size=size)
            write_phantom(Path(directory) / "warm", n=4, seed=chosen.seed + 1, options=options)
            made = Path(directory) / "studies"
            seconds = timed(lambda: write_phantom(made, n=chosen.studies, seed=chosen.seed, options=options))
            studies = list(open_studies(made))
            images = sum(len(study.images) for study in studies)
            pixels = [open_studies(made).pixels(image) for study in studies for image in study.images]
            masks = [a.region.to_mask() for study in studies for a in study.anatomy]
            masks += [
                a.region.to_mask() for s in studies for f in (*s.findings, *s.devices) for a in f.annotations
            ]
            bound = timed(lambda: write_all(Path(directory), pixels, masks))
        rate = images / seconds
        short += rate < target
        print(
            f"{size:>6}{images:>8}{rate:>10.1f}{target:>8.0f}{images / bound:>17.1f}{bound / seconds:>16.2f}"
        )
    return 1 if short else 0


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of this process: what one core spends, whatever else the machine does."""
    start = time.process_time()
    work()
    return time.process_time() - start


def write_all(directory: Path, pixels: list, masks: list) -> None:
    for k, image in enumerate(pixels):
        write_png(directory / f"{k}.png", image)
    for mask in masks:
        Region.from_mask(mask)


if __name__ == "__main__":
    sys.exit(main())
