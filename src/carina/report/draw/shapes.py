"""What charts are made of: lines, areas, marks and words in logical pixels, coloured by role."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from PIL import ImageFont

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]
Shape = Literal[
    "circle", "square", "triangle", "down", "pentagon", "hexagon", "diamond", "cross", "saltire", "star"
]
Fill = Literal["full", "hollow", "half", "dot"]

DOT: Final = 0.42
"""Radius of a dot within a mark, in sizes of the mark."""
COLOURS: Final[dict[str, tuple[str, str]]] = {
    # Role: on white, on the dark page. Hues after Okabe and Ito, as dark as lines on white need.
    "ink": ("#1a1e23", "#e4e8ec"),
    "quiet": ("#56606b", "#9aa3ad"),
    "line": ("#dadee3", "#2c3138"),
    "surface": ("#ffffff", "#191c20"),
    "s1": ("#0072b2", "#56b4e9"),
    "s2": ("#d55e00", "#f08a3c"),
    "s3": ("#00805d", "#3fc79a"),
    "s4": ("#a8477f", "#e39cc3"),
    "s5": ("#8a6500", "#e6c229"),
    "s6": ("#5a4fcf", "#a79cf5"),
    "s7": ("#3b7d8c", "#7fd0e0"),
    "s8": ("#8c4a2f", "#d99a7c"),
    "b1": ("#6b7480", "#a3acb6"),
    "b2": ("#8d959e", "#7f8891"),
    "oracle": ("#1a1e23", "#e4e8ec"),
    "bar-ink": ("#0c0e11", "#0c0e11"),
    "bar-white": ("#ffffff", "#ffffff"),
    "good": ("#2f8f63", "#3f9d72"),
    "e1": ("#7f1d1d", "#a03030"),
    "e2": ("#b8431f", "#c4522c"),
    "e3": ("#dd7a2b", "#dd7a2b"),
    "e4": ("#f0b45c", "#e8ad55"),
    "e5": ("#f6d48f", "#efcd88"),
    "e6": ("#cbb6d9", "#bfa8d0"),
    "e7": ("#9f86c0", "#a48bc6"),
    "e8": ("#6d5a93", "#7d69a5"),
}


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    dash: tuple[float, float] | None = None


@dataclass(frozen=True)
class Area:
    points: tuple[Point, ...]
    colour: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    shape: Shape
    colour: str
    size: float = 4.0
    fill: Fill = "full"


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    """Of the base line."""
    text: str
    size: float = 12.0
    anchor: Anchor = "start"
    colour: str = "ink"
    bold: bool = False


Item = Line | Area | Mark | Words


@dataclass
class Drawing:
    """A chart: its size, what it says in words, and its shapes from back to front."""

    name: str
    width: float
    height: float
    title: str
    note: str = ""
    """What its marks and lines mean, for the line below it."""
    told: str = ""
    """The main of its figures, for those who don't see it."""
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """How one run is drawn everywhere."""

    name: str
    colour: str
    shape: Shape
    dash: tuple[float, float] | None = None
    fill: Fill = "full"

    def mark(self, x: float, y: float, size: float = 4.5) -> Mark:
        return Mark(x, y, self.shape, self.colour, size, self.fill)


def rectangle(x: float, y: float, width: float, height: float) -> tuple[Point, ...]:
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def _around(corners: int, *radii: float) -> tuple[Point, ...]:
    """Corners at equal angles, the first at the top; radii take turns."""
    turns = [math.tau * step / corners for step in range(corners)]
    return tuple(
        (radii[step % len(radii)] * math.sin(turn), -radii[step % len(radii)] * math.cos(turn))
        for step, turn in enumerate(turns)
    )


_TRIANGLE: Final = ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85))
_CROSS: Final = (
    (-0.4, -1.15), (0.4, -1.15), (0.4, -0.4), (1.15, -0.4), (1.15, 0.4), (0.4, 0.4),
    (0.4, 1.15), (-0.4, 1.15), (-0.4, 0.4), (-1.15, 0.4), (-1.15, -0.4), (-0.4, -0.4),
)  # fmt: skip
_DIAGONAL: Final = math.sqrt(0.5)
_OUTLINES: Final[dict[Shape, tuple[Point, ...]]] = {
    "circle": _around(24, 1.0),
    "square": rectangle(-0.88, -0.88, 1.76, 1.76),
    "triangle": _TRIANGLE,
    "down": tuple((-x, -y) for x, y in _TRIANGLE),
    "pentagon": _around(5, 1.1),
    "hexagon": _around(6, 1.08),
    "diamond": _around(4, 1.25),
    "cross": _CROSS,
    "saltire": tuple((_DIAGONAL * (x - y), _DIAGONAL * (x + y)) for x, y in _CROSS),
    "star": _around(10, 1.35, 0.6),
}
"""Corners of marks of size 1 around (0, 0)."""


def outline(mark: Mark) -> tuple[Point, ...]:
    """A mark's corners; a circle has many."""
    return tuple((mark.x + mark.size * x, mark.y + mark.size * y) for x, y in _OUTLINES[mark.shape])


def left_half(mark: Mark) -> tuple[Point, ...]:
    """The part of a mark to the left of its middle."""
    corners = outline(mark)
    kept: list[Point] = []
    for (x0, y0), (x1, y1) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if x0 <= mark.x:
            kept.append((x0, y0))
        if (x0 < mark.x) != (x1 < mark.x):
            kept.append((mark.x, y0 + (y1 - y0) * (mark.x - x0) / (x1 - x0)))
    return tuple(kept)


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The outline font that Pillow carries, so that no font of the machine is needed."""
    return ImageFont.load_default(size=size)


def text_width(text: str, size: float) -> float:
    """How long a line of text is at most: pages show it in other faces, some of them wider."""
    return 1.15 * float(font(100).getlength(text)) * size / 100
