"""Transformations of grey values that publications apply first. Needs no torch."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BINS: Final = 256


def stretch_grey_levels(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Scale the darkest value to 0 and the brightest to 255, as hi-ml does.

    An image with a single value becomes black; hi-ml does not define this case.
    """
    low, high = int(image.min()), int(image.max())
    if low == high:
        return np.zeros_like(image)
    return ((image.astype(np.float64) - low) / (high - low) * 255).astype(np.uint8)


def equalise_grey_levels(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Equalise the histogram, as MedKLIP does.

    As in scikit-image: linear between the centres of 256 bins from the darkest value to the brightest.
    """
    values = image.astype(np.float64) / 255
    counts, edges = np.histogram(values, _BINS)
    shares = counts.cumsum() / values.size
    return (255 * np.interp(values, (edges[:-1] + edges[1:]) / 2, shares)).astype(np.uint8)
