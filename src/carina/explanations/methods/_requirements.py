"""Whether a model has what a method needs, found by running it once on an empty image. Needs torch."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

import torch

from carina.explanations.methods._method import Need
from carina.models.clip.interface import ClipModel, Images
from carina.models.clip.recognition import list_prompts
from carina.models.clip.resnet import ResNetTower
from carina.models.clip.vit import VitTower

_FINDING: Final = "pneumonia"
"""A finding for which every published list has prompts."""


class _EmptyImageTrial:
    """Outputs of a model for an empty image, each computed at most once."""

    def __init__(self, model: ClipModel) -> None:
        self.model = model
        self.pixels = torch.zeros(1, 3, model.side, model.side)
        self.prompts = list_prompts(model.prompts(_FINDING))

    @cached_property
    def images(self) -> Images:
        return self.model.encode_image(self.pixels)

    @cached_property
    def has_decoder(self) -> bool:
        return self.model.cross_attention(self.pixels, self.prompts) is not None

    @cached_property
    def scores_pooled_token(self) -> bool:
        """Whether the image embedding is the token that the vision transformer pools."""
        tower = self.model.tower
        if not isinstance(tower, VitTower) or self.has_decoder:
            return False
        pooled, own = tower.pool(tower(self.pixels)), self.images.pooled
        return bool(pooled.shape == own.shape and torch.allclose(pooled, own, atol=1e-5))


_REQUIREMENTS: Final[Mapping[Need, tuple[Callable[[_EmptyImageTrial], bool], str]]] = {
    "tower": (
        lambda trial: isinstance(trial.model.tower, VitTower | ResNetTower),
        "the layers of its image tower cannot be read",
    ),
    "vit": (
        lambda trial: isinstance(trial.model.tower, VitTower),
        "its image tower is not a vision transformer",
    ),
    "patches": (
        lambda trial: trial.images.patches is not None,
        "it does not embed image patches in the joint space",
    ),
    "words": (
        lambda trial: trial.model.encode_text(trial.prompts).words is not None,
        "it does not embed single words in the joint space",
    ),
    "decoder": (
        lambda trial: trial.has_decoder,
        "it has no decoder that attends from the text to the patches",
    ),
    "pooled": (
        lambda trial: trial.scores_pooled_token,
        "its score is not computed from the token that its image tower pools",
    ),
    # Every model's score has gradients (`ClipModel`).
    "gradients": (lambda _trial: True, ""),
}


def find_missing_need(model: ClipModel, needs: Iterable[Need]) -> str | None:
    """Why the model does not meet the first need that it does not meet; None where it meets all."""
    trial = _EmptyImageTrial(model)
    return next(
        (reason for is_met, reason in map(_REQUIREMENTS.__getitem__, needs) if not is_met(trial)), None
    )
