"""A study's images as pictures: pixels as they are displayed, marked in colour, and encoded for pages."""

import base64
from collections.abc import Sequence
from typing import Final

import cv2

from carina.draw import Gray, Layer, Point, Rgb, Size, fitted, overlay, put_points, scale, size_of
from carina.show.marks import Mark
from carina.show.shapes import Shape
from carina.show.source import StudySet
from carina.studies.model import Image
from carina.studies.pixels import to_display

LARGEST: Final = Size(width=1600, height=1600)
"""Films of 3,000 pixels would make pages that no phone opens."""
JPEG_QUALITY: Final = 93
_CASED: Final = 400
"""On a smaller picture a dark line beside the outline would drown its colour."""


def displayed(studies: StudySet, image: Image) -> Gray:
    """The image's pixels as a viewer shows them: 8 bits, bone bright."""
    return to_display(studies.pixels(image), bits=image.bits, monochrome1=image.monochrome1)


def shrunk(image: Gray, box: Size = LARGEST) -> Gray:
    """Fitted into a box where it is larger; never enlarged."""
    size = size_of(image)
    return scale(image, fitted(size, box)) if size.width > box.width or size.height > box.height else image


def jpeg_uri(image: Gray) -> str:
    """As a data URI that a page can hold."""
    _, content = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(content.tobytes()).decode("ascii")


def png_bytes(picture: Rgb) -> bytes:
    """As the bytes of a PNG file."""
    _, content = cv2.imencode(".png", picture[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 4])
    return content.tobytes()


def marked(image: Gray, shapes: Sequence[Shape], box: Size, *, anatomy: bool = False) -> Rgb:
    """The image fitted into a box with findings tinted, devices outlined and numbers pinned.

    Anatomy, where asked for, is a thin outline below all of them.
    """
    size = fitted(size_of(image), box)
    shown = [shape for shape in shapes if anatomy or shape.mark.kind != "anatomy"]
    line = max(2, round(max(size) / 240))
    layers = [
        layer
        for layer in (_layer(shape.mark, line, casing=int(max(size) >= _CASED)) for shape in shown)
        if layer
    ]
    picture = overlay(image, layers, size=size)
    across, down = size.width / image.shape[1], size.height / image.shape[0]
    radius = max(6, round(max(size) / 50))
    tips = [
        Point(x=shape.mark.tip.x * across, y=shape.mark.tip.y * down, colour=shape.mark.colour)
        for shape in shown
        if shape.mark.tip
    ]
    put_points(picture, tips, radius=max(2, radius // 3))
    pins = [
        Point(
            x=shape.pin[0] * across,
            y=shape.pin[1] * down,
            colour=shape.mark.colour,
            text=str(shape.mark.number),
        )
        for shape in shown
        if shape.pin
    ]
    put_points(picture, pins, radius=radius)
    return picture


def _layer(mark: Mark, line: int, *, casing: int) -> Layer | None:
    if mark.region is None:
        return None
    return Layer(
        region=mark.region,
        colour=mark.colour,
        fill=0.22 if mark.kind == "finding" and not mark.boxed else 0.0,
        outline=1 if mark.kind == "anatomy" else line,
        dash=3 * line if mark.uncertain else 0,
        casing=casing if mark.kind == "finding" and not mark.uncertain else 0,
    )
