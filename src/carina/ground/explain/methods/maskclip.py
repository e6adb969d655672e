"""What each patch would say for itself: MaskCLIP's maps.

The last block of a transformer mixes patches, and its answer is trained for the class token alone. Its value path keeps
them apart: what a patch adds to whoever attends to it.
"""

from typing import Any

from torch import Tensor

from carina.ground.explain.methods.asking import patches_of
from carina.ground.explain.methods.inside import hooked, transformer
from carina.ground.explain.methods.options import MaskClipOptions
from carina.ground.explain.methods.similarity import alike
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.vit import Block


def maskclip(model: ClipModel, pixels: Tensor, prompts: PromptPair, options: MaskClipOptions) -> Tensor:
    def by_values(block: Block, given: tuple[Any, ...], made: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        attention = block.attention
        return attention.out(attention.value(block.norm1(given[0]))), made[1]

    with hooked([transformer(model).blocks[-1]], by_values):
        patches = patches_of(model.encode_image(pixels))
    return alike(model, pixels, patches, prompts, contrast=options.contrast)
