"""Colours by role for light and dark pages, and the mark by which a run is known in every chart."""

from dataclasses import dataclass
from typing import Final, Literal

Theme = Literal["light", "dark"]
Shape = Literal[
    "circle", "square", "triangle", "down", "pentagon", "hexagon", "diamond", "cross", "saltire", "star"
]
Fill = Literal["full", "hollow", "half", "dot", "bottom", "top"]
"""How much of a mark has its colour: all, none, the left half, a dot within, or the half at the bottom or top."""
Dash = tuple[float, float]
"""Lengths of a dash and of the gap after it, in pixels."""

COLOURS: Final[dict[str, tuple[str, str]]] = {
    # Role: on a light page, on a dark page. Hues after Okabe and Ito, as dark as lines on white need. No two roles
    # share their light colour, because a finished SVG tells the role of a colour by it.
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
    "oracle": ("#1a1e24", "#e4e8ec"),
    "bar-ink": ("#0c0e11", "#0c0e11"),
    "bar-white": ("#fffffe", "#fffffe"),
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
ROLES: Final = {light: role for role, (light, _) in COLOURS.items()}
"""Role of each light colour."""
MODEL_HUES: Final = tuple(f"s{number}" for number in range(1, 9))
MODEL_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "down", "pentagon")
"""Colours and shapes that models get in turn."""


@dataclass(frozen=True)
class SeriesStyle:
    """How one series (a run, a control) is drawn in every chart."""

    name: str
    colour: str
    """A role of `COLOURS`."""
    shape: Shape
    dash: Dash | None = None
    fill: Fill = "full"
