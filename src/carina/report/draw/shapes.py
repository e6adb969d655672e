"""What charts are made of: lines, areas, marks and words in logical pixels, coloured by role."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from PIL import ImageFont

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]
Shape = Literal["circle", "square", "triangle", "diamond", "cross", "ring"]

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
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """How one run is drawn everywhere."""

    name: str
    colour: str
    shape: Shape
    dash: tuple[float, float] | None = None


def rectangle(x: float, y: float, width: float, height: float) -> tuple[Point, ...]:
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def outline(mark: Mark) -> tuple[Point, ...]:
    """A mark's corners; a circle has many."""
    x, y, r = mark.x, mark.y, mark.size
    match mark.shape:
        case "square":
            r *= 0.88
            return rectangle(x - r, y - r, 2 * r, 2 * r)
        case "triangle":
            return ((x, y - 1.15 * r), (x + 1.1 * r, y + 0.85 * r), (x - 1.1 * r, y + 0.85 * r))
        case "diamond":
            return ((x, y - 1.25 * r), (x + 1.25 * r, y), (x, y + 1.25 * r), (x - 1.25 * r, y))
        case "cross":
            a, b = 0.4 * r, 1.15 * r
            return (
                (x - a, y - b), (x + a, y - b), (x + a, y - a), (x + b, y - a), (x + b, y + a), (x + a, y + a),
                (x + a, y + b), (x - a, y + b), (x - a, y + a), (x - b, y + a), (x - b, y - a), (x - a, y - a),
            )  # fmt: skip
        case "circle" | "ring":
            turns = [math.tau * step / 24 for step in range(24)]
            return tuple((x + r * math.cos(turn), y + r * math.sin(turn)) for turn in turns)


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The outline font that Pillow carries, so that no font of the machine is needed."""
    return ImageFont.load_default(size=size)


def text_width(text: str, size: float) -> float:
    """How long a line of text is at most: pages show it in other faces, some of them wider."""
    return 1.15 * float(font(100).getlength(text)) * size / 100
