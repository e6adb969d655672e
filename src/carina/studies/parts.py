"""One part of a study set: a Parquet file of consecutive studies, written whole and read with suspicion.

Knows a single file. What a set is made of lies in `store` (writing) and `collection` (reading).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from carina.errors import StudySetError
from carina.files import replacing, sha256, write_bytes
from carina.studies.manifest import FILE, SCHEMA, UNFINISHED, PartInfo
from carina.studies.model import Study
from carina.studies.schema import (
    STUDY_LEAVES,
    STUDY_SCHEMA,
    Row,
    differences,
    explain,
    to_row,
    to_study,
    to_table,
)

ROW_GROUP: Final = 32
"""Studies decoded at a time: each holds some 60 KB of regions, and a look-up by id decodes a row group."""

_FOLDER: Final = "studies"
_FILE: Final = re.compile(rf"{_FOLDER}/part-\d{{5,}}\.parquet")
_SCHEMA_KEY: Final = b"carina.schema"
_FINGERPRINT_KEY: Final = b"carina.fingerprint"
_WITH_STATISTICS: Final = ["id", "patient", "source", "date", "split"]
"""Columns worth skipping row groups by; statistics of the other hundred only make the footer slow to read."""
_WITH_DICTIONARY: Final = [leaf for leaf in STUDY_LEAVES if not leaf.endswith(".counts")]
"""Run-length strings never repeat."""
_READ_ERRORS: Final = (pa.ArrowException, OSError, EOFError)


def part_file(index: int) -> str:
    """Name of a part relative to the set's directory."""
    return f"{_FOLDER}/part-{index:05d}.parquet"


def part_files(directory: Path) -> list[str]:
    """Names of all parts that lie in a directory, whether or not a manifest lists them."""
    return sorted(f"{_FOLDER}/{path.name}" for path in (directory / _FOLDER).glob("part-*.parquet"))


def write_part(directory: Path, index: int, studies: Sequence[Study], *, fingerprint: str) -> PartInfo:
    """Write part number `index` of a set, whole or not at all; safe to call from several processes at once.

    A manifest that lies there is removed first: it described the parts before this one changed.
    """
    file = part_file(index)
    table = _checked_table(file, studies)
    metadata = {_SCHEMA_KEY: SCHEMA.encode(), _FINGERPRINT_KEY: fingerprint.encode()}
    if (directory / FILE).exists():
        # First the claim, then the manifest: at no moment could another set take the directory for free.
        write_bytes(directory / UNFINISHED, fingerprint.encode())
        (directory / FILE).unlink()
    with replacing(directory / file) as temporary:
        pq.write_table(
            table.replace_schema_metadata(metadata),
            temporary,
            row_group_size=ROW_GROUP,
            compression="zstd",
            compression_level=3,
            use_dictionary=_WITH_DICTIONARY,
            write_statistics=_WITH_STATISTICS,
            write_page_checksum=True,
        )
        return _describe(temporary, file, rows=table.num_rows)


def finished_part(directory: Path, index: int, *, fingerprint: str) -> PartInfo | None:
    """A part that an earlier call finished; None where it is missing, damaged or made in another way."""
    file = part_file(index)
    path = directory / file
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as part:
            metadata = part.schema_arrow.metadata or {}
            if metadata.get(_FINGERPRINT_KEY) != fingerprint.encode() or not part.schema_arrow.equals(
                STUDY_SCHEMA
            ):
                return None
            for group in range(part.num_row_groups):
                part.read_row_group(group, use_threads=False)
            return _describe(path, file, rows=part.metadata.num_rows)
    except _READ_ERRORS:
        return None


def _checked_table(file: str, studies: Sequence[Study]) -> Any:  # noqa: ANN401 - pyarrow has no types
    rows = [to_row(study) for study in studies]
    # Records are not checked when they are made, so the writer is where a wrong value is caught.
    for number, row in enumerate(rows):
        try:
            to_study(row)
        except msgspec.ValidationError as error:
            raise StudySetError(f"{file}: row {number}, study {row['id']!r}: {explain(error)}") from error
    try:
        return to_table(rows)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise StudySetError(f"{file}: a value does not fit its column: {error}") from error


