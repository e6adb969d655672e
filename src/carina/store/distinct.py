"""Different texts among millions, such as ids: of each, eight bytes are kept.

Two texts share a digest by chance: among a million, with a chance of 3 in 100 million. Whoever must be sure looks at
the texts of those digests that come twice.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.int64]


class Distinct:
    """Counts different texts, and tells which have come before."""

    def __init__(self) -> None:
        self._runs: list[Digests] = []
        """In order each, the longest first; none is less than twice as long as the next, so there are few."""

    def add(self, texts: Collection[str]) -> frozenset[int]:
        """Texts, some of which may have come before: the digests of those that have, or come twice among these.

        The digest of a text is its `hash`, the same as long as the process runs.
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
