"""Where the queries of a decoder look: MedKLIP's, KAD's, MAVL's and CARZero's maps."""

from torch import Tensor

from carina.errors import CarinaError
from carina.ground.explain.methods.asking import check, scores_of, together
from carina.ground.explain.methods.options import CrossAttentionOptions
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.recognition import asked


def cross_attention(
    model: ClipModel, pixels: Tensor, prompts: PromptPair, options: CrossAttentionOptions
) -> Tensor:
    check(prompts, options.contrast)
    found = model.cross_attention(pixels, asked(prompts))
    if found is None:
        raise CarinaError("this method looks at the attention of a decoder, which the model has none of")
    layers = found.weights[:, :, -1:] if options.layers == "last" else found.weights
    heads = layers.amax(3) if options.heads == "max" else layers.mean(3)
    maps = heads.mean(2)
    if options.renormalised:
        maps = maps / maps.sum((-2, -1), keepdim=True)
    return together(maps, prompts, options.contrast, lambda: scores_of(model, pixels, prompts))
