"""What every CLIP-style model can be asked: embeddings, patches, scores, and where its grid lies on the image.

Needs no torch. Explanations and scores are made from this alone; how a model is put together stands beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from carina.models.frame import Frame
from carina.models.named import ModelIdentity

if TYPE_CHECKING:
    from torch import Tensor

    from carina.models.clip.resnet import ResNetTower
    from carina.models.clip.vit import VitTower

Pretraining = Literal["chest x-ray", "biomedical", "general", "unknown"]
Several = Literal["mean", "max"]


@dataclass(frozen=True)
class Images:
    """Of a batch of n prepared pictures."""

    pooled: "Tensor"
    """(n, d) as the score uses it, not normalised."""
    patches: "Tensor | None"
    """(n, rows, columns, d) in the joint space, not normalised; None where the model has none."""


@dataclass(frozen=True)
class Texts:
    """Of m prompts."""

    pooled: "Tensor"
    """(m, d) as the score uses it, not normalised."""
    words: "Tensor | None"
    """(m, w, d) in the joint space; None where only the pooled text lies in it."""
    kept: "Tensor | None"
    """(m, w) bool: words that count, so no padding and no special tokens."""


@dataclass(frozen=True)
class Attention:
    """Of a query decoder, from every prompt to every patch."""

    weights: "Tensor"
    """(n, m, layers, heads, rows, columns) after the softmax; other keys are dropped and the rest NOT renormalised."""
    dropped: "Tensor"
    """(n, m, layers, heads): weight that fell on dropped keys, 0 where there are none."""


@dataclass(frozen=True)
class PromptPair:
    """What is asked of a finding, and of its absence."""

    positive: tuple[str, ...]
    negative: tuple[str, ...] = ()
    """Empty where a prompt alone gives the model's answer."""
    several: Several = "mean"
    """How the scores of several prompts of one side become one."""


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
        """Of the square that the network takes."""

    @property
    def exact(self) -> bool:
        """Whether pooled is the mean of the patches, so that a similarity map adds up to the unnormalised score."""

    @property
    def native(self) -> str:
        """The method that the publication uses, or the plain one where it shows no maps: "similarity"."""

    @property
    def tower(self) -> "VitTower | ResNetTower | None":
        """For methods that look inside."""

    def frame(self, height: int, width: int) -> Frame:
        """Where an image of this size lies in the square."""

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """A grey image (height, width) as the network takes it: (3, side, side)."""

    def prompts(self, finding: str) -> PromptPair:
        """What the publication asks of a finding, or the declared default where it does not say."""

    def encode_image(self, pixels: "Tensor") -> Images:
        """Of prepared pictures (n, 3, side, side); differentiable by `pixels`, the weights being frozen."""

    def encode_text(self, prompts: Sequence[str]) -> Texts: ...

    def score(self, images: Images, texts: Texts) -> "Tensor":
        """(n, m), the model's own image-text score; differentiable."""

    def cross_attention(self, pixels: "Tensor", prompts: Sequence[str]) -> Attention | None:
        """Of a query decoder; None where the model has none."""