def _describe(path: Path, file: str, *, rows: int) -> PartInfo:
    return PartInfo(file=file, rows=rows, bytes=path.stat().st_size, sha256=sha256(path))


class PartReader:
    """A listed part, checked against the manifest when it is first touched."""

    def __init__(self, directory: Path, info: PartInfo, *, minor: int, verify: bool) -> None:
        if not _FILE.fullmatch(info.file):
            raise StudySetError(f"{directory / FILE}: part {info.file!r} is not named like {part_file(0)!r}")
        self.info = info
        self.path = directory / info.file
        self._minor = minor
        self._verify = verify
        self._metadata: Any = None

    def touch(self) -> None:
        """Check size, checksum and schema, once."""
        if self._metadata is not None:
            return
        if self._verify:
            self._compare_bytes()
        try:
            with pq.ParquetFile(self.path) as part:
                metadata, schema = part.metadata, part.schema_arrow
        except FileNotFoundError:
            raise self._missing() from None
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error
        ours = int(SCHEMA.split(".")[1])
        wrong = differences(schema, tolerate_unknown=self._minor > ours, tolerate_missing=self._minor < ours)
        if wrong:
            raise StudySetError(f"{self.path}: not the columns of a study: {'; '.join(wrong)}")
        if metadata.num_rows != self.info.rows:
            raise StudySetError(
                f"{self.path}: holds {metadata.num_rows} rows, the manifest says {self.info.rows}"
            )
        self._metadata = metadata

    def rows(self, leaves: Sequence[str], *, keep: Sequence[bool] | None = None) -> Iterator[tuple[int, Row]]:
        """Rows with their numbers, counted from 0; with `keep`, only those it marks."""
        self.touch()
        try:
            with pq.ParquetFile(self.path, metadata=self._metadata, page_checksum_verification=True) as part:
                for start, group in self._groups(keep):
                    yield from _group_rows(part, group, start, leaves, keep)
        except FileNotFoundError:
            raise self._missing() from None
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error

    def study(self, row: int, values: Row) -> Study:
        """The record of one row; an error names part, row, study and field."""
        try:
            return to_study(values)
        except msgspec.ValidationError as error:
            raise StudySetError(f"{self.place(row, values.get('id'))}: {explain(error)}") from error

    def place(self, row: int, study: str | None) -> str:
        """How messages name a row."""
        return f"{self.path}: row {row}, study {study!r}"

    def _groups(self, keep: Sequence[bool] | None) -> Iterator[tuple[int, int]]:
        """First row and number of each row group with a row to keep."""
        start = 0
        for group in range(self._metadata.num_row_groups):
            stop = start + self._metadata.row_group(group).num_rows
            if keep is None or any(keep[start:stop]):
                yield start, group
            start = stop

    def _compare_bytes(self) -> None:
        try:
            size = self.path.stat().st_size
            if size != self.info.bytes:
                raise StudySetError(
                    f"{self.path}: has {size} bytes, the manifest says {self.info.bytes}: cut or changed"
                )
            if sha256(self.path) != self.info.sha256:
                raise StudySetError(
                    f"{self.path}: its SHA-256 is not the manifest's: changed since it was written"
                )
        except FileNotFoundError:
            raise self._missing() from None

    def _missing(self) -> StudySetError:
        return StudySetError(f"{self.path}: missing; the manifest lists it with {self.info.rows} rows")

    def _unreadable(self, error: Exception) -> StudySetError:
        return StudySetError(f"{self.path}: cannot be read as Parquet: {' '.join(str(error).split())}")


def _group_rows(
    part: Any,  # noqa: ANN401 - pyarrow has no types
    group: int,
    start: int,
    leaves: Sequence[str],
    keep: Sequence[bool] | None,
) -> Iterator[tuple[int, Row]]:
    # In batches, because a part written by another tool may be a single huge row group.
    for batch in part.iter_batches(ROW_GROUP, row_groups=[group], columns=leaves, use_threads=False):
        numbers: Sequence[int] = range(start, start + batch.num_rows)
        start += batch.num_rows
        if keep is not None:
            batch = batch.filter(pa.array([keep[row] for row in numbers]))  # noqa: PLW2901
            numbers = [row for row in numbers if keep[row]]
        yield from zip(numbers, batch.to_pylist(), strict=True)
