"""Patches gathered with those that are like them: GEM's maps (Bousselham et al., "Grounding everything", 2024).

Beside the last blocks of a transformer runs a branch in which tokens attend by query to query, key to key and value to
value, so that patches of one thing grow alike. It reads the network's own tokens and passes no perceptron.
"""

from typing import Any

import torch
from torch import Tensor

from carina.ground.explain.methods.asking import patches_of, unit
from carina.ground.explain.methods.inside import hooked, transformer
from carina.ground.explain.methods.options import GemOptions
from carina.ground.explain.methods.similarity import alike
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import Block


def gem(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GemOptions) -> Tensor:
    blocks = list(transformer(model).blocks)[1 - options.depth :]
    branch: list[Tensor] = []

    def beside(
        block: Block, given: tuple[Any, ...], made: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor] | None:
        tokens = given[0]
        before = branch.pop() if branch else tokens
        branch.append(before + gathered(block, tokens, options))
        return (branch[0], made[1]) if block is blocks[-1] else None

    with hooked(blocks, beside):
        patches = patches_of(model.encode_image(pixels))
    return alike(model, pixels, patches, prompts, contrast=options.contrast)


def gathered(block: Block, tokens: Tensor, options: GemOptions) -> Tensor:
    """What the branch adds at a block whose tokens these are."""
    part, normed = block.attention, block.norm1(tokens)
    value = part.split(part.value(normed))
    if options.temperature is None:
        heat = normed.norm(dim=-1).mean(-1)[:, None, None, None] * value.shape[-1] ** -0.5
    else:
        heat = options.temperature
    joined = []
    for kind in (part.value, part.key, part.query):
        alike_to = unit(part.split(kind(normed)))
        for _ in range(options.iterations):
            alike_to = unit(_weights(alike_to, heat) @ alike_to)
        joined.append(_weights(alike_to, heat) @ value)
    return part.out(part.join(torch.stack(joined).mean(0)))


def _weights(vectors: Tensor, heat: Tensor | float) -> Tensor:
    return (vectors @ vectors.transpose(-2, -1) * heat).softmax(-1)
