"""GEM: similarity with patches that are grouped by self-self attention (Bousselham et al., 2024).

Parallel to the last blocks of a transformer runs a branch in which tokens attend from query to query, key to key and
value to value, so that patches of the same object become similar. The branch reads the tokens of the network and has no
MLP.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from carina.explanations.methods._internals import forward_hooks, require_transformer
from carina.explanations.methods._method import method
from carina.explanations.methods._options import Contrast, require_at_least
from carina.explanations.methods._prompts import require_patches, unit
from carina.explanations.methods.similarity import patch_similarity
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import Block


@dataclass(frozen=True, kw_only=True)
class GemOptions:
    depth: int = 7
    """The parallel branch covers the last `depth` - 1 blocks."""
    iterations: int = 1
    temperature: float | None = None
    """Multiplies similarities before their softmax; None for the tokens' mean norm / square root of a head's width."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        require_at_least("option depth", self.depth, 2)
        require_at_least("option iterations", self.iterations, 0)


@method(
    name="gem",
    definition="cosine of the text with patches that are grouped by self-self attention",
    publication="GEM (Bousselham et al. 2024)",
    needs=("vit", "patches"),
    options=GemOptions,
)
def gem(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GemOptions) -> Tensor:
    blocks = list(require_transformer(model).blocks)[1 - options.depth :]
    branch: list[Tensor] = []

    def run_branch(
        block: Block, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor] | None:
        tokens = inputs[0]
        before = branch.pop() if branch else tokens
        branch.append(before + gather_tokens(block, tokens, options))
        return (branch[0], outputs[1]) if block is blocks[-1] else None

    with forward_hooks(blocks, run_branch):
        patches = require_patches(model.encode_image(pixels))
    return patch_similarity(model, pixels, patches, prompts, contrast=options.contrast)


def gather_tokens(block: Block, tokens: Tensor, options: GemOptions) -> Tensor:
    """What the branch adds at a block, from the tokens of the network."""
    part, normed = block.attention, block.norm1(tokens)
    value = part.split(part.value(normed))
    if options.temperature is None:
        heat = normed.norm(dim=-1).mean(-1)[:, None, None, None] * value.shape[-1] ** -0.5
    else:
        heat = options.temperature
    joined = []
    for kind in (part.value, part.key, part.query):
        similar = unit(part.split(kind(normed)))
        for _ in range(options.iterations):
            similar = unit(_weights(similar, heat) @ similar)
        joined.append(_weights(similar, heat) @ value)
    return part.out(part.join(torch.stack(joined).mean(0)))


def _weights(vectors: Tensor, heat: Tensor | float) -> Tensor:
    return (vectors @ vectors.transpose(-2, -1) * heat).softmax(-1)
