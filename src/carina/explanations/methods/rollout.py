"""Attention rollout: attention multiplied over blocks, each averaged with the identity (Abnar and Zuidema, 2020).

The text has no influence: the map is the same for every finding, which makes it a control for methods that use the
text.
"""

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from carina.explanations.methods._internals import identity_like, pool_by_attention, require_transformer
from carina.explanations.methods._method import method
from carina.explanations.methods._options import Over, require_at_least
from carina.models.clip.interface import ClipModel, PromptPair
from carina.store.errors import CarinaError


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    heads: Over = "mean"
    skipped: int = 0
    """Number of first blocks that are left out."""

    def __post_init__(self) -> None:
        require_at_least("option skipped", self.skipped, 0)


@method(
    name="rollout",
    definition="attention multiplied over blocks to the pooled token; the text has no influence",
    publication="Abnar and Zuidema 2020",
    needs=("vit", "pooled"),
    options=RolloutOptions,
)
def rollout(model: ClipModel, pixels: Tensor, _prompts: PromptPair, options: RolloutOptions) -> Tensor:
    tower = require_transformer(model)
    if options.skipped >= len(tower.blocks):
        raise CarinaError(
            f"option skipped: expected fewer than the {len(tower.blocks)} blocks of the model, found {options.skipped}"
        )

    def over_heads(weights: Tensor) -> Tensor:
        return weights.amax(1) if options.heads == "max" else weights.mean(1)

    def add_identity(weights: Tensor) -> Tensor:
        with_identity = over_heads(weights) + identity_like(weights[:, 0])
        return with_identity / with_identity.sum(-1, keepdim=True)

    trace = tower.trace(tower.embed(pixels))
    steps = [add_identity(weights) for weights in trace.weights[options.skipped :]]
    through = reduce(lambda before, step: step @ before, steps)
    if tower.shape.pool == "attention":
        _, attended = pool_by_attention(tower, tower.norm(trace.tokens[-1]))
        row = torch.einsum("nt,ntu->nu", over_heads(attended), through)
    elif tower.shape.pool == "class":
        row = through[:, 0]
    else:
        row = through[:, tower.prefix :].mean(1)
    return tower.lay_out(row[..., None])[..., 0]
