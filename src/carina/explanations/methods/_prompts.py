"""Scores and text embeddings of the prompts of a finding, positive and negative, combined into one. Needs torch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from carina.explanations.methods._options import Contrast, Followed
from carina.models.clip.interface import ClipModel, Images, PromptPair, Texts
from carina.models.clip.recognition import compute_presence, list_prompts
from carina.store.errors import CarinaError

Score = Callable[[Tensor], Tensor]
"""Scores prepared images (n, 3, side, side), one number each."""


def check_contrast(prompts: PromptPair, contrast: Followed) -> None:
    """Check that a difference has negative prompts."""
    if contrast == "difference" and not prompts.negative:
        raise CarinaError(
            f"contrast {contrast!r}: expected negative prompts beside {prompts.positive[0]!r}, found none"
        )


def encode_prompts(model: ClipModel, prompts: PromptPair, contrast: Followed) -> Texts:
    """Text embeddings of all prompts of a finding, positive ones first."""
    check_contrast(prompts, contrast)
    return model.encode_text(list_prompts(prompts))


def make_score_function(model: ClipModel, prompts: PromptPair, contrast: Followed) -> Score:
    """A function that computes the score of a finding, for methods that change pixels or take gradients."""
    texts = encode_prompts(model, prompts, contrast)

    def score(pixels: Tensor) -> Tensor:
        return score_of_finding(model.score(model.encode_image(pixels), texts), prompts, contrast)

    return score


def score_of_finding(scores: Tensor, prompts: PromptPair, contrast: Followed) -> Tensor:
    """Combine the scores (n, m) of all prompts into one score of the finding (n,)."""
    if contrast == "probability":
        return compute_presence(scores, prompts)
    return combine_prompts(scores, prompts, contrast, lambda: scores)


def text_direction(
    model: ClipModel, pixels: Tensor, texts: Tensor, prompts: PromptPair, contrast: Contrast
) -> Tensor:
    """One vector (n, d) for each image, whose product with a patch combines those of the text embeddings (m, d)."""
    each = texts.expand(len(pixels), *texts.shape)
    return combine_prompts(each, prompts, contrast, lambda: score_prompts(model, pixels, prompts))


def score_prompts(model: ClipModel, pixels: Tensor, prompts: PromptPair) -> Tensor:
    """Scores (n, m) of images with all prompts of a finding."""
    return model.score(model.encode_image(pixels), model.encode_text(list_prompts(prompts)))


def combine_prompts(
    values: Tensor, prompts: PromptPair, contrast: Contrast, scores: Callable[[], Tensor]
) -> Tensor:
    """Combine the maps, vectors or scores (n, m, ...) of all prompts into one for each image.

    Takes the mean over prompts, or the value of the prompt with the highest of `scores` (n, m), which are computed only
    then: the map then belongs to the prompt that decided the model's score.
    """

    def side(part: slice) -> Tensor:
        side_values = values[:, part]
        if prompts.several == "mean" or side_values.shape[1] == 1:
            return side_values.mean(1)
        return side_values[torch.arange(len(side_values)), scores()[:, part].argmax(1)]

    n_positive = len(prompts.positive)
    positive = side(slice(n_positive))
    return positive if contrast == "none" else positive - side(slice(n_positive, None))


def require_patches(images: Images) -> Tensor:
    """The patch embeddings of images, which the method needs."""
    if images.patches is None:
        raise CarinaError("model: expected image patches in the joint space, which this method needs")
    return images.patches


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1, along the last axis."""
    return functional.normalize(vectors, dim=-1)
