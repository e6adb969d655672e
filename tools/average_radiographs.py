"""Make the average radiographs with which Carina compares images, from phantoms alone.

    python tools/average_radiographs.py

Writes `src/carina/studies/average_radiographs.png`, which `carina.studies.plausibility` reads. The file depends only on
the seed and the number of studies. Not part of the package.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from carina.phantom import PhantomOptions, make_studies
from carina.studies import display_image, write_png
from carina.studies.average_radiographs import FILE, Thumbnail, rank_thumbnail

STUDIES = 300
SEED = 11
PIXELS = 256


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--studies", type=int, default=STUDIES)
    arguments.add_argument("--out", type=Path, default=FILE)
    chosen = arguments.parse_args()
    frontal, lateral = average_phantoms(chosen.studies)
    both = np.hstack([frontal, lateral])
    write_png(chosen.out, np.rint(both * 255).astype(np.uint8))
    print(chosen.out)


def average_phantoms(studies: int) -> tuple[Thumbnail, Thumbnail]:
    """The average frontal and the average lateral phantom."""
    frontal: list[Thumbnail] = []
    lateral: list[Thumbnail] = []
    for study, stored in make_studies(studies, seed=SEED, options=PhantomOptions(size=PIXELS)):
        for image in study.images:
            pixels = display_image(stored[image.key], image)
            if image.view == "lateral":
                lateral.append(rank_thumbnail(crop_to_body(pixels)))
            else:
                frontal.append(rank_thumbnail(pixels))
    average = np.mean(frontal, axis=0)
    return (average + average[:, ::-1]) / 2, np.mean(lateral, axis=0)


def crop_to_body(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The columns that are not air beside the patient: at least half as bright as the image."""
    columns = np.flatnonzero(pixels.mean(axis=0) > pixels.mean() / 2)
    return pixels[:, columns[0] : columns[-1] + 1]


if __name__ == "__main__":
    main()
