"""What gates must remember of every case they have seen, in as few bytes as that takes.

To find that something comes twice, a gate keeps twelve bytes of each: a digest and the number of the case. Two things
share a digest by chance: among a million, with a chance of 3 in 100 million.
"""

from array import array
from bisect import bisect_left
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.cases.model import Case

_FEW: Final = 4096
"""Digests that are gathered before they are put in order."""
_SHARE: Final = 32
"""The more are known, the more are gathered: one for so many."""
_BETWEEN: Final = "\0"


class Firsts:
    """Which number each thing was first noted with."""

    def __init__(self) -> None:
        self._digests = array("q")
        self._numbers = array("I")
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._digests) + len(self._recent)

    def get(self, thing: Hashable) -> int | None:
        """The number; None for what is new. What is equal in value is the same."""
        digest = hash(thing)
        found = self._recent.get(digest)
        if found is None:
            at = bisect_left(self._digests, digest)
            if at < len(self._digests) and self._digests[at] == digest:
                return self._numbers[at]
        return found

    def first(self, thing: Hashable, number: int) -> int:
        """The number that it was noted with before; it is noted with this one where it is new."""
        found = self.get(thing)
        if found is not None:
            return found
        self._recent[hash(thing)] = number
        if len(self._recent) > max(_FEW, len(self._digests) // _SHARE):
            self._settle()
        return number

    def _settle(self) -> None:
        new = np.fromiter(self._recent.keys(), np.int64, len(self._recent))
        order = np.argsort(new)
        numbers = np.fromiter(self._recent.values(), np.uint32, len(self._recent))[order]
        places = np.searchsorted(np.frombuffer(self._digests, np.int64), new[order])
        self._digests = _merged(self._digests, places, new[order])
        self._numbers = _merged(self._numbers, places, numbers)
        self._recent = {}


def _merged(known: "array[int]", places: NDArray[np.int64], new: NDArray[np.generic]) -> "array[int]":
    merged = array(known.typecode)
    merged.frombytes(np.insert(np.frombuffer(known, new.dtype), places, new).data.cast("B"))
    return merged


class _Texts:
    """Texts by number, one after the other in one piece of memory."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, text: str) -> None:
        self._bytes += text.encode()
        self._ends.append(len(self._bytes))

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._ends[number] : self._ends[number + 1]].decode()


class Register:
    """Cases by number, for gates that name earlier ones: id, patient and split of each."""

    def __init__(self) -> None:
        self._case: Case | None = None
        self._names = _Texts()
        """Id and patient."""
        self._kinds: list[tuple[str | None, bool]] = []
        self._kind = array("B")

    def number(self, case: Case) -> int:
        """Of the case at hand; it is noted once, however many gates ask in turn."""
        if case is not self._case:
            self._case = case
            self._names.add(f"{case.id}{_BETWEEN}{case.patient or ''}")
            kind = (case.split, case.patient is not None)
            if kind not in self._kinds:
                self._kinds.append(kind)
            self._kind.append(self._kinds.index(kind))
        return len(self._names) - 1

    def id(self, number: int) -> str:
        return self._names[number].partition(_BETWEEN)[0]

    def patient(self, number: int) -> str | None:
        known = self._kinds[self._kind[number]][1]
        return self._names[number].partition(_BETWEEN)[2] if known else None

    def split(self, number: int) -> str | None:
        return self._kinds[self._kind[number]][0]
