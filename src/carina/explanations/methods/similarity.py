"""Similarity of each patch with the text: the maps of BioViL, AFLoc and most other models.

Where the image embedding is the mean of its patches, `measure="dot"` and `sigma=0` give a map whose mean is the score
before normalisation.
"""

from dataclasses import dataclass

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from carina.explanations.methods._method import method
from carina.explanations.methods._options import Contrast, Measure, require_at_least
from carina.explanations.methods._prompts import encode_prompts, require_patches, text_direction, unit
from carina.models.clip.interface import ClipModel, PromptPair


@dataclass(frozen=True, kw_only=True)
class SimilarityOptions:
    measure: Measure = "cosine"
    """The mean of a `dot` map is the score before normalisation where the image embedding is the mean of its patches
    (AFLoc)."""
    sigma: float = 1.5
    """Standard deviation of the Gaussian that smooths the map, in cells; 0 for none. BioViL and AFLoc use 1.5."""
    contrast: Contrast = "none"

    def __post_init__(self) -> None:
        require_at_least("option sigma", self.sigma, 0)


@method(
    name="similarity",
    definition="cosine or product of each patch with the text, smoothed",
    publication="BioViL (Boecking et al. 2022), AFLoc",
    needs=("patches",),
    options=SimilarityOptions,
)
def similarity(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: SimilarityOptions) -> Tensor:
    patches = require_patches(model.encode_image(pixels))
    maps = patch_similarity(
        model, pixels, patches, prompts, contrast=options.contrast, measure=options.measure
    )
    return smooth_maps(maps, options.sigma)


def patch_similarity(
    model: ClipModel,
    pixels: Tensor,
    patches: Tensor,
    prompts: PromptPair,
    *,
    contrast: Contrast,
    measure: Measure = "cosine",
) -> Tensor:
    """Similarity (n, rows, columns) of patch embeddings (n, rows, columns, d) with the prompts of a finding."""
    texts = encode_prompts(model, prompts, contrast).pooled
    if measure == "cosine":
        patches, texts = unit(patches), unit(texts)
    return torch.einsum("nrcd,nd->nrc", patches, text_direction(model, pixels, texts, prompts, contrast))


def smooth_maps(maps: Tensor, sigma: float) -> Tensor:
    """Smooth maps by a Gaussian, truncated at four sigmas, with maps mirrored at their edges, as hi-ml does."""
    if sigma == 0:
        return maps
    return torch.from_numpy(gaussian_filter(maps.cpu().numpy(), (0, sigma, sigma))).to(maps.device)
