"""The interface of CLIP-style models: embeddings, patches, scores, and where the grid of patches lies on the image.

Needs no torch. Explanations use this interface alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from carina.models.frame import Frame
from carina.models.registry import ModelIdentity

if TYPE_CHECKING:
    from torch import Tensor

    from carina.models.clip.resnet import ResNetTower
    from carina.models.clip.vit import VitTower

Pretraining = Literal["chest x-ray", "biomedical", "general", "unknown"]
Several = Literal["mean", "max"]


@dataclass(frozen=True)
class Images:
    """Embeddings of a batch of n prepared images."""

    pooled: "Tensor"
    """(n, d) as the score uses them, not normalised."""
    patches: "Tensor | None"
    """(n, rows, columns, d) in the joint space, not normalised; None where the model has none."""


@dataclass(frozen=True)
class Texts:
    """Embeddings of m prompts."""

    pooled: "Tensor"
    """(m, d) as the score uses it, not normalised."""
    words: "Tensor | None"
    """(m, w, d) in the joint space; None where only the pooled text lies in it."""
    kept: "Tensor | None"
    """(m, w) bool: True for words, False for padding and special tokens."""


@dataclass(frozen=True)
class Attention:
    """Attention of a query decoder from every prompt to every patch."""

    weights: "Tensor"
    """(n, m, layers, heads, rows, columns) after the softmax; other keys are dropped and the rest NOT renormalised."""
    dropped: "Tensor"
    """(n, m, layers, heads): weight of the dropped keys, 0 where there are none."""


@dataclass(frozen=True)
class PromptPair:
    """Prompts for a finding and for its absence."""

    positive: tuple[str, ...]
    negative: tuple[str, ...] = ()
    """Empty where the positive prompts alone give the model's answer."""
    several: Several = "mean"
    """How the scores of several positive, or several negative, prompts become one."""


class ClipModel(Protocol):
    """A model that scores images against texts."""

    @property
    def identity(self) -> ModelIdentity: ...
    @property
    def pretraining(self) -> Pretraining: ...
    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches; they divide the whole square of `frame`."""

    @property
    def side(self) -> int:
        """Side of the network's input in pixels."""

    @property
    def exact(self) -> bool:
        """Whether pooled is the mean of the patches, so that a similarity map adds up to the unnormalised score."""

    @property
    def native(self) -> str:
        """The method that the publication uses, or the plain one where it shows no maps: "similarity"."""

    @property
    def tower(self) -> "VitTower | ResNetTower | None":
        """The image tower, for methods that need its internals."""

    def frame(self, height: int, width: int) -> Frame:
        """Where an image of this size lies in the square."""

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """A grey image (height, width) as the network takes it: (3, side, side)."""

    def prompts(self, finding: str) -> PromptPair:
        """The publication's prompts for a finding, or the declared default where it names none."""

    def encode_image(self, pixels: "Tensor") -> Images:
        """Embed prepared images (n, 3, side, side); differentiable with respect to `pixels`, with frozen weights."""

    def encode_text(self, prompts: Sequence[str]) -> Texts: ...

    def score(self, images: Images, texts: Texts) -> "Tensor":
        """The model's own image-text scores (n, m); differentiable."""

    def cross_attention(self, pixels: "Tensor", prompts: Sequence[str]) -> Attention | None:
        """Attention of the query decoder; None where the model has none."""
