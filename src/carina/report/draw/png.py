"""A drawing as PNG, three pixels to a logical one, smoothed by drawing it larger."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from PIL import Image, ImageColor, ImageDraw

from carina.draw import encode_png
from carina.report.draw.shapes import (
    COLOURS,
    DOT,
    Area,
    Drawing,
    Line,
    Mark,
    Point,
    Words,
    font,
    left_half,
    outline,
)

SCALE: Final = 3
_FINER: Final = 2
_GLYPHS: Final = {ord("−"): "-", ord("–"): "-"}
"""The font has no minus sign and no dash; a hyphen stands for both."""
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}


def png_bytes(drawing: Drawing) -> bytes:
    """On white, as a publication wants it; the same bytes every time."""
    zoom = SCALE * _FINER
    size = (round(drawing.width * zoom), round(drawing.height * zoom))
    picture = Image.new("RGB", size, "#ffffff")
    pen = ImageDraw.Draw(picture)
    for item in drawing.items:
        match item:
            case Line():
                for part in _dashes(item):
                    points = [(x * zoom, y * zoom) for x, y in part]
                    pen.line(points, fill=_colour(item.colour), width=round(item.width * zoom), joint="curve")
            case Area():
                _fill(picture, _scaled(item.points, zoom), _colour(item.colour), item.opacity)
            case Mark():
                _mark(pen, item, zoom)
            case Words():
                pen.text(
                    (item.x * zoom, item.y * zoom),
                    item.text.translate(_GLYPHS),
                    fill=_colour(item.colour),
                    font=font(round(item.size * zoom)),
                    anchor=_ANCHORS[item.anchor],
                    # The font has one weight; a rim makes it bolder.
                    stroke_width=0.025 * item.size * zoom if item.bold else 0,
                )
    shrunk = picture.resize((size[0] // _FINER, size[1] // _FINER), Image.Resampling.BOX)
    return encode_png(np.asarray(shrunk))


def _mark(pen: ImageDraw.ImageDraw, mark: Mark, zoom: float) -> None:
    corners = _scaled(outline(mark), zoom)
    full = mark.fill == "full"
    inside, rim = (mark.colour, "surface") if full else ("surface", mark.colour)
    pen.polygon(corners, fill=_colour(inside))
    if mark.fill == "half":
        pen.polygon(_scaled(left_half(mark), zoom), fill=_colour(mark.colour))
    if mark.fill == "dot":
        pen.circle((mark.x * zoom, mark.y * zoom), DOT * mark.size * zoom, fill=_colour(mark.colour))
    width = round((1.0 if full else 1.6) * zoom)
    pen.line([*corners, corners[0], corners[1]], fill=_colour(rim), width=width, joint="curve")


def _fill(picture: Image.Image, corners: Sequence[Point], colour: str, opacity: float) -> None:
    if opacity == 1:
        ImageDraw.Draw(picture).polygon(list(corners), fill=colour)
        return
    # Of the whole picture only the part that it covers is touched.
    left, top = (math.floor(min(point[axis] for point in corners)) for axis in (0, 1))
    right, bottom = (math.ceil(max(point[axis] for point in corners)) + 1 for axis in (0, 1))
    mask = Image.new("L", (right - left, bottom - top))
    shifted = [(x - left, y - top) for x, y in corners]
    ImageDraw.Draw(mask).polygon(shifted, fill=round(255 * opacity))
    picture.paste(ImageColor.getrgb(colour), (left, top, right, bottom), mask)


def _colour(role: str) -> str:
    return COLOURS[role][0]


def _scaled(points: Sequence[Point], zoom: float) -> list[Point]:
    return [(x * zoom, y * zoom) for x, y in points]


def _dashes(line: Line) -> list[tuple[Point, ...]]:
    """A line's strokes: itself, or the pieces between its gaps."""
    if line.dash is None:
        return [line.points]
    on, off = line.dash
    pieces, gone = [], 0.0
    for (x0, y0), (x1, y1) in pairwise(line.points):
        length = math.dist((x0, y0), (x1, y1))
        at = 0.0
        while at < length:
            place = gone % (on + off)
            step = min((on if place < on else on + off) - place, length - at)
            if place < on:
                ends = [
                    ((x0 + (x1 - x0) * t / length), (y0 + (y1 - y0) * t / length)) for t in (at, at + step)
                ]
                pieces.append(tuple(ends))
            # A step too small to count would never end.
            at, gone = at + max(step, 1e-6), gone + max(step, 1e-6)
    return pieces
