"""Sort more records than fit into memory: sorted runs in files, which are merged while they are read.

Knows keys and bytes, not what they mean; the caller encodes and decodes its records.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final

RUN: Final = 16 << 20
"""Bytes of records that are sorted in memory at a time."""
_LENGTH: Final = 4
"""Bytes of the number before each key and each record: its length."""

Item = tuple[str, bytes]
"""A key, and the record that it belongs to."""


class DiskSort:
    """Records that are added in any order and read once, in the order of their keys."""

    def __init__(self, folder: Path, *, run: int = RUN) -> None:
        self._folder = folder
        self._run = run
        self._files: list[Path] = []
        self._items: list[Item] = []
        self._bytes = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, items: Iterable[Item]) -> None:
        """Add records with their keys; records of one key keep the order in which they are added."""
        for key, record in items:
            self._items.append((key, record))
            self._count += 1
            self._bytes += len(record)
            if self._bytes >= self._run:
                self._write_run()

    def read(self) -> Iterator[bytes]:
        """The records in the order of their keys, with one of each run in memory."""
        self._items.sort(key=itemgetter(0))
        with ExitStack() as opened:
            runs: list[Iterable[Item]] = [
                _read_run(opened.enter_context(file.open("rb"))) for file in self._files
            ]
            for _, record in merge(*runs, self._items, key=itemgetter(0)):
                yield record

    def _write_run(self) -> None:
        self._items.sort(key=itemgetter(0))
        path = self._folder / f"{len(self._files):05d}"
        with path.open("wb") as file:
            for key, record in self._items:
                for text in (key.encode(), record):
                    file.write(len(text).to_bytes(_LENGTH, "little"))
                    file.write(text)
        self._files.append(path)
        self._items.clear()
        self._bytes = 0


@contextmanager
def sort_on_disk(folder: Path, *, run: int = RUN) -> Iterator[DiskSort]:
    """Sort records with the help of a folder, which is removed when the block ends.

    Args:
        folder: Folder for the sorted runs. What a killed process left there is removed first.
        run: Bytes of records that are sorted in memory at a time.

    Example:
        >>> with sort_on_disk(Path("sorting"), run=2) as sorting:
        ...     sorting.add([("b", b"two"), ("a", b"one"), ("c", b"three")])
        ...     list(sorting.read())
        [b'one', b'two', b'three']
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield DiskSort(folder, run=run)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _read_run(file: BinaryIO) -> Iterator[Item]:
    while length := file.read(_LENGTH):
        key = file.read(int.from_bytes(length, "little")).decode()
        yield key, file.read(int.from_bytes(file.read(_LENGTH), "little"))
