"""Bring a map and a truth to the same pixels.

Always through the frame in which the model saw the image: a map without a frame cannot be scored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.maps.metrics import Margin, Resampling
from carina.models.frame import Frame, Interpolation, Map
from carina.store.errors import CarinaError
from carina.studies import Region
from carina.studies.region import Mask

SQUARE: Final = 224
"""Side in pixels of the square in which MedKLIP and MAVL score."""
_MAX_FLOAT32: Final = np.finfo(np.float32).max


@dataclass(frozen=True, eq=False)
class AlignedMap:
    """A map and a truth in the same pixels."""

    values: Map
    truth: Mask
    seen: Mask | None
    """Pixels that the model saw; None where it saw all of them."""
    cells: NDArray[np.intp] | None = None
    """Number of the map's cell that each pixel takes its value from; only for "nearest_full"."""


def truth_mask(truth: Region | Mask, frame: Frame) -> Mask:
    """The truth as a mask of the frame's image.

    Raises:
        CarinaError: The truth does not have the size of the image, or is not a mask of booleans.
    """
    size = (truth.height, truth.width) if isinstance(truth, Region) else truth.shape
    if size != (frame.height, frame.width):
        raise CarinaError(
            f"truth: expected the size of the frame's image, {frame.height} x {frame.width} pixels (height x width), "
            f"found {' x '.join(map(str, size))}"
        )
    if isinstance(truth, Region):
        return truth.to_mask()
    if truth.dtype != np.bool_:
        raise CarinaError(f"truth: expected a mask of booleans, found {truth.dtype}")
    return truth


def check_map(values: Map) -> Map:
    """The map as float32; NaN marks cells without a value.

    Raises:
        CarinaError: The map is not a two-dimensional array of floats, or holds infinity.
    """
    if values.ndim != 2 or values.size == 0 or values.dtype.kind != "f":
        raise CarinaError(
            f"map: expected rows and columns of floating-point numbers, found {values.dtype} of shape {values.shape}"
        )
    with np.errstate(over="ignore"):
        checked = np.asarray(values, np.float32)
    if np.isinf(checked).any():
        raise CarinaError("map: expected finite numbers, or NaN for cells without a value, found infinity")
    return checked


def align_map(values: Map, truth: Mask, frame: Frame, resampling: Resampling) -> AlignedMap:
    """Bring a map and a truth to the same pixels.

    Args:
        values: The map as `check_map` returns it: a grid over the square that the model saw.
        truth: Mask of the truth in the pixels of the image.
        frame: How the image lies in that square.
        resampling: Which pixels, and how the map is interpolated; see `carina.maps.variants.RESAMPLINGS`.
    """
    if resampling in ("nearest_224", "corners_224"):
        return _align_in_square(values, truth, frame, resampling)
    seen = None if frame.sees_all else frame.seen()
    if resampling == "nearest_full":
        numbers = np.arange(values.size, dtype=np.float32).reshape(values.shape)
        cells = frame.to_image(numbers, "nearest").astype(np.intp)
        return AlignedMap(values.ravel()[cells], truth, seen, cells)
    how: Interpolation = "torch" if resampling == "torch_full" else "linear"
    if values.shape == truth.shape and (frame.rows, frame.columns) == (frame.side, frame.side):
        return AlignedMap(
            values, truth, seen
        )  # already in the pixels of the image: sampling would only round
    return AlignedMap(_sample(values, lambda cells: frame.to_image(cells, how)), truth, seen)


def count_truth(truth: Mask, frame: Frame, resampling: Resampling, margin: Margin | None) -> tuple[int, int]:
    """Numbers of pixels inside and outside the truth that count, whatever the map is."""
    if resampling in ("nearest_224", "corners_224"):
        truth, counted = _truth_in_square(truth, frame)
    elif margin == "full_image" or frame.sees_all:
        n_true = int(np.count_nonzero(truth))
        return n_true, truth.size - n_true
    else:
        counted = frame.seen()
    n_true = int(np.count_nonzero(truth & counted))
    return n_true, int(np.count_nonzero(counted)) - n_true


def _sample(values: Map, sample: Callable[[Map], Map]) -> Map:
    """Interpolate between cells; a quarter of the values where their differences would overflow float32."""
    if not (np.abs(values) > _MAX_FLOAT32 / 2).any():
        return sample(values)
    sampled = sample(values * np.float32(0.25))
    return np.clip(sampled, -_MAX_FLOAT32 / 4, _MAX_FLOAT32 / 4) * np.float32(4)


def _align_in_square(values: Map, truth: Mask, frame: Frame, resampling: Resampling) -> AlignedMap:
    """Align in a square of 224 pixels over the square that the model saw."""
    sampled_truth, on_image = _truth_in_square(truth, frame)
    if resampling == "nearest_224":
        indices = [np.arange(SQUARE) * length // SQUARE for length in values.shape]
        enlarged = values[np.ix_(*indices)]
    else:
        enlarged = _sample(
            values, lambda cells: _interpolate_corners(_interpolate_corners(cells, axis=0), axis=1)
        )
    return AlignedMap(enlarged, sampled_truth, None if on_image.all() else on_image)


def _truth_in_square(truth: Mask, frame: Frame) -> tuple[Mask, Mask]:
    """The truth at the upper left corner of each pixel of the square, and which pixels lie on the image."""
    rows = _image_positions(frame.height, frame.rows, frame.top, frame.side)
    columns = _image_positions(frame.width, frame.columns, frame.left, frame.side)
    on_image = ((rows >= 0) & (rows < frame.height))[:, None] & ((columns >= 0) & (columns < frame.width))
    sampled = truth[np.ix_(np.clip(rows, 0, frame.height - 1), np.clip(columns, 0, frame.width - 1))]
    return sampled & on_image, on_image


def _image_positions(length: int, content: int, offset: int, side: int) -> NDArray[np.int64]:
    """The image's pixel under the first corner of each pixel of the square, along one axis; exact in integers."""
    return (np.arange(SQUARE) * side - offset * SQUARE) * length // (SQUARE * content)


def _interpolate_corners(values: Map, *, axis: int) -> Map:
    """Interpolate linearly so that the centres of the first and last pixel lie on those of the first and last cell."""
    last = values.shape[axis] - 1
    positions = np.arange(SQUARE) * (last / (SQUARE - 1))
    before = np.minimum(positions.astype(np.intp), max(last - 1, 0))
    weight = (positions - before).astype(np.float32).reshape((-1, 1) if axis == 0 else (1, -1))
    low, high = values.take(before, axis=axis), values.take(np.minimum(before + 1, last), axis=axis)
    return np.asarray(low + (high - low) * weight, np.float32)  # exact where both values are equal
