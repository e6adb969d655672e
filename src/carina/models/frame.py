"""Position of an image in a model's square input, and conversion of coordinates, masks and maps between the two.

Coordinates are continuous in both, so that nothing is shifted by half a pixel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.studies.region import Mask

Map = NDArray[np.float32]
_ROWS: Final = 32
"""Rows that are interpolated at a time."""
Interpolation = Literal["linear", "torch", "nearest"]


@dataclass(frozen=True)
class Frame:
    """An image of `height` x `width`, resized to `rows` x `columns` and placed in a square of `side`.

    Its upper left corner is at (`top`, `left`) of the square: a positive value is padding, a negative value is cropped.
    A map of any size covers the whole square, also if the model resizes the square once more.
    """

    height: int
    width: int
    rows: int
    columns: int
    side: int
    top: int = 0
    left: int = 0

    @classmethod
    def padded(cls, height: int, width: int, *, longest: int, side: int) -> "Frame":
        """The longer side resized to `longest`, in the upper left corner of the square; the rest is padding (SAM)."""
        scale = longest / max(height, width)
        return cls(height, width, max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5)), side)

    @classmethod
    def stretched(cls, height: int, width: int, *, side: int) -> "Frame":
        """Both sides resized to fill the square (SAM 2 and later, MedKLIP, KAD, MAVL, SigLIP)."""
        return cls(height, width, side, side, side)

    @classmethod
    def letterboxed(cls, height: int, width: int, *, longest: int, side: int | None = None) -> "Frame":
        """The longer side resized to `longest`, centred in a square of that side, which is cropped to `side`.

        GLoRIA and CARZero use 256 and 224; AFLoc and CheXzero do not crop.
        """
        rows, columns = (max(1, length * longest // max(height, width)) for length in (height, width))
        cut = (longest - (side or longest)) // 2
        top, left = (longest - rows) // 2 - cut, (longest - columns) // 2 - cut
        return cls(height, width, rows, columns, side or longest, top, left)

    @classmethod
    def cropped(cls, height: int, width: int, *, shortest: int, side: int) -> "Frame":
        """The shorter side resized to `shortest`, cropped to the central square of `side` (CLIP, BioViL)."""
        rows, columns = (length * shortest // min(height, width) for length in (height, width))
        return cls(height, width, rows, columns, side, -((rows - side) // 2), -((columns - side) // 2))

    def to_input(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert points (x, y) of the image to points of the square."""
        scaled = points * (self.columns / self.width, self.rows / self.height)
        return np.asarray(scaled + (self.left, self.top), np.float64)

    def from_input(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert points (x, y) of the square to points of the image; those in the padding lie outside it."""
        laid = points - (self.left, self.top)
        return np.asarray(laid * (self.width / self.columns, self.height / self.rows), np.float64)

    def place(self, resized: NDArray[Any]) -> NDArray[Any]:
        """Place a resized image of `rows` x `columns` (and any channels) in the square; padding is 0."""
        square = np.zeros((self.side, self.side, *resized.shape[2:]), resized.dtype)
        (rows, from_row), (columns, from_column) = (
            (slice(max(at, 0), min(at + length, self.side)), max(-at, 0))
            for at, length in ((self.top, self.rows), (self.left, self.columns))
        )
        square[rows, columns] = resized[
            from_row : from_row + rows.stop - rows.start,
            from_column : from_column + columns.stop - columns.start,
        ]
        return square

    @property
    def sees_all(self) -> bool:
        """Whether no part of the image is cut off."""
        return all(
            at >= 0 and at + length <= self.side
            for at, length in ((self.top, self.rows), (self.left, self.columns))
        )

    def seen(self) -> Mask:
        """Pixels of the image whose centre the model sees."""
        rows, columns = (
            (at >= 0) & (at <= self.side)
            for at in (
                (np.arange(self.height) + 0.5) * (self.rows / self.height) + self.top,
                (np.arange(self.width) + 0.5) * (self.columns / self.width) + self.left,
            )
        )
        return np.asarray(rows[:, None] & columns, bool)

    def to_image(self, values: Map, how: Interpolation = "linear") -> Map:
        """Resample a map of the square, of any size, to the image's pixels.

        Values are linear between the centres of the cells and constant beyond the outermost, or those of the nearest
        cell. Pixels that the model does not see have a value without meaning: see `seen`.

        Args:
            values: The map.
            how: "linear" keeps equal neighbours equal. "torch" takes the steps of torch's bilinear interpolation on a
                processor with fused multiply-add, so that every digit is the same. "nearest" takes the nearest cell.
        """
        size = values.shape
        if how == "torch":
            rounded = (
                self._round_centres(self.height, self.rows, self.top, size[0]),
                self._round_centres(self.width, self.columns, self.left, size[1]),
            )
            cells = (_find_cells_as_torch(at, number) for at, number in zip(rounded, size, strict=True))
            return _interpolate_as_torch(values, *cells)
        rows = self._centres(self.height, self.rows, self.top, size[0])
        columns = self._centres(self.width, self.columns, self.left, size[1])
        if how == "nearest":
            return np.asarray(values[np.ix_(_nearest_cells(rows, size[0]), _nearest_cells(columns, size[1]))])
        return _interpolate(values, _find_cells(rows, size[0]), _find_cells(columns, size[1]))

    def cover(self, mask: Mask, size: int) -> Map:
        """Share of each cell of a `size` x `size` map of the square that a mask of the image covers."""
        rows = _integrate(
            mask.astype(np.float64), self._edges(self.height, self.rows, self.top, size), axis=0
        )
        cells = _integrate(rows, self._edges(self.width, self.columns, self.left, size), axis=1)
        per_cell = (self.height / self.rows) * (self.width / self.columns) * (self.side / size) ** 2
        return np.asarray(np.clip(cells / per_cell, 0, 1), np.float32)

    def _centres(self, length: int, content: int, at: int, low: int) -> NDArray[np.float64]:
        """Centres of the image's pixels along one axis, as indices of a map."""
        laid = (np.arange(length) + 0.5) * (content / length) + at
        return np.asarray(laid * (low / self.side) - 0.5, np.float64)

    def _round_centres(self, length: int, content: int, at: int, low: int) -> Map:
        """As `_centres`, rounded as torch rounds where the map covers the image and nothing else."""
        if (content, at) != (self.side, 0):
            return self._centres(length, content, at, low).astype(np.float32)
        step = np.float64(np.float32(low) / np.float32(length))
        return ((np.arange(length) + 0.5) * step - 0.5).astype(np.float32)

    def _edges(self, length: int, content: int, at: int, low: int) -> NDArray[np.float64]:
        """Edges of a map's cells along one axis, as pixels of the image."""
        return np.asarray((np.arange(low + 1) * (self.side / low) - at) * (length / content), np.float64)


def _nearest_cells(at: NDArray[np.float64], number: int) -> NDArray[np.intp]:
    """Index of the cell that contains each position."""
    return np.clip(np.floor(at + 0.5).astype(np.intp), 0, number - 1)


class _Cells(NamedTuple):
    """The two cells between which each position along an axis lies."""

    before: NDArray[np.intp]
    after: NDArray[np.intp]
    part: Map
    """Weight of the second one."""


def _find_cells(at: NDArray[np.float64], number: int) -> _Cells:
    last = number - 1
    at = np.clip(at, 0, last)
    before = np.minimum(at.astype(np.intp), max(last - 1, 0))
    return _Cells(before, np.minimum(before + 1, last), (at - before).astype(np.float32))


def _find_cells_as_torch(at: Map, number: int) -> _Cells:
    last = number - 1
    at = np.maximum(at, 0)
    before = np.minimum(at.astype(np.intp), last)
    return _Cells(before, np.minimum(before + 1, last), np.minimum(at - before.astype(np.float32), 1))


def _interpolate(values: Map, rows: _Cells, columns: _Cells) -> Map:
    """Between rows first, then between columns; exact where neighbouring cells are equal."""

    def blend(low: Map, high: Map, part: Map) -> Map:
        return low + (high - low) * part

    made = np.empty((len(rows.part), len(columns.part)), np.float32)
    for block in _split_rows(made):
        narrow = blend(values[rows.before[block]], values[rows.after[block]], rows.part[block, None])
        made[block] = blend(narrow[:, columns.before], narrow[:, columns.after], columns.part)
    return made


def _interpolate_as_torch(values: Map, rows: _Cells, columns: _Cells) -> Map:
    """Between columns first, then between rows; of two products, the second is rounded before they are added."""

    def blend(low: Map, high: Map, part: Map) -> Map:
        # In float64 the product of two float32 is exact: the sum is rounded once, as fused multiply-add rounds it.
        total = np.multiply(low, 1 - part, dtype=np.float64)
        total += high * part
        return total.astype(np.float32)

    wide = blend(values[:, columns.before], values[:, columns.after], columns.part)
    made = np.empty((len(rows.part), len(columns.part)), np.float32)
    for block in _split_rows(made):
        made[block] = blend(wide[rows.before[block]], wide[rows.after[block]], rows.part[block, None])
    return made


def _split_rows(values: Map) -> Iterator[slice]:
    """Some rows at a time, so that what is computed from them stays in the cache."""
    return (slice(start, start + _ROWS) for start in range(0, len(values), _ROWS))


def _integrate(values: NDArray[np.float64], edges: NDArray[np.float64], *, axis: int) -> NDArray[np.float64]:
    """Integrals between neighbouring edges of a function that is constant on every pixel and 0 outside the image."""
    length = values.shape[axis]
    sums = np.insert(np.cumsum(values, axis=axis), 0, 0.0, axis=axis)
    at = np.clip(edges, 0, length)
    before = np.minimum(at.astype(np.intp), length - 1)
    part = (at - before).reshape((-1, 1) if axis == 0 else (1, -1))
    total = sums.take(before, axis=axis) + values.take(before, axis=axis) * part
    return np.asarray(np.diff(total, axis=axis), np.float64)
