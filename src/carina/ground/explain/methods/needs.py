"""Whether a model has what a method looks at, told by asking it once about an empty picture.

Imported only where torch is.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

import torch

from carina.ground.explain.methods.registry import Need
from carina.models.clip.interface import ClipModel, Images
from carina.models.clip.recognition import asked
from carina.models.clip.resnet import ResNetTower
from carina.models.clip.vit import VitTower

_FINDING: Final = "pneumonia"
"""A finding that every published list of prompts has."""


class Asked:
    """Answers of a model about an empty picture, each asked for once."""

    def __init__(self, model: ClipModel) -> None:
        self.model = model
        self.pixels = torch.zeros(1, 3, model.side, model.side)
        self.prompts = asked(model.prompts(_FINDING))

    @cached_property
    def images(self) -> Images:
        return self.model.encode_image(self.pixels)

    @cached_property
    def decodes(self) -> bool:
        return self.model.cross_attention(self.pixels, self.prompts) is not None

    @cached_property
    def pools(self) -> bool:
        """Whether the model's picture is what its transformer pools, and is scored as it is."""
        tower = self.model.tower
        if not isinstance(tower, VitTower) or self.decodes:
            return False
        pooled, own = tower.pool(tower(self.pixels)), self.images.pooled
        return bool(pooled.shape == own.shape and torch.allclose(pooled, own, atol=1e-5))


_MET: Final[Mapping[Need, tuple[Callable[[Asked], bool], str]]] = {
    "tower": (
        lambda of: isinstance(of.model.tower, VitTower | ResNetTower),
        "it does not show the inside of its image tower",
    ),
    "vit": (lambda of: isinstance(of.model.tower, VitTower), "its image tower is not a vision transformer"),
    "patches": (lambda of: of.images.patches is not None, "it has no patches in the space of its texts"),
    "words": (
        lambda of: of.model.encode_text(of.prompts).words is not None,
        "it has no words in the space of its pictures",
    ),
    "decoder": (lambda of: of.decodes, "it has no decoder that attends from texts to patches"),
    "pooled": (lambda of: of.pools, "what it scores is not what its image tower pools"),
    # Every model's score has slopes (`ClipModel`).
    "gradients": (lambda _of: True, ""),
}


def lacking(model: ClipModel, needs: Iterable[Need]) -> str | None:
    """The first reason why a model does not serve; None where it does."""
    answers = Asked(model)
    return next((reason for met, reason in map(_MET.__getitem__, needs) if not met(answers)), None)
