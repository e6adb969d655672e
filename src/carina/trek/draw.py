"""Chance for one conversation: a stream of numbers that depends only on the seed and what it is for."""

from collections.abc import Sequence
from typing import TypeVar

from carina.seeding import shares

T = TypeVar("T")


class Draw:
    """Random choices, drawn one after the other."""

    __slots__ = ("share",)

    def __init__(self, seed: int, *purpose: str | int) -> None:
        self.share = shares(seed, *purpose)
        """A number from 0 up to, not including, 1."""

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
        size = len(rest)
        number = min(number, size)
        share = self.share
        # The last of all has no choice.
        for place in range(min(number, size - 1)):
            other = place + int(share() * (size - place))
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
        chosen = items[0]
        for item, weight in zip(items, weights, strict=True):
            if weight > 0:
                # What rounding leaves over falls to the last that has a weight.
                chosen = item
                left -= weight
                if left < 0:
                    break
        return chosen

    def rounded(self, mean: float) -> int:
        """A whole number next to `mean`, which it is on average."""
        whole = int(mean)
        return whole + (self.share() < mean - whole)
