"""Rules that take a point or a set of pixels from a map: their names and definitions. They are applied elsewhere."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from carina.store.errors import CarinaError

TieRule = Literal["first_argmax", "any_max", "all_max", "expected"]
Scale = Literal["raw", "minmax", "symmetric", "sigmoid"]
Objective = Literal["iou", "dice"]
SelectedOn = Literal["tuned", "oracle_set"]
"""Images on which a threshold is selected: another split, or the scored images themselves."""
GridName = Literal["minmax256", "minmax7", "raw9990", "sigmoid101"]


@dataclass(frozen=True)
class PeakPixel:
    """The pixel with the highest value; `ties` says which counts where several share it."""

    ties: TieRule


@dataclass(frozen=True)
class PeakNeighbourhood:
    """All pixels nearer than `radius` pixels to the first pixel with the highest value."""

    radius: int


@dataclass(frozen=True)
class TopPixels:
    """The k highest pixels."""

    k: int


@dataclass(frozen=True)
class FixedThreshold:
    """Pixels above a fixed threshold on a scale; scores at several thresholds are averaged."""

    scale: Scale
    thresholds: tuple[float, ...]


@dataclass(frozen=True)
class OtsuThreshold:
    """Pixels above Otsu's threshold; `filled` fills every contour as cheXlocalize does."""

    filled: bool


@dataclass(frozen=True)
class OracleThreshold:
    """Pixels that are selected by looking at the truth of the image."""

    kind: Literal["area", "image", "grid"]


@dataclass(frozen=True)
class SelectedThreshold:
    """Pixels above the one threshold of a grid that is best on a set of images."""

    selected_on: SelectedOn
    objective: Objective
    grid: GridName


ThresholdRule = FixedThreshold | OtsuThreshold | OracleThreshold | SelectedThreshold
Rule = PeakPixel | PeakNeighbourhood | TopPixels | ThresholdRule

SCALES: Final[dict[Scale, str]] = {
    "raw": "the values of the map as they are",
    "minmax": "the map scaled from 0 at its lowest pixel to 1 at its highest",
    "symmetric": "the map scaled from -1 at its lowest pixel to 1 at its highest",
    "sigmoid": "the logistic function of the values of the map",
}

TIE_RULES: Final[dict[TieRule, str]] = {
    "first_argmax": "whether the first pixel with the highest value, row by row, lies in the truth",
    "any_max": "whether any of the pixels with the highest value lies in the truth",
    "all_max": "whether all pixels with the highest value lie in the truth",
    "expected": "share of the pixels with the highest value that lies in the truth",
}


@dataclass(frozen=True)
class ThresholdGrid:
    """Thresholds among which one is selected."""

    scale: Scale
    description: str
    make: Callable[[], NDArray[np.float64]]


GRIDS: Final[dict[GridName, ThresholdGrid]] = {
    "minmax256": ThresholdGrid("minmax", "k/256 for k from 0 to 255", lambda: np.arange(256) / 256),
    # Rounding lets numpy.arange include the end: seven values, 0.2 to 0.8.
    "minmax7": ThresholdGrid(
        "minmax", "0.2 to 0.8 in steps of 0.1 (cheXlocalize)", lambda: np.arange(0.2, 0.8, 0.1)
    ),
    "raw9990": ThresholdGrid(
        "raw", "0.0001 to 0.1 in steps of 0.00001 (MAVL)", lambda: np.arange(0.0001, 0.1, 0.00001)
    ),
    "sigmoid101": ThresholdGrid(
        "sigmoid", "0 to 1 in steps of 0.01 (RadZero)", lambda: np.arange(0, 1.01, 0.01)
    ),
}


@cache
def grid_thresholds(name: GridName) -> NDArray[np.float32]:
    """The thresholds of a grid, ascending, in the precision in which maps are compared with them."""
    thresholds = GRIDS[name].make().astype(np.float32)
    thresholds.flags.writeable = False
    return thresholds


def rule_name(rule: Rule) -> str:  # noqa: PLR0911 - one for each kind
    """The part of a variant's name that names the rule."""
    match rule:
        case PeakPixel(ties):
            return ties
        case PeakNeighbourhood(radius):
            return f"within_{radius}"
        case TopPixels(k):
            return f"top_{k}"
        case FixedThreshold(scale, thresholds):
            return f"{scale}_{'+'.join(map(_number, thresholds))}"
        case OtsuThreshold(filled):
            return "otsu_filled" if filled else "otsu"
        case OracleThreshold(kind):
            return f"oracle_{kind}"
        case SelectedThreshold(selected_on, objective, grid):
            return f"{selected_on}_{objective}_{grid}"


