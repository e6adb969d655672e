"""Probability of a finding from the scores of its prompts.

Works on tensors without importing torch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from carina.models.clip.interface import PromptPair, Several

if TYPE_CHECKING:
    from torch import Tensor


def asked(pair: PromptPair) -> tuple[str, ...]:
    """Every prompt of a pair, in the order in which `presence` takes their scores."""
    return (*pair.positive, *pair.negative)


def presence(scores: "Tensor", pair: PromptPair) -> "Tensor":
    """Probability (n,) of a finding from scores (n, m) of its prompts.

    The softmax over its presence and absence, which is the logistic function of their difference; of the score alone
    where nothing negative is asked.
    """
    many = len(pair.positive)
    if scores.shape[-1] != many + len(pair.negative):
        raise ValueError(f"{scores.shape[-1]} scores of {many + len(pair.negative)} prompts")
    positive = one_score(scores[..., :many], pair.several)
    if not pair.negative:
        return positive.sigmoid()
    return (positive - one_score(scores[..., many:], pair.several)).sigmoid()


def ensemble(probabilities: Sequence["Tensor"]) -> "Tensor":
    """Mean probability of several checkpoints of one model, as CheXzero publishes it."""
    return sum(probabilities[1:], probabilities[0]) / len(probabilities)


def one_score(scores: "Tensor", several: Several) -> "Tensor":
    """One score per image from the scores (n, m) of its positive or of its negative prompts."""
    return scores.amax(-1) if several == "max" else scores.mean(-1)
