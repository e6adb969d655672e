"""Choose among alternatives so that differences add up to nothing over a benchmark.

Each case has several alternatives, each with the differences that it would add: between the right mask and the wrong
ones, or between contours of two paths. Taking alternatives that keep the sums near zero leaves nothing that a rule or a
linear classifier could learn: the gradient of its likelihood is zero where it uses no feature.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

SWEEPS: Final = 4
"""How often every choice is made again, given all others."""
RIDGE: Final = 0.003
"""Variance that is added to every feature before whitening: about what a classifier does not use in 300 cases."""
TINY: Final = 1e-9


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


def _find_best(total: NDArray[np.float64], differences: NDArray[np.float64]) -> int:
    """The alternative after which the sum of squares is least; rounded, so that it does not depend on the machine."""
    return int(np.round(((total + differences) ** 2).sum(axis=1), 9).argmin())
