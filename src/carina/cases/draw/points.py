"""Points on an image: coloured discs with a dark and a white ring around them, each with its number."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2

from carina.cases.draw.image import Rgb
from carina.cases.draw.palette import INK, WHITE, Colour, ink_on
from carina.cases.draw.text import put_text, text_size

_SHIFT = 4
"""OpenCV takes centres in sixteenths of a pixel."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A place on an image, with the text to write in its disc ("1", "A", or nothing).

    Coordinates are those of `Region`: the centre of the first pixel is (0.5, 0.5).
    """

    x: float
    y: float
    colour: Colour
    text: str = ""


def put_points(image: Rgb, points: Sequence[Point], *, radius: int = 9, ring: int = 2) -> None:
    """Draw every point on an image, in place; a later point covers an earlier one.

    The white ring of width `ring` stands out from a dark ground, the dark one within it (half as wide, one pixel or
    more) from a bright ground, and one of the two from the disc, whatever its colour.
    """
    rim = max(1, ring // 2)
    for point in points:
        for extra, colour in ((rim + ring, WHITE), (rim, INK), (0, point.colour)):
            _disc(image, point, radius=radius + extra, colour=colour)
        if point.text:
            size = max(8, round(radius * (1.5 if len(point.text) == 1 else 1.1)))
            glyphs = text_size(point.text, size=size)
            put_text(
                image,
                point.text,
                x=round(point.x - glyphs.width / 2),
                y=round(point.y - glyphs.height / 2),
                size=size,
                colour=ink_on(point.colour),
            )


def _disc(image: Rgb, point: Point, *, radius: int, colour: Colour) -> None:
    # OpenCV's coordinates are 0 at the centre of the first pixel.
    centre = (round((point.x - 0.5) * 2**_SHIFT), round((point.y - 0.5) * 2**_SHIFT))
    cv2.circle(image, centre, radius << _SHIFT, colour, cv2.FILLED, cv2.LINE_AA, _SHIFT)
