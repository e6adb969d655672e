"""Which pixels of a square lie in which cell of a grid over it, and what may stand where they are hidden.

Imported only where torch is.
"""

import torch
from torch import Tensor

from carina.ground.explain.methods.options import Fill


def cells(side: int, number: int) -> Tensor:
    """The row or column (side,) of each pixel: cells are as long as each other where the side divides, else nearly."""
    return torch.arange(side) * number // side


def over_cells(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """Means (..., rows, columns) of values (..., side, side) over the pixels of each cell."""
    rows, columns = (_means(length, number) for length, number in zip(values.shape[-2:], grid, strict=True))
    return rows.to(values) @ values @ columns.to(values).T


def hidden(pixels: Tensor, fill: Fill) -> Tensor:
    """Pictures (n, 3, side, side) of which nothing is to be seen."""
    if fill == "zero":
        return torch.zeros_like(pixels)
    return pixels.mean((2, 3), keepdim=True).expand_as(pixels)


def _means(length: int, number: int) -> Tensor:
    among = cells(length, number) == torch.arange(number)[:, None]
    return among / among.sum(1, keepdim=True)
