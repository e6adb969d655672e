"""Sampled answers that depend on the turn alone, not on who else is in the batch."""

import secrets
from collections.abc import Sequence
from typing import Any

from carina.models.chat.loading import Loaded
from carina.models.served import Sampling
from carina.run.records import Turn
from carina.seeding import rng


class Draws:
    """Draws the next token of every row by the row's own numbers.

    A Gumbel-distributed number is added to each logit; then the largest one is a draw from the distribution, and
    greedy search takes it. Numbers come from the CPU, so that they are the same whatever the device.
    """

    def __init__(self, torch: Any, seeds: Sequence[int], warpers: Sequence[Any]) -> None:  # noqa: ANN401
        self._torch = torch
        self._rows = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._warpers = warpers

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401 - as transformers calls it
        torch = self._torch
        scores = scores.double()
        for warp in self._warpers:
            scores = warp(input_ids, scores)
        drawn = torch.stack(
            [torch.rand(scores.shape[1], generator=row, dtype=scores.dtype) for row in self._rows]
        )
        return scores - torch.log(-torch.log(drawn)).to(scores.device)


def draws(loaded: Loaded, sampling: Sampling, turns: Sequence[Turn]) -> Draws | None:
    """How the answers to some turns are drawn; None where the likeliest token is taken.

    Where no temperature is given, the model's own settings decide; their `top_k` and `top_p` hold either way.
    """
    own = loaded.model.generation_config
    temperature = sampling.temperature
    if temperature is None:
        temperature = (own.temperature or 1.0) if own.do_sample else 0.0
    if temperature == 0:
        return None
    kinds = loaded.transformers
    warpers = [kinds.TemperatureLogitsWarper(float(temperature))]
    if own.top_k:
        warpers.append(kinds.TopKLogitsWarper(top_k=own.top_k))
    if own.top_p is not None and own.top_p < 1:
        warpers.append(kinds.TopPLogitsWarper(top_p=own.top_p))
    return Draws(loaded.torch, [_seed(sampling.seed, turn) for turn in turns], warpers)


def _seed(seed: int | None, turn: Turn) -> int:
    if seed is None:
        return secrets.randbits(63)
    return int(rng(seed, "answer", turn.case, turn.step.id).integers(2**63))
