"""Small laws of chance that the plan of a patient is drawn from.

All have closed forms: planning must cost less than a millisecond a patient, and a lesion's rank among all
lesions must be computable back from its size. Nothing here knows about findings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

K = TypeVar("K")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A Kumaraswamy law stretched to [low, high]: Beta-like, with quantile and rank in closed form."""

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


def pick(r: np.random.Generator, weights: Mapping[K, float]) -> K:
    """One key, by relative weight."""
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
        raise ValueError("nothing to pick from: no weight is positive")
    return chosen


def between(r: np.random.Generator, low: float, high: float) -> float:
    """Uniform over [low, high)."""
    return low + (high - low) * r.random()


def sticky(r: np.random.Generator, n: int, *, keep: float) -> list[float]:
    """`n` numbers, each uniform over [0, 1), each the same as the one before with probability `keep`.

    `u < share` then holds for exactly `share` of the studies at every order, yet tends to persist.
    """
    values = [r.random()]
    while len(values) < n:
        fresh = r.random()
        values.append(values[-1] if r.random() < keep else fresh)
    return values


def normal_within(r: np.random.Generator, *, mean: float, sd: float, within: tuple[float, float]) -> float:
    """Normal, drawn again until it lies within the limits, so that nothing piles up at them."""
    low, high = within
    if not low < mean < high:
        raise ValueError(f"a mean of {mean} outside {within} could keep drawing for ever")
    while True:
        value = mean + sd * r.standard_normal()
        if low <= value <= high:
            return value
