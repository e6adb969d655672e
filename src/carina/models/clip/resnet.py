"""One residual network for all checkpoints of this kind, with torchvision's weight names and features of later stages.

Needs no torchvision, whose mere presence breaks transformers. Imported only where torch is.
"""

import re
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from carina.models.clip.state_dict import Source, Weights, freeze, map_same_names

_EXPANSION: Final = 4
"""Ratio of a bottleneck's output channels to its inner channels."""
_NUMBERS: Final = {"conv1": "0", "bn1": "1", "layer1": "4", "layer2": "5", "layer3": "6", "layer4": "7"}
"""Index of each child of torchvision's network in a numbered sequence."""


@dataclass(frozen=True, kw_only=True)
class ResNetShape:
    """Sizes of a residual network; ResNet-50 by default."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    """Blocks of each stage; with three stages the network ends after `layer3`, as that of MedKLIP does."""
    width: int = 64
    """Channels of the stem and inside the first stage; doubled in each further stage."""
    dilated: bool = False
    """Whether `layer4` keeps the grid of `layer3` and uses dilated kernels (the finer grid of BioViL)."""

    def channels(self, stage: int) -> int:
        """Output channels of a stage, counted from 1 as in `layer1`."""
        return (self.width << (stage - 1)) * _EXPANSION

    def stride(self, stage: int) -> int:
        """Pixels of the input along one cell of a stage's grid."""
        return 4 << (min(stage, 3) if self.dilated else stage) - 1


class Bottleneck(nn.Module):  # type: ignore[misc]
    """Residual block of a 1x1, a 3x3 and a 1x1 convolution."""

    def __init__(self, came: int, width: int, *, stride: int, dilation: int) -> None:
        super().__init__()
        out = width * _EXPANSION
        self.conv1 = nn.Conv2d(came, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(
            width, width, 3, stride=stride, padding=dilation, dilation=dilation, bias=False
        )
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if came != out or stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(came, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, features: Tensor) -> Tensor:
        kept = features if self.downsample is None else self.downsample(features)
        features = self.bn1(self.conv1(features)).relu()
        features = self.bn2(self.conv2(features)).relu()
        return (self.bn3(self.conv3(features)) + kept).relu()


@dataclass(frozen=True)
class Taps:
    """Features (n, channels, rows, columns) after the later stages."""

    layer2: Tensor
    layer3: Tensor
    layer4: Tensor | None
    """None where the network ends before it."""

    @property
    def last(self) -> Tensor:
        return self.layer3 if self.layer4 is None else self.layer4


class ResNetTower(nn.Module):  # type: ignore[misc]
    """Pixels to features."""

    def __init__(self, shape: ResNetShape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or ResNetShape()
        if len(shape.blocks) not in {3, 4}:
            raise ValueError(f"a residual network of {len(shape.blocks)} stages; expected 3 or 4")
        self.conv1 = nn.Conv2d(3, shape.width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(shape.width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._stage(1, shape.width)
        self.layer2 = self._stage(2, shape.channels(1))
        self.layer3 = self._stage(3, shape.channels(2))
        self.layer4 = self._stage(4, shape.channels(3)) if len(shape.blocks) == 4 else None

    def _stage(self, stage: int, came: int) -> nn.Sequential:
        width, out = self.shape.width << (stage - 1), self.shape.channels(stage)
        spread = self.shape.dilated and stage == 4
        stride = 1 if stage == 1 or spread else 2
        # As torchvision does it: where a stage is spread, its first block is not yet.
        first = Bottleneck(came, width, stride=stride, dilation=1)
        rest = (
            Bottleneck(out, width, stride=1, dilation=2 if spread else 1)
            for _ in range(self.shape.blocks[stage - 1] - 1)
        )
        return nn.Sequential(first, *rest)

    def grid(self, side: int, stage: int) -> tuple[int, int]:
        """Rows and columns after a stage for a square input; every halving rounds up."""
        length = -(-side // self.shape.stride(stage))
        return length, length

    def stem(self, pixels: Tensor) -> Tensor:
        """Features before the first stage."""
        return self.maxpool(self.bn1(self.conv1(pixels)).relu())

    def forward(self, pixels: Tensor) -> Taps:
        layer2 = self.layer2(self.layer1(self.stem(pixels)))
        layer3 = self.layer3(layer2)
        return Taps(layer2, layer3, None if self.layer4 is None else self.layer4(layer3))


def to_patches(features: Tensor) -> Tensor:
    """Features (n, channels, rows, columns) as patches (n, rows, columns, channels)."""
    return torch.movedim(features, 1, -1)


def read_resnet(weights: Weights, prefix: str, *, numbered: bool = False) -> ResNetTower:
    """Read the network whose weights have a prefix, with as many stages and blocks as the weights."""

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
    weights.fill(tower, {name: Source(published(name)) for name in map_same_names(tower)})
    return freeze(tower)
