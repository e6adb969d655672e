"""Where an image lies in a model's square input, and how coordinates, masks and maps go from one to the other.

Continuous coordinates on both sides, so nothing is shifted by half a pixel on the way and back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carina.studies.region import Mask

Map = NDArray[np.float32]


@dataclass(frozen=True)
class Frame:
    """An image of `height` x `width`, resized to `rows` x `columns` in the upper left corner of a square of `side`."""

    height: int
    width: int
    rows: int
    columns: int
    side: int

    @classmethod
    def padded(cls, height: int, width: int, *, longest: int, side: int) -> "Frame":
        """The longer side resized to `longest`, the rest of the square left empty (SAM)."""
        scale = longest / max(height, width)
        return cls(height, width, max(1, int(height * scale + 0.5)), max(1, int(width * scale + 0.5)), side)

    @classmethod
    def stretched(cls, height: int, width: int, *, side: int) -> "Frame":
        """Both sides resized to fill the square (SAM 2 and later)."""
        return cls(height, width, side, side, side)

    def to_input(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points (x, y) of the image, on the input."""
        return np.asarray(points * (self.columns / self.width, self.rows / self.height), np.float64)

    def to_image(self, values: Map) -> Map:
        """A map over the whole input, of any size: its values at the image's pixels, linear between its own."""
        low_rows, low_columns = values.shape
        upright = _sampled(values, self._centres(self.height, self.rows, low_rows), axis=0)
        return _sampled(upright, self._centres(self.width, self.columns, low_columns), axis=1)

    def cover(self, mask: Mask, size: int) -> Map:
        """How much of each cell of a map of `size` x `size` over the input a mask of the image covers."""
        rows = _integrated(mask.astype(np.float64), self._edges(self.height, self.rows, size), axis=0)
        cells = _integrated(rows, self._edges(self.width, self.columns, size), axis=1)
        per_cell = (self.height / self.rows) * (self.width / self.columns) * (self.side / size) ** 2
        return np.asarray(np.clip(cells / per_cell, 0, 1), np.float32)

    def _centres(self, length: int, content: int, low: int) -> NDArray[np.float64]:
        """Centres of the image's pixels along one axis, as indices of a map."""
        scale = (content / length) * (low / self.side)
        return np.asarray((np.arange(length) + 0.5) * scale - 0.5, np.float64)

    def _edges(self, length: int, content: int, low: int) -> NDArray[np.float64]:
        """Edges of a map's cells along one axis, as pixels of the image."""
        return np.asarray(np.arange(low + 1) * (self.side / low) * (length / content), np.float64)


def _sampled(values: Map, at: NDArray[np.float64], *, axis: int) -> Map:
    last = values.shape[axis] - 1
    at = np.clip(at, 0, last)
    before = np.minimum(at.astype(np.intp), max(last - 1, 0))
    shape = (-1, 1) if axis == 0 else (1, -1)
    part = (at - before).astype(np.float32).reshape(shape)
    low, high = values.take(before, axis=axis), values.take(np.minimum(before + 1, last), axis=axis)
    return np.asarray(low + (high - low) * part, np.float32)


def _integrated(values: NDArray[np.float64], edges: NDArray[np.float64], *, axis: int) -> NDArray[np.float64]:
    """Integrals between neighbouring edges of a function that is constant on every pixel and 0 beyond the last."""
    length = values.shape[axis]
    sums = np.insert(np.cumsum(values, axis=axis), 0, 0.0, axis=axis)
    at = np.clip(edges, 0, length)
    before = np.minimum(at.astype(np.intp), length - 1)
    part = (at - before).reshape((-1, 1) if axis == 0 else (1, -1))
    total = sums.take(before, axis=axis) + values.take(before, axis=axis) * part
    return np.asarray(np.diff(total, axis=axis), np.float64)
