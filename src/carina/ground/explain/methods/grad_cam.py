"""Features weighted by the mean slope of the score on their channel: Grad-CAM (Selvaraju et al., 2017)."""

from torch import Tensor

from carina.ground.explain.methods.inside import last_features
from carina.ground.explain.methods.options import GradCamOptions
from carina.models.clip.interface import ClipModel, PromptPair


def grad_cam(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: GradCamOptions) -> Tensor:
    features, slope = last_features(model, pixels, prompts, options.contrast)
    weights = slope.mean((1, 2), keepdim=True)
    return (weights * features).sum(-1).relu()
