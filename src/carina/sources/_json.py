"""JSON files of any size, record by record: arrays, objects of records, JSON lines; compressed with gzip or not.

A file is cut into the texts of its records without decoding them, in the memory of the largest record, so that a
record that is not JSON does not affect the others. `decode` and `decode_checked` then read one record.

Why not by a streaming parser: ijson was tried. It ends at the first record that is not JSON, and published files have
such records (NaN, as Python's own `json` writes it, numbers beyond what a float holds); it does not tell where a record
stands, and it does not tell that a name is given twice.
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypeVar, cast

import msgspec

from carina.sources._record import RecordError, SourceError, printable
from carina.store.documents import check_regular

T = TypeVar("T")

CHUNK: Final = 1 << 20
"""Bytes that are read at a time."""
MAX_RECORD: Final = 1 << 26
"""Bytes of one record: a thousand times the usual."""
_MAX_DIGITS: Final = 300
"""Most digits of a whole number; longer ones are not counts, and slow to read."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BRACKET: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+([{}\[\]])", re.DOTALL)
"""The next bracket that is not within a text."""
_NAME: Final = re.compile(_STRING, re.DOTALL)
_SCALAR: Final = re.compile(rb"[^\s,\]}]++")

Layout = Literal["records", "named records", "named arrays", "grouped records"]
"""An array of records, or records one after another, such as JSON lines; one object of records by name; one object of
arrays of records by name, such as a file of COCO; or one object of such objects by the name of a group."""


class Entry(NamedTuple):
    """The text of one record."""

    number: int
    """From 1."""
    name: str
    """Of a named record; else empty."""
    content: bytes
    end: int
    """Bytes of the file on disk that were read up to the end of the record."""
    start: int = 0
    """First byte of the content, in a file that is not compressed."""


