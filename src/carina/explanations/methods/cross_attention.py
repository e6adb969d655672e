"""Attention of a decoder's queries to the patches: the maps of MedKLIP, KAD, MAVL and CARZero."""

from dataclasses import dataclass

from torch import Tensor

from carina.explanations.methods._method import method
from carina.explanations.methods._options import Contrast, Layers, Over
from carina.explanations.methods._prompts import check_contrast, combine_prompts, score_prompts
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.recognition import list_prompts
from carina.store.errors import CarinaError


@dataclass(frozen=True, kw_only=True)
class CrossAttentionOptions:
    layers: Layers = "mean"
    """Layers of the decoder: MedKLIP, MAVL and CARZero take the mean over layers, KAD the last layer."""
    heads: Over = "mean"
    renormalised: bool = False
    """Whether maps are scaled to a sum of 1, although some attention goes to keys that are not patches."""
    contrast: Contrast = "none"


@method(
    name="cross-attention",
    definition="attention of a decoder's query to the patches, combined over layers and heads",
    publication="MedKLIP, KAD, MAVL, CARZero (2023-2024)",
    needs=("decoder",),
    options=CrossAttentionOptions,
)
def cross_attention(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, options: CrossAttentionOptions
) -> Tensor:
    check_contrast(prompts, options.contrast)
    attention = model.cross_attention(pixels, list_prompts(prompts))
    if attention is None:
        raise CarinaError("model: expected a decoder that attends to the patches, which this method needs")
    layers = attention.weights[:, :, -1:] if options.layers == "last" else attention.weights
    heads = layers.amax(3) if options.heads == "max" else layers.mean(3)
    maps = heads.mean(2)
    if options.renormalised:
        maps = maps / maps.sum((-2, -1), keepdim=True)
    return combine_prompts(maps, prompts, options.contrast, lambda: score_prompts(model, pixels, prompts))