def _number(value: float) -> str:
    """The shortest text that parses to the same number."""
    return repr(value).removesuffix(".0")


def parse_rule(text: str) -> Rule | None:
    """The rule that a part of a variant's name denotes; None if it denotes no rule."""
    if text in _RULES_BY_NAME:
        return _RULES_BY_NAME[text]
    if match := re.fullmatch(r"within_([1-9]\d{0,4})", text):
        return PeakNeighbourhood(int(match[1]))
    if match := re.fullmatch(r"top_([1-9]\d{0,8})", text):
        return TopPixels(int(match[1]))
    if match := re.fullmatch(rf"({'|'.join(SCALES)})_([-+.0-9e]+)", text):
        return _parse_fixed_threshold(text, match[2])
    return None


def _parse_fixed_threshold(text: str, numbers: str) -> FixedThreshold:
    scale = next(name for name in SCALES if text.startswith(name))
    try:
        thresholds = tuple(float(number) for number in re.split(r"(?<!e)\+", numbers))
    except ValueError:
        raise CarinaError(
            f"threshold {text!r}: expected numbers joined by +, as in minmax_0.5 or raw_0.1+0.2"
        ) from None
    if not all(np.isfinite(thresholds)):
        raise CarinaError(f"threshold {text!r}: expected finite numbers")
    return FixedThreshold(scale, thresholds)


SELECTED_THRESHOLDS: Final[tuple[SelectedThreshold, ...]] = tuple(
    SelectedThreshold(selected_on, objective, grid)
    for selected_on in get_args(SelectedOn)
    for objective in get_args(Objective)
    for grid in get_args(GridName)
)
_RULES_WITHOUT_NUMBERS: Final[tuple[Rule, ...]] = (
    *(PeakPixel(ties) for ties in get_args(TieRule)),
    OtsuThreshold(filled=False),
    OtsuThreshold(filled=True),
    OracleThreshold("area"),
    OracleThreshold("image"),
    OracleThreshold("grid"),
    *SELECTED_THRESHOLDS,
)
_RULES_BY_NAME: Final[dict[str, Rule]] = {rule_name(rule): rule for rule in _RULES_WITHOUT_NUMBERS}


def define_rule(rule: Rule) -> str:  # noqa: PLR0911 - one for each kind
    """What the rule takes from a map, as part of a sentence."""
    match rule:
        case PeakPixel(ties):
            return TIE_RULES[ties]
        case PeakNeighbourhood(radius):
            return (
                f"whether a pixel of the truth lies nearer than {radius} pixels to the first pixel with the highest "
                "value, row by row"
            )
        case TopPixels(k):
            return f"the {k:,} highest pixels; pixels that tie for the last place count by their mean"
        case FixedThreshold(scale, (value,)):
            return f"pixels above {_number(value)} in {SCALES[scale]}"
        case FixedThreshold(scale, thresholds):
            listed = ", ".join(map(_number, thresholds))
            return (
                f"pixels above {listed} in {SCALES[scale]}, averaged over the thresholds where it is defined"
            )
        case OtsuThreshold(filled=False):
            return (
                "pixels above Otsu's threshold, which is the centre of one of 256 equal bins between the lowest and "
                "the highest value"
            )
        case OtsuThreshold():
            return (
                "pixels above Otsu's threshold of the map in 256 grey levels, with each contour of more than one point "
                "filled together with its holes (cheXlocalize)"
            )
        case OracleThreshold("area"):
            return "the highest pixels, as many as the truth has, and all that tie with the last of them (oracle)"
        case OracleThreshold("image"):
            return "pixels at or above the threshold with the highest IoU and Dice on this image (oracle)"
        case OracleThreshold():
            return "the set of whole cells of the map's grid with the highest IoU, whatever their values (oracle)"
        case SelectedThreshold("tuned", objective, grid):
            return (
                f"pixels above the threshold with the highest mean {_OBJECTIVE_TITLES[objective]} on another, declared "
                f"split, among {GRIDS[grid].description}, in {SCALES[GRIDS[grid].scale]}"
            )
        case SelectedThreshold(_, objective, grid):
            return (
                f"pixels above the one threshold with the highest mean {_OBJECTIVE_TITLES[objective]} on the scored "
                f"images themselves, among {GRIDS[grid].description}, in {SCALES[GRIDS[grid].scale]} (oracle)"
            )


_OBJECTIVE_TITLES: Final[dict[Objective, str]] = {"iou": "IoU", "dice": "Dice"}
