"""A picture as the reader gets it: grey values, what is coloured on it, and how large it was."""

from dataclasses import dataclass, field
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import MARKS
from carina.runs.builtin.reader.thorax import SIDE, Grey
from carina.studies.region import Mask

_TINT: Final = 64
"""Cyan has at least so much more green and blue than red, even half transparent on a grey image."""
_GREY: Final = 30
"""Channels of a grey pixel differ by less."""
_ALIKE: Final = 45.0
"""Distance in RGB within which a pixel has the colour of a mark."""
_LEAST: Final = 8
"""Shorter side of any copy: a picture of one row has no anatomy, but must not break what looks for it."""
_LINE: Final = 5
"""Pixels: a tint that vanishes when eroded by this is an outline, and its inside is meant."""


@dataclass(frozen=True)
class Picture:
    """A picture, measured on a copy whose longer side is `SIDE`."""

    grey: Grey
    width: int
    height: int
    contour: Mask | None
    """What is tinted or outlined in cyan."""
    marks: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Places of coloured points, in pixels of the copy, by the name of their colour."""


def read_picture(content: bytes) -> Picture:
    """The picture in a PNG. A file that is none is a blank one: whoever is examined must say something."""
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
        return Picture(grey=_copy(green), width=width, height=height, contour=None)
    signed = image.astype(np.int16)
    cyan = (signed[:, :, 1] - signed[:, :, 2] > _TINT) & (signed[:, :, 0] - signed[:, :, 2] > _TINT)
    cyan &= cv2.absdiff(green, blue) <= _GREY
    # Half of the pixel is left under the tint: its red, which cyan has none of.
    plain = np.where(cyan, np.minimum(signed[:, :, 2] * 2, 255), signed[:, :, 1]).astype(np.uint8)
    small = _copy(cyan.astype(np.uint8) * 255) > 127
    return Picture(
        grey=_copy(plain),
        width=width,
        height=height,
        contour=_whole(small) if small.any() else None,
        marks=_marks(image, coloured & ~cyan),
    )


def _copy(image: NDArray[np.uint8]) -> Grey:
    height, width = image.shape[:2]
    scale = SIDE / max(height, width)
    size = max(_LEAST, round(width * scale)), max(_LEAST, round(height * scale))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return cv2.resize(image, size, interpolation=way).astype(np.float32)


def _whole(cyan: Mask) -> Mask:
    """The region: itself where it is filled, what it goes around where it is a line."""
    flat = cyan.astype(np.uint8)
    if np.count_nonzero(cv2.erode(flat, np.ones((_LINE, _LINE), np.uint8))) * 10 > np.count_nonzero(flat):
        return cyan
    outlines, _ = cv2.findContours(flat, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(flat, outlines, -1, (1,), cv2.FILLED).astype(bool)


def _marks(image: NDArray[np.uint8], coloured: NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    rows, columns = np.nonzero(coloured)
    if not rows.size:
        return {}
    pixels = image[rows, columns][:, ::-1].astype(np.float32)
    names = list(MARKS)
    away = np.linalg.norm(pixels[:, None] - np.array([MARKS[name] for name in names], np.float32), axis=2)
    nearest = away.argmin(axis=1)
    near = away.min(axis=1) <= _ALIKE
    scale = SIDE / max(image.shape[:2])
    found = {}
    for n, name in enumerate(names):
        own = near & (nearest == n)
        if own.any():
            # The middle of most of it: a few pixels of a ring may look like another colour.
            found[name] = (
                (float(np.median(columns[own])) + 0.5) * scale,
                (float(np.median(rows[own])) + 0.5) * scale,
            )
    return found
