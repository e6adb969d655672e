"""How a point or a set of pixels is taken from a map: rules by name, with what each means. Computed elsewhere."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError

Tie = Literal["first_argmax", "any_max", "all_max", "expected"]
Scale = Literal["raw", "minmax", "symmetric", "sigmoid"]
Objective = Literal["iou", "dice"]
Where = Literal["tuned", "oracle_set"]
GridName = Literal["minmax256", "minmax7", "raw9990", "sigmoid101"]


@dataclass(frozen=True)
class Ties:
    """Which of several pixels with the highest value counts."""

    how: Tie


@dataclass(frozen=True)
class Within:
    """The first highest pixel, and all pixels nearer to it than so many pixels."""

    radius: int


@dataclass(frozen=True)
class TopK:
    """The k highest pixels."""

    k: int


@dataclass(frozen=True)
class Fixed:
    """Pixels above a threshold on a scale; above each of several, whose scores are averaged."""

    scale: Scale
    at: tuple[float, ...]


@dataclass(frozen=True)
class Otsu:
    """Pixels above Otsu's threshold; with every contour filled as cheXlocalize does."""

    filled: bool


@dataclass(frozen=True)
class Oracle:
    """A threshold that looks at the truth of the image."""

    how: Literal["area", "image", "grid"]


@dataclass(frozen=True)
class Chosen:
    """One threshold of a grid, the best on a set of images: another split (tuned), or the scored images (oracle)."""

    where: Where
    objective: Objective
    grid: GridName


Rule = Ties | Within | TopK | Fixed | Otsu | Oracle | Chosen
Threshold = Fixed | Otsu | Oracle | Chosen

SCALES: Final[dict[Scale, str]] = {
    "raw": "the map's own values",
    "minmax": "the map scaled from 0 at its lowest to 1 at its highest pixel",
    "symmetric": "the map scaled from -1 at its lowest to 1 at its highest pixel",
    "sigmoid": "the logistic function of the map's values",
}

TIES: Final[dict[Tie, str]] = {
    "first_argmax": "whether the first highest pixel, row by row, lies in the truth",
    "any_max": "whether any of the pixels that share the highest value lies in the truth",
    "all_max": "whether all pixels that share the highest value lie in the truth",
    "expected": "the share of the pixels with the highest value that lies in the truth",
}


@dataclass(frozen=True)
class Grid:
    """Thresholds of which one is chosen."""

    scale: Scale
    about: str
    make: Callable[[], NDArray[np.float64]]


GRIDS: Final[dict[GridName, Grid]] = {
    "minmax256": Grid("minmax", "k/256, k from 0 to 255", lambda: np.arange(256) / 256),
    # In floating point the end is not reached by 0.7: seven values, 0.2 to 0.8.
    "minmax7": Grid("minmax", "0.2 to 0.8 in steps of 0.1 (cheXlocalize)", lambda: np.arange(0.2, 0.8, 0.1)),
    "raw9990": Grid(
        "raw", "0.0001 to 0.1 in steps of 0.00001 (MAVL)", lambda: np.arange(0.0001, 0.1, 0.00001)
    ),
    "sigmoid101": Grid("sigmoid", "0 to 1 in steps of 0.01 (RadZero)", lambda: np.arange(0, 1.01, 0.01)),
}


@cache
def grid_thresholds(name: GridName) -> NDArray[np.float32]:
    """A grid's thresholds, ascending, as maps are compared with them."""
    made = GRIDS[name].make().astype(np.float32)
    made.flags.writeable = False
    return made


