"""Random choices for one conversation: a stream of numbers that depends only on the seed and its purpose."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from carina.store.seeding import shares

T = TypeVar("T")


class Sampler:
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
        share = self.share
        # The last remaining item needs no random number.
        for place in range(number if number < size else size - 1):
            other = place + int(share() * (size - place))
            rest[place], rest[other] = rest[other], rest[place]
        return rest[:number] if number < size else rest

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """All items in random order."""
        return self.sample(items, len(items)) if len(items) > 1 else list(items)

    def pick_weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of the items, by weight; all weights zero count as equal."""
        bounds = list(accumulate(weights))
        if not bounds or bounds[-1] <= 0:
            return self.pick(items)
        place = bisect_right(bounds, self.share() * bounds[-1])
        if place == len(bounds):  # by rounding: the last that has a weight
            place = bisect_left(bounds, bounds[-1])
        return items[place]

    def round_randomly(self, mean: float) -> int:
        """`mean` rounded up or down at random, so that the average is `mean`."""
        whole = int(mean)
        return whole + (self.share() < mean - whole)
