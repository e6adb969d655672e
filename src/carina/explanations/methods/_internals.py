"""Read or replace the outputs of layers inside an image tower during a forward pass. Needs torch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from carina.explanations.methods._options import Followed
from carina.explanations.methods._prompts import make_score_function
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.resnet import ResNetTower, to_patches
from carina.models.clip.vit import Trace, VitTower
from carina.store.errors import CarinaError

Hook = Callable[[Any, tuple[Any, ...], Any], Any]
"""Forward hook: gets a layer, its inputs and its output; returns a new output, or None to keep it."""


@contextmanager
def forward_hooks(layers: Iterable[nn.Module], hook: Hook) -> Iterator[None]:
    """Register a forward hook on some layers, and remove it at the end."""
    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def require_transformer(model: ClipModel) -> VitTower:
    """The image tower of a model, which must be a vision transformer."""
    if not isinstance(model.tower, VitTower):
        raise CarinaError("model: expected a vision transformer as image tower, which this method needs")
    return model.tower


def last_features(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, contrast: Followed
) -> tuple[Tensor, Tensor]:
    """Features (n, rows, columns, channels) of the last spatial layer, and the gradient of the score for them.

    For a residual network this is the last stage. For a transformer it is the norm before the last attention: after it,
    patches no longer influence a score that is computed from the class token.
    """
    tower = model.tower
    if isinstance(tower, VitTower):
        layer = tower.blocks[-1].norm1
    elif isinstance(tower, ResNetTower):
        layer = tower.layer3 if tower.layer4 is None else tower.layer4
    else:
        raise CarinaError("model: expected an image tower whose layers can be read, which this method needs")
    features_of_layer: list[Tensor] = []

    def detach(_layer: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        # The graph starts here: nothing before this layer is differentiated.
        features_of_layer.append(output.detach().requires_grad_())
        return features_of_layer[-1]

    score = make_score_function(model, prompts, contrast)
    with torch.enable_grad(), forward_hooks([layer], detach):
        (gradient,) = torch.autograd.grad(score(pixels).sum(), features_of_layer)
    (features,) = features_of_layer
    lay_out = tower.lay_out if isinstance(tower, VitTower) else to_patches
    return lay_out(features.detach()), lay_out(gradient)


def last_blocks(tower: VitTower, pixels: Tensor, layers: int) -> Trace:
    """Tokens and attention weights of the last blocks of a transformer (all if it has no more), with gradients."""
    start = max(len(tower.blocks) - layers, 0)
    tokens = tower.embed(pixels)
    for block in tower.blocks[:start]:
        tokens, _ = block(tokens)
    after, weights = [], []
    tokens = tokens.detach().requires_grad_()
    with torch.enable_grad():
        for block in tower.blocks[start:]:
            tokens, attention = block(tokens)
            after.append(tokens)
            weights.append(attention)
    return Trace(tuple(after), tuple(weights))


def pool_by_attention(tower: VitTower, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The image embedding (n, d) that attention pooling computes from tokens, and its weights (n, heads, N).

    The pooling is computed step by step, so that the embedding depends on the weights and has a gradient with respect
    to them.
    """
    head, part = tower.head, tower.head.attention
    query = part.split(part.query(head.probe))[:, :, 0]
    key, value = part.split(part.key(tokens)), part.split(part.value(tokens))
    products = torch.einsum("nhtc,hc->nht", key, query[0])
    weights = (products * key.shape[-1] ** -0.5).softmax(-1)
    mixed = part.out(torch.einsum("nht,nhtc->nhc", weights, value).flatten(1))
    pooled = mixed + head.mlp(head.norm(mixed))
    return (pooled if tower.shape.out is None else tower.projection(pooled)), weights


def identity_like(matrices: Tensor) -> Tensor:
    """Identity matrices of the same shape."""
    return torch.eye(matrices.shape[-1], dtype=matrices.dtype).expand_as(matrices)
