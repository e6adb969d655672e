"""Attention weighted by how it moves the score, taken through blocks: relevance (Chefer et al., 2021).

R = I, then R <- R + E[relu(slope of A * A)] R for each of the last blocks. What the pooled token has from each patch is
the map: the class token's row, the mean of the patches' rows where these are pooled by their mean, and what the pool's
own weighted attention has through R where it pools by attention.
"""

import torch
from torch import Tensor

from carina.ground.explain.methods.asking import of_finding, texts_of
from carina.ground.explain.methods.inside import eye_like, last_blocks, pooled_by_attention, transformer
from carina.ground.explain.methods.options import RelevanceOptions
from carina.models.clip.interface import ClipModel, Images, PromptPair


def relevance(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: RelevanceOptions) -> Tensor:
    tower, texts = transformer(model), texts_of(model, prompts, options.contrast)
    trace = last_blocks(tower, pixels, options.layers)
    weights = list(trace.weights)
    with torch.enable_grad():
        tokens = trace.tokens[-1]
        if tower.shape.pool == "attention":
            picture, attended = pooled_by_attention(tower, tower.norm(tokens))
            weights.append(attended)
        else:
            picture = tower.pool(tokens)
        seen = Images(picture, tower.lay_out(tower.finish(tokens)))
        score = of_finding(model.score(seen, texts), prompts, options.contrast).sum()
    slopes = torch.autograd.grad(score, weights)
    moved = [(slope * seen).relu().mean(1).detach() for slope, seen in zip(slopes, weights, strict=True)]
    through = eye_like(moved[0])
    for step in moved[: len(trace.weights)]:
        through = through + step @ through
    if tower.shape.pool == "attention":
        row = (moved[-1][:, None] @ through)[:, 0]
    elif tower.shape.pool == "class":
        row = through[:, 0]
    else:
        # Without what every patch has of itself before any block.
        row = (through - eye_like(through))[:, tower.prefix :].mean(1)
    return tower.lay_out(row[..., None])[..., 0]
