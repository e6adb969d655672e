"""What a promptable segmenter is asked and what it answers, whatever model is behind it.

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
    """A place that belongs to the object, or one that does not."""

    x: float
    y: float
    inside: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompts:
    """Hints at one object; at least one of them."""

    box: Box | None = None
    points: tuple[Point, ...] = ()
    mask: Mask | None = None
    """What the object looked like so far, in the size of the image."""

    def __post_init__(self) -> None:
        if self.box is None and not self.points and self.mask is None:
            raise ValueError("a segmenter needs a box, a point or a mask to start from")


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """One answer."""

    region: Region
    score: float
    """The model's own estimate of how good it is; comparable within one answer only."""
    logits: NDArray[np.float32]
    """For every pixel of the image, above 0 inside the region: how sure the model is."""


class Segmenter(Protocol):
    """A model that outlines what it is pointed at."""

    @property
    def name(self) -> str:
        """Kind and folder, as in "sam:medsam-vit-base": names no machine."""
        ...

    @property
    def weights(self) -> str:
        """SHA-256 of its weights, in hex."""
        ...

    def propose(self, image: NDArray[np.uint8], prompts: Prompts) -> list[Proposal]:
        """Outlines of the object on a grey image (height, width; 0 black), the best one first."""
        ...