def token(rule: Rule) -> str:  # noqa: PLR0911 - one a kind
    """The rule's part of a variant's name."""
    match rule:
        case Ties(how):
            return how
        case Within(radius):
            return f"within_{radius}"
        case TopK(k):
            return f"top_{k}"
        case Fixed(scale, at):
            return f"{scale}_{'+'.join(map(_number, at))}"
        case Otsu(filled):
            return "otsu_filled" if filled else "otsu"
        case Oracle(how):
            return f"oracle_{how}"
        case Chosen(where, objective, grid):
            return f"{where}_{objective}_{grid}"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def parse_rule(text: str) -> Rule | None:
    """The rule that a part of a name stands for, or None where it stands for none."""
    if text in _NAMED:
        return _NAMED[text]
    if found := re.fullmatch(r"within_([1-9]\d{0,4})", text):
        return Within(int(found[1]))
    if found := re.fullmatch(r"top_([1-9]\d{0,8})", text):
        return TopK(int(found[1]))
    if found := re.fullmatch(rf"({'|'.join(SCALES)})_([-+.0-9e]+)", text):
        return _fixed(text, found[2])
    return None


def _fixed(text: str, numbers: str) -> Fixed:
    scale = next(name for name in SCALES if text.startswith(name))
    try:
        at = tuple(float(number) for number in re.split(r"(?<!e)\+", numbers))
    except ValueError:
        raise CarinaError(
            f"threshold {text!r}: expected numbers joined by +, as in minmax_0.5 or raw_0.1+0.2"
        ) from None
    if not all(np.isfinite(at)):
        raise CarinaError(f"threshold {text!r}: expected finite numbers")
    return Fixed(scale, at)


CHOSEN: Final[tuple[Chosen, ...]] = tuple(
    Chosen(where, objective, grid)
    for where in get_args(Where)
    for objective in get_args(Objective)
    for grid in get_args(GridName)
)
_PLAIN: Final[tuple[Rule, ...]] = (
    *(Ties(how) for how in get_args(Tie)),
    Otsu(filled=False),
    Otsu(filled=True),
    Oracle("area"),
    Oracle("image"),
    Oracle("grid"),
    *CHOSEN,
)
_NAMED: Final[dict[str, Rule]] = {token(rule): rule for rule in _PLAIN}


def define(rule: Rule) -> str:  # noqa: PLR0911 - one a kind
    """What the rule takes from a map, as part of a sentence."""
    match rule:
        case Ties(how):
            return TIES[how]
        case Within(radius):
            return f"whether a truth pixel lies nearer than {radius} pixels to the first highest pixel, row by row"
        case TopK(k):
            return f"the {k:,} highest pixels, ties at the last place by their mean"
        case Fixed(scale, (value,)):
            return f"pixels above {_number(value)} in {SCALES[scale]}"
        case Fixed(scale, at):
            listed = ", ".join(map(_number, at))
            return f"pixels above {listed} in {SCALES[scale]}, averaged over the thresholds where defined"
        case Otsu(filled=False):
            return "pixels above Otsu's threshold, the centre of one of 256 equal bins from the lowest to the highest"
        case Otsu():
            return (
                "pixels above Otsu's threshold of the map cut to 256 grey levels, each contour of more than a "
                "point filled with its holes (cheXlocalize)"
            )
        case Oracle("area"):
            return "the highest pixels, as many as the truth has, with all that tie with the last (oracle)"
        case Oracle("image"):
            return "pixels at or above the threshold that is best for this image's IoU and Dice (oracle)"
        case Oracle():
            return "the whole cells of the map's grid that together reach the highest IoU, whatever its values (oracle)"
        case Chosen("tuned", objective, grid):
            return (
                f"pixels above the threshold with the highest mean {_SPELLED[objective]} on another, declared "
                f"split, of {GRIDS[grid].about}, in {SCALES[GRIDS[grid].scale]}"
            )
        case Chosen(_, objective, grid):
            return (
                f"pixels above the one threshold with the highest mean {_SPELLED[objective]} on the scored set "
                f"itself, of {GRIDS[grid].about}, in {SCALES[GRIDS[grid].scale]} (oracle)"
            )


_SPELLED: Final[dict[Objective, str]] = {"iou": "IoU", "dice": "Dice"}
