"""Relevance: attention weighted by its gradient, propagated through blocks (Chefer et al., 2021).

R = I, then R <- R + E[relu(gradient of A * A)] R for each of the last blocks. The map is the relevance of each patch
for the pooled token: the row of the class token; the mean of the rows of the patches where the model pools by their
mean; or the weighted attention of the pooling times R where it pools by attention.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from carina.explanations.methods._internals import (
    identity_like,
    last_blocks,
    pool_by_attention,
    require_transformer,
)
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Followed, require_at_least
from carina.explanations.methods._prompts import encode_prompts, score_of_finding
from carina.models.clip.interface import ClipModel, Images, PromptPair


@dataclass(frozen=True, kw_only=True)
class RelevanceOptions:
    layers: int = 1
    """Number of last blocks; the authors use the last block only for CLIP."""
    contrast: Followed = "none"

    def __post_init__(self) -> None:
        require_at_least("option layers", self.layers, 1)


@method(
    name="relevance",
    definition="attention times its gradient, propagated through blocks to the pooled token",
    publication="Chefer et al. 2021",
    needs=("vit", "pooled", "gradients"),
    options=RelevanceOptions,
    costs=lambda _options, _grid: Cost(1, 1),
)
def relevance(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: RelevanceOptions) -> Tensor:
    tower, texts = require_transformer(model), encode_prompts(model, prompts, options.contrast)
    trace = last_blocks(tower, pixels, options.layers)
    weights = list(trace.weights)
    with torch.enable_grad():
        tokens = trace.tokens[-1]
        if tower.shape.pool == "attention":
            embedding, attended = pool_by_attention(tower, tower.norm(tokens))
            weights.append(attended)
        else:
            embedding = tower.pool(tokens)
        images = Images(embedding, tower.lay_out(tower.finish(tokens)))
        score = score_of_finding(model.score(images, texts), prompts, options.contrast).sum()
    gradients = torch.autograd.grad(score, weights)
    weighted = [
        (gradient * attention).relu().mean(1).detach()
        for gradient, attention in zip(gradients, weights, strict=True)
    ]
    propagated = identity_like(weighted[0])
    for step in weighted[: len(trace.weights)]:
        propagated = propagated + step @ propagated
    if tower.shape.pool == "attention":
        row = (weighted[-1][:, None] @ propagated)[:, 0]
    elif tower.shape.pool == "class":
        row = propagated[:, 0]
    else:
        # Without the identity, which is the relevance of every patch for itself before any block.
        row = (propagated - identity_like(propagated))[:, tower.prefix :].mean(1)
    return tower.lay_out(row[..., None])[..., 0]
