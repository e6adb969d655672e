"""Rows of a CSV, Parquet or Excel file, all as text."""

import datetime
import importlib
import importlib.util
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from carina.sources._encodings import check_encoding, decode_file
from carina.sources._record import SourceError, printable
from carina.sources._tables import Row, read_column_names, read_rows
from carina.store.documents import check_regular
from carina.store.errors import install

PARQUET: Final = (".parquet", ".pq")
EXCEL: Final = (".xlsx", ".xlsm")
DELIMITED: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_DELIMITERS: Final = (",", ";", "\t")
_BATCH: Final = 1024
"""Rows of a Parquet file that are read at a time."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be read several times.

    Raises:
        SourceError: The file is missing, cannot be read, or has no columns.
    """

    path: Path
    columns: tuple[str, ...]
    delimiter: str = ","
    encoding: str | None = None
    """Of a delimited file; None for what its bytes show."""

    @classmethod
    def open(cls, path: Path, encoding: str | None = None) -> "Table":
        """Read the names of the columns."""
        name = path.name.lower()
        if path.is_dir():
            raise SourceError(f"{path}: is a folder; name the table in it")
        try:
            check_regular(path, error=SourceError, max_bytes=None)
        except OSError as error:
            raise SourceError(f"{path}: missing, expected a table: CSV, Parquet or Excel") from error
        if name.endswith(PARQUET):
            return cls(path, _check_names(path, _parquet_columns(path)))
        if name.endswith(EXCEL):
            return cls(path, _check_names(path, _excel_columns(path)))
        if name.endswith(DELIMITED):
            if encoding is not None:
                check_encoding(encoding)
            found = {sign: read_column_names(path, delimiter=sign, encoding=encoding) for sign in _DELIMITERS}
            # The sign that makes most columns; the comma where none does.
            delimiter = max(_DELIMITERS, key=lambda sign: len(found[sign]))
            return cls(path, _check_names(path, found[delimiter]), delimiter, encoding)
        endings = ", ".join((*DELIMITED[:3], *PARQUET, *EXCEL))
        raise SourceError(f"{path}: expected a table whose name ends in one of {endings}")

    @property
    def is_delimited(self) -> bool:
        """Whether it is a text file, and not Parquet or Excel."""
        return self.path.name.lower().endswith(DELIMITED)

    def rows(self) -> Iterator[Row]:
        """The rows, from the first on."""
        name = self.path.name.lower()
        if name.endswith(PARQUET):
            return _parquet_rows(self.path)
        if name.endswith(EXCEL):
            return _excel_rows(self.path, self.columns)
        return read_rows(self.path, self.columns, delimiter=self.delimiter, encoding=self.encoding)


def _check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    named = [name for name in names if name]
    twice = next((name for name, times in Counter(named).items() if times > 1), None)
    if twice is not None:
        raise SourceError(f"{path}: several columns are called {printable(repr(twice))}")
    if not named:
        raise SourceError(f"{path}: no columns, expected their names in the first row")
    return tuple(named)


def _format_cell(value: Any) -> str:  # noqa: ANN401 - whatever a table holds
    """A value as the text that a CSV file would have."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, default=str)
    if isinstance(value, bytes):
        return decode_file(value)
    return str(value)


# ---- Parquet --------------------------------------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than a small table takes to read
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException, ValueError) as error:
        raise SourceError(
            f"{path}: cannot be read as Parquet: {printable(str(error), longest=200)}"
        ) from error


def _parquet_columns(path: Path) -> list[str]:
    with _open_parquet(path) as file:
        return [str(name).strip() for name in file.schema_arrow.names]


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    with _open_parquet(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            for values in batch.to_pylist():
                number += 1
                cells = {str(name).strip(): _format_cell(value) for name, value in values.items()}
                if any(cells.values()):
                    yield Row(str(path), number, cells)


# ---- Excel ----------------------------------------------------------------------------------------------------------


@contextmanager
def _open_sheet(path: Path) -> Iterator[Any]:
    """The first sheet of a workbook."""
    if importlib.util.find_spec("openpyxl") is None:
        raise SourceError(f"{path}: Excel files need openpyxl: {install('excel')}; or save the sheet as CSV")
    openpyxl = importlib.import_module("openpyxl")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises whatever zipfile and its XML parser raise
        raise SourceError(f"{path}: cannot be read as Excel: {printable(str(error), longest=200)}") from error
    try:
        yield book.worksheets[0] if book.worksheets else None
    finally:
        book.close()


def _excel_values(path: Path) -> Iterator[tuple[Any, ...]]:
    with _open_sheet(path) as sheet:
        values = iter(()) if sheet is None else sheet.iter_rows(values_only=True)
        while True:
            try:
                row = next(values, None)
            except Exception as error:  # as above
                reason = printable(str(error), longest=200)
                raise SourceError(f"{path}: cannot be read as Excel: {reason}") from error
            if row is None:
                return
            yield row


def _excel_columns(path: Path) -> list[str]:
    return [_format_cell(value).strip() for value in next(_excel_values(path), ())]


def _excel_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    rows = _excel_values(path)
    header = [_format_cell(value).strip() for value in next(rows, ())]
    for number, values in enumerate(rows, start=2):
        cells = dict.fromkeys(columns, "")
        cells |= {name: _format_cell(value) for name, value in zip(header, values, strict=False) if name}
        if any(cells.values()):
            yield Row(str(path), number, cells)
