"""By how much the score falls when a place is hidden: occlusion (Zeiler and Fergus, 2014), cell by cell."""

import torch
from torch import Tensor

from carina.ground.explain.methods.asking import follow
from carina.ground.explain.methods.options import OcclusionOptions
from carina.ground.explain.methods.squares import cells, hidden
from carina.models.clip.interface import ClipModel, PromptPair


def occlusion(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: OcclusionOptions) -> Tensor:
    """On the model's grid; a cell under several windows has the mean of theirs."""
    score = follow(model, prompts, options.contrast)
    covered = windows(model.grid, options.window, options.stride)
    down, right = (
        cells(length, number) for length, number in zip(pixels.shape[-2:], model.grid, strict=True)
    )
    blank, whole = hidden(pixels, options.fill), score(pixels)
    falls = []
    for some in covered.split(options.batch):
        masks = some[:, down][:, :, right][:, None]
        falls.append(
            torch.stack(
                [
                    before - score(torch.where(masks, none, one))
                    for one, none, before in zip(pixels, blank, whole, strict=True)
                ]
            )
        )
    fallen = torch.einsum("nk,krc->nrc", torch.cat(falls, 1).double(), covered.double())
    return fallen / covered.sum(0)


def windows(grid: tuple[int, int], window: int, stride: int) -> Tensor:
    """Cells (k, rows, columns) that are hidden together; every cell is in at least one window."""
    rows, columns = (_spans(number, window, stride) for number in grid)
    return (rows[:, None, :, None] & columns[None, :, None, :]).flatten(0, 1)


def _spans(number: int, window: int, stride: int) -> Tensor:
    """Which of a number of cells (k, number) lie in each of the windows along an axis."""
    window = min(window, number)
    starts = sorted({*range(0, number - window + 1, stride), number - window})
    places = torch.arange(number)
    return torch.stack([(places >= start) & (places < start + window) for start in starts])
