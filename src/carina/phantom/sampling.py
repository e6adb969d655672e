"""Distributions that the plan of a patient is sampled from.

All have closed forms: planning must take less than a millisecond per patient, and the rank of a lesion among all
lesions must be computable from its size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

K = TypeVar("K")


@dataclass(frozen=True, kw_only=True)
class Kumaraswamy:
    """A Kumaraswamy distribution on [low, high]: similar to Beta, with quantile and rank in closed form."""

    low: float
    high: float
    a: float
    b: float

    def quantile(self, rank: float) -> float:
        unit = float((1.0 - (1.0 - rank) ** (1.0 / self.b)) ** (1.0 / self.a))
        return self.low + (self.high - self.low) * unit

    def rank(self, value: float) -> float:
        unit = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return 1.0 - float((1.0 - unit**self.a) ** self.b)


def sample_key(r: np.random.Generator, weights: Mapping[K, float]) -> K:
    """Sample one key by relative weight."""
    left = r.random() * sum(weights.values())
    chosen: K | None = None
    for key, weight in weights.items():
        if weight <= 0.0:
            continue
        chosen = key
        left -= weight
        if left < 0.0:
            break
    if chosen is None:
        raise ValueError("weights: none is positive, so that no key can be sampled")
    return chosen


def sample_uniform(r: np.random.Generator, low: float, high: float) -> float:
    """Sample uniformly from [low, high)."""
    return low + (high - low) * r.random()


def sample_persistent(r: np.random.Generator, n: int, *, keep: float) -> list[float]:
    """Sample `n` numbers, each uniform over [0, 1) and equal to the one before with probability `keep`.

    `u < share` then has probability `share` at every position, but tends to persist from one to the next.
    """
    values = [r.random()]
    while len(values) < n:
        fresh = r.random()
        values.append(values[-1] if r.random() < keep else fresh)
    return values


def sample_truncated_normal(
    r: np.random.Generator, *, mean: float, sd: float, within: tuple[float, float]
) -> float:
    """Sample from a normal distribution truncated to the limits."""
    low, high = within
    if not low < mean < high:
        raise ValueError(f"mean: {mean} must lie inside {within}, or sampling may never end")
    while True:
        value = mean + sd * r.standard_normal()
        if low <= value <= high:
            return value
