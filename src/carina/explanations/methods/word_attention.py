"""Attention of each word of the prompt to the patches: the maps of GLoRIA."""

from dataclasses import dataclass

import torch
from torch import Tensor

from carina.explanations.methods._method import method
from carina.explanations.methods._options import Contrast, Over
from carina.explanations.methods._prompts import combine_prompts, encode_prompts, require_patches
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.recognition import list_prompts
from carina.store.errors import CarinaError


@dataclass(frozen=True, kw_only=True)
class WordAttentionOptions:
    temperature: float = 4.0
    """Factor of the words' shares before the softmax over patches."""
    words: Over = "mean"
    """How the maps of the words are combined; GLoRIA shows them one by one."""
    contrast: Contrast = "none"


@method(
    name="word-attention",
    definition="attention of each word to the patches, combined over words",
    publication="GLoRIA (Huang et al. 2021)",
    needs=("patches", "words"),
    options=WordAttentionOptions,
)
def word_attention(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, options: WordAttentionOptions
) -> Tensor:
    """A softmax over the words for each patch, then a softmax of these shares over the patches for each word."""
    images, texts = model.encode_image(pixels), encode_prompts(model, prompts, options.contrast)
    patches = require_patches(images)
    if texts.words is None or texts.kept is None:
        raise CarinaError("model: expected single words in the joint space, which this method needs")
    for prompt, kept in zip(list_prompts(prompts), texts.kept, strict=True):
        if not kept.any():
            raise CarinaError(
                f"prompt {prompt!r}: expected at least one word that the model encodes, found none"
            )
    products = torch.einsum("nrcd,mwd->nmwrc", patches, texts.words).flatten(-2)
    left_out = ~texts.kept[None, :, :, None]
    shares = products.masked_fill(left_out, -torch.inf).softmax(2)
    words = (shares * options.temperature).softmax(-1)
    if options.words == "max":
        maps = words.masked_fill(left_out, -torch.inf).amax(2)
    else:
        maps = words.masked_fill(left_out, 0).sum(2) / texts.kept.sum(1)[None, :, None]
    maps = maps.unflatten(-1, patches.shape[1:3])
    return combine_prompts(maps, prompts, options.contrast, lambda: model.score(images, texts))
