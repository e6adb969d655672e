"""Reaching into a tower while a model looks at pictures in its own way: outputs of a layer are read or replaced.

Imported only where torch is.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from carina.errors import CarinaError
from carina.ground.explain.methods.asking import follow
from carina.ground.explain.methods.options import Followed
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.resnet import ResNetTower, spatial
from carina.models.clip.vit import Trace, VitTower

Hook = Callable[[Any, tuple[Any, ...], Any], Any]
"""A layer, what it got and what it made of it, to what it shall have made of it; None leaves it."""


@contextmanager
def hooked(layers: Iterable[nn.Module], hook: Hook) -> Iterator[None]:
    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def transformer(model: ClipModel) -> VitTower:
    if not isinstance(model.tower, VitTower):
        raise CarinaError("this method looks into a vision transformer, which the model's image tower is not")
    return model.tower


def last_features(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, contrast: Followed
) -> tuple[Tensor, Tensor]:
    """Features (n, rows, columns, channels) of the last layer that has places, and the slope of the score on them.

    That of a residual network is its last stage. Of a transformer it is the norm before the last attention: after it,
    patches no longer have a say where the class token is what is scored.
    """
    tower = model.tower
    if isinstance(tower, VitTower):
        layer = tower.blocks[-1].norm1
    elif isinstance(tower, ResNetTower):
        layer = tower.layer3 if tower.layer4 is None else tower.layer4
    else:
        raise CarinaError("this method looks into an image tower, which the model does not show")
    reached: list[Tensor] = []

    def cut(_layer: nn.Module, _given: tuple[Any, ...], made: Tensor) -> Tensor:
        # The graph starts here: nothing before it is differentiated.
        reached.append(made.detach().requires_grad_())
        return reached[-1]

    score = follow(model, prompts, contrast)
    with torch.enable_grad(), hooked([layer], cut):
        (slope,) = torch.autograd.grad(score(pixels).sum(), reached)
    (features,) = reached
    lay_out = tower.lay_out if isinstance(tower, VitTower) else spatial
    return lay_out(features.detach()), lay_out(slope)


def last_blocks(tower: VitTower, pixels: Tensor, layers: int) -> Trace:
    """What happens in the last blocks of a transformer, or in all where it has no more: in the graph from there on."""
    start = max(len(tower.blocks) - layers, 0)
    tokens = tower.embed(pixels)
    for block in tower.blocks[:start]:
        tokens, _ = block(tokens)
    after, weights = [], []
    tokens = tokens.detach().requires_grad_()
    with torch.enable_grad():
        for block in tower.blocks[start:]:
            tokens, seen = block(tokens)
            after.append(tokens)
            weights.append(seen)
    return Trace(tuple(after), tuple(weights))


def pooled_by_attention(tower: VitTower, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The picture (n, d) that a pool of attention makes of tokens, and the weights (n, heads, N) that made it.

    The pool's own answer, put together once more from its parts: here the weights are what the picture is made of, so
    that a slope on them can be asked for.
    """
    head, part = tower.head, tower.head.attention
    query = part.split(part.query(head.probe))[:, :, 0]
    key, value = part.split(part.key(tokens)), part.split(part.value(tokens))
    products = torch.einsum("nhtc,hc->nht", key, query[0])
    weights = (products * key.shape[-1] ** -0.5).softmax(-1)
    mixed = part.out(torch.einsum("nht,nhtc->nhc", weights, value).flatten(1))
    pooled = mixed + head.mlp(head.norm(mixed))
    return (pooled if tower.shape.out is None else tower.projection(pooled)), weights


def eye_like(matrices: Tensor) -> Tensor:
    return torch.eye(matrices.shape[-1], dtype=matrices.dtype).expand_as(matrices)
