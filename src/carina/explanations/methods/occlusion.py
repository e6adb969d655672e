"""Occlusion: fall of the score when cells are hidden (Zeiler and Fergus, 2014)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from carina.explanations.methods._cells import blank_images, cells
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Fill, Followed, require_at_least
from carina.explanations.methods._prompts import make_score_function
from carina.models.clip.interface import ClipModel, PromptPair
from carina.store.errors import CarinaError


@dataclass(frozen=True, kw_only=True)
class OcclusionOptions:
    window: int = 1
    """Rows and columns of cells that are hidden at a time."""
    stride: int = 1
    fill: Fill = "zero"
    contrast: Followed = "probability"
    batch: int = 32

    def __post_init__(self) -> None:
        require_at_least("option window", self.window, 1)
        require_at_least("option stride", self.stride, 1)
        if self.stride > self.window:
            raise CarinaError(
                f"option stride: expected at most the window, {self.window} cells, found {self.stride}"
            )
        require_at_least("option batch", self.batch, 1)


def _cost(options: OcclusionOptions, grid: tuple[int, int]) -> Cost:
    along = [1 + -(-max(number - options.window, 0) // options.stride) for number in grid]
    return Cost(1 + along[0] * along[1])


@method(
    name="occlusion",
    definition="fall of the score when cells are hidden",
    publication="Zeiler and Fergus 2014",
    needs=(),
    options=OcclusionOptions,
    costs=_cost,
)
def occlusion(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: OcclusionOptions) -> Tensor:
    """Maps on the model's grid; a cell under several windows gets their mean."""
    score = make_score_function(model, prompts, options.contrast)
    covered = windows(model.grid, options.window, options.stride)
    down, right = (
        cells(length, number) for length, number in zip(pixels.shape[-2:], model.grid, strict=True)
    )
    blank, whole = blank_images(pixels, options.fill), score(pixels)
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
