"""Local changes of a contour: expanded or contracted at one place, by a requested area.

A deformer states for each pixel around a place the effort of moving it to the other side of the contour. The pixels of
least effort are moved until the requested area is reached. So a change has nearly the requested area without a search.
The new contour is then made as straight or as round as the rest of the outline: in a polygon, a round change would
stand out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.outline import (
    SIDE_TOLERANCE,
    Field,
    Outline,
    Window,
    band_limited_noise,
    mean_side,
    measure_sides,
)
from carina.studies.region import Mask

Operation = Literal["expansion", "contraction"]
OPERATIONS: Final[tuple[Operation, ...]] = ("expansion", "contraction")
OPPOSITE: Final[dict[Operation, Operation]] = {"expansion": "contraction", "contraction": "expansion"}

FLOOR: Final = 0.05
"""Share of the kernel's peak below which no pixel moves, so that a change has an end along the contour."""
_LEAST_KERNEL: Final = np.float32(1e-6)
"""Interpolation leaves values between 0 and this at the rim of the kernel; efforts there have no meaning."""
AXES: Final = (0.7, 1.4)
"""Range of the ratio between a kernel's axes."""
GRID: Final = 12.0
"""Grid points across the width of a kernel."""
GRAIN: Final = 0.2
"""How much the kernel varies from place to place, so that a change looks drawn by hand."""
GRAIN_WIDTH: Final = 1.2
"""Wavelength of this variation, in widths of the kernel."""

LEAST_OF_WANTED: Final = 0.8
"""Least share of the requested area in the largest piece of a change that falls apart."""

FACET_TOLERANCES: Final = (3.0, 6.0, 10.0, 16.0)
"""Distances, in pixels of the frame, by which a new contour may be moved to make it straighter."""
STRAIGHTER: Final = (1.0, 4.0)
"""Range of how much longer the sides of a new contour should be than those of the outline: it has corners where it
begins and ends, and would else be less straight than what it replaces."""
_FEWEST_POINTS: Final = 8
"""A new contour of fewer pixels stays as it is."""


@dataclass(frozen=True)
class Change:
    """Pixels that change sides, in a window of an outline's window."""

    window: Window
    mask: Mask
    operation: Operation
    area: int
    edge: float
    """Increase of the length of the contour, in pixels."""

    @property
    def sign(self) -> int:
        return 1 if self.operation == "expansion" else -1


class EffortFunction(Protocol):
    """States how much effort it takes to move each pixel around a place to the other side of the contour."""

    def __call__(
        self,
        outline: Outline,
        place: tuple[int, int],
        operation: Operation,
        *,
        width: float,
        chance: np.random.Generator,
    ) -> tuple[Window, Field]:
        """A window around `place` (row, column), and the effort for each of its pixels; inf for pixels that stay."""
        ...


def warp(
    outline: Outline,
    place: tuple[int, int],
    operation: Operation,
    *,
    width: float,
    chance: np.random.Generator,
) -> tuple[Window, Field]:
    """The effort of the signed-distance warp: distance to the contour divided by a kernel that fades with distance.

    Adding `a` times the kernel to the signed distance moves exactly those pixels whose effort is below `a`, but for the
    rim of the kernel, where it is almost zero.
    """
    stretch = float(np.exp(chance.uniform(np.log(AXES[0]), np.log(AXES[1]))))
    angle = float(chance.uniform(0, np.pi))
    along, across = width * np.sqrt(stretch), width / np.sqrt(stretch)
    reach = int(np.ceil(max(along, across) * np.sqrt(-2 * np.log(FLOOR))))
    row, column = place
    rows, columns = outline.mask.shape
    window = (
        slice(max(0, row - reach), min(rows, row + reach + 1)),
        slice(max(0, column - reach), min(columns, column + reach + 1)),
    )
    kernel = _make_kernel(window, place, axes=(along, across), angle=angle, chance=chance)
    depth = outline.depth[window]
    effort = np.abs(depth) / np.maximum(kernel, _LEAST_KERNEL)
    movable = (kernel > 0) & (outline.mask[window] == (operation == "contraction")) & outline.field[window]
    return window, np.where(movable, effort, np.float32(np.inf))


