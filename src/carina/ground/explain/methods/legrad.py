"""How much more attention to a patch would help, block by block: LeGrad (Bousselham et al., 2024).

Each of the last blocks is scored as if the network ended there, by the mean of its tokens; positive slopes on its
attention, over heads and over all tokens that attend, are the map. Where a model pools by attention (SigLIP), it is the
pool's attention to each block's tokens, and patches that light up for a prompt that names nothing are taken out.
"""

import torch
from torch import Tensor

from carina.ground.explain.methods.asking import direction, texts_of, unit
from carina.ground.explain.methods.inside import last_blocks, pooled_by_attention, transformer
from carina.ground.explain.methods.options import LeGradOptions
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import VitTower


def legrad(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: LeGradOptions) -> Tensor:
    tower = transformer(model)
    texts = unit(texts_of(model, prompts, options.contrast).pooled)
    ends = _ends(tower, pixels, options)
    maps = _slopes(ends, direction(model, pixels, texts, prompts, options.contrast))
    if tower.shape.pool == "attention" and options.limit is not None:
        nothing = _slopes(ends, unit(model.encode_text([options.empty]).pooled))
        maps = maps.masked_fill(_from_0_to_1(nothing) > options.limit, 0)
    return tower.lay_out(maps[..., None])[..., 0]


def _ends(tower: VitTower, pixels: Tensor, options: LeGradOptions) -> list[tuple[Tensor, Tensor]]:
    """The picture (n, d) as each block leaves it, of length 1, and the attention (n, heads, ..., t) that made it."""
    trace = last_blocks(tower, pixels, options.layers)
    ends = []
    with torch.enable_grad():
        for tokens, weights in zip(trace.tokens, trace.weights, strict=True):
            if tower.shape.pool == "attention":
                picture, last = pooled_by_attention(
                    tower, tower.norm(tokens) if options.normalised else tokens
                )
            else:
                picture, last = tower.finish(tokens.mean(1, keepdim=True))[:, 0], weights
            ends.append((unit(picture), last))
    return ends


def _slopes(ends: list[tuple[Tensor, Tensor]], towards: Tensor) -> Tensor:
    """Maps (n, t) of the directions (n or 1, d): over blocks, the mean over heads and tokens that attend."""
    maps = []
    for picture, weights in ends:
        with torch.enable_grad():
            score = (picture * towards).sum()
        (slope,) = torch.autograd.grad(score, weights, retain_graph=True)
        maps.append(slope.relu().flatten(1, -2).mean(1))
    return torch.stack(maps).sum(0)


def _from_0_to_1(maps: Tensor) -> Tensor:
    lowest = maps.amin(1, keepdim=True)
    return (maps - lowest) / (maps.amax(1, keepdim=True) - lowest)
