"""What is asked of a model about a finding, whose prompts may be several, for it and against it.

Imported only where torch is.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from carina.errors import CarinaError
from carina.ground.explain.methods.options import Contrast, Followed
from carina.models.clip.interface import ClipModel, Images, PromptPair, Texts
from carina.models.clip.recognition import asked, presence

Score = Callable[[Tensor], Tensor]
"""Prepared pictures (n, 3, side, side) to one number each."""


def check(prompts: PromptPair, contrast: Followed) -> None:
    """That there is something on both sides of a difference."""
    if contrast == "difference" and not prompts.negative:
        raise CarinaError(
            f"contrast {contrast!r}: nothing is asked against {prompts.positive[0]!r}; expected prompts of its absence"
        )


def texts_of(model: ClipModel, prompts: PromptPair, contrast: Followed) -> Texts:
    """Of all prompts of a finding, those for it first."""
    check(prompts, contrast)
    return model.encode_text(asked(prompts))


def follow(model: ClipModel, prompts: PromptPair, contrast: Followed) -> Score:
    """The score that a method watches while it changes pixels or asks for gradients."""
    texts = texts_of(model, prompts, contrast)

    def score(pixels: Tensor) -> Tensor:
        return of_finding(model.score(model.encode_image(pixels), texts), prompts, contrast)

    return score


def of_finding(scores: Tensor, prompts: PromptPair, contrast: Followed) -> Tensor:
    """From scores (n, m) of all prompts to one of the finding (n,)."""
    if contrast == "probability":
        return presence(scores, prompts)
    return together(scores, prompts, contrast, lambda: scores)


def direction(
    model: ClipModel, pixels: Tensor, texts: Tensor, prompts: PromptPair, contrast: Contrast
) -> Tensor:
    """One vector (n, d) for each picture, whose product with a patch is that of all prompts' texts (m, d) with it."""
    each = texts.expand(len(pixels), *texts.shape)
    return together(each, prompts, contrast, lambda: scores_of(model, pixels, prompts))


def scores_of(model: ClipModel, pixels: Tensor, prompts: PromptPair) -> Tensor:
    """(n, m) of pictures and all prompts of a finding."""
    return model.score(model.encode_image(pixels), model.encode_text(asked(prompts)))


def together(values: Tensor, prompts: PromptPair, contrast: Contrast, scores: Callable[[], Tensor]) -> Tensor:
    """What all prompts have of each picture (n, m, ...) as one: maps, vectors or scores.

    The mean over prompts, or that of the one with the highest of `scores` (n, m), which are asked for only then: so
    what is shown belongs to the prompt that gave the model's answer.
    """

    def side(part: slice) -> Tensor:
        chosen = values[:, part]
        if prompts.several == "mean" or chosen.shape[1] == 1:
            return chosen.mean(1)
        return chosen[torch.arange(len(chosen)), scores()[:, part].argmax(1)]

    many = len(prompts.positive)
    positive = side(slice(many))
    return positive if contrast == "none" else positive - side(slice(many, None))


def patches_of(seen: Images) -> Tensor:
    """Those that the method needs."""
    if seen.patches is None:
        raise CarinaError("this method looks at patches in the joint space, which the model has none of")
    return seen.patches


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1, along the last axis."""
    return functional.normalize(vectors, dim=-1)
