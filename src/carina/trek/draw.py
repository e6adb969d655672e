"""Chance for one conversation: a stream of numbers that depends only on the seed and what it is for."""

from collections.abc import Sequence
from typing import TypeVar

from carina.seeding import rng

T = TypeVar("T")
_AT_ONCE = 256


class Draw:
    """Random choices, drawn one after the other. Numbers are made in bulk: one at a time would cost ten times more."""

    __slots__ = ("_rng", "_shares")

    def __init__(self, seed: int, *purpose: str | int) -> None:
        self._rng = rng(seed, *purpose)
        self._shares: list[float] = []

    def share(self) -> float:
        """A number from 0 up to, not including, 1."""
        if not self._shares:
            self._shares = self._rng.random(_AT_ONCE).tolist()
        return self._shares.pop()

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return self.share() < probability

    def below(self, number: int) -> int:
        """A whole number from 0 up to, not including, `number`."""
        return int(self.share() * number)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self.share() * len(items))]

    def sample(self, items: Sequence[T], number: int) -> list[T]:
        """As many of the items as there are, up to `number`, in random order."""
        rest = list(items)
        number = min(number, len(rest))
        for place in range(number):
            other = place + int(self.share() * (len(rest) - place))
            rest[place], rest[other] = rest[other], rest[place]
        del rest[number:]
        return rest

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in random order."""
        return self.sample(items, len(items))

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of the items, by weight; all weights zero count as equal."""
        total = sum(weights)
        if total <= 0:
            return self.pick(items)
        left = self.share() * total
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        return items[-1]

    def rounded(self, mean: float) -> int:
        """A whole number next to `mean`, which it is on average."""
        whole = int(mean)
        return whole + (self.share() < mean - whole)