def _make_kernel(
    window: Window,
    place: tuple[int, int],
    *,
    axes: tuple[float, float],
    angle: float,
    chance: np.random.Generator,
) -> Field:
    """An elliptic bell-shaped kernel around a place, uneven as if drawn by hand, 0 where it is below `FLOOR`.

    It is smooth, so it is computed on a coarse grid and interpolated.
    """
    along, across = axes
    step = max(1.0, min(axes) / GRID)
    shape = tuple(part.stop - part.start for part in window)
    rows, columns = (int(np.ceil(length / step)) + 1 for length in shape)
    # Centres of the coarse pixels, as `cv2.resize` takes them.
    y = (np.arange(rows, dtype=np.float32)[:, None] + np.float32(0.5)) * np.float32(shape[0] / rows)
    x = (np.arange(columns, dtype=np.float32) + np.float32(0.5)) * np.float32(shape[1] / columns)
    y += np.float32(window[0].start - place[0] - 0.5)
    x += np.float32(window[1].start - place[1] - 0.5)
    cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    squares = ((cos * x + sin * y) / np.float32(along)) ** 2 + ((cos * y - sin * x) / np.float32(across)) ** 2
    bell = (np.exp(squares * np.float32(-0.5)) - np.float32(FLOOR)) / np.float32(1 - FLOOR)
    # The kernel fades smoothly, so that a change leaves no corner where it ends.
    bell = np.maximum(bell, 0) ** 2 * (3 - 2 * bell)
    bell *= 1 + np.float32(GRAIN) * np.clip(band_limited_noise(bell.shape, GRAIN_WIDTH * GRID, chance), -2, 2)
    return np.asarray(cv2.resize(bell, shape[::-1], interpolation=cv2.INTER_LINEAR), np.float32)


def make_change(
    outline: Outline, window: Window, effort: Field, operation: Operation, area: float
) -> Change | None:
    """The change of about this area, in one piece at the contour; None where fewer pixels can be moved."""
    movable = effort[np.isfinite(effort)]
    wanted = round(area)
    if movable.size < wanted:
        return None
    window, mask = crop(window, effort <= np.partition(movable, wanted - 1)[wanted - 1])
    piece = find_largest_piece(mask)
    area_made = int(np.count_nonzero(piece))
    # Pixels apart from the largest piece are dropped, so the piece may be smaller than requested.
    if area_made < LEAST_OF_WANTED * wanted:
        return None
    return as_change(outline, window, piece, operation)


def as_change(outline: Outline, window: Window, piece: Mask, operation: Operation) -> Change:
    """The change of the pixels of a piece."""
    before = outline.mask[window]
    return Change(
        window=window,
        mask=piece,
        operation=operation,
        area=int(np.count_nonzero(piece)),
        edge=edge_length(before ^ piece) - edge_length(before),
    )


def match_straightness(outline: Outline, change: Change, straighter: float) -> Change | None:
    """The change with its new contour drawn in sides about as long as those of the outline.

    None where too little of it is left: as round as it was, it would stand out.
    """
    before = outline.mask[change.window]
    straight = _draw_sides(change.mask, before, change.operation, outline, straighter)
    if straight is change.mask:
        return change
    piece = find_largest_piece(straight & outline.field[change.window])
    if np.count_nonzero(piece) < LEAST_OF_WANTED * change.area:
        return None
    return as_change(outline, change.window, piece, change.operation)


