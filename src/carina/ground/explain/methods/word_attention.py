"""Which places each word of the prompt attends to: GLoRIA's maps."""

import torch
from torch import Tensor

from carina.errors import CarinaError
from carina.ground.explain.methods.asking import patches_of, texts_of, together
from carina.ground.explain.methods.options import WordAttentionOptions
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.recognition import asked


def word_attention(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, options: WordAttentionOptions
) -> Tensor:
    """Each patch shares itself out among the words, then each word, by these shares, among the patches."""
    seen, texts = model.encode_image(pixels), texts_of(model, prompts, options.contrast)
    patches = patches_of(seen)
    if texts.words is None or texts.kept is None:
        raise CarinaError("this method looks at words in the joint space, which the model has none of")
    for prompt, kept in zip(asked(prompts), texts.kept, strict=True):
        if not kept.any():
            raise CarinaError(f"prompt {prompt!r}: no word of it is left for the model")
    products = torch.einsum("nrcd,mwd->nmwrc", patches, texts.words).flatten(-2)
    unkept = ~texts.kept[None, :, :, None]
    shares = products.masked_fill(unkept, -torch.inf).softmax(2)
    words = (shares * options.temperature).softmax(-1)
    if options.words == "max":
        maps = words.masked_fill(unkept, -torch.inf).amax(2)
    else:
        maps = words.masked_fill(unkept, 0).sum(2) / texts.kept.sum(1)[None, :, None]
    maps = maps.unflatten(-1, patches.shape[1:3])
    return together(maps, prompts, options.contrast, lambda: model.score(seen, texts))
