"""What publications do to grey values before anything else. Needs no torch."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BINS: Final = 256


def full_range(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """From the darkest value, which becomes 0, to the brightest, which becomes 255: as hi-ml reads images.

    An image of one value becomes black, where theirs is not defined.
    """
    low, high = int(image.min()), int(image.max())
    if low == high:
        return np.zeros_like(image)
    return ((image.astype(np.float64) - low) / (high - low) * 255).astype(np.uint8)


def equalised(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Every grey value as often as every other, as far as they go: as MedKLIP reads radiographs.

    By scikit-image's rule: linear between the centres of 256 bins from the darkest value to the brightest.
    """
    values = image.astype(np.float64) / 255
    counts, edges = np.histogram(values, _BINS)
    shares = counts.cumsum() / values.size
    return (255 * np.interp(values, (edges[:-1] + edges[1:]) / 2, shares)).astype(np.uint8)
