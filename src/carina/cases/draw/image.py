"""Images as arrays: grey to colour, and to another size. Colour images are RGB, height x width x 3, uint8."""

from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw.palette import Colour
from carina.studies.region import Mask

Gray = NDArray[np.uint8]
"""Height x width."""
Rgb = NDArray[np.uint8]
"""Height x width x 3."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def size_of(image: Gray | Rgb) -> Size:
    """Size of an image."""
    return Size(width=image.shape[1], height=image.shape[0])


def to_rgb(image: Gray | Rgb) -> Rgb:
    """A copy in colour that may be drawn on."""
    if image.ndim == 3:
        return image.copy()
    return cast(Rgb, cv2.cvtColor(image, cv2.COLOR_GRAY2RGB))


def blank(size: Size, colour: Colour) -> Rgb:
    """An image of one colour."""
    return np.full((size.height, size.width, 3), colour, dtype=np.uint8)


def fit_size(size: Size, box: Size) -> Size:
    """The largest size of the same shape that fits into `box`."""
    scale = min(box.width / size.width, box.height / size.height)
    return Size(width=max(1, round(size.width * scale)), height=max(1, round(size.height * scale)))


def scale(image: Gray | Rgb, size: Size) -> Gray | Rgb:
    """An image at another size: averaged when it shrinks, cubic when it grows."""
    if size_of(image) == size:
        return image
    shrinks = size.width <= image.shape[1] and size.height <= image.shape[0]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
    return cast(Gray, cv2.resize(image, tuple(size), interpolation=method))


def scale_mask(mask: Mask, size: Size) -> Mask:
    """A mask at another size; a pixel belongs to the new mask when the old one covers at least half of it.

    A structure thinner than a new pixel (a catheter on a thumbnail) would vanish by that rule, so a mask that
    loses more than half of its area keeps every pixel that it touches.
    """
    if (mask.shape[1], mask.shape[0]) == size:
        return mask
    # Floats, because 8-bit area averages round a thin line's small share to nothing.
    whole = mask.astype(np.float32, order="C")
    shrinks = size.width <= mask.shape[1] and size.height <= mask.shape[0]
    share = cv2.resize(whole, tuple(size), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    covered = share >= 0.5
    return covered if covered.sum() >= 0.5 * share.sum() else share > 0
