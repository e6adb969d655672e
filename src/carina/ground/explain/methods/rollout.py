"""Attention multiplied through blocks, each mixed half and half with what passes it by: rollout (Abnar, Zuidema, 2020).

No text comes into it: the same map for every finding, and so a control of methods that listen to the text.
"""

from functools import reduce

import torch
from torch import Tensor

from carina.errors import CarinaError
from carina.ground.explain.methods.inside import eye_like, pooled_by_attention, transformer
from carina.ground.explain.methods.options import RolloutOptions
from carina.models.clip.interface import ClipModel, PromptPair


def rollout(model: ClipModel, pixels: Tensor, _prompts: PromptPair, options: RolloutOptions) -> Tensor:
    tower = transformer(model)
    if options.skipped >= len(tower.blocks):
        raise CarinaError(
            f"option skipped: the model has {len(tower.blocks)} blocks, and {options.skipped} are left out"
        )

    def one_head(weights: Tensor) -> Tensor:
        return weights.amax(1) if options.heads == "max" else weights.mean(1)

    def mixed(weights: Tensor) -> Tensor:
        passed_by = one_head(weights) + eye_like(weights[:, 0])
        return passed_by / passed_by.sum(-1, keepdim=True)

    trace = tower.trace(tower.embed(pixels))
    steps = [mixed(weights) for weights in trace.weights[options.skipped :]]
    through = reduce(lambda before, step: step @ before, steps)
    if tower.shape.pool == "attention":
        _, attended = pooled_by_attention(tower, tower.norm(trace.tokens[-1]))
        row = torch.einsum("nt,ntu->nu", one_head(attended), through)
    elif tower.shape.pool == "class":
        row = through[:, 0]
    else:
        row = through[:, tower.prefix :].mean(1)
    return tower.lay_out(row[..., None])[..., 0]
