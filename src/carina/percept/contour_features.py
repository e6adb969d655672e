"""What a contour looks like without the radiograph: corners, straight runs, convexity, curvature.

A build balances these features between right and wrong masks, and an audit tests whether they find the right one. All
lengths are in pixels of the protocol's frame.
"""

from collections.abc import Iterator
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.studies.region import Mask

CORNER_TOLERANCES: Final = (1.5, 3.0, 6.0, 12.0)
"""Distances that a polygon may keep from a contour; the fewer vertices it needs, the fewer corners the contour has."""
_STRAIGHT_TOLERANCES: Final = (1.5, 3.0)
"""The same for straight runs: the longest side of the polygon, as a share of its length."""
_STEP: Final = 4.0
"""Distance between the places at which curvature is measured."""
_SMOOTHING: Final = 2.0
"""Standard deviation of the smoothing of the contour before that, in steps."""
_NEARLY_STRAIGHT: Final = 0.03
"""Radians per step below which a contour counts as straight: the turn of a circle of 130 pixels' radius."""

_FEWEST_STEPS: Final = 8
"""A shorter contour has no direction."""

Outline = NDArray[np.float64]
"""Points (x, y) of a closed curve."""


def corner_feature(tolerance: float) -> str:
    """The name of the number of corners at a tolerance."""
    return f"corners at {tolerance:g} px"


def straight_feature(tolerance: float) -> str:
    """The name of the longest straight run at a tolerance."""
    return f"longest straight run at {tolerance:g} px"


FEATURES: Final = (
    "area",
    "roughness",
    "convexity",
    *map(corner_feature, CORNER_TOLERANCES),
    *map(straight_feature, _STRAIGHT_TOLERANCES),
    "mean curvature",
    "peak curvature",
    "share of straight contour",
    "share of inward curvature",
)
"""Names of the features, in the order of `measure_features`."""


def measure_features(mask: Mask, pixel: float) -> NDArray[np.float64]:
    """The features of a mask; numbers of corners, sizes and ratios of lengths are logarithms.

    Args:
        mask: The pixels of the mask.
        pixel: Length of a pixel of the frame, in pixels of the mask.
    """
    outlines = _find_outlines(mask, pixel)
    area = max(int(np.count_nonzero(mask)), 1) / pixel**2
    length = max(sum(map(_length, outlines)), 1.0)
    hulls = [
        float(cv2.contourArea(cv2.convexHull(outline.astype(np.float32))))
        for outline in outlines
        if len(outline) > 2
    ]
    sides = {tolerance: _measure_sides(outlines, tolerance) for tolerance in CORNER_TOLERANCES}
    turns = np.concatenate([_measure_turns(outline) for outline in outlines] or [np.zeros(1)])
    bends = np.abs(turns)
    return np.array(
        [
            np.log(area),
            np.log(length**2 / area),
            area / max(sum(hulls), 1.0),
            *(np.log(max(sides[tolerance].size, 1)) for tolerance in CORNER_TOLERANCES),
            *(float(sides[tolerance].max(initial=0.0)) / length for tolerance in _STRAIGHT_TOLERANCES),
            bends.mean(),
            np.quantile(bends, 0.95),
            (bends < _NEARLY_STRAIGHT).mean(),
            bends[turns < 0].sum() / max(bends.sum(), 1e-9),
        ],
        np.float64,
    )


def _find_outlines(mask: Mask, pixel: float) -> list[Outline]:
    x, y, width, height = cv2.boundingRect(mask.view(np.uint8))
    padded = np.pad(mask[y : y + height, x : x + width], 1).view(np.uint8)
    found, _ = cv2.findContours(padded, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    return [np.asarray((outline[:, 0, :] - 1.0) / pixel, np.float64) for outline in found]


def _length(outline: Outline) -> float:
    return float(np.hypot(*(np.roll(outline, -1, axis=0) - outline).T).sum())


def _measure_sides(outlines: list[Outline], tolerance: float) -> NDArray[np.float64]:
    """Lengths of the sides of polygons that stay this close to the contour."""
    return np.concatenate([np.zeros(0), *_list_sides(outlines, tolerance)])


def _list_sides(outlines: list[Outline], tolerance: float) -> Iterator[NDArray[np.float64]]:
    for outline in outlines:
        polygon = cv2.approxPolyDP(outline.astype(np.float32), tolerance, closed=True)[:, 0, :]
        yield np.hypot(*(np.roll(polygon, -1, axis=0) - polygon).T).astype(np.float64)


def _measure_turns(outline: Outline) -> NDArray[np.float64]:
    """The change of direction at each step along the smoothed contour, in radians; positive where it is convex."""
    closed = np.concatenate([outline, outline[:1]])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(closed, axis=0).T))])
    count = int(along[-1] / _STEP)
    if count < _FEWEST_STEPS:
        return np.zeros(1)
    places = np.arange(count) * (along[-1] / count)
    curve = np.interp(places, along, closed[:, 0]) + 1j * np.interp(places, along, closed[:, 1])
    waves = np.fft.fftfreq(count)
    smooth = np.fft.ifft(np.fft.fft(curve) * np.exp(-2 * (np.pi * _SMOOTHING * waves) ** 2))
    steps = np.roll(smooth, -1) - smooth
    turns = np.angle(np.roll(steps, -1) * np.conj(steps))
    # OpenCV runs around a mask in either direction; a closed curve turns towards its inside on the whole.
    return np.asarray(turns if turns.sum() >= 0 else -turns, np.float64)
