"""One part of a set: a Parquet file of consecutive records, written whole and checked when it is read.

Knows a single file. Sets of parts are written by `carina.store.writing` and read by `carina.store.view`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, Generic

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import inspect

from carina.store.columns import Row, differences, explain, item_type, struct_type, to_row, without_none
from carina.store.errors import CarinaError
from carina.store.files import replacing, sha256
from carina.store.kind import Kind, R
from carina.store.layout import Layout
from carina.store.manifest import M, PartInfo
from carina.store.resume import mark_unfinished
from carina.store.tables import Misfit, to_table
from carina.store.unpacked_size import MAX_COLUMN_BYTES, find_oversize, rows_at_a_time

_NAME: Final = re.compile(r"part-\d{5,}\.parquet")
_SCHEMA_KEY: Final = b"carina.schema"
_FINGERPRINT_KEY: Final = b"carina.fingerprint"
_BLOCK: Final = 128
"""Records that are converted to columns at a time: few enough to stay in the processor's cache."""
_VALUES: Final = 32
"""Rows that are converted to Python values at a time, for the same reason."""
_READ_ERRORS: Final = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError)
"""What reading a damaged file raises; text that is not UTF-8 is noticed when it becomes Python's."""


def part_file(layout: Layout, index: int) -> str:
    """Name of a part relative to the set's directory."""
    return f"{layout.folder}/part-{index:05d}.parquet"


def write_part(
    kind: Kind[R, M], directory: Path, index: int, records: Iterable[R], *, fingerprint: str
) -> PartInfo:
    """Write part number `index` of a set, whole or not at all; safe to call from several processes at once.

    An existing manifest is removed first: it described the parts before this one changed. `records` may be a generator:
    records are converted to columns in blocks, and only the columns are kept.
    """
    file = part_file(kind.layout, index)
    return _write(kind, directory, file, _make_table(kind, file, records), fingerprint)


def write_table_part(
    kind: Kind[R, M],
    directory: Path,
    index: int,
    table: Any,  # noqa: ANN401 - pyarrow has no types
    *,
    fingerprint: str,
) -> PartInfo:
    """As `write_part`, from an Arrow table with the schema of the kind; for rows by the million."""
    file = part_file(kind.layout, index)
    if not table.schema.equals(kind.schema):
        wrong = "; ".join(differences(kind.schema, table.schema)) or "order or nullability differ"
        raise kind.error(f"{file}: not the columns of a {kind.noun}: {wrong}")
    wrong = "; ".join(find_table_problems(table, kind.record))
    if wrong:
        raise kind.error(f"{file}: {wrong}")
    return _write(kind, directory, file, table, fingerprint)


def pack_records(kind: Kind[R, M], records: Sequence[R], place: str) -> bytes:
    """Records as columns, which cost little to send to the process that writes them.

    Args:
        kind: Kind of the records.
        records: One record or more.
        place: Where they come from, for messages.
    """
    (batch,) = _convert(kind, place, records).to_batches()
    content: bytes = batch.serialize().to_pybytes()
    return content


def unpack_records(kind: Kind[R, M], content: bytes) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The Arrow batch of records that `pack_records` has packed."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), kind.schema)


def write_packed_part(
    kind: Kind[R, M],
    directory: Path,
    index: int,
    batches: Iterable[Any],
    *,
    fingerprint: str,
) -> PartInfo:
    """As `write_part`, from the batches of `unpack_records` or slices of them.

    The bytes are those of `write_part` for the same records, however the batches divide them.
    """
    table = pa.Table.from_batches(batches, kind.schema)
    blocks = [_copy_block(table.slice(first, _BLOCK)) for first in range(0, table.num_rows, _BLOCK)]
    file = part_file(kind.layout, index)
    return _write(kind, directory, file, _join_blocks(kind, blocks), fingerprint)


