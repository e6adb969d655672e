"""Residual networks as publications keep them: with torchvision's names, or as a numbered sequence of its children.

Imported only where torch is.
"""

import re
from typing import Final

from carina.models.clip.resnet import ResNetShape, ResNetTower
from carina.models.clip.state import Source, Weights, frozen, same_names

_NUMBERS: Final = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6", "layer4": "7"}
"""Of torchvision's children, of which the rectifier and the pooling have no weights."""


def read_resnet(weights: Weights, prefix: str, *, numbered: bool = False) -> ResNetTower:
    """The network whose weights stand behind a prefix; it has as many stages and blocks as these."""

    def published(name: str) -> str:
        child, dot, rest = name.partition(".")
        return prefix + (_NUMBERS[child] if numbered else child) + dot + rest

    blocks = tuple(
        weights.count(rf"{re.escape(published(f'layer{stage}'))}\.(\d+)\..*") for stage in (1, 2, 3, 4)
    )
    shape = ResNetShape(
        blocks=blocks if blocks[3] else blocks[:3], width=weights.shape(published("conv1.weight"), 4)[0]
    )
    tower = ResNetTower(shape)
    weights.fill(tower, {name: Source(published(name)) for name in same_names(tower)})
    return frozen(tower)
