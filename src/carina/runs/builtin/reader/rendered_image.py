"""Decode a rendered image: grey values, coloured contour and marks, and size."""

from dataclasses import dataclass, field
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import MARKS
from carina.runs.builtin.reader.thorax import SIDE, Grey
from carina.studies.region import Mask

_TINT: Final = 64
"""Least difference of green and blue to red in a pixel that is tinted cyan, also half transparent."""
_GREY: Final = 30
"""Largest difference between the channels of a grey pixel."""
_MARK_DISTANCE: Final = 45.0
"""Distance in RGB within which a pixel has the colour of a mark."""
_SHORTEST_SIDE: Final = 8
"""Least length of the shorter side in pixels, so that an image of a single row causes no error."""
_LINE_WIDTH: Final = 5
"""Pixels: a tinted area that vanishes when it is eroded by this is an outline, which stands for its interior."""


@dataclass(frozen=True)
class RenderedImage:
    """A rendered image, resized so that its longer side is `SIDE`."""

    grey: Grey
    width: int
    height: int
    contour: Mask | None
    """The area that is tinted or outlined in cyan."""
    marks: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Column and row of the coloured points in the resized image, by the name of their colour."""


def read_image(content: bytes) -> RenderedImage:
    """Decode a PNG. A file that cannot be decoded becomes a blank image, because every turn needs an answer."""
    data = np.frombuffer(content, np.uint8)
    try:
        decoded = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except cv2.error:
        decoded = None
    image: NDArray[np.uint8] = (
        np.zeros((SIDE, SIDE, 3), np.uint8) if decoded is None else np.asarray(decoded, np.uint8)
    )
    height, width = image.shape[:2]
    blue, green, red = (image[:, :, n] for n in range(3))
    coloured = cv2.absdiff(green, red) > _GREY
    coloured |= cv2.absdiff(green, blue) > _GREY
    if not coloured.any():
        return RenderedImage(grey=_resize(green), width=width, height=height, contour=None)
    signed = image.astype(np.int16)
    cyan = (signed[:, :, 1] - signed[:, :, 2] > _TINT) & (signed[:, :, 0] - signed[:, :, 2] > _TINT)
    cyan &= cv2.absdiff(green, blue) <= _GREY
    # The tint is half transparent and has no red: twice the red is the grey value under it.
    plain = np.where(cyan, np.minimum(signed[:, :, 2] * 2, 255), signed[:, :, 1]).astype(np.uint8)
    small = _resize(cyan.astype(np.uint8) * 255) > 127
    return RenderedImage(
        grey=_resize(plain),
        width=width,
        height=height,
        contour=_fill_outline(small) if small.any() else None,
        marks=_find_marks(image, coloured & ~cyan),
    )


def _resize(image: NDArray[np.uint8]) -> Grey:
    height, width = image.shape[:2]
    scale = SIDE / max(height, width)
    size = max(_SHORTEST_SIDE, round(width * scale)), max(_SHORTEST_SIDE, round(height * scale))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return cv2.resize(image, size, interpolation=way).astype(np.float32)


def _fill_outline(cyan: Mask) -> Mask:
    """The tinted area, with its interior if it is an outline."""
    flat = cyan.astype(np.uint8)
    if np.count_nonzero(
        cv2.erode(flat, np.ones((_LINE_WIDTH, _LINE_WIDTH), np.uint8))
    ) * 10 > np.count_nonzero(flat):
        return cyan
    outlines, _ = cv2.findContours(flat, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(flat, outlines, -1, (1,), cv2.FILLED).astype(bool)


def _find_marks(image: NDArray[np.uint8], coloured: NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    rows, columns = np.nonzero(coloured)
    if not rows.size:
        return {}
    pixels = image[rows, columns][:, ::-1].astype(np.float32)
    names = list(MARKS)
    away = np.linalg.norm(pixels[:, None] - np.array([MARKS[name] for name in names], np.float32), axis=2)
    nearest = away.argmin(axis=1)
    near = away.min(axis=1) <= _MARK_DISTANCE
    scale = SIDE / max(image.shape[:2])
    found = {}
    for n, name in enumerate(names):
        own = near & (nearest == n)
        if own.any():
            # The median is robust against a few pixels of another mark with a similar colour.
            found[name] = (
                (float(np.median(columns[own])) + 0.5) * scale,
                (float(np.median(rows[own])) + 0.5) * scale,
            )
    return found
