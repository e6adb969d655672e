"""gScoreCAM: features weighted by the score of the image under the mask of their channel (Chen et al., 2022).

Only the channels with the highest gradient are scored, each as a mask on the image. All others get a score of 0, as in
the published code, so that their weight is small but not 0.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from carina.explanations.methods._internals import last_features
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Followed, require_at_least
from carina.explanations.methods._prompts import make_score_function
from carina.models.clip.interface import ClipModel, PromptPair

_LEAST: Final = 1e-6
"""Added to the range of a channel, so that a constant channel hides everything."""


@dataclass(frozen=True, kw_only=True)
class GScoreCamOptions:
    channels: int = 300
    """Number of channels with the highest gradient that are scored."""
    scale: float = 1.0
    """Factor of the scores before their softmax; scores of CLIP include its trained scale, cosines do not."""
    contrast: Followed = "none"
    batch: int = 32

    def __post_init__(self) -> None:
        require_at_least("option channels", self.channels, 1)
        require_at_least("option batch", self.batch, 1)


@method(
    name="gscorecam",
    definition="last features, each channel weighted by the score of the image under its mask",
    publication="gScoreCAM (Chen et al. 2022)",
    needs=("tower", "gradients"),
    options=GScoreCamOptions,
    costs=lambda options, _grid: Cost(1 + options.channels, 1),
)
def gscorecam(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GScoreCamOptions) -> Tensor:
    features, gradient = last_features(model, pixels, prompts, options.contrast)
    score = make_score_function(model, prompts, options.contrast)
    maps = []
    for image, channels, steepness in zip(
        pixels, features.movedim(-1, 1), gradient.mean((1, 2)), strict=True
    ):
        steepest = steepness.topk(min(options.channels, len(steepness))).indices
        scores = torch.zeros_like(steepness)
        for batch in steepest.split(options.batch):
            scores[batch] = score(image * _masks(channels[batch], image.shape[-1])) * options.scale
        maps.append((scores.softmax(0)[:, None, None] * channels).sum(0).relu())
    return torch.stack(maps)


def _masks(channels: Tensor, side: int) -> Tensor:
    """Channels (k, rows, columns) as masks (k, 1, side, side) from 0 to 1, corner cells at the square's corners."""
    large = functional.interpolate(channels[:, None], size=(side, side), mode="bilinear", align_corners=True)
    lowest, highest = large.amin((2, 3), keepdim=True), large.amax((2, 3), keepdim=True)
    return (large - lowest) / (highest - lowest + _LEAST)
