"""`chexpercept.json` record by record: a file of any size, in the memory of its largest record.

Finds what a JSON library lets pass: a name given twice in one object, NaN, numbers beyond what a float holds.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from carina.percept.bundle.faults import BundleError, told

CHUNK: Final = 1 << 20
"""Characters that are read at a time."""
MAX_RECORD: Final = 1 << 26
"""Characters of one record: a thousand times the usual."""
_MAX_DIGITS: Final = 300
"""Longer whole numbers are no counts, and slow to read."""
_SPACE: Final = " \t\n\r"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record of the file as it stands there."""

    key_id: str
    record: Any
    faults: tuple[str, ...] = ()
    """What is wrong with it as JSON."""


def entries(path: Path) -> Iterator[Entry]:
    """The records of the file in its order; what is not JSON raises `BundleError` where it is met."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _entries(path, _Reader(path, file))
    except FileNotFoundError:
        raise BundleError(f"{path}: missing, so {path.parent} is not a CheXpercept bundle") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error


def _entries(path: Path, reader: "_Reader") -> Iterator[Entry]:
    if reader.next() != "{":
        raise BundleError(f"{path}: expected one JSON object {{key_id: record}}")
    reader.skip()
    if reader.next() == "}":
        reader.skip()
    else:
        while True:
            if reader.next() != '"':
                raise BundleError(f"{path}: expected a key_id in quotes {reader.where()}")
            key_id, _ = reader.value()
            if reader.next() != ":":
                raise BundleError(f"{path}: expected a colon after key_id {told(repr(key_id))}")
            reader.skip()
            record, faults = reader.value()
            yield Entry(key_id=key_id, record=record, faults=faults)
            end = reader.next()
            if end not in (",", "}"):
                raise BundleError(
                    f"{path}: expected a comma or the closing brace after key_id {told(repr(key_id))}"
                )
            reader.skip()
            if end == "}":
                break
    if reader.next():
        raise BundleError(f"{path}: text after the closing brace {reader.where()}")


class _Reader:
    """A window on the text, which grows until the value that begins in it is whole."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._text = ""
        self._at = 0
        self._before = 0
        """Characters that have left the window."""
        self._ended = False
        self._faults: list[str] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._constant,
            parse_int=self._whole,
            parse_float=self._decimal,
        )

    def where(self) -> str:
        return f"at character {self._before + self._at}"

    def next(self) -> str:
        """The next character that is not space, which stays; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def skip(self) -> None:
        self._at += 1

    def value(self) -> tuple[Any, tuple[str, ...]]:
        """The next value, and what is wrong with it though it can be read."""
        self.next()
        while True:
            self._faults.clear()
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise BundleError(f"{self._path}: nested too deeply {self.where()}") from None
            except json.JSONDecodeError as error:
                if self._more():
                    continue
                place = self._before + error.pos
                raise BundleError(f"{self._path}: not JSON: {error.msg} at character {place}") from error
            # A number at the end of the window may go on beyond it; "1.", "1e" and "1e+" are read as 1 until it does.
            if len(self._text) - end <= 2 and self._more():
                continue
            self._at = end
            return found, tuple(self._faults)

    def _more(self) -> bool:
        """Whether there was more to read; if not, the window stays where it is."""
        if self._ended:
            return False
        if len(self._text) - self._at > MAX_RECORD:
            raise BundleError(
                f"{self._path}: the record {self.where()} does not end within {MAX_RECORD:,} characters"
            )
        read = self._file.read(max(CHUNK, len(self._text) - self._at))
        if not read:
            self._ended = True
            return False
        self._before += self._at
        self._text = self._text[self._at :] + read
        self._at = 0
        return True

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})
            self._faults.extend(f"the name {told(repr(name))} is given twice in one object" for name in twice)
        return found

    def _constant(self, name: str) -> None:
        self._faults.append(f"{name} is not a number of JSON")

    def _whole(self, digits: str) -> int:
        if len(digits) > _MAX_DIGITS:
            self._faults.append(f"a number of {len(digits)} digits")
            return 0
        return int(digits)

    def _decimal(self, digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            self._faults.append(f"{told(digits)} is too large a number")
            return 0.0
        return number
