"""Records of a file one by one, in the memory of the largest: a JSON array of any length, or JSON lines.

Finds where a record ends without decoding it; what is in it is for others to judge, so that one bad record does not
hide those after it.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from carina.trek.swift.faults import SwiftError

CHUNK: Final = 1 << 20
MAX_RECORD: Final = 1 << 26
"""Bytes of one record: some two thousand times the usual."""
_SPACE: Final = b" \t\r\n"
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|"|[{}\[\]]', re.DOTALL)
"""A whole text, a text whose end is not there yet, or a bracket."""
_BOM: Final = b"\xef\xbb\xbf"


class Raw(NamedTuple):
    """A record as it stands in the file."""

    number: int
    """From 1."""
    content: bytes
    end: int
    """Bytes of the file that were read by then."""


def records(path: Path) -> Iterator[Raw]:
    """The records of a file, `.gz` or not; `SwiftError` where it cannot be told where one ends."""
    try:
        with path.open("rb") as stored:
            file = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if path.suffix == ".gz" else stored
            for number, content in enumerate(_split(path, file), start=1):
                yield Raw(number, content, stored.tell())
    except (OSError, EOFError, zlib.error) as error:
        raise SwiftError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _split(path: Path, file: BinaryIO) -> Iterator[bytes]:
    window = _Window(path, file)
    first = window.next()
    if first == b"[":
        window.skip()
        return _array(window)
    if first == b"{":
        lines = ".jsonl" in path.suffixes or window.line_is_whole()
        return _lines(window) if lines else _one_after_another(window)
    raise SwiftError(f"{path}: expected a JSON array of conversations, or one conversation a line")


def _array(window: "_Window") -> Iterator[bytes]:
    if window.next() == b"]":
        window.skip()
    else:
        number = 1
        while True:
            yield window.value(number)
            end = window.next()
            if end not in (b",", b"]"):
                raise window.error(f"expected a comma or the closing bracket after record {number}")
            window.skip()
            if end == b"]":
                break
            number += 1
    if window.next():
        raise window.error("text after the closing bracket")


def _one_after_another(window: "_Window") -> Iterator[bytes]:
    number = 1
    while window.next():
        yield window.value(number)
        number += 1


def _lines(window: "_Window") -> Iterator[bytes]:
    number = 1
    while window.next():
        yield window.line(number)
        number += 1


class _Window:
    """A part of the file that grows until what begins in it is whole."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._text = file.read(CHUNK).removeprefix(_BOM)
        self._at = 0
        self._before = 0
        """Bytes that have left the window."""

    def error(self, sentence: str) -> SwiftError:
        return SwiftError(f"{self._path}: {sentence}, at byte {self._before + self._at}")

    def next(self) -> bytes:
        """The next byte that is not space, which stays; empty at the end."""
        while True:
            while self._at < len(self._text):
                byte = self._text[self._at : self._at + 1]
                if byte not in _SPACE:
                    return byte
                self._at += 1
            if not self._more():
                return b""

    def skip(self) -> None:
        self._at += 1

    def line_is_whole(self) -> bool:
        """Whether the first value ends on the line on which it begins."""
        value = self._end(1)
        return b"\n" not in self._text[self._at : value]

    def line(self, number: int) -> bytes:
        """The rest of this line."""
        while (end := self._text.find(b"\n", self._at)) < 0:
            if not self._more(number):
                end = len(self._text)
                break
        found = self._text[self._at : end]
        self._at = end
        return found

    def value(self, number: int) -> bytes:
        """The next object."""
        if self.next() != b"{":
            raise self.error(f"record {number}: expected an object")
        end = self._end(number)
        found = self._text[self._at : end]
        self._at = end
        return found

    def _end(self, number: int) -> int:
        """Where the object that begins here ends, with the window grown to hold it."""
        while True:
            depth = 0
            for token in _TOKEN.finditer(self._text, self._at):
                sign = token.group()
                if sign in (b"{", b"["):
                    depth += 1
                elif sign in (b"}", b"]"):
                    depth -= 1
                    if depth == 0:
                        return token.end()
                elif sign == b'"':
                    break
            if not self._more(number):
                raise self.error(f"record {number}: does not end")

    def _more(self, number: int = 0) -> bool:
        """Whether there was more to read; if not, the window stays where it is."""
        held = len(self._text) - self._at
        if held > MAX_RECORD:
            raise self.error(f"record {number}: does not end within {MAX_RECORD:,} bytes")
        read = self._file.read(max(CHUNK, held))
        if not read:
            return False
        self._before += self._at
        self._text = self._text[self._at :] + read
        self._at = 0
        return True
