"""Where a map's values lie on the image: brought to pixels, beside the truth in the same pixels.

Through the frame in which the model saw the image, always: a map without one cannot be scored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.ground.score.variants import Margin, Place
from carina.models.frame import Frame, Map
from carina.studies import Region
from carina.studies.region import Mask

SQUARE: Final = 224
"""Side of the square that MedKLIP and MAVL score in."""
_HIGHEST: Final = np.finfo(np.float32).max


@dataclass(frozen=True, eq=False)
class Placed:
    """A map and the truth, pixel by pixel."""

    values: Map
    truth: Mask
    seen: Mask | None
    """Pixels that the map says something of; None where that is all of them."""
    cells: NDArray[np.intp] | None = None
    """Number of the map's cell that each pixel takes its value from, in `nearest_full`."""


def truth_mask(truth: Region | Mask, frame: Frame) -> Mask:
    """The truth as a mask of the frame's image."""
    size = (truth.height, truth.width) if isinstance(truth, Region) else truth.shape
    if size != (frame.height, frame.width):
        raise CarinaError(
            f"truth: of {' x '.join(map(str, size))} pixels, expected {frame.height} x {frame.width} (height x width) "
            "as the frame's image"
        )
    if isinstance(truth, Region):
        return truth.to_mask()
    if truth.dtype != np.bool_:
        raise CarinaError(f"truth: expected a mask of booleans, not {truth.dtype}")
    return truth


def checked_map(values: Map) -> Map:
    """The map as float32; NaN stands for cells of which it says nothing, infinity for nothing at all."""
    if values.ndim != 2 or values.size == 0 or values.dtype.kind != "f":
        raise CarinaError(
            f"map: expected rows and columns of floating-point numbers, not {values.dtype} of shape {values.shape}"
        )
    with np.errstate(over="ignore"):
        checked = np.asarray(values, np.float32)
    if np.isinf(checked).any():
        raise CarinaError("map: expected finite numbers, or NaN where nothing is known, not infinity")
    return checked


def place(values: Map, truth: Mask, frame: Frame, how: Place) -> Placed:
    """A checked map and the truth brought to pixels."""
    if how in ("nearest_224", "corners_224"):
        return _in_square(values, truth, frame, how)
    seen = None if frame.sees_all else frame.seen()
    if how == "nearest_full":
        numbers = np.arange(values.size, dtype=np.float32).reshape(values.shape)
        cells = frame.to_image(numbers, "nearest").astype(np.intp)
        return Placed(values.ravel()[cells], truth, seen, cells)
    if values.shape == truth.shape and (frame.rows, frame.columns) == (frame.side, frame.side):
        return Placed(values, truth, seen)  # already in the image's pixels: sampling would only round
    return Placed(_sampled(values, frame.to_image), truth, seen)


def truth_counts(truth: Mask, frame: Frame, how: Place, margin: Margin | None) -> tuple[int, int]:
    """Pixels of the truth, and all others, that count whatever a map says."""
    if how in ("nearest_224", "corners_224"):
        truth, counted = _truth_in_square(truth, frame)
    elif margin == "full_image" or frame.sees_all:
        true = int(np.count_nonzero(truth))
        return true, truth.size - true
    else:
        counted = frame.seen()
    true = int(np.count_nonzero(truth & counted))
    return true, int(np.count_nonzero(counted)) - true


def _sampled(values: Map, sample: Callable[[Map], Map]) -> Map:
    """Sampled between cells, which takes differences: where float32 does not hold them, of a quarter of the values."""
    if not (np.abs(values) > _HIGHEST / 2).any():
        return sample(values)
    made = sample(values * np.float32(0.25))
    return np.clip(made, -_HIGHEST / 4, _HIGHEST / 4) * np.float32(4)


def _in_square(values: Map, truth: Mask, frame: Frame, how: Place) -> Placed:
    """A square over the model's."""
    laid, inside = _truth_in_square(truth, frame)
    if how == "nearest_224":
        at = [np.arange(SQUARE) * length // SQUARE for length in values.shape]
        spread = values[np.ix_(*at)]
    else:
        spread = _sampled(values, lambda cells: _aligned(_aligned(cells, axis=0), axis=1))
    return Placed(spread, laid, None if inside.all() else inside)


def _truth_in_square(truth: Mask, frame: Frame) -> tuple[Mask, Mask]:
    """What lies under the upper left corner of each of the square's pixels, and where the image lies at all."""
    rows = _corners_of(frame.height, frame.rows, frame.top, frame.side)
    columns = _corners_of(frame.width, frame.columns, frame.left, frame.side)
    inside = ((rows >= 0) & (rows < frame.height))[:, None] & ((columns >= 0) & (columns < frame.width))
    laid = truth[np.ix_(np.clip(rows, 0, frame.height - 1), np.clip(columns, 0, frame.width - 1))]
    return laid & inside, inside


def _corners_of(length: int, content: int, at: int, side: int) -> NDArray[np.int64]:
    """The image's pixel under each of the square's pixels' first corner, along one axis; whole numbers, so exact."""
    return (np.arange(SQUARE) * side - at * SQUARE) * length // (SQUARE * content)


def _aligned(values: Map, *, axis: int) -> Map:
    """Linear, so that the first and last of the new pixels' centres lie on the first and last cell's."""
    last = values.shape[axis] - 1
    at = np.arange(SQUARE) * (last / (SQUARE - 1))
    before = np.minimum(at.astype(np.intp), max(last - 1, 0))
    part = (at - before).astype(np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
    low, high = values.take(before, axis=axis), values.take(np.minimum(before + 1, last), axis=axis)
    return np.asarray(low + (high - low) * part, np.float32)  # exact where both are one value