def _draw_sides(piece: Mask, before: Mask, operation: Operation, outline: Outline, straighter: float) -> Mask:
    ring, count = _find_new_contour(piece, before if operation == "expansion" else ~before)
    if count < _FEWEST_POINTS:
        return piece
    tolerance = SIDE_TOLERANCE * outline.scale
    wanted = np.log(straighter * outline.side_length)
    best, least = (
        None,
        abs(np.log(mean_side([measure_sides(ring[:count], tolerance, is_closed=False)])) - wanted),
    )
    for allowed in FACET_TOLERANCES:
        chain = cv2.approxPolyDP(ring[:count], allowed * outline.scale, closed=False)
        away = abs(np.log(mean_side([measure_sides(chain, tolerance, is_closed=False)])) - wanted)
        if away < least:
            best, least = chain, away
    if best is None:
        return piece
    filled = np.zeros(piece.shape, np.uint8)
    cv2.fillPoly(filled, [np.concatenate([best, ring[count:]])], (1,))
    return np.asarray(filled.view(bool) & (before if operation == "contraction" else ~before))


def _find_new_contour(piece: Mask, other_side: Mask) -> tuple[NDArray[np.int32], int]:
    """The outline of a change, beginning with the part that becomes a new contour, and the length of this part.

    `other_side` is what the change touches along the old contour.
    """
    rings, _ = cv2.findContours(piece.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    ring = np.asarray(max(rings, key=len), np.int32)
    near = cv2.dilate(np.ascontiguousarray(other_side).view(np.uint8), np.ones((3, 3), np.uint8))
    is_new = near[ring[:, 0, 1], ring[:, 0, 0]] == 0
    if is_new.all() or not is_new.any():
        return ring, 0
    first = int(np.flatnonzero(~is_new)[0])
    ring, is_new = np.roll(ring, -first, axis=0), np.roll(is_new, -first)
    steps = np.diff(np.concatenate([[0], is_new.view(np.int8), [0]]))
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    longest = int((ends - starts).argmax())
    # With the pixels of the old contour at both ends.
    count = min(int(ends[longest] - starts[longest]) + 2, len(ring))
    return np.roll(ring, 1 - int(starts[longest]), axis=0), count


def crop(window: Window, mask: Mask) -> tuple[Window, Mask]:
    """The mask without the empty rows and columns around it, except one on each side where the window has one."""
    x, y, width, height = cv2.boundingRect(mask.view(np.uint8))
    rows, columns = (slice(max(0, y - 1), y + height + 1), slice(max(0, x - 1), x + width + 1))
    cut = mask[rows, columns]
    top, left = window[0].start + rows.start, window[1].start + columns.start
    return (slice(top, top + cut.shape[0]), slice(left, left + cut.shape[1])), np.ascontiguousarray(cut)


def apply_changes(mask: Mask, made: Sequence[Change]) -> Mask:
    """A mask of the outline's window after changes that do not overlap."""
    after = mask.copy()
    for change in made:
        after[change.window] ^= change.mask
    return after


def find_thickest_place(change: Change) -> tuple[tuple[int, int], float]:
    """Row and column (in the outline's window) of the thickest place of a change, and its thickness in pixels."""
    padded = np.pad(change.mask, 1).view(np.uint8)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_5)
    at = int(distance.argmax())
    row, column = divmod(at, padded.shape[1])
    place = row - 1 + change.window[0].start, column - 1 + change.window[1].start
    return place, 2 * float(distance.flat[at]) - 1


def find_largest_piece(mask: Mask) -> Mask:
    """The largest connected piece, the first in reading order if equal."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=4)
    if count <= 2:
        return mask
    areas = stats[1:, cv2.CC_STAT_AREA]
    return np.asarray(labels == 1 + int(areas.argmax()))


def edge_length(mask: Mask) -> float:
    """Length of the contour, estimated from how often lines in four directions cross it (Cauchy and Crofton).

    The border of the array does not count. A change within the array changes the length by the same amount wherever
    the array is cut, so lengths add up over changes that do not touch.
    """
    straight = _count_crossings(mask[1:], mask[:-1]) + _count_crossings(mask[:, 1:], mask[:, :-1])
    diagonal = _count_crossings(mask[1:, 1:], mask[:-1, :-1]) + _count_crossings(mask[1:, :-1], mask[:-1, 1:])
    return float(np.pi / 8 * (straight + diagonal / np.sqrt(2)))


def _count_crossings(one: Mask, other: Mask) -> int:
    return int(np.count_nonzero(one != other))
