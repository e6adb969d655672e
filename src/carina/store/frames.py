"""Reading the Parquet tables that Carina writes beside its sets: steps of runs, scores of maps.

The only way from such a file to a polars table. The path is taken literally: polars and DuckDB read `[ ] * ?` in a path
as a pattern, and some readers take a folder named `a=b` for a column. What cannot be read is refused with a sentence.
Parts of sets are read by `carina.store.parts`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from carina.store.documents import check_regular, read_file
from carina.store.errors import CarinaError
from carina.store.files import sha256
from carina.store.unpacked_size import MAX_TABLE_COLUMN_BYTES, find_oversize

if TYPE_CHECKING:
    import polars as pl

_READ_ERRORS: Final = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError)


class TableInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Size and checksum of a table, stored in another file so that a change of the table is noticed."""

    rows: int
    bytes: int
    sha256: str


@contextmanager
def open_table(path: Path, remedy: str) -> Iterator[Any]:
    """Open a table as a `pyarrow.parquet.ParquetFile`; errors inside the block name the file.

    Args:
        path: The file, taken literally.
        remedy: What to do where the file is missing or damaged, as the end of a sentence.

    Raises:
        CarinaError: The file is missing, is no complete Parquet file, or unpacks to more than a limit.
    """
    try:
        check_regular(path, max_bytes=None)
        # An opened file instead of a path, so that nobody interprets the path.
        with path.open("rb") as file, pq.ParquetFile(file, page_checksum_verification=True) as table:
            wrong = find_oversize(
                table.metadata, path.stat().st_size, max_column_bytes=MAX_TABLE_COLUMN_BYTES
            )
            if wrong:
                raise CarinaError(f"{path}: {wrong}; {remedy}")
            yield table
    except (FileNotFoundError, NotADirectoryError):
        raise CarinaError(f"{path}: missing; {remedy}") from None
    except _READ_ERRORS as error:
        raise _unreadable(path, error, remedy) from error


def _unreadable(path: Path, error: BaseException, remedy: str) -> CarinaError:
    return CarinaError(f"{path}: not a Parquet file: {' '.join(str(error).split())}; {remedy}")


def read_csv_frame(path: Path, remedy: str, schemas: "Mapping[tuple[str, ...], pl.Schema]") -> "pl.DataFrame":
    """Read a CSV table of ours.

    Args:
        path: The file, taken literally.
        remedy: What to do where the file is missing or damaged, as the end of a sentence.
        schemas: Types by names of columns; a table with other columns is read as text.

    Raises:
        CarinaError: The file is missing or damaged.
    """
    import polars as pl  # noqa: PLC0415 - slow to import

    content = read_file(path)
    try:
        names = tuple(pl.read_csv(content, n_rows=0).columns)
        return pl.read_csv(content, schema=schemas.get(names, pl.Schema(dict.fromkeys(names, pl.String))))
    except pl.exceptions.PolarsError as error:
        reason, *_ = str(error).splitlines() or [type(error).__name__]
        raise CarinaError(f"{path}: cannot be read: {reason}; {remedy}") from error


def read_frame(path: Path, remedy: str, columns: Sequence[str] | None = None) -> "pl.DataFrame":
    """Read a table of ours.

    Args:
        path: The file, taken literally.
        remedy: What to do where the file is missing or damaged, as the end of a sentence.
        columns: Columns to read; None for all.

    Returns:
        The rows of the file.

    Raises:
        CarinaError: The file is missing, is no complete Parquet file, or unpacks to more than a limit.

    Example:
        >>> read_frame(Path("maps/asymmetry/scores.parquet"), "score the maps again").height > 0
        True
    """
    import polars as pl  # noqa: PLC0415 - slow to import
    from polars.exceptions import PanicException, PolarsError  # noqa: PLC0415

    with open_table(path, remedy):
        try:
            # By polars, which takes half the memory and a tenth of the time of pyarrow for columns that repeat values.
            return pl.read_parquet(
                path,
                columns=None if columns is None else list(columns),
                glob=False,
                hive_partitioning=False,
                missing_columns="raise",
            )
        except (PolarsError, PanicException) as error:
            raise _unreadable(path, error, remedy) from error


def to_frame(table: Any) -> "pl.DataFrame":  # noqa: ANN401 - pyarrow has no types
    """An Arrow table or batch as a polars table."""
    import polars as pl  # noqa: PLC0415 - slow to import

    return cast(pl.DataFrame, pl.from_arrow(table))


def describe_table(path: Path, rows: int) -> TableInfo:
    """Size and checksum of a table that has been written."""
    return TableInfo(rows=rows, bytes=path.stat().st_size, sha256=sha256(path))


def check_table(path: Path, info: TableInfo, *, stated_in: str, remedy: str) -> None:
    """Compare a table with its size and checksum.

    Raises:
        CarinaError: The file is missing, or is not the one that was described.
    """
    try:
        check_regular(path, max_bytes=None)
        if path.stat().st_size == info.bytes and sha256(path) == info.sha256:
            return
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing; {remedy}") from None
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error
    raise CarinaError(f"{path}: its SHA-256 is not the one that {stated_in} states; {remedy}")