def _copy_block(rows: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Rows in memory of their own: the size of a slice, on which row groups depend, includes bits of other rows."""
    return pa.Table.from_arrays(
        [column.combine_chunks() for column in rows.itercolumns()], schema=rows.schema
    )


def _write(kind: Kind[R, M], directory: Path, file: str, table: Any, fingerprint: str) -> PartInfo:  # noqa: ANN401
    metadata = {_SCHEMA_KEY: kind.schema_version.encode(), _FINGERPRINT_KEY: fingerprint.encode()}
    manifest = directory / kind.layout.file
    if manifest.exists():
        # First the marker, then the manifest: at no moment could another set take the directory for free.
        mark_unfinished(directory, fingerprint)
        manifest.unlink()
    with replacing(directory / file) as temporary:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            temporary,
            row_group_size=_rows_per_group(table, kind),
            compression="zstd",
            compression_level=3,
            use_dictionary=kind.with_dictionary,
            write_statistics=list(kind.statistics),
            write_page_checksum=True,
        )
        return _describe(temporary, file, rows=table.num_rows)


def _rows_per_group(table: Any, kind: Kind[R, M]) -> int:  # noqa: ANN401 - pyarrow has no types
    """Rows of a row group: fewer than usual where records are so large that a reader would refuse the group.

    Where they are small, more: each group costs time for every column, however few bytes it has.
    """
    per_row: int = table.nbytes // max(1, table.num_rows) + 1
    wanted = max(kind.row_group, kind.row_group_bytes // per_row)
    return max(1, min(wanted, MAX_COLUMN_BYTES // 2 // per_row))


def finished_part(kind: Kind[R, M], directory: Path, index: int, *, fingerprint: str) -> PartInfo | None:
    """The part that an earlier call finished; None where it is missing, damaged, or made in another way."""
    file = part_file(kind.layout, index)
    path = directory / file
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as part:
            metadata = part.schema_arrow.metadata or {}
            if metadata.get(_FINGERPRINT_KEY) != fingerprint.encode() or not part.schema_arrow.equals(
                kind.schema
            ):
                return None
            if find_oversize(part.metadata, path.stat().st_size, max_column_bytes=MAX_COLUMN_BYTES):
                return None
            for group in range(part.num_row_groups):
                part.read_row_group(group, use_threads=False)
            return _describe(path, file, rows=part.metadata.num_rows)
    except _READ_ERRORS:
        return None


def read_fingerprint(path: Path) -> str | None:
    """The fingerprint of the set that a part was written for: empty where it states none, None where it is damaged."""
    try:
        with pq.ParquetFile(path) as part:
            metadata = part.schema_arrow.metadata or {}
    except _READ_ERRORS:
        return None
    stated: bytes = metadata.get(_FINGERPRINT_KEY, b"")
    return stated.decode(errors="replace")


def _make_table(kind: Kind[R, M], file: str, records: Iterable[R]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A table of the records, converted a block at a time."""
    tables, stream, first = [], iter(records), 0
    while group := list(islice(stream, _BLOCK)):
        tables.append(_convert(kind, file, group, first))
        first += len(group)
        # Freed before the next block is made, which then uses memory that is still in the processor's caches.
        group.clear()
    return _join_blocks(kind, tables)


def _join_blocks(kind: Kind[R, M], blocks: Sequence[Any]) -> Any:  # noqa: ANN401 - pyarrow has no types
    return pa.concat_tables(blocks) if blocks else kind.schema.empty_table()


def _convert(kind: Kind[R, M], place: str, records: Sequence[R], first: int | None = None) -> Any:  # noqa: ANN401
    """A table of the records; `first` is the number of the first row in the file that messages name, if in one."""
    # Records are not checked when they are made, so the writer is where a wrong value is caught.
    try:
        return to_table(kind.record, records)
    except Misfit as misfit:
        for number, record in enumerate(records):
            fault = _find_type_problem(kind, record)
            if fault:
                row = "" if first is None else f"row {first + number}, "
                raise kind.error(
                    f"{place}: {row}{kind.noun} {getattr(record, 'id', None)!r}: {fault}"
                ) from misfit
        raise kind.error(f"{place}: {misfit}") from misfit


def _find_type_problem(kind: Kind[R, M], record: R) -> str | None:
    """The first value of a record that its field does not allow, in words; None where all are allowed."""
    try:
        to_table(kind.record, [record])
    except Misfit as misfit:
        try:
            kind.to_record(to_row(record))
        except msgspec.ValidationError as error:
            return explain(error, kind.record)
        except TypeError:  # a value that msgspec has no plain form of
            return str(misfit)
        return str(misfit)
    return None


def _describe(path: Path, file: str, *, rows: int) -> PartInfo:
    return PartInfo(file=file, rows=rows, bytes=path.stat().st_size, sha256=sha256(path))


_footers: dict[tuple[Path, int, int], Any] = {}
"""Parquet footers by path, size and time of change: they take megabytes each, so only those of the last few parts."""
_FOOTERS: Final = 4


def _open_parquet(path: Path) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The opened file; its footer is read only where it is not cached."""
    found = path.stat()
    key = (path, found.st_size, found.st_mtime_ns)
    part = pq.ParquetFile(path, metadata=_footers.pop(key, None), page_checksum_verification=True)
    _footers[key] = part.metadata
    for old in list(_footers)[:-_FOOTERS]:
        _footers.pop(old, None)
    return part


def _select_row_groups(footer: Any, keep: Sequence[bool] | None) -> Iterator[tuple[range, list[int]]]:  # noqa: ANN401
    """Runs of neighbouring row groups that hold a row to keep, and the rows of each run."""
    start = stop = 0
    run: list[int] = []
    for group in range(footer.num_row_groups):
        first, stop = stop, stop + footer.row_group(group).num_rows
        if keep is None or any(keep[first:stop]):
            run.append(group)
            continue
        if run:
            yield range(start, first), run
        start, run = stop, []
    if run:
        yield range(start, stop), run


def _keep_rows(
    rows: range,
    batches: Iterable[Any],
    keep: Sequence[bool] | None,
) -> Iterator[tuple[Sequence[int], Any]]:
    """Batches of consecutive rows, reduced to the rows to keep, with the numbers of these rows."""
    start = rows.start
    for batch in batches:
        numbers = range(start, start + batch.num_rows)
        start = numbers.stop
        if keep is None or all(keep[numbers.start : numbers.stop]):
            yield numbers, batch
            continue
        kept = [row for row in numbers if keep[row]]
        if kept and kept[-1] - kept[0] + 1 == len(kept):  # neighbours: nothing has to be copied
            yield kept, batch.slice(kept[0] - numbers.start, len(kept))
        else:
            yield kept, batch.filter(pa.array([keep[row] for row in numbers]))


def row_values(batch: Any) -> Iterator[Row]:  # noqa: ANN401 - pyarrow has no types
    """The rows of an Arrow batch, converted a few at a time, which is twice as fast as all at once."""
    for first in range(0, batch.num_rows, _VALUES):
        yield from batch.slice(first, _VALUES).to_pylist()


class PartReader(Generic[R, M]):
    """A part that the manifest lists, checked against it when it is first opened."""

    def __init__(
        self, kind: Kind[R, M], directory: Path, info: PartInfo, *, minor: int, verify: bool
    ) -> None:
        folder, _, name = info.file.partition("/")
        if folder != kind.layout.folder or not _NAME.fullmatch(name):
            manifest, usual = directory / kind.layout.file, part_file(kind.layout, 0)
            raise kind.error(f"{manifest}: part {info.file!r} is not named like {usual!r}")
        self.info = info
        self.path = directory / info.file
        self._kind = kind
        self._minor = minor
        self._verify = verify
        self._is_checked = False

    def check(self) -> None:
        """Check size, checksum and schema, once."""
        if not self._is_checked:
            with self._open():
                pass

    def rows(self, leaves: Sequence[str], *, keep: Sequence[bool] | None = None) -> Iterator[tuple[int, Row]]:
        """Rows with their numbers, counted from 0; with `keep`, only the marked ones."""
        for numbers, batch in self.batches(leaves, keep=keep):
            yield from zip(numbers, row_values(batch), strict=True)

    def batches(
        self, leaves: Sequence[str], *, keep: Sequence[bool] | None = None
    ) -> Iterator[tuple[Sequence[int], Any]]:
        """As `rows`, in Arrow batches of at most a row group, with the numbers of their rows."""
        with self._open() as part:
            for rows, groups in _select_row_groups(part.metadata, keep):
                # In batches, because a part written by another tool may be a single huge row group.
                batches = part.iter_batches(
                    rows_at_a_time(part.metadata, groups, self._kind.row_group),
                    row_groups=groups,
                    columns=leaves,
                    use_threads=False,
                )
                yield from _keep_rows(rows, self._limit(batches), keep)
        if keep is None:
            # Arrow keeps the memory of columns for later ones, more with every part: that of a set would grow with it.
            pa.default_memory_pool().release_unused()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The file, checked when it is first opened; read errors inside the block name this part."""
        try:
            if self._verify and not self._is_checked:
                self._compare_bytes()
            with _open_parquet(self.path) as part:
                if not self._is_checked:
                    self._compare_columns(part)
                    self._is_checked = True
                yield part
        except FileNotFoundError:
            raise self._missing() from None
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error

    def _compare_columns(self, part: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        ours = self._kind.version[1]
        wrong = differences(
            self._kind.schema,
            # Not `metadata.schema`, which is in a reference cycle with the metadata: a footer of megabytes would stay
            # in memory until the garbage collector runs.
            part.schema_arrow,
            tolerate_unknown=self._minor > ours,
            tolerate_missing=self._minor < ours,
        )
        if wrong:
            raise self._error(f"{self.path}: not the columns of a {self._kind.noun}: {'; '.join(wrong)}")
        self._check_unpacked_size(part.metadata)
        if part.metadata.num_rows != self.info.rows:
            raise self._error(
                f"{self.path}: holds {part.metadata.num_rows} rows, the manifest says {self.info.rows}"
            )

    def _check_unpacked_size(self, footer: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Refuse a small file that stands for gigabytes, before anything is unpacked."""
        size = self.path.stat().st_size
        if footer.num_rows > size:  # every row has an id of its own
            raise self._error(f"{self.path}: states {footer.num_rows:,} rows in {size:,} bytes")
        wrong = find_oversize(footer, size, max_column_bytes=MAX_COLUMN_BYTES)
        if wrong:
            raise self._error(f"{self.path}: {wrong}; write the part with smaller row groups")

    def _limit(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, as long as their values are not much larger than the footer states."""
        rows = size = 0
        for batch in batches:
            rows += batch.num_rows
            size += batch.nbytes
            limit = 2 * MAX_COLUMN_BYTES * -(-rows // self._kind.row_group)
            if size > limit:
                raise self._error(
                    f"{self.path}: {rows:,} rows unpack to more than the limit of {limit:,} bytes"
                )
            yield batch

    def record(self, row: int, values: Row) -> R:
        """The record of one row; an error names part, row, record and field."""
        try:
            return self._kind.to_record(values)
        except msgspec.ValidationError as error:
            fault = explain(error, self._kind.record)
            raise self._error(f"{self.place(row, values.get('id'))}: {fault}") from error

    def place(self, row: int, record: str | None) -> str:
        """The name of a row in messages: part, row and record."""
        return f"{self.path}: row {row}, {self._kind.noun} {record!r}"

    def _compare_bytes(self) -> None:
        size = self.path.stat().st_size
        if size != self.info.bytes:
            raise self._error(
                f"{self.path}: has {size} bytes, the manifest says {self.info.bytes}: cut or changed"
            )
        if sha256(self.path) != self.info.sha256:
            raise self._error(
                f"{self.path}: its SHA-256 differs from the manifest: changed since it was written"
            )

    def _error(self, message: str) -> CarinaError:
        return self._kind.error(message)

    def _missing(self) -> CarinaError:
        return self._error(f"{self.path}: missing; the manifest lists it with {self.info.rows} rows")

    def _unreadable(self, error: Exception) -> CarinaError:
        return self._error(f"{self.path}: cannot be read as Parquet: {' '.join(str(error).split())}")


# ---- checking tables -------------------------------------------------------------------------------------------------


def find_table_problems(table: Any, record: type[msgspec.Struct]) -> Iterator[str]:  # noqa: ANN401 - pyarrow has no types
    """Find values of a table that are not valid for a record type, each message with the name of the column.

    The table must have the columns of the record. Values are checked column by column, for writers of millions of rows
    that create no record of each row.
    """
    for field in struct_type(record).fields:
        name = field.encode_name
        yield from _find_value_problems(name, field.type, table.column(name).combine_chunks())


def _find_value_problems(path: str, info: inspect.Type, values: Any) -> Iterator[str]:  # noqa: ANN401
    inner, nullable = without_none(info)
    if values.null_count:
        if not nullable:
            yield f"column {path}: {values.null_count} values are null"
        values = values.drop_null()
    item = item_type(inner)
    if isinstance(inner, inspect.StructType):
        for field, column in zip(inner.fields, values.flatten(), strict=True):
            yield from _find_value_problems(f"{path}.{field.encode_name}", field.type, column)
    elif item is not None:
        if isinstance(inner, inspect.TupleType):
            yield from _find_length_problems(path, len(inner.item_types), values)
        yield from _find_value_problems(f"{path}[]", item, values.flatten())
    elif isinstance(inner, inspect.LiteralType):
        unknown = sorted(set(pc.unique(values).to_pylist()) - set(inner.values))
        if unknown:
            yield f"column {path} holds {unknown[0]!r}, expected one of {', '.join(map(str, inner.values))}"


def _find_length_problems(path: str, wanted: int, values: Any) -> Iterator[str]:  # noqa: ANN401
    lengths = set(pc.unique(pc.list_value_length(values)).to_pylist()) - {wanted}
    if lengths:
        yield f"column {path} holds {min(lengths)} values, expected {wanted}"
