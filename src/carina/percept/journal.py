"""What was examined so far, kept beside an unfinished benchmark so that an interrupted build goes on where it was.

A plain file of records, each with its length and checksum: a tail that was cut off in the middle is left aside.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from carina.percept.examined import Examined, Outcome, Skipped

FILE: Final = ".journal"
_HEADER: Final = struct.Struct("<II")
_DECODER: Final = msgspec.msgpack.Decoder(Examined | Skipped)


class Journal:
    """Outcomes by study and target; open it as a context to add to it."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._path = directory / FILE
        self._stamp = fingerprint.encode()
        self._there: dict[tuple[str, str], Outcome] = {}
        good = self._read()
        self._file = self._path.open("r+b" if good else "wb")
        if good:
            self._file.truncate(good)
            self._file.seek(good)
        else:
            self._append(self._stamp)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, study: str, target: str) -> Outcome | None:
        return self._there.get((study, target))

    def add(self, outcome: Outcome) -> None:
        self._append(msgspec.msgpack.encode(outcome))

    def remove(self) -> None:
        """The benchmark is complete."""
        self._file.close()
        self._path.unlink()

    def _append(self, content: bytes) -> None:
        try:
            self._file.write(_HEADER.pack(len(content), zlib.crc32(content)) + content)
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _read(self) -> int:
        """Take in what is whole and of this build; returns where it ends, 0 where there is nothing to go on with."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        records = _records(content)
        end, stamp = next(records, (0, b""))
        if stamp != self._stamp:
            return 0
        good = end
        for end, record in records:
            try:
                outcome = _DECODER.decode(record)
            except msgspec.DecodeError:
                break
            target = outcome.target
            study = outcome.study if isinstance(outcome, Skipped) else outcome.subject.study
            self._there[study, target] = outcome
            good = end
        return good


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Whole records and where each ends."""
    at = 0
    while at + _HEADER.size <= len(content):
        length, checksum = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        record = content[at : at + length]
        if len(record) < length or zlib.crc32(record) != checksum:
            return
        at += length
        yield at, record
