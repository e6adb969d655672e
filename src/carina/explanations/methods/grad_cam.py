"""Grad-CAM: features weighted by the mean gradient of the score for their channel (Selvaraju et al., 2017)."""

from dataclasses import dataclass

from torch import Tensor

from carina.explanations.methods._internals import last_features
from carina.explanations.methods._method import Cost, method
from carina.explanations.methods._options import Followed
from carina.models.clip.interface import ClipModel, PromptPair


@dataclass(frozen=True, kw_only=True)
class GradCamOptions:
    contrast: Followed = "none"


@method(
    name="grad-cam",
    definition="last features, each channel weighted by the mean gradient of the score",
    publication="Grad-CAM (Selvaraju et al. 2017)",
    needs=("tower", "gradients"),
    options=GradCamOptions,
    costs=lambda _options, _grid: Cost(1, 1),
)
def grad_cam(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GradCamOptions) -> Tensor:
    features, gradient = last_features(model, pixels, prompts, options.contrast)
    weights = gradient.mean((1, 2), keepdim=True)
    return (weights * features).sum(-1).relu()
