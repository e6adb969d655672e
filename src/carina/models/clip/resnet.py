"""The one residual network of ours, with torchvision's names of weights and features to tap after its later stages.

Needs no torchvision, whose mere presence breaks transformers. Imported only where torch is.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

_EXPANSION: Final = 4
"""A bottleneck is left this many times wider than it is inside."""


@dataclass(frozen=True, kw_only=True)
class ResNetShape:
    """ResNet-50 unless said otherwise."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    """Of each stage; three numbers make a network that ends after `layer3`, as MedKLIP's."""
    width: int = 64
    """Of the stem and inside the first stage; doubles from stage to stage."""
    dilated: bool = False
    """Whether `layer4` keeps the grid of `layer3`, its kernels spread instead (BioViL's finer grid)."""

    def channels(self, stage: int) -> int:
        """That come out of a stage, counted from 1 as in `layer1`."""
        return (self.width << (stage - 1)) * _EXPANSION

    def stride(self, stage: int) -> int:
        """Pixels of the input to a cell of that stage's grid."""
        return 4 << (min(stage, 3) if self.dilated else stage) - 1


class Bottleneck(nn.Module):  # type: ignore[misc]
    """One by one, three by three, one by one, added to what came in."""

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
        """Rows and columns after a stage, of a square input: every halving rounds up."""
        length = -(-side // self.shape.stride(stage))
        return length, length

    def stem(self, pixels: Tensor) -> Tensor:
        """Before the first stage."""
        return self.maxpool(self.bn1(self.conv1(pixels)).relu())

    def forward(self, pixels: Tensor) -> Taps:
        layer2 = self.layer2(self.layer1(self.stem(pixels)))
        layer3 = self.layer3(layer2)
        return Taps(layer2, layer3, None if self.layer4 is None else self.layer4(layer3))


def spatial(features: Tensor) -> Tensor:
    """Features (n, channels, rows, columns) as patches (n, rows, columns, channels)."""
    return torch.movedim(features, 1, -1)
