"""MaskCLIP: similarity with the values of the last attention (Zhou et al., 2022).

The last block of a transformer mixes patches, and its output is trained for the class token only. The values of its
attention keep patches apart: each is what a patch contributes to the tokens that attend to it.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from carina.explanations.methods._internals import forward_hooks, require_transformer
from carina.explanations.methods._method import method
from carina.explanations.methods._options import Contrast
from carina.explanations.methods._prompts import require_patches
from carina.explanations.methods.similarity import patch_similarity
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import Block


@dataclass(frozen=True, kw_only=True)
class MaskClipOptions:
    contrast: Contrast = "none"


@method(
    name="maskclip",
    definition="cosine of the text with the value of each patch in the last attention",
    publication="MaskCLIP (Zhou et al. 2022)",
    needs=("vit", "patches"),
    options=MaskClipOptions,
)
def maskclip(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: MaskClipOptions) -> Tensor:
    def replace_by_values(
        block: Block, inputs: tuple[Any, ...], outputs: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        attention = block.attention
        return attention.out(attention.value(block.norm1(inputs[0]))), outputs[1]

    with forward_hooks([require_transformer(model).blocks[-1]], replace_by_values):
        patches = require_patches(model.encode_image(pixels))
    return patch_similarity(model, pixels, patches, prompts, contrast=options.contrast)
