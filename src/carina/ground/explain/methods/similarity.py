"""How alike each patch and the text are: what BioViL, AFLoc and most others show.

Where the picture is the mean of its patches, products with the text add up to the score before its norms: with
`measure="dot"` and `sigma=0` the mean of the map is that score.
"""

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from carina.ground.explain.methods.asking import direction, patches_of, texts_of, unit
from carina.ground.explain.methods.options import Contrast, Measure, SimilarityOptions
from carina.models.clip.interface import ClipModel, PromptPair


def similarity(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: SimilarityOptions) -> Tensor:
    patches = patches_of(model.encode_image(pixels))
    maps = alike(model, pixels, patches, prompts, contrast=options.contrast, measure=options.measure)
    return smoothed(maps, options.sigma)


def alike(
    model: ClipModel,
    pixels: Tensor,
    patches: Tensor,
    prompts: PromptPair,
    *,
    contrast: Contrast,
    measure: Measure = "cosine",
) -> Tensor:
    """Patches (n, rows, columns, d) of pictures, however they were made, against the texts of a finding."""
    texts = texts_of(model, prompts, contrast).pooled
    if measure == "cosine":
        patches, texts = unit(patches), unit(texts)
    return torch.einsum("nrcd,nd->nrc", patches, direction(model, pixels, texts, prompts, contrast))


def smoothed(maps: Tensor, sigma: float) -> Tensor:
    """By a Gaussian over cells, cut after four sigmas, the map mirrored at its edges: as hi-ml does it."""
    if sigma == 0:
        return maps
    return torch.from_numpy(gaussian_filter(maps.numpy(), (0, sigma, sigma)))
