"""Features weighted by the score of what they show of the picture: gScoreCAM (Chen et al., 2022).

Only channels of steepest gradient are tried out, each as a mask on the picture. All others count as if their score
were 0, as in the published code, so that their weight is small but not none.
"""

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from carina.ground.explain.methods.asking import follow
from carina.ground.explain.methods.inside import last_features
from carina.ground.explain.methods.options import GScoreCamOptions
from carina.models.clip.interface import ClipModel, PromptPair

_LEAST: Final = 1e-6
"""Added to the range of a channel, so that a constant one hides everything."""


def gscorecam(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GScoreCamOptions) -> Tensor:
    features, slope = last_features(model, pixels, prompts, options.contrast)
    score = follow(model, prompts, options.contrast)
    maps = []
    for picture, channels, steep in zip(pixels, features.movedim(-1, 1), slope.mean((1, 2)), strict=True):
        chosen = steep.topk(min(options.channels, len(steep))).indices
        scores = torch.zeros_like(steep)
        for some in chosen.split(options.batch):
            scores[some] = score(picture * _masks(channels[some], picture.shape[-1])) * options.scale
        maps.append((scores.softmax(0)[:, None, None] * channels).sum(0).relu())
    return torch.stack(maps)


def _masks(channels: Tensor, side: int) -> Tensor:
    """Channels (k, rows, columns) as masks (k, 1, side, side) from 0 to 1, outermost cells at the square's edges."""
    large = functional.interpolate(channels[:, None], size=(side, side), mode="bilinear", align_corners=True)
    lowest, highest = large.amin((2, 3), keepdim=True), large.amax((2, 3), keepdim=True)
    return (large - lowest) / (highest - lowest + _LEAST)
