"""RISE: the mean of random masks, each weighted by the score of the masked image (Petsiuk et al., 2018)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from carina.explanations.methods._cells import blank_images, mean_over_cells
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Fill, Followed, require_at_least, require_share
from carina.explanations.methods._prompts import make_score_function
from carina.models.clip.interface import ClipModel, PromptPair
from carina.store.seeding import rng


@dataclass(frozen=True, kw_only=True)
class RiseOptions:
    masks: int = 4000
    cells: int = 7
    """Rows and columns of a mask before it is enlarged."""
    share: float = 0.5
    """Share of the cells that stay visible."""
    fill: Fill = "zero"
    centred: bool = False
    """Whether the mean score is subtracted first. This shifts the expected map by a constant and reduces its noise,
    which in the published form grows with the score."""
    contrast: Followed = "probability"
    seed: int = 0
    batch: int = 32

    def __post_init__(self) -> None:
        require_at_least("option masks", self.masks, 1)
        require_at_least("option cells", self.cells, 1)
        require_share("option share", self.share)
        require_at_least("option batch", self.batch, 1)


@method(
    name="rise",
    definition="mean of random masks, weighted by the score of the masked image",
    publication="RISE (Petsiuk et al. 2018)",
    needs=(),
    options=RiseOptions,
    costs=lambda options, _grid: Cost(options.masks),
)
def rise(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: RiseOptions) -> Tensor:
    """Maps on the model's grid. All images get the same masks, so that no map depends on other images."""
    score = make_score_function(model, prompts, options.contrast)
    blank = blank_images(pixels, options.fill)
    random_masks = Masks(options, pixels.shape[-1])
    scores, weighted, plain = [], torch.zeros(len(pixels), *pixels.shape[-2:], dtype=torch.float64), 0.0
    for start in range(0, options.masks, options.batch):
        masks = random_masks.between(start, min(start + options.batch, options.masks))
        batch_scores = torch.stack(
            [score(masks * one + (1 - masks) * none) for one, none in zip(pixels, blank, strict=True)]
        )
        scores.append(batch_scores.double())
        weighted += torch.einsum("nk,kyx->nyx", scores[-1], masks[:, 0].double())
        plain = plain + masks[:, 0].double().sum(0)
    if options.centred:
        weighted -= torch.cat(scores, 1).mean(1)[:, None, None] * plain
    return mean_over_cells(weighted / (options.masks * options.share), model.grid)


class Masks:
    """Random cells, enlarged and randomly shifted; each mask is the same whatever range it is requested in."""

    def __init__(self, options: RiseOptions, side: int) -> None:
        self.side = side
        self.cell = math.ceil(side / options.cells)
        number = options.cells
        kept = rng(options.seed, "rise", "cells").random((options.masks, number, number)) < options.share
        # On the default device, as everything else that the method makes.
        self.kept = torch.tensor(kept, dtype=torch.float32)
        self.shifts = rng(options.seed, "rise", "shifts").integers(0, self.cell, (options.masks, 2))
        self.enlarged = (number + 1) * self.cell

    def between(self, start: int, stop: int) -> Tensor:
        """Masks (k, 1, side, side) with values from 0 (hidden) to 1 (visible)."""
        size = (self.enlarged, self.enlarged)
        large = functional.interpolate(
            self.kept[start:stop, None], size=size, mode="bilinear", align_corners=False
        )
        cut = [
            one[:, down : down + self.side, right : right + self.side]
            for one, (down, right) in zip(large, self.shifts[start:stop], strict=True)
        ]
        return torch.stack(cut)
