"""Choose among alternatives so that differences add up to nothing over a benchmark.

Each case has several alternatives, each with the differences that it would add: between the right mask and the wrong
ones, or between contours of two paths. Taking alternatives that keep the sums near zero leaves nothing that a rule or a
linear classifier could learn: the gradient of its likelihood is zero where it uses no feature.

The same holds for trees and the leaves of trees: if the right option is in each leaf as often as all options are, the
tree tells nothing. Trees with random questions stand for all trees (`RandomTrees`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.store.seeding import rng

SWEEPS: Final = 4
"""How often every choice is made again, given all others."""
RIDGE: Final = 0.003
"""Variance that is added to every feature before whitening: about what a classifier does not use in 300 cases."""
TINY: Final = 1e-9
TREES: Final = 250
"""Random trees. Between 150 and 600 of them, differences on the tuning half were within noise."""
QUESTIONS: Final = 3
"""Questions about features on the way to a leaf."""
LEAVES: Final = 2**QUESTIONS
SAME_FEATURE: Final = 1 / 3
"""Share of trees that ask about one feature only: its value, its difference from the mean and its rank."""
VIEW_SHARES: Final = (0.4, 0.36, 0.24)
"""Shares of questions about the value of a feature, its difference from the mean of the set, and its rank in it."""
LIMITS: Final = (0.05, 0.95)
"""Range of the quantiles that questions compare with."""
TREE_WEIGHT: Final = 360.0
"""Weight of all trees together, against a squared difference of one spread."""
TREE_SWEEPS: Final = 8
"""How often every choice is made again, given all others, where trees are balanced too."""


def whiten(values: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Values in coordinates that vary equally and independently; where they hardly vary, they stay small.

    A classifier can use the small difference of two features that are almost the same.

    Args:
        values: For each case, values of each alternative, (alternatives, ..., features).
    """
    width = values[0].shape[-1]
    rows = np.concatenate([one.reshape(-1, width) for one in values])
    spread = np.maximum(np.sqrt((rows**2).mean(axis=0)), TINY)
    related = (rows / spread).T @ (rows / spread) / len(rows) + RIDGE * np.eye(width)
    mixing = np.linalg.inv(np.linalg.cholesky(related)).T / spread[:, None]
    return [one @ mixing for one in values]


class FeatureBalance:
    """Sums of differences over all cases so far; each call adds the cases of one target."""

    def __init__(self) -> None:
        self._total: NDArray[np.float64] = np.zeros(1)

    def choose(self, alternatives: Sequence[NDArray[np.float64]]) -> list[int]:
        """Choose one alternative of each case, so that all sums stay near zero; of equal ones the first.

        Args:
            alternatives: For each case, what each alternative would add, (alternatives, features).

        Returns:
            The number of the alternative of each case.
        """
        total = self._total
        chosen: list[int] = []
        for differences in alternatives:
            chosen.append(_find_best(total, differences))
            total = total + differences[chosen[-1]]
        for _ in range(SWEEPS):
            for n, differences in enumerate(alternatives):
                total = total - differences[chosen[n]]
                chosen[n] = _find_best(total, differences)
                total = total + differences[chosen[n]]
        self._total = total
        return chosen


@dataclass(frozen=True)
class RandomTrees:
    """Trees with fixed random questions about features of options."""

    features: NDArray[np.int64]
    """(trees, questions)"""
    views: NDArray[np.int64]
    """What is asked about: 0 for the value, 1 for the difference from the mean of the set, 2 for the rank."""
    quantiles: NDArray[np.float64]

    @classmethod
    def draw(cls, weights: Sequence[float]) -> "RandomTrees":
        """Trees that ask about features in proportion to these weights; the same in every call."""
        chance = rng(0, "random trees")
        shape = (TREES, QUESTIONS)
        features = chance.choice(len(weights), shape, p=np.array(weights) / sum(weights))
        features[: round(SAME_FEATURE * TREES)] = features[: round(SAME_FEATURE * TREES), :1]
        return cls(features, chance.choice(3, shape, p=VIEW_SHARES), chance.uniform(*LIMITS, shape))

    def find_leaves(self, sets: Sequence[NDArray[np.float64]]) -> list[NDArray[np.uint8]]:
        """The leaf of every option in every tree.

        Args:
            sets: For each case, features of options, (alternatives, options, features).

        Returns:
            For each case, leaves, (alternatives, options, trees).
        """
        every = np.round(np.concatenate(sets), 9)
        ranks = (every[:, :, None] > every[:, None]).sum(axis=2) + (every[:, :, None] == every[:, None]).sum(
            axis=2
        ) / 2
        views = np.stack([every, np.round(every - every.mean(axis=1, keepdims=True), 9), ranks])
        leaves = np.zeros((*every.shape[:2], TREES), np.uint8)
        for tree in range(TREES):
            for question in range(QUESTIONS):
                values = views[self.views[tree, question], :, :, self.features[tree, question]]
                limit = np.quantile(values, self.quantiles[tree, question], method="lower")
                leaves[:, :, tree] |= (values > limit).astype(np.uint8) << np.uint8(question)
        return np.split(leaves, np.cumsum([len(one) for one in sets])[:-1])


def choose_sets(differences: Sequence[NDArray[np.float64]], leaves: Sequence[NDArray[np.uint8]]) -> list[int]:
    """Choose one set of options of each case, so that the right option, which is the first, does not stand out.

    Args:
        differences: For each case, how the right option of each set differs from the others, (sets, features).
        leaves: For each case, the leaf of each option in each tree, (sets, options, trees).

    Returns:
        The number of the set of each case.
    """
    options, trees = leaves[0].shape[1:]
    offsets = np.arange(trees) * LEAVES
    weight = TREE_WEIGHT / (trees * options**2)
    total = np.zeros(differences[0].shape[1])
    # Right options in each leaf, times the number of options, less all options in it.
    counts = np.zeros(trees * LEAVES, np.int64)
    chosen = [-1] * len(leaves)
    sizes = [_measure_sizes(one) for one in leaves]

    def add_set(n: int, sign: int) -> None:
        nonlocal total
        total = total + sign * differences[n][chosen[n]]
        places = leaves[n][chosen[n]] + offsets
        counts[places[0]] += sign * options
        np.subtract.at(counts, places, sign)

    for _ in range(1 + TREE_SWEEPS):
        for n, difference in enumerate(differences):
            if chosen[n] >= 0:
                add_set(n, -1)
            held = counts[leaves[n] + offsets]
            along = (options * held[:, 0] - held.sum(axis=1)).sum(axis=1)
            loss = ((total + difference) ** 2).sum(axis=1) + weight * (2 * along + sizes[n])
            chosen[n] = int(np.round(loss, 6).argmin())
            add_set(n, 1)
    return chosen


def _measure_sizes(leaves: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Sum of squares of what each set adds to the counts of all leaves."""
    options = leaves.shape[1]
    with_right = (leaves == leaves[:, :1]).sum(axis=1)
    pairs = (leaves[:, :, None] == leaves[:, None]).sum(axis=(1, 2))
    return np.asarray((options**2 - 2 * options * with_right + pairs).sum(axis=1), np.int64)


def _find_best(total: NDArray[np.float64], differences: NDArray[np.float64]) -> int:
    """The alternative after which the sum of squares is least; rounded, so that it does not depend on the machine."""
    return int(np.round(((total + differences) ** 2).sum(axis=1), 9).argmin())
