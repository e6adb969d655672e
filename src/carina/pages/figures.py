"""The one kind of image that pages hold: encoded for HTML, with outlines and boxes over it.

A `Figure` has all that a template needs, and no pixels: what a template was filled with may stay in memory for a while.
"""

import base64
from dataclasses import dataclass
from typing import Final, TypeAlias

import cv2
import numpy as np

from carina.cases.draw import Colour, Gray, Rgb, Size, fit_size, scale, size_of
from carina.pages.marks import Outline, pin_radius

LARGEST_OF_STUDY: Final = Size(width=1600, height=1600)
"""Radiographs of 3,000 pixels would make pages that are too large for a phone."""
LARGEST_OF_CASE: Final = Size(width=1024, height=1024)
"""A case may hold seven views of a whole radiograph."""
JPEG_QUALITY: Final = 93


@dataclass(frozen=True, kw_only=True)
class BoxOutline:
    """A named box over a figure, in the figure's coordinates."""

    name: str
    x: float
    y: float
    width: float
    height: float
    colour: Colour
    corners: str
    """Its corners in pixels of the image, as text."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One image of a page, and what lies over it."""

    id: str
    """Unique on the page."""
    title: str = ""
    alt: str
    """Description for readers who do not see the image."""
    size: Size
    """Width and height of the coordinates in which outlines and boxes are given."""
    uri: str
    """The encoded image as a data URI, or an address where it can be fetched."""
    outlines: tuple[Outline, ...] = ()
    boxes: tuple[BoxOutline, ...] = ()

    @property
    def pin_radius(self) -> float:
        """Radius of the discs with the numbers of outlines."""
        return pin_radius(self.size)


PixelStore: TypeAlias = dict[str, Gray | Rgb]
"""Pixels of the figures of one page, grey or RGB, by the ids of the figures: for images that are drawn from them."""


def make_figure(
    pixels: Gray | Rgb,
    store: PixelStore,
    *,
    id: str,  # noqa: A002 - the id of an HTML element
    alt: str,
    title: str = "",
    size: Size | None = None,
    largest: Size = LARGEST_OF_CASE,
    outlines: tuple[Outline, ...] = (),
) -> Figure:
    """A figure from pixels, encoded to fit into `largest`; `size` is that of the pixels unless it is given.

    The pixels are put into `store`.
    """
    store[id] = pixels
    return Figure(
        id=id,
        title=title,
        alt=alt,
        size=size or size_of(pixels),
        uri=jpeg_uri(shrink(pixels, largest)),
        outlines=outlines,
    )


def shrink(image: Gray | Rgb, box: Size = LARGEST_OF_STUDY) -> Gray | Rgb:
    """The image fitted into a box where it is larger; never enlarged."""
    size = size_of(image)
    return scale(image, fit_size(size, box)) if size.width > box.width or size.height > box.height else image


def jpeg_uri(image: Gray | Rgb, *, quality: int = JPEG_QUALITY) -> str:
    """An image as a data URI that a page can hold."""
    # OpenCV writes blue first.
    ordered = image if image.ndim == 2 else np.ascontiguousarray(image[..., ::-1])
    _, content = cv2.imencode(".jpg", ordered, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return "data:image/jpeg;base64," + base64.b64encode(content.tobytes()).decode("ascii")


def png_bytes(image: Rgb) -> bytes:
    """An image as the bytes of a small PNG file."""
    _, content = cv2.imencode(".png", image[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 4])
    return content.tobytes()
