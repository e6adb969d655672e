"""Rows of delimited tables as others write them: by column name, streamed, with the place of every fault."""

import codecs
import csv
import io
import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TextIO, TypeVar

import msgspec

from carina.sources._encodings import Encoding, decode, find_encoding, find_mark, open_bytes, open_text
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.store.documents import check_regular

T = TypeVar("T")

MAX_FIELD: Final = 64_000_000
"""Characters of one field; masks as text take megabytes."""
MAX_LINE: Final = 4 * MAX_FIELD
_WIDE_BLOCK: Final = 1 << 20
"""Bytes of UTF-16 that are read at a time; an even number."""
BLANK: Final = frozenset({"", "nan", "none", "null", "n/a", "na"})
"""How tables write that a value is not there, in lower case."""
_LONGEST_BLANK: Final = max(map(len, BLANK))


class Row(msgspec.Struct, frozen=True, gc=False):
    """One row of a table; a struct, since rows are sent to workers by the million."""

    file: str
    number: int
    """Number of the row as the file counts them: the header, where there is one, is row 1."""
    values: dict[str, str]
    fault: str = ""
    """What is wrong with the row as a whole."""

    @property
    def place(self) -> str:
        """The file and the row."""
        return f"{self.file}: row {self.number}"

    def text(self, column: str) -> str:
        """The text of a column without spaces around it; empty where the table says that there is no value."""
        if self.fault:
            raise RecordError("", self.fault, kind="row")
        value = self.values.get(column)
        if value is None:
            raise RecordError(column, "is missing: the row ends before it", kind="row")
        value = value.strip()
        return value if len(value) > _LONGEST_BLANK or value.lower() not in BLANK else ""

    def required(self, column: str) -> str:
        """The text of a column that must have one."""
        value = self.text(column)
        if not value:
            raise RecordError(column, "is empty", kind="empty")
        return value

    def number_of(self, column: str) -> float:
        """A finite number."""
        number = self._plain_number(column)
        if math.isfinite(number):
            return number
        value = self.optional_number(column)
        if value is None:
            raise RecordError(column, "is empty, expected a number", kind="number")
        return value

    def numbers_or_nan(self, columns: Sequence[str]) -> list[float]:
        """Numbers of several columns; NaN for each that is not there or no number."""
        values = self.values
        try:
            return [math.nan if self.fault else float(values[column]) for column in columns]
        except (KeyError, ValueError):
            return [self._number_or_nan(column) for column in columns]

    def _number_or_nan(self, column: str) -> float:
        try:
            return self.number_of(column)
        except RecordError:
            return math.nan

    def _plain_number(self, column: str) -> float:
        """A number, as nearly all are written; NaN where it takes a closer look."""
        try:
            return math.nan if self.fault else float(self.values[column])
        except (KeyError, ValueError):
            return math.nan

    def optional_number(self, column: str) -> float | None:
        """A finite number, or None where there is no value."""
        text = self.text(column)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise RecordError(column, f"is {describe(text)}, expected a number", kind="number")
        return value

    def integer(self, column: str) -> int:
        """A whole number, also where it is written as 7.0."""
        value = self.number_of(column)
        if not value.is_integer():
            raise RecordError(column, f"is {value}, expected a whole number", kind="number")
        return int(value)

    def choice(self, column: str, meanings: Mapping[str, T]) -> T:
        """The meaning of a word; the empty text may have one too."""
        text = self.text(column)
        if text not in meanings:
            known = ", ".join(repr(word) for word in meanings)
            raise RecordError(column, f"is {describe(text)}, expected one of {known}", kind="value")
        return meanings[text]


def read_rows(
    path: Path, columns: Sequence[str], *, delimiter: str = ",", encoding: str | None = None
) -> Iterator[Row]:
    """The rows of a CSV file, plain or compressed with gzip.

    Quoted line breaks, a byte order mark, either kind of line ends, and fields of megabytes are read. A file that is
    neither UTF-8 nor UTF-16 with a byte order mark is read as Windows-1252. Columns without a name are ignored.

    Args:
        path: The file; its name ends in .gz where it is compressed.
        columns: Columns that must be there; others may be.
        delimiter: Between fields.
        encoding: Name of the encoding; None for what the bytes of the file show.

    Raises:
        SourceError: The file is missing or cannot be read, or lacks a column.
    """
    with _open_text(path, f"a table with the columns {', '.join(columns)}", encoding) as text:
        yield from _rows_of(path, csv.reader(_read_lines(path, text), delimiter=delimiter), columns)


def read_column_names(path: Path, *, delimiter: str = ",", encoding: str | None = None) -> list[str]:
    """The names of the columns of a CSV file, without spaces around them; empty for a column without a name.

    Raises:
        SourceError: The file is missing or cannot be read.
    """
    with _open_text(path, "a table", encoding) as text:
        lines = csv.reader(_read_lines(path, text), delimiter=delimiter)
        return [name.strip() for name in _next_line(path, lines, 0) or ()]


def _read_lines(path: Path, file: TextIO | BinaryIO) -> Iterator[Any]:
    """The lines of a file, none of which may fill the memory."""
    while line := file.readline(MAX_LINE):
        if len(line) >= MAX_LINE:
            raise SourceError(f"{path}: a line of more than {MAX_LINE:,} characters, expected a table")
        yield line


