"""Coordinates as data sets state them: frames of boxes and polygons, and forms of boxes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carina.sources._record import SourceError, describe
from carina.studies.region import Region

BoxForm = Literal["xywh", "xyxy", "centre"]
"""Corner and size; two corners; centre and size."""
FRAMES: Final = (
    "pixels, unit (0 to 1), percent, thousandths, a size such as 1024 or 1024x768, or one with a border such as "
    "'224 padded' (image in the middle) or '224 padded corner' (image at the top left)"
)
"""Frames in words, for help and messages."""
_SHARES: Final = {"unit": 1, "percent": 100, "thousandths": 1000}
_SIZE: Final = re.compile(r"(\d{1,5})(?:\s*x\s*(\d{1,5}))?(\s+padded(?:\s+(corner))?)?")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame in which coordinates are stated.

    Example:
        >>> Frame.parse("200 padded").to_pixels([(50, 0), (150, 200)], width=200, height=400).tolist()
        [[0.0, 0.0], [200.0, 400.0]]
    """

    size: tuple[int, int] | None = None
    """Width and height; None for the pixels of the image itself."""
    padding: Literal["none", "centre", "corner"] = "none"
    """Where the image lies in the frame: it fills the frame, or it keeps its proportions."""

    @classmethod
    def parse(cls, text: str) -> "Frame":
        """The frame of a name or size.

        Raises:
            SourceError: It is neither.
        """
        word = " ".join(text.lower().split())
        if word == "pixels":
            return cls()
        if word in _SHARES:
            return cls((_SHARES[word], _SHARES[word]))
        match = _SIZE.fullmatch(word)
        size = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if match is None or 0 in size:
            raise SourceError(f"frame {describe(text)}: expected {FRAMES}")
        return cls(size, "none" if not match[3] else "corner" if match[4] else "centre")

    def to_pixels(self, points: ArrayLike, *, width: int, height: int) -> NDArray[np.float64]:
        """Points (x, y) of the frame as points of an image of `width` x `height` pixels."""
        found = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        if self.size is None:
            return found
        image, frame = np.array([width, height]), np.array(self.size)
        if self.padding == "none":
            return np.asarray(found * image / frame)
        scale = float((frame / image).min())
        border = (frame - image * scale) / 2 if self.padding == "centre" else 0.0
        return np.asarray((found - border) / scale)


def box_corners(numbers: Sequence[float], form: BoxForm) -> tuple[tuple[float, float], tuple[float, float]]:
    """The corners of a box at the top left and at the bottom right."""
    a, b, c, d = numbers
    match form:
        case "xywh":
            return (a, b), (a + c, b + d)
        case "xyxy":
            return (a, b), (c, d)
        case "centre":
            return (a - c / 2, b - d / 2), (a + c / 2, b + d / 2)


def fit_square(region: Region, *, width: int, height: int) -> Region:
    """A region of a square frame, in which the image was padded to a square around its middle, as one of the image."""
    side = max(width, height)
    square = region.resize(side, side)
    return square.crop((side - width) // 2, (side - height) // 2, width, height)
