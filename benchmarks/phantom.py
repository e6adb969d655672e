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
from typing import NamedTuple

import cv2

from carina.phantom import PhantomOptions
from carina.phantom.make import write_phantom
from carina.studies import Region, open_studies, write_png

TARGET = {512: 8.0, 1024: 2.0}


class Speed(NamedTuple):
    images: int
    seconds: float
    bound: float
    """Seconds that only writing takes."""


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
            speed = measured(Path(directory), size, studies=chosen.studies, seed=chosen.seed)
        rate = speed.images / speed.seconds
        short += rate < target
        print(
            f"{size:>6}{speed.images:>8}{rate:>10.1f}{target:>8.0f}{speed.images / speed.bound:>17.1f}"
            f"{speed.bound / speed.seconds:>16.2f}"
        )
    return 1 if short else 0


def measured(directory: Path, size: int, *, studies: int, seed: int) -> Speed:
    options = PhantomOptions(size=size)
    write_phantom(directory / "warm", n=4, seed=seed + 1, options=options)
    made = directory / "studies"
    seconds = cpu_seconds(lambda: write_phantom(made, n=studies, seed=seed, options=options))
    opened = open_studies(made)
    records = list(opened)
    pixels = [opened.pixels(image) for study in records for image in study.images]
    regions = [part.region for study in records for part in study.anatomy]
    regions += [a.region for s in records for found in (*s.findings, *s.devices) for a in found.annotations]
    masks = [region.to_mask() for region in regions]

    def only_write() -> None:
        for k, image in enumerate(pixels):
            write_png(directory / f"{k}.png", image)
        for mask in masks:
            Region.from_mask(mask)

    return Speed(len(pixels), seconds, cpu_seconds(only_write))


def cpu_seconds(work: Callable[[], object]) -> float:
    """What one core spends, whatever else the machine does."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
