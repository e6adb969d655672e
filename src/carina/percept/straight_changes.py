"""Changes that make a contour simpler: a run of it is replaced by a chord, or by the corner where its ends would meet.

What the warp moves (`carina.percept.deform`) gets new bends at its ends, so that contours would look more complicated
after a mistake than before it. Readers also make the opposite mistake: they cut a corner, close a hollow, or follow a
straight side too far.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.deform import LEAST_OF_WANTED, Change, Operation, as_change, find_largest_piece
from carina.percept.outline import Outline

_STEP: Final = 4.0
"""Distance between the places on the contour where a run may begin or end, in pixels of the frame."""
_REACH: Final = 4
"""Steps over which the direction of the contour at an end of a run is measured."""
_LONGEST: Final = 0.45
"""Longest run, as a share of the contour."""
_FEWEST_STEPS: Final = 6
"""Shortest run."""
_TURN: Final = (0.35, 2.4)
"""Range of the angle, in radians, at which the ends of a run meet in a corner."""

_Values = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A run of a contour, and what replaces it."""

    ring: int
    first: int
    last: int
    """Pixels of the ring; `last` may lie beyond the end of the ring, which is closed."""
    corner: tuple[float, float] | None
    """Column and row of the corner; None for a chord."""
    operation: Operation
    area: float
    """Pixels that change, about."""


@dataclass(frozen=True)
class RunTable:
    """All runs of an outline with what they would change: runs in rows."""

    rings: tuple[NDArray[np.int32], ...]
    """Pixels (column, row) of the contour."""
    runs: NDArray[np.int64]
    """Number of the ring, first pixel, last pixel, and whether it is replaced by a corner."""
    corners: _Values
    middles: _Values
    """Column and row of the middle of each run."""
    areas: _Values
    """Pixels that change: added if positive."""

    def find_runs(
        self,
        sizes: tuple[float, float],
        operation: Operation,
        near: NDArray[np.bool_],
        chance: np.random.Generator,
    ) -> Iterator[Run]:
        """Runs in random order that change so many pixels, and whose middle is in `near`."""
        areas = self.areas if operation == "expansion" else -self.areas
        fit = np.flatnonzero((areas >= sizes[0]) & (areas <= sizes[1]))
        middle = self.middles[fit].astype(np.int64)
        for n in chance.permutation(fit[near[middle[:, 1], middle[:, 0]]]):
            ring, first, last, is_corner = (int(value) for value in self.runs[n])
            corner = (float(self.corners[n, 0]), float(self.corners[n, 1])) if is_corner else None
            yield Run(ring, first, last, corner, operation, float(areas[n]))


def list_runs(outline: Outline) -> RunTable:
    """The runs of all rings of an outline."""
    found, _ = cv2.findContours(outline.mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    rings = tuple(np.asarray(ring[:, 0, :], np.int32) for ring in found)
    parts = [_list_runs_of_ring(n, ring, outline.scale) for n, ring in enumerate(rings)]
    runs, corners, middles, areas = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return RunTable(rings=rings, runs=runs.astype(np.int64), corners=corners, middles=middles, areas=areas)


def _list_runs_of_ring(number: int, ring: NDArray[np.int32], scale: float) -> tuple[_Values, ...]:
    count = int(len(ring) / (_STEP * scale))
    longest = int(_LONGEST * count)
    if longest < _FEWEST_STEPS:
        return np.zeros((0, 4)), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0)
    pixels = np.round(np.arange(2 * count + _REACH) * (len(ring) / count)).astype(np.int64)
    points = ring[pixels % len(ring)].astype(np.float64)
    # Twice the area between the origin and the contour from its first point to each point.
    swept = np.concatenate([[0.0], np.cumsum(_cross(points[:-1], points[1:]))])
    # OpenCV lists the outer contour counter-clockwise as seen; the sign of its area says how it lists it.
    sign = 1.0 if swept[count] > 0 else -1.0
    first = np.repeat(np.arange(count), longest - _FEWEST_STEPS)
    last = first + np.tile(np.arange(_FEWEST_STEPS, longest), count)
    one, other = points[first], points[last]
    bulge = sign / 2 * (swept[last] - swept[first] + _cross(other, one))
    before = one - points[(first - _REACH) % count]
    after = points[last + _REACH] - other if _REACH else other
    turn = _cross(before, after)
    angle = np.abs(np.arctan2(turn, (before * after).sum(axis=1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        along = _cross(other - one, after) / turn
        back = _cross(other - one, before) / turn
        corner = one + along[:, None] * before
    meets = (along > 0) & (back < 0) & (angle > _TURN[0]) & (angle < _TURN[1])
    corner = np.where(meets[:, None], corner, 0.0)
    gain = sign / 2 * (_cross(one, corner) + _cross(corner, other) + _cross(other, one)) - bulge
    runs = np.stack([np.full(len(first), number), pixels[first], pixels[last], np.zeros(len(first))], axis=1)
    with_corner = runs[meets]
    with_corner[:, 3] = 1
    middles = points[(first + last) // 2]
    return (
        np.concatenate([runs, with_corner]),
        np.concatenate([np.zeros_like(one), corner[meets]]),
        np.concatenate([middles, middles[meets]]),
        np.concatenate([-bulge, gain[meets]]),
    )


def _cross(one: _Values, other: _Values) -> _Values:
    return np.asarray(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0], np.float64)


def replace_run(outline: Outline, table: RunTable, run: Run) -> Change | None:
    """The change that replaces a run; None where the contour has no room for most of it."""
    ring = table.rings[run.ring]
    pixels = ring[np.arange(run.first, run.last + 1) % len(ring)]
    path = pixels if run.corner is None else np.concatenate([pixels, np.round([run.corner]).astype(np.int32)])
    rows, columns = outline.mask.shape
    left, top = np.maximum(path.min(axis=0) - 1, 0)
    right, bottom = np.minimum(path.max(axis=0) + 2, (columns, rows))
    window = (slice(int(top), int(bottom)), slice(int(left), int(right)))
    filled = np.zeros((int(bottom - top), int(right - left)), np.uint8)
    cv2.fillPoly(filled, [path - np.array([left, top], np.int32)], (1,))
    is_movable = outline.mask[window] == (run.operation == "contraction")
    piece = find_largest_piece(filled.view(bool) & is_movable & outline.field[window])
    if np.count_nonzero(piece) < LEAST_OF_WANTED * run.area:
        return None
    return as_change(outline, window, np.ascontiguousarray(piece), run.operation)
