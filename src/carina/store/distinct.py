"""Counts distinct texts among millions, such as ids, and keeps eight bytes of each.

Two texts share a digest by chance: among a million texts, the probability is 3 in 100 million. A caller that must be
certain compares the texts whose digests occur twice.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.int64]


class Distinct:
    """Counts distinct texts, and finds those that occurred before."""

    def __init__(self) -> None:
        self._runs: list[Digests] = []
        """Sorted arrays, the longest first; each is at least twice as long as the next, so there are few."""

    def add(self, texts: Collection[str]) -> frozenset[int]:
        """Add texts, and return the digests of those that were added before or occur twice among these.

        The digest of a text is its `hash`, which is constant within a process.
        """
        given = np.fromiter(map(hash, texts), np.int64, len(texts))
        different, times = np.unique(given, return_counts=True)
        known = np.zeros(len(different), bool)
        for run in self._runs:
            known |= run[np.minimum(np.searchsorted(run, different), len(run) - 1)] == different
        self._keep(different[~known])
        return frozenset(different[known | (times > 1)].tolist())

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def _keep(self, new: Digests) -> None:
        while self._runs and len(self._runs[-1]) < 2 * len(new):
            new = np.sort(np.concatenate([self._runs.pop(), new]))
        if len(new):
            self._runs.append(new)
