"""What gates remember of the cases they have seen: a little in memory, the rest in temporary files.

To find a repetition, a gate keeps twelve bytes per thing: a digest and the number of the case. The chance that any two
of a million things share a digest is 3 in 100 million. `carina.store.Distinct` answers a simpler question (is it new?)
for whole batches at a time; here single things are looked up, and the case in which they came first.

Memory does not grow with the number of cases, but for a few hundredths of a byte per thing. The temporary files have no
name, so that nothing is left of them when the process ends, in whichever way.
"""

import sys
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from tempfile import TemporaryFile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.audits.text_model import hash_text
from carina.cases.model import Case

_BUFFER: Final = 8192
"""Digests that are collected before they are sorted and written."""
_LONGEST: Final = 1 << 16
"""Digests of the longest run that is merged with another one."""
_BLOCK: Final = 512
"""Digests that are read at a time."""
_DIGEST: Final = 8
_NUMBER: Final = 4
"""Bytes of each in a file."""
_TEXTS: Final = 1 << 20
"""Bytes of texts that are collected before they are written."""
_END: Final = 8
"""Bytes of the place where a text ends."""
_SEPARATOR: Final = "\0"


class FirstSeen:
    """The number of the case in which each thing was seen first.

    Example:
        >>> images = FirstSeen()
        >>> images.first("a.png", 0), images.first("a.png", 7)
        (0, 0)
    """

    def __init__(self) -> None:
        self._buffer: dict[int, int] = {}
        self._runs: list[_Run] = []
        """The longest first; each but the longest is at least twice as long as the next, so there are few."""

    def __len__(self) -> int:
        return len(self._buffer) + sum(map(len, self._runs))

    def get(self, thing: Hashable) -> int | None:
        """The number of the first case with this thing; None for a new one. Equal values are the same thing."""
        digest = hash(thing)
        found = self._buffer.get(digest)
        if found is not None:
            return found
        for run in self._runs:
            found = run.get(digest)
            if found is not None:
                return found
        return None

    def first(self, thing: Hashable, number: int) -> int:
        """The number of the first case with this thing, which is `number` for a new one."""
        found = self.get(thing)
        if found is not None:
            return found
        self._buffer[hash(thing)] = number
        if len(self._buffer) >= _BUFFER:
            self._write_buffer()
        return number

    def _write_buffer(self) -> None:
        digests = np.fromiter(self._buffer.keys(), np.int64, len(self._buffer))
        numbers = np.fromiter(self._buffer.values(), np.uint32, len(self._buffer))
        while self._runs and len(self._runs[-1]) < min(2 * len(digests), _LONGEST):
            earlier, of_earlier = self._runs.pop().read()
            digests, numbers = np.concatenate([earlier, digests]), np.concatenate([of_earlier, numbers])
        order = np.argsort(digests)
        self._runs.append(_Run(digests[order], numbers[order]))
        self._buffer = {}


class _TemporaryFile:
    """Bytes on disk, which are gone when the object is."""

    def __init__(self) -> None:
        self._file = TemporaryFile(buffering=0, prefix="carina-audit-")  # noqa: SIM115 - closed by the line below
        weakref.finalize(self, self._file.close)

    def append(self, content: bytes) -> None:
        self._file.seek(0, 2)
        self._file.write(content)

    def read(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)


class _Run:
    """Sorted digests with their numbers in files; of every block, the first digest is in memory."""

    def __init__(self, digests: NDArray[np.int64], numbers: NDArray[np.uint32]) -> None:
        self._length = len(digests)
        self._starts = array("q", digests[::_BLOCK].tobytes())
        self._digests = _TemporaryFile()
        self._digests.append(digests.tobytes())
        self._numbers = _TemporaryFile()
        self._numbers.append(numbers.tobytes())

    def __len__(self) -> int:
        return self._length

    def get(self, digest: int) -> int | None:
        start = (bisect_right(self._starts, digest) - 1) * _BLOCK
        if start < 0:
            return None
        block = memoryview(self._digests.read(start * _DIGEST, _BLOCK * _DIGEST)).cast("q")
        at = bisect_left(block, digest)
        if at == len(block) or block[at] != digest:
            return None
        return int.from_bytes(self._numbers.read((start + at) * _NUMBER, _NUMBER), sys.byteorder)

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        return (
            np.frombuffer(self._digests.read(0, self._length * _DIGEST), np.int64),
            np.frombuffer(self._numbers.read(0, self._length * _NUMBER), np.uint32),
        )


class _Texts:
    """Texts by number; the last ones are in memory, the others in a file."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q")
        """Where the texts in memory end, counted from the first of all texts."""
        self._written = 0
        """Number of the texts in the file."""
        self._size = 0
        """Their bytes."""
        self._file: _TemporaryFile | None = None
        self._file_ends: _TemporaryFile | None = None

    def __len__(self) -> int:
        return self._written + len(self._ends)

    def add(self, text: str) -> None:
        self._bytes += text.encode()
        self._ends.append(self._size + len(self._bytes))
        if len(self._bytes) >= _TEXTS:
            self._write()

    def __getitem__(self, number: int) -> str:
        place = number - self._written
        if place >= 0:
            start = self._ends[place - 1] if place else self._size
            return self._bytes[start - self._size : self._ends[place] - self._size].decode()
        assert self._file is not None  # noqa: S101 - written before
        assert self._file_ends is not None  # noqa: S101 - written before
        # The end of the text before is the start of this one; the first has none before it.
        before = self._file_ends.read(max(0, number - 1) * _END, 2 * _END if number else _END)
        ends = memoryview(before).cast("Q")
        start = ends[0] if number else 0
        return self._file.read(start, ends[-1] - start).decode()

    def _write(self) -> None:
        if self._file is None or self._file_ends is None:
            self._file, self._file_ends = _TemporaryFile(), _TemporaryFile()
        self._file.append(bytes(self._bytes))
        self._file_ends.append(self._ends.tobytes())
        self._written += len(self._ends)
        self._size += len(self._bytes)
        self._bytes, self._ends = bytearray(), array("Q")


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
