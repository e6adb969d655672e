"""Different texts among millions, such as ids: of each, eight bytes are kept.

Two texts share a digest by chance: among a million, with a chance of 3 in 100 million. Whoever must be sure looks at
the texts of those digests that come twice.
"""

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.int64]

_FEW: Final = 65536
"""Digests that are gathered before they are put in order."""


def digests(texts: Collection[str]) -> Digests:
    """A number for each text; the same text has the same one as long as the process runs."""
    return np.fromiter(map(hash, texts), np.int64, len(texts))


def repeated(several: Collection[Digests]) -> frozenset[int]:
    """Digests that come more than once."""
    ordered = np.sort(np.concatenate([*several, np.empty(0, np.int64)]))
    return frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


class Distinct:
    """Counts different texts."""

    def __init__(self) -> None:
        self._known = np.empty(0, np.int64)
        self._new: list[Digests] = []
        self._waiting = 0

    def add(self, texts: Collection[str]) -> None:
        """Texts, some of which may have come before."""
        self._new.append(np.unique(digests(texts)))
        self._waiting += len(self._new[-1])
        # The more are known, the rarer they are put in order anew.
        if self._waiting > max(_FEW, len(self._known)):
            self._settle()

    def __len__(self) -> int:
        self._settle()
        return len(self._known)

    def _settle(self) -> None:
        self._known = np.unique(np.concatenate([self._known, *self._new]))
        self._new, self._waiting = [], 0