@contextmanager
def _open_text(path: Path, expected: str, encoding: str | None) -> Iterator[io.TextIOWrapper]:
    with (
        _report_faults(path, expected),
        open_bytes(path) as file,
        open_text(file, encoding or find_encoding(path)) as text,
    ):
        yield text


@contextmanager
def _report_faults(path: Path, expected: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into errors that name it."""
    csv.field_size_limit(min(MAX_FIELD, sys.maxsize))
    try:
        check_regular(path, error=SourceError, max_bytes=None)
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: missing, expected {expected}") from None
    except UnicodeError as error:
        reason = printable(str(error), longest=200)
        raise SourceError(f"{path}: cannot be read as text: {reason}; save it as UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {printable(str(error))}") from error


class RowPlace(NamedTuple):
    """Where a row stands in an uncompressed file, so that another process can read it alone."""

    number: int
    start: int
    """First byte."""
    end: int


def index_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[Row, RowPlace]]:
    """The rows of an uncompressed CSV file, each with its place, for tables that are too large to keep.

    Raises:
        SourceError: As `read_rows`.
    """
    with (
        _report_faults(path, f"a table with the columns {', '.join(columns)}"),
        path.open("rb") as file,
    ):
        lines = _CountedLines(path, file)
        reader = csv.reader(lines)
        header = _next_line(path, reader, 0) or []
        start = lines.end
        for row in _rows_of(path, chain([header], reader), columns):
            yield row, RowPlace(row.number, start, lines.end)
            start = lines.end


def read_row(path: Path, place: RowPlace) -> Row:
    """One row, at a place that `index_rows` gave."""
    with _report_faults(path, "a table"), path.open("rb") as file:
        lines = _CountedLines(path, file)
        header = next(csv.reader(lines), [])
        file.seek(place.start)
        text = lines.decode(file.read(place.end - place.start))
    rows = csv.reader(io.StringIO(text, newline=""))
    fields = next((line for line in rows if any(field.strip() for field in line)), [])
    named = [(at, name.strip()) for at, name in enumerate(header) if name.strip()]
    values = {name: fields[at] for at, name in named if at < len(fields)}
    return Row(str(path), place.number, values)


class _CountedLines:
    """Lines of a file as text, with the number of bytes that were read.

    The encoding is looked up when a line needs it: to find it, a file of gigabytes has to be read.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self.end = 0
        mark = file.read(max(len(codecs.BOM_UTF8), len(codecs.BOM_UTF16)))
        marked = find_mark(mark)
        self._wide = marked if marked in ("utf-16-le", "utf-16-be") else None
        if self._wide is not None:
            self.end = len(codecs.BOM_UTF16)
        elif marked is not None:
            self.end = len(codecs.BOM_UTF8)
        file.seek(self.end)
        self._lines = _read_lines(path, file) if self._wide is None else self._read_wide_lines(self._wide)

    def __iter__(self) -> "_CountedLines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.end += len(line)
        return self.decode(line)

    def decode(self, line: bytes) -> str:
        """Bytes of the file as text."""
        if self._wide is not None:
            return decode(line, self._wide)
        return line.decode("ascii") if line.isascii() else decode(line, find_encoding(self._path))

    def _read_wide_lines(self, encoding: Encoding) -> Iterator[bytes]:
        """Lines of two bytes a character, in which a single byte of a line end means nothing."""
        end = "\n".encode(encoding)
        rest = b""
        while block := self._file.read(_WIDE_BLOCK):
            rest += block
            begin = 0
            found = rest.find(end)
            while found >= 0:
                if found % 2:  # the halves of two characters
                    found = rest.find(end, found + 1)
                    continue
                yield rest[begin : found + len(end)]
                begin = found + len(end)
                found = rest.find(end, begin)
            rest = rest[begin:]
            if len(rest) >= MAX_LINE:
                raise SourceError(f"{self._path}: a line of more than {MAX_LINE:,} bytes, expected a table")
        if rest:
            yield rest


def group_rows(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the text of a column, in the order of their first row."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.values.get(column, "").strip(), []).append(row)
    return groups


def _rows_of(path: Path, lines: Iterator[list[str]], columns: Sequence[str]) -> Iterator[Row]:
    header = [name.strip() for name in _next_line(path, lines, 0) or ()]
    for name in columns:
        if name not in header:
            raise SourceError(
                f"{path}: no column {name!r}, expected {', '.join(columns)}; found "
                f"{printable(', '.join(name for name in header if name), longest=200) or 'nothing'}"
            )
    repeated = next((name for name in columns if header.count(name) > 1), None)
    if repeated:
        raise SourceError(f"{path}: several columns are called {repeated!r}")
    has_all_names, width = all(header), len(header)
    file, number = str(path), 1
    while (fields := _next_line(path, lines, number + 1)) is not None:
        number += 1
        if not any(map(str.strip, fields)):
            continue
        is_too_long = len(fields) > width and any(map(str.strip, fields[width:]))
        fault = f"{len(fields)} fields, expected {width}" if is_too_long else ""
        values = dict(zip(header, fields))  # noqa: B905 - a row may be shorter or longer
        if not has_all_names:
            values.pop("", None)
        yield Row(file, number, values, fault)


def _next_line(path: Path, lines: Iterator[list[str]], number: int) -> list[str] | None:
    try:
        return next(lines, None)
    except csv.Error as error:
        place = f"row {number}" if number else "the header"
        raise SourceError(f"{path}: {place} cannot be read: {error}") from error
