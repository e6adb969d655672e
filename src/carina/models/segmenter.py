"""The interface of promptable segmenters: prompts in, outlined regions out.

Coordinates are those of `Region`: continuous, x right and y down, the first pixel's centre at (0.5, 0.5).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from carina.studies.region import Mask, Region


class Box(NamedTuple):
    """Corners: left, top, right, bottom."""

    x1: float
    y1: float
    x2: float
    y2: float


class Point(NamedTuple):
    """A point that lies inside the object, or outside it."""

    x: float
    y: float
    inside: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts:
    """Prompts for one object; at least one is given."""

    box: Box | None = None
    points: tuple[Point, ...] = ()
    mask: Mask | None = None
    """Previous mask of the object, in the size of the image."""

    def __post_init__(self) -> None:
        if self.box is None and not self.points and self.mask is None:
            raise ValueError("a segmenter needs a box, a point or a mask to start from")


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """One proposed outline."""

    region: Region
    score: float
    """The model's own estimate of how good it is; comparable only among the proposals of one call."""
    logits: NDArray[np.float32]
    """For every pixel of the image, above 0 inside the region: how sure the model is."""


class Segmenter(Protocol):
    """A model that outlines an object from prompts."""

    @property
    def name(self) -> str:
        """Kind and folder, as in "sam:medsam-vit-base": says nothing about the machine."""
        ...

    @property
    def weights(self) -> str:
        """SHA-256 of its weights, in hex."""
        ...

    def propose(self, image: NDArray[np.uint8], prompts: Prompts) -> list[Proposal]:
        """Outline the object on a grey image (height, width; 0 is black); the best proposal comes first."""
        ...
