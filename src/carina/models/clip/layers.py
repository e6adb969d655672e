"""Single layers from a checkpoint, of the sizes that their weights have. Imported only where torch is."""

from torch import nn

from carina.models.clip.state import Weights, frozen, same_names


def read_linear(weights: Weights, prefix: str) -> nn.Module:
    """A matrix, with a bias where there is one."""
    out, width = weights.shape(f"{prefix}weight")
    return _filled(nn.Linear(width, out, bias=f"{prefix}bias" in weights), weights, prefix)


def read_pointwise(weights: Weights, prefix: str) -> nn.Module:
    """A convolution of one by one, with a bias where there is one."""
    out, width, _, _ = weights.shape(f"{prefix}weight")
    return _filled(nn.Conv2d(width, out, 1, bias=f"{prefix}bias" in weights), weights, prefix)


def _filled(layer: nn.Module, weights: Weights, prefix: str) -> nn.Module:
    weights.fill(layer, same_names(layer, prefix))
    return frozen(layer)
