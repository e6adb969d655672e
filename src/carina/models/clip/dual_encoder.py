"""A `ClipModel` made of an image tower, a text tower and a score.

Imported only where torch is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from carina.models.clip.interface import Attention, Images, Pretraining, PromptPair, Texts
from carina.models.clip.model_folder import DEFAULT_PAIR, ModelFolder
from carina.models.clip.preprocessing import Preparation
from carina.models.clip.resnet import ResNetTower
from carina.models.clip.state_dict import use_one_thread
from carina.models.clip.text import TextTower
from carina.models.clip.vit import VitTower
from carina.models.frame import Frame
from carina.models.registry import ModelIdentity

ImageTower = Callable[[Tensor], Images]
Scoring = Callable[[Images, Texts], Tensor]
Attending = Callable[[Images, Texts], Attention]


@dataclass(frozen=True, kw_only=True)
class DualEncoder:
    """A `ClipModel` whose score is the cosine of an image and a text, with a trained scale and shift.

    Models with another score give their own functions for the score and for the attention.
    """

    folder: ModelFolder
    preparation: Preparation
    image: ImageTower
    text: TextTower
    tower: VitTower | ResNetTower | None
    grid: tuple[int, int]
    trained_on: Pretraining = "unknown"
    pair: tuple[str, ...] = DEFAULT_PAIR
    scale: float = 1.0
    shift: float = 0.0
    exact: bool = False
    native: str = "similarity"
    scoring: Scoring | None = None
    """Score function, if the score is not a cosine."""
    attending: Attending | None = None
    """Attention function, if texts attend to images."""
    called: Callable[[str], str] = str
    """Gives the model's name for a finding, if the model has a fixed list of names."""

    @property
    def identity(self) -> ModelIdentity:
        return self.folder.identity

    @property
    def pretraining(self) -> Pretraining:
        return self.folder.declared.pretraining or self.trained_on

    @property
    def side(self) -> int:
        return self.preparation.side

    def frame(self, height: int, width: int) -> Frame:
        return self.preparation.frame(height, width)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        return self.preparation(image)

    def prompts(self, finding: str) -> PromptPair:
        return self.folder.prompts(self.called(finding), self.pair)

    def encode_image(self, pixels: Tensor) -> Images:
        with use_one_thread():
            return self.image(pixels)

    def encode_text(self, prompts: Sequence[str]) -> Texts:
        return self.text(prompts)

    def score(self, images: Images, texts: Texts) -> Tensor:
        if self.scoring is None:
            return cosines(images.pooled, texts.pooled) * self.scale + self.shift
        with use_one_thread():
            return self.scoring(images, texts)

    def cross_attention(self, pixels: Tensor, prompts: Sequence[str]) -> Attention | None:
        if self.attending is None:
            return None
        images, texts = self.encode_image(pixels), self.encode_text(prompts)
        with use_one_thread():
            return self.attending(images, texts)


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """Cosine similarities (n, m) of vectors (n, d) and (m, d)."""
    return functional.normalize(one, dim=-1) @ functional.normalize(other, dim=-1).T


def vit_images(tower: VitTower) -> ImageTower:
    """The image tower of a vision transformer: pooled image and patches."""

    def encode(pixels: Tensor) -> Images:
        tokens = tower(pixels)
        return Images(tower.pool(tokens), tower.lay_out(tower.finish(tokens)))

    return encode
