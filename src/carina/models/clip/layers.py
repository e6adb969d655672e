"""Single layers from a checkpoint, as many numbers wide as their weights make of those that come in.

Imported only where torch is.
"""

from torch import nn

from carina.models.clip.state import Weights, frozen, same_names


def read_linear(weights: Weights, prefix: str, width: int) -> nn.Module:
    """A matrix with a bias, for vectors of this width."""
    out, _ = weights.shape(f"{prefix}weight", 2)
    return _filled(nn.Linear(width, out), weights, prefix)


def read_pointwise(weights: Weights, prefix: str, width: int, *, bias: bool) -> nn.Module:
    """A convolution of one by one, for so many channels; its authors' code says whether it has a bias."""
    out, _, _, _ = weights.shape(f"{prefix}weight", 4)
    return _filled(nn.Conv2d(width, out, 1, bias=bias), weights, prefix)


def _filled(layer: nn.Module, weights: Weights, prefix: str) -> nn.Module:
    weights.fill(layer, same_names(layer, prefix))
    return frozen(layer)
