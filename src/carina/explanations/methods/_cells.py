"""Cells of a grid over a square of pixels, and replacements for hidden pixels. Needs torch."""

import torch
from torch import Tensor

from carina.explanations.methods._options import Fill


def cells(side: int, number: int) -> Tensor:
    """The row or column of the cell of each pixel, (side,); cells have equal length where the side is divisible."""
    return torch.arange(side) * number // side


def mean_over_cells(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """Means (..., rows, columns) of values (..., side, side) over the pixels of each cell."""
    rows, columns = (_means(length, number) for length, number in zip(values.shape[-2:], grid, strict=True))
    return rows.to(values) @ values @ columns.to(values).T


def blank_images(pixels: Tensor, fill: Fill) -> Tensor:
    """Images (n, 3, side, side) in which every pixel is hidden."""
    if fill == "zero":
        return torch.zeros_like(pixels)
    return pixels.mean((2, 3), keepdim=True).expand_as(pixels)


def _means(length: int, number: int) -> Tensor:
    among = cells(length, number) == torch.arange(number)[:, None]
    return among / among.sum(1, keepdim=True)