def read_entries(path: Path, layout: Layout = "records") -> Iterator[Entry]:
    """The records of a file in its order.

    Args:
        path: A JSON file; one that ends with `.gz` is decompressed.
        layout: "records": an array of objects, or objects one after another, on a line each or not. "named records":
            one object whose values are the records. "named arrays": one object; the elements of a value that is an
            array are records of its name, and every other value is one record. "grouped records": one object of
            objects, whose values are the records; their names are written as "group/name".

    Raises:
        SourceError: The file cannot be read, or the end of a record cannot be found.
    """
    try:
        check_regular(path, error=SourceError, max_bytes=None)
        with path.open("rb") as stored:
            file = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if path.suffix == ".gz" else stored
            window = _Window(path, file)
            for number, (name, content) in enumerate(_CUTS[layout](path, window), start=1):
                yield Entry(number, name, content, stored.tell(), window.taken)
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def decode(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """The value of one record.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:  # of which msgspec's errors are some
        raise RecordError("record", f"not JSON: {printable(str(error), longest=200)}", kind="json") from error


def decode_with_nan(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """The value of one record as Python's own `json` writes it: NaN and infinities stand for no value, and become None.

    Raises:
        RecordError: It is not JSON.
    """
    try:
        return json.loads(content, parse_constant=lambda _name: None)
    except (ValueError, RecursionError) as error:
        raise RecordError("record", f"not JSON: {printable(str(error), longest=200)}", kind="json") from error


def decode_as(content: bytes, kind: type[T]) -> T:
    """The value of one record, as a msgspec type.

    Raises:
        RecordError: It is not JSON, or not of that type.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        raise RecordError(place.strip("`."), printable(reason, longest=200), kind="json") from error
    except (ValueError, RecursionError) as error:
        raise RecordError("record", f"not JSON: {printable(str(error), longest=200)}", kind="json") from error


def decode_checked(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """As `decode`, but stricter than JSON libraries: no name twice in one object, no number that a float cannot hold.

    Raises:
        RecordError: It is not JSON, or breaks one of these rules.
    """
    faults: list[str] = []
    try:
        value = _make_checking_decoder(faults).decode(content.decode())
    except UnicodeDecodeError as error:
        raise RecordError("", f"not UTF-8 text: {error.reason} at byte {error.start}", kind="json") from error
    except json.JSONDecodeError as error:
        raise RecordError("", f"not JSON: {error.msg} at character {error.pos}", kind="json") from error
    except RecursionError:
        raise RecordError("", "nested too deeply", kind="json") from None
    if faults:
        raise RecordError("", faults[0], kind="json")
    return value


# ---- cutting --------------------------------------------------------------------------------------------------------


def _read_records(path: Path, window: "_Window") -> Iterator[tuple[str, bytes]]:
    first = window.next()
    if first == b"[":
        window.skip()
        return _read_array(window)
    if first == b"{":
        # Lines are split at line ends, so that a truncated line does not hide the next one.
        is_lines = ".jsonl" in path.suffixes or window.record_ends_on_its_line()
        return _read_lines(window) if is_lines else _read_sequence(window)
    raise SourceError(f"{path}: expected a JSON array of records, or one record a line")


def _read_array(window: "_Window") -> Iterator[tuple[str, bytes]]:
    if window.next() == b"]":
        window.skip()
    else:
        number, end = 1, b","
        while end == b",":
            yield "", window.object(f"record {number}")
            end = window.next()
            if end not in (b",", b"]"):
                raise window.error(f"expected a comma or the closing bracket after record {number}")
            window.skip()
            number += 1
    if window.next():
        raise window.error("text after the closing bracket")


def _read_sequence(window: "_Window") -> Iterator[tuple[str, bytes]]:
    number = 1
    while window.next():
        yield "", window.object(f"record {number}")
        number += 1


def _read_lines(window: "_Window") -> Iterator[tuple[str, bytes]]:
    number = 1
    while window.next():
        yield "", window.line(f"record {number}")
        number += 1


def _read_named_records(path: Path, window: "_Window") -> Iterator[tuple[str, bytes]]:
    for name in _read_names(path, window):
        yield name, window.value(printable(repr(name)))


def _read_grouped_records(path: Path, window: "_Window") -> Iterator[tuple[str, bytes]]:
    for group in _read_names(path, window):
        if window.next() != b"{":
            raise window.error(f"expected an object of records in {printable(repr(group))}")
        for name in _read_members(window):
            yield f"{group}/{name}", window.value(printable(repr(name)))


def _read_named_arrays(path: Path, window: "_Window") -> Iterator[tuple[str, bytes]]:
    for name in _read_names(path, window):
        called = printable(repr(name))
        if window.next() != b"[":
            yield name, window.value(called)
            continue
        window.skip()
        number, end = 1, window.next()
        while end != b"]":
            yield name, window.value(f"element {number} of {called}")
            end = window.next()
            if end not in (b",", b"]"):
                raise window.error(
                    f"expected a comma or the closing bracket after element {number} of {called}"
                )
            if end == b",":
                window.skip()
            number += 1
        window.skip()


def _read_names(path: Path, window: "_Window") -> Iterator[str]:
    """The names of the object that a file holds; whoever takes one reads its value before taking the next."""
    if window.next() != b"{":
        raise SourceError(f"{path}: expected one JSON object of records by name")
    yield from _read_members(window)
    if window.next():
        raise window.error("text after the closing brace")


def _read_members(window: "_Window") -> Iterator[str]:
    """The names of the object that begins here."""
    window.skip()
    end = b"}" if window.next() == b"}" else b","
    if end == b"}":
        window.skip()
    while end == b",":
        name = window.name()
        called = printable(repr(name))
        if window.next() != b":":
            raise window.error(f"expected a colon after the name {called}")
        window.skip()
        yield name
        end = window.next()
        if end not in (b",", b"}"):
            raise window.error(f"expected a comma or the closing brace after record {called}")
        window.skip()


_CUTS: Final[Mapping[Layout, Callable[[Path, "_Window"], Iterator[tuple[str, bytes]]]]] = {
    "records": _read_records,
    "named records": _read_named_records,
    "named arrays": _read_named_arrays,
    "grouped records": _read_grouped_records,
}


class _Window:
    """A part of the file that grows until it contains the whole value that begins in it."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        text = file.read(CHUNK)
        self._text = text.removeprefix(_BYTE_ORDER_MARK)
        self._at = 0
        self._before = len(text) - len(self._text)
        """Bytes of the file before the window."""
        self.taken = 0
        """First byte of the value that was taken last."""

    def error(self, reason: str) -> SourceError:
        return SourceError(f"{self._path}: {reason}, at byte {self._before + self._at}")

    def next(self) -> bytes:
        """The next byte that is not space, which stays; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._grow(""):
                return b""

    def skip(self) -> None:
        self._at += 1

    def record_ends_on_its_line(self) -> bool:
        """Whether the first object ends on the line on which it begins."""
        return b"\n" not in self._text[self._at : self._find_end("record 1")]

    def line(self, called: str) -> bytes:
        """The rest of this line."""
        searched = self._at
        while (end := self._text.find(b"\n", searched)) < 0:
            held = len(self._text) - self._at
            if not self._grow(called):
                end = len(self._text)
                break
            searched = self._at + held
        return self._take(end)

    def object(self, called: str) -> bytes:
        """The next value, which must be an object."""
        if self.next() != b"{":
            raise self.error(f"{called}: expected an object")
        return self._take(self._find_end(called))

    def value(self, called: str) -> bytes:
        """The next value, of any kind."""
        first = self.next()
        if first in (b"{", b"["):
            return self._take(self._find_end(called))
        return self._take(self._find_token_end(_NAME if first == b'"' else _SCALAR, called))

    def name(self) -> str:
        """The next text."""
        if self.next() != b'"':
            raise self.error("expected a name in quotes")
        content = self._take(self._find_token_end(_NAME, "a name"))
        try:
            name: str = json.loads(content.decode())
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{self._path}: not UTF-8 text: {error.reason} at byte {self._before + self._at}"
            ) from error
        except json.JSONDecodeError:
            raise self.error(f"not a name in JSON: {printable(repr(content))}") from None
        return name

    def _take(self, end: int) -> bytes:
        found = self._text[self._at : end]
        self.taken = self._before + self._at
        self._at = end
        return found

    def _find_end(self, called: str) -> int:
        """Where the object or list that begins here ends, with the window grown to hold it."""
        depth = 0
        at = self._at
        while True:
            while bracket := _BRACKET.match(self._text, at):
                at = bracket.end()
                depth += 1 if bracket[1] in b"{[" else -1
                if depth == 0:
                    return at
            searched = at - self._at
            if not self._grow(called):
                raise self.error(f"{called}: does not end")
            at = self._at + searched

    def _find_token_end(self, pattern: re.Pattern[bytes], called: str) -> int:
        """Where the text or number that begins here ends: before the end of the window, unless the file ends there."""
        while True:
            found = pattern.match(self._text, self._at)
            if found and found.end() < len(self._text):
                return found.end()
            if not self._grow(called):
                if found is None:
                    raise self.error(f"{called}: does not end")
                return found.end()

    def _grow(self, called: str) -> bool:
        """Whether there was more to read; if not, the window stays where it is."""
        held = len(self._text) - self._at
        if held > MAX_RECORD:
            raise self.error(f"{called}: does not end within {MAX_RECORD:,} bytes")
        read = self._file.read(max(CHUNK, held))
        if not read:
            return False
        self._before += self._at
        self._text = self._text[self._at :] + read
        self._at = 0
        return True


# ---- checking -------------------------------------------------------------------------------------------------------


def _make_checking_decoder(faults: list[str]) -> json.JSONDecoder:
    """A decoder that adds to `faults` what a JSON library would accept silently."""

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})
            faults.extend(f"the name {printable(repr(name))} is given twice in one object" for name in twice)
        return found

    def read_constant(name: str) -> None:
        faults.append(f"{name} is not a number of JSON")

    def read_whole(digits: str) -> int:
        if len(digits) > _MAX_DIGITS:
            faults.append(f"a number of {len(digits)} digits")
            return 0
        return int(digits)

    def read_decimal(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            faults.append(f"{printable(digits)} is too large a number")
            return 0.0
        return number

    return json.JSONDecoder(
        object_pairs_hook=read_object,
        parse_constant=read_constant,
        parse_int=read_whole,
        parse_float=read_decimal,
    )
