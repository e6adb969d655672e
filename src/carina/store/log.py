"""An append-only file of records, one a line, of which only a line that was cut off can ever be lost.

Runs keep answers in such files, builds what they have worked out so far, served models the replies that were paid for.
Each of them has its own records; how lines are written, brought to disk, found again and repaired stands here.

A line ends with a line feed. A last line without one was cut off by an interruption: it is never read, and removed
before the file is written to again. With `checksums`, every line begins with the CRC-32 of its record, so that damage
within a line is found as well.
"""

import os
import threading
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Self

from carina.store.documents import check_regular
from carina.store.errors import CarinaError
from carina.store.files import naming

MAX_LINE_BYTES: Final = 64_000_000
"""Longest line of a log: hundreds of times the longest answer of a model."""
_DIGITS: Final = 8
"""Hexadecimal digits of a CRC-32, which a space separates from the record."""


class Line(NamedTuple):
    """One record of a log, and where it lies."""

    number: int
    """Number of the line, from 1."""
    start: int
    """Offset of the line in bytes; `read_record` reads it again."""
    end: int
    """Offset of the next line."""
    record: bytes | None
    """None where the line does not have the checksum that it states."""


def read_record(path: Path, start: int) -> bytes:
    """The record of the line at this offset, in a log without checksums."""
    with path.open("rb") as file:
        file.seek(start)
        return file.readline().removesuffix(b"\n")


def read_lines(path: Path, *, repair: bool = False, checksums: bool = False) -> Iterator[Line]:
    """The whole lines of a log, in order.

    Args:
        path: The log.
        repair: Remove a last line that was cut off; for the only process that writes the log.
        checksums: Whether the log was written with checksums.

    Raises:
        CarinaError: The path is not a regular file, or a line is longer than `MAX_LINE_BYTES`.
    """
    start = 0
    check_regular(path, max_bytes=None)
    with path.open("r+b" if repair else "rb") as file:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), start=1):
            if len(line) > MAX_LINE_BYTES:
                raise CarinaError(
                    f"{path}, line {number}: longer than the limit of {MAX_LINE_BYTES:,} bytes; the file is damaged, "
                    "move it away"
                )
            if not line.endswith(b"\n"):
                if repair:
                    file.truncate(start)
                return
            end = start + len(line)
            yield Line(number, start, end, _check_line(line) if checksums else line[:-1])
            start = end


class Log:
    """Appends records to one file; for one process at a time, any of its threads. A context manager, or `close` it.

    Args:
        path: Created where it is missing, with its folders.
        keep: Number of bytes to keep of a file that exists; None for all. Whatever follows is removed.
        checksums: Whether each line states the CRC-32 of its record.
        private: Whether a new file is readable by its owner alone.

    Raises:
        CarinaError: The path is not a regular file.
    """

    def __init__(
        self, path: Path, *, keep: int | None = None, checksums: bool = False, private: bool = False
    ) -> None:
        self.path: Final = path
        self._checksums = checksums
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            check_regular(path, max_bytes=None)
        if private:
            path.touch(mode=0o600, exist_ok=True)
        self._file = path.open("ab")
        if keep is not None:
            self._file.truncate(keep)
        self._end = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was appended reaches the operating system."""
        with naming(self.path):
            self._file.close()

    def append(self, records: Iterable[bytes]) -> None:
        """Add records, none of which holds a line feed; `flush` or `sync` brings them further."""
        with self._lock:
            self._write(b"".join(map(self._line, records)))

    def add(self, record: bytes) -> int:
        """Add one record and return the offset of its line; the record is on disk when this returns."""
        with self._lock:
            start = self._end
            self._write(self._line(record))
            self.sync()
        return start

    def flush(self) -> None:
        """Hand everything to the operating system: it survives the end of this process, not a power failure."""
        with naming(self.path):
            self._file.flush()

    def sync(self) -> None:
        """Return when everything that was appended is on disk."""
        with naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def _line(self, record: bytes) -> bytes:
        return b"%08x %b\n" % (zlib.crc32(record), record) if self._checksums else record + b"\n"

    def _write(self, content: bytes) -> None:
        with naming(self.path):
            self._file.write(content)
        self._end += len(content)


def _check_line(line: bytes) -> bytes | None:
    stated, separator, record = line[:_DIGITS], line[_DIGITS : _DIGITS + 1], line[_DIGITS + 1 : -1]
    return record if separator == b" " and stated == b"%08x" % zlib.crc32(record) else None
