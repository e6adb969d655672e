"""LeGrad: gradients of the score with respect to the attention of each block (Bousselham et al., 2024).

Each of the last blocks is scored as if the network ended there, by the mean of its tokens. The map is the mean of the
positive gradients with respect to its attention, over heads and attending tokens. For a model that pools by attention
(SigLIP), it is the attention of the pooling to the tokens of each block, and patches that are high for an empty prompt
are set to 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from carina.explanations.methods._internals import last_blocks, pool_by_attention, require_transformer
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Contrast, require_at_least
from carina.explanations.methods._prompts import encode_prompts, text_direction, unit
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import VitTower


@dataclass(frozen=True, kw_only=True)
class LeGradOptions:
    layers: int = 2
    """Number of last blocks whose maps are added."""
    empty: str = "a photo of a"
    """For models that pool by attention: prompt without a finding. Where its map is high, the map is set to 0."""
    limit: float | None = 0.8
    """Value of the empty prompt's map, scaled from 0 to 1, above which the map is set to 0; None for no limit."""
    normalised: bool = False
    """For models that pool by attention: whether tokens pass the final norm first. The published code leaves it out."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        require_at_least("option layers", self.layers, 1)


@method(
    name="legrad",
    definition="positive gradients for the attention of the last blocks, each scored separately",
    publication="LeGrad (Bousselham et al. 2024)",
    needs=("vit", "pooled", "gradients"),
    options=LeGradOptions,
    costs=lambda options, _grid: Cost(1, options.layers),
)
def legrad(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: LeGradOptions) -> Tensor:
    tower = require_transformer(model)
    texts = unit(encode_prompts(model, prompts, options.contrast).pooled)
    ends = _block_embeddings(tower, pixels, options)
    maps = _gradient_maps(ends, text_direction(model, pixels, texts, prompts, options.contrast))
    if tower.shape.pool == "attention" and options.limit is not None:
        nothing = _gradient_maps(ends, unit(model.encode_text([options.empty]).pooled))
        maps = maps.masked_fill(_scale_to_unit(nothing) > options.limit, 0)
    return tower.lay_out(maps[..., None])[..., 0]


def _block_embeddings(tower: VitTower, pixels: Tensor, options: LeGradOptions) -> list[tuple[Tensor, Tensor]]:
    """The normalised image embedding (n, d) after each block, and the attention (n, heads, ..., t) that gave it."""
    trace = last_blocks(tower, pixels, options.layers)
    ends = []
    with torch.enable_grad():
        for tokens, weights in zip(trace.tokens, trace.weights, strict=True):
            if tower.shape.pool == "attention":
                embedding, last = pool_by_attention(
                    tower, tower.norm(tokens) if options.normalised else tokens
                )
            else:
                embedding, last = tower.finish(tokens.mean(1, keepdim=True))[:, 0], weights
            ends.append((unit(embedding), last))
    return ends


def _gradient_maps(ends: list[tuple[Tensor, Tensor]], directions: Tensor) -> Tensor:
    """Maps (n, t) for text directions (n or 1, d): the sum over blocks of means over heads and attending tokens."""
    maps = []
    for embedding, weights in ends:
        with torch.enable_grad():
            score = (embedding * directions).sum()
        (gradient,) = torch.autograd.grad(score, weights, retain_graph=True)
        maps.append(gradient.relu().flatten(1, -2).mean(1))
    return torch.stack(maps).sum(0)


def _scale_to_unit(maps: Tensor) -> Tensor:
    lowest = maps.amin(1, keepdim=True)
    return (maps - lowest) / (maps.amax(1, keepdim=True) - lowest)
