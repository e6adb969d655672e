"""The mean of random masks, each weighted by the score of what it lets through: RISE (Petsiuk et al., 2018)."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from carina.ground.explain.methods.asking import follow
from carina.ground.explain.methods.options import RiseOptions
from carina.ground.explain.methods.squares import hidden, over_cells
from carina.models.clip.interface import ClipModel, PromptPair
from carina.seeding import rng


def rise(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: RiseOptions) -> Tensor:
    """On the model's grid. All pictures see the same masks, so that none depends on its neighbours."""
    score = follow(model, prompts, options.contrast)
    blank = hidden(pixels, options.fill)
    drawn = Masks(options, pixels.shape[-1])
    scores, weighted, plain = [], torch.zeros(len(pixels), *pixels.shape[-2:], dtype=torch.float64), 0.0
    for start in range(0, options.masks, options.batch):
        masks = drawn.between(start, min(start + options.batch, options.masks))
        seen = torch.stack(
            [score(masks * one + (1 - masks) * none) for one, none in zip(pixels, blank, strict=True)]
        )
        scores.append(seen.double())
        weighted += torch.einsum("nk,kyx->nyx", scores[-1], masks[:, 0].double())
        plain = plain + masks[:, 0].double().sum(0)
    if options.centred:
        weighted -= torch.cat(scores, 1).mean(1)[:, None, None] * plain
    return over_cells(weighted / (options.masks * options.share), model.grid)


class Masks:
    """Random cells, enlarged and shifted by chance; a mask is the same whichever others are asked for with it."""

    def __init__(self, options: RiseOptions, side: int) -> None:
        self.side = side
        self.cell = math.ceil(side / options.cells)
        number = options.cells
        kept = rng(options.seed, "rise", "cells").random((options.masks, number, number)) < options.share
        self.kept = torch.from_numpy(kept).float()
        self.shifts = rng(options.seed, "rise", "shifts").integers(0, self.cell, (options.masks, 2))
        self.enlarged = (number + 1) * self.cell

    def between(self, start: int, stop: int) -> Tensor:
        """(k, 1, side, side), from 0 where a picture is hidden to 1."""
        size = (self.enlarged, self.enlarged)
        large = functional.interpolate(
            self.kept[start:stop, None], size=size, mode="bilinear", align_corners=False
        )
        cut = [
            one[:, down : down + self.side, right : right + self.side]
            for one, (down, right) in zip(large, self.shifts[start:stop], strict=True)
        ]
        return torch.stack(cut)
