"""Size and shape of lesions, and the highest IoU that whole cells of a coarse map can reach."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.store.errors import CarinaError
from carina.studies import Region
from carina.studies.region import Mask

SIZE_EDGES: Final = (0.01, 0.05)
"""Shares of the image that divide lesions into small, medium and large."""


def size_bin(share: float, edges: tuple[float, ...] = SIZE_EDGES) -> str:
    """Name the size bin of a lesion.

    Args:
        share: Share of the image that the lesion covers, from 0 to 1.
        edges: Shares that divide the bins, ascending.

    Returns:
        Name of the bin, such as `1-5%`; `none` for a share of 0. A share on an edge belongs to the bin above it, a
        share on the last edge to the bin below it.

    Raises:
        CarinaError: The edges are not two or more ascending shares between 0 and 1.

    Example:
        >>> size_bin(0.02)
        '1-5%'
    """
    if share <= 0:
        return "none"
    bins = size_bins(edges)
    if share == edges[-1]:
        return bins[-2]
    return bins[sum(share >= edge for edge in edges)]


def size_bins(edges: tuple[float, ...] = SIZE_EDGES) -> list[str]:
    """Names of all size bins, from small to large.

    Args:
        edges: Shares that divide the bins, ascending.

    Returns:
        A name for each bin, as `size_bin` returns them.

    Raises:
        CarinaError: The edges are not two or more ascending shares between 0 and 1.

    Example:
        >>> size_bins()
        ['< 1%', '1-5%', '> 5%']
    """
    if len(edges) < 2 or list(edges) != sorted(set(edges)) or edges[0] <= 0 or edges[-1] >= 1:
        raise CarinaError(f"size edges: expected two or more ascending shares between 0 and 1, found {edges}")
    between = [f"{_percent(low)}-{_percent(high)}%" for low, high in pairwise(edges)]
    return [f"< {_percent(edges[0])}%", *between, f"> {_percent(edges[-1])}%"]


def _percent(share: float) -> str:
    return f"{100 * share:g}"


@dataclass(frozen=True)
class Shape:
    """Number of pieces and size of a lesion."""

    pieces: int
    """Number of connected pieces."""
    share: float
    """Share of the image that the lesion covers."""


def measure_shape(truth: Region) -> Shape | None:
    """Measure the shape of a lesion.

    Args:
        truth: Region of the lesion.

    Returns:
        The shape; None where the region is empty.

    Example:
        >>> measure_shape(Region.from_box(2, 2, 9, 5, height=20, width=20))
        Shape(pieces=1, share=0.1125)
    """
    if truth.is_empty:
        return None
    mask = truth.to_mask().view(np.uint8)
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return Shape(len(contours), truth.area / (truth.height * truth.width))


def best_cells(truth: Mask, cells: NDArray[np.intp], in_cells: Mask | None, n_true: int) -> tuple[int, int]:
    """Numbers of true and false positives of the set of whole cells that has the highest IoU with the truth.

    The best set takes cells in order of their share of truth: exchanging a cell of the set for a cell outside it with a
    higher share never lowers the IoU.

    Args:
        truth: Mask of the truth.
        cells: Number of the cell that each pixel lies in.
        in_cells: Pixels that belong to cells; None for all.
        n_true: Number of pixels of the truth, those that belong to no cell included.
    """
    if in_cells is not None:
        truth, cells = truth[in_cells], cells[in_cells]
    true_in_cell = np.bincount(cells[truth].ravel())
    candidates = np.flatnonzero(true_in_cell)
    if not len(candidates):
        return 0, 0
    hit, size = true_in_cell[candidates], np.bincount(cells.ravel())[candidates]
    order = np.argsort(-hit / size, kind="stable")
    hit, size = np.cumsum(hit[order]), np.cumsum(size[order])
    best = int(np.argmax(hit / (n_true + size - hit)))
    return int(hit[best]), int(size[best] - hit[best])
