"""The average frontal and the average lateral radiograph, with which `carina.studies.plausibility` compares an image.

The averages lie in `average_radiographs.png`: frontal on the left, lateral on the right, 64 x 64 each, made of phantoms
alone by `tools/average_radiographs.py`. No real image was used.
"""

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.studies.pixels import Pixels, read_pixels

SIDE: Final = 64
"""Width and height of the averages, and of the thumbnails that are compared with them."""
FILE: Final = Path(__file__).with_name("average_radiographs.png")

Thumbnail = NDArray[np.float32]


class AverageRadiographs(NamedTuple):
    """Averages of ranks, from 0 (darkest) to 1, of shape (SIDE, SIDE)."""

    frontal: Thumbnail
    """Symmetric: the average of images and of their mirror images."""
    lateral: Thumbnail
    """Facing left, and cropped to the body."""


@cache
def read_average_radiographs() -> AverageRadiographs:
    """The averages that Carina comes with."""
    both = read_pixels(FILE).astype(np.float32) / np.float32(255)
    return AverageRadiographs(both[:, :SIDE].copy(), both[:, SIDE:].copy())


def rank_thumbnail(pixels: Pixels) -> Thumbnail:
    """A thumbnail whose values are ranks from 0 (darkest) to 1; equal pixels share a rank.

    Ranks do not depend on bit depth, window or exposure, and inverting an image turns each rank r into 1 - r.

    Args:
        pixels: Grey values of shape (height, width), 0 black.

    Returns:
        Ranks of shape (SIDE, SIDE), whatever the shape of the image.
    """
    small = cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    _, index, counts = np.unique(small, return_inverse=True, return_counts=True)
    # The mean rank of equal pixels: those before, and half of their own number.
    ranks = (np.cumsum(counts) - counts / 2) / small.size
    return np.asarray(ranks[index].reshape(SIDE, SIDE), np.float32)
