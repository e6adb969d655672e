"""Probability of a finding from the scores of its prompts.

Works on tensors without importing torch.
"""

from typing import TYPE_CHECKING

from carina.models.clip.interface import PromptPair, Several

if TYPE_CHECKING:
    from torch import Tensor


def list_prompts(pair: PromptPair) -> tuple[str, ...]:
    """Every prompt of a pair, in the order of the scores that `compute_presence` takes."""
    return (*pair.positive, *pair.negative)


def compute_presence(scores: "Tensor", pair: PromptPair) -> "Tensor":
    """Probability (n,) of a finding from scores (n, m) of its prompts.

    The softmax over presence and absence, which is the logistic function of their difference. Without negative prompts
    it is the logistic function of the score.
    """
    many = len(pair.positive)
    if scores.shape[-1] != many + len(pair.negative):
        raise ValueError(f"{scores.shape[-1]} scores of {many + len(pair.negative)} prompts")
    positive = combine_scores(scores[..., :many], pair.several)
    if not pair.negative:
        return positive.sigmoid()
    return (positive - combine_scores(scores[..., many:], pair.several)).sigmoid()


def combine_scores(scores: "Tensor", several: Several) -> "Tensor":
    """One score per image from the scores (n, m) of its positive or of its negative prompts."""
    return scores.amax(-1) if several == "max" else scores.mean(-1)
