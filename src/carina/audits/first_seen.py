"""What gates remember of the cases they have seen, in as few bytes as possible.

To find a repetition, a gate keeps twelve bytes per thing: a digest and the number of the case. The chance that any two
of a million things share a digest is 3 in 100 million. `carina.store.Distinct` answers a simpler question (is it new?)
for whole batches at a time; here single things are looked up, and the case in which they came first.
"""

from array import array
from bisect import bisect_left
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.audits.text_model import hash_text
from carina.cases.model import Case

_BUFFER: Final = 4096
"""Digests that are collected before they are sorted in."""
_BUFFER_SHARE: Final = 32
"""The buffer grows with what is kept: one for this many."""
_SEPARATOR: Final = "\0"


class FirstSeen:
    """The number of the case in which each thing was seen first.

    Example:
        >>> images = FirstSeen()
        >>> images.first("a.png", 0), images.first("a.png", 7)
        (0, 0)
    """

    def __init__(self) -> None:
        self._digests = array("q")
        self._numbers = array("I")
        self._buffer: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._digests) + len(self._buffer)

    def get(self, thing: Hashable) -> int | None:
        """The number of the first case with this thing; None for a new one. Equal values are the same thing."""
        digest = hash(thing)
        found = self._buffer.get(digest)
        if found is None:
            at = bisect_left(self._digests, digest)
            if at < len(self._digests) and self._digests[at] == digest:
                return self._numbers[at]
        return found

    def first(self, thing: Hashable, number: int) -> int:
        """The number of the first case with this thing, which is `number` for a new one."""
        found = self.get(thing)
        if found is not None:
            return found
        self._buffer[hash(thing)] = number
        if len(self._buffer) > max(_BUFFER, len(self._digests) // _BUFFER_SHARE):
            self._sort_in()
        return number

    def _sort_in(self) -> None:
        new = np.fromiter(self._buffer.keys(), np.int64, len(self._buffer))
        order = np.argsort(new)
        numbers = np.fromiter(self._buffer.values(), np.uint32, len(self._buffer))[order]
        places = np.searchsorted(np.frombuffer(self._digests, np.int64), new[order])
        self._digests = _insert(self._digests, places, new[order])
        self._numbers = _insert(self._numbers, places, numbers)
        self._buffer = {}


def _insert(known: "array[int]", places: NDArray[np.int64], new: NDArray[np.generic]) -> "array[int]":
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


class CaseRegister:
    """Id, patient and split of every case by number, for gates that name earlier cases."""

    def __init__(self, _context: object = None) -> None:
        self._case: Case | None = None
        self._names = _Texts()
        """Id and patient."""
        self._kinds: list[tuple[str | None, bool]] = []
        """Split, and whether the patient is known."""
        self._kind = array("B")

    def number(self, case: Case) -> int:
        """The number of the current case; it is registered once, however many gates ask for it."""
        if case is not self._case:
            self._case = case
            self._names.add(f"{case.id}{_SEPARATOR}{case.patient or ''}")
            kind = (case.split, case.patient is not None)
            if kind not in self._kinds:
                self._kinds.append(kind)
            self._kind.append(self._kinds.index(kind))
        return len(self._names) - 1

    def id(self, number: int) -> str:
        """The id of a case."""
        return self._names[number].partition(_SEPARATOR)[0]

    def patient(self, number: int) -> str | None:
        """The patient of a case, if known."""
        is_known = self._kinds[self._kind[number]][1]
        return self._names[number].partition(_SEPARATOR)[2] if is_known else None

    def split(self, number: int) -> str | None:
        """The split of a case, if it has one."""
        return self._kinds[self._kind[number]][0]


class Reservoir:
    """A random sample of rows of numbers, all with the same chance; drawn by hashes of names, so it is reproducible.

    Args:
        most: Rows to keep.
        width: Numbers in a row.
    """

    def __init__(self, most: int, width: int = 1) -> None:
        self._most = most
        self._width = width
        self._n = 0
        self.values = array("d")
        """Row after row."""

    def add(self, name: str, *row: float) -> None:
        """Offer a row; the name is that of the thing it was measured on."""
        self._n += 1
        place = len(self.values) // self._width
        if place >= self._most:
            place = hash_text(name) % self._n
        if place < self._most:
            start = place * self._width
            self.values[start : start + self._width] = array("d", row)
