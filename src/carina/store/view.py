"""Reading a set: a lazy, immutable view that streams, filters and looks up records.

Nothing is loaded when a set is opened but its manifest. Parts are checked against it when first touched, and
records are decoded a row group at a time, so memory does not grow with the set.
"""

import glob
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, cast

import pyarrow as pa

from carina.store.columns import Row, field_of, within
from carina.store.documents import read_stored_path
from carina.store.errors import CarinaError
from carina.store.filters import Choice, Column, Filter
from carina.store.kind import Kind, R
from carina.store.manifest import M, manifest_path, read_manifest
from carina.store.parts import PartReader, row_values
from carina.store.results import Result

if TYPE_CHECKING:
    import duckdb
    import polars as pl


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a set."""

    message: str
    """Names part, row, record and field, as far as they are known."""
    record: str | None = None
    """Id of the record, such as a study; None for a problem of a whole part or of the manifest."""

    def __str__(self) -> str:
        return self.message


class OpenSet(Generic[R, M]):
    """What all views of one opened set share: its manifest, its parts and an index of ids."""

    def __init__(
        self,
        kind: Kind[R, M],
        path: Path,
        *,
        verify: bool = True,
        image_root: Path | None = None,
        manifest: M | None = None,
        verify_images: bool = True,
    ) -> None:
        self.kind = kind
        # Given by the command that is about to write it.
        self.manifest = read_manifest(kind, path) if manifest is None else manifest
        self.directory = manifest_path(kind.layout, path).parent
        nouns = kind.layout.folder
        stated, held = getattr(self.manifest.counts, nouns), sum(part.rows for part in self.manifest.parts)
        if stated != held:
            file = manifest_path(kind.layout, path)
            raise kind.error(f"{file}: states {stated} {nouns}, the parts that it lists hold {held}")
        self.other_image_root = None if image_root is None else image_root.resolve()
        """Directory of the images, where it is not the one that the manifest names."""
        where = f"{manifest_path(kind.layout, path)}: image_root"
        stated_root = read_stored_path(self.manifest.image_root, where=where, error=kind.error)
        self.image_root = self.other_image_root or (self.directory / stated_root).resolve()
        self.verify_images = verify_images
        """Whether image files are compared with their checksums when they are first opened."""
        minor = self.manifest.version[1]
        self.parts = tuple(
            PartReader(kind, self.directory, info, minor=minor, verify=verify) for info in self.manifest.parts
        )

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Part and row of every record by id."""
        places: dict[str, tuple[int, int]] = {}
        for index, part in enumerate(self.parts):
            for row, values in part.rows(["id"]):
                if values["id"] in places:
                    raise self.duplicate(part, row, values["id"])
                places[values["id"]] = (index, row)
        return places

    def duplicate(self, part: PartReader[R, M], row: int, record: str) -> CarinaError:
        """The error for an id that an earlier record has too."""
        place = part.place(row, record)
        return self.kind.error(f"{place}: the id is taken by an earlier {self.kind.noun} of the set")


@dataclass(frozen=True, eq=False, repr=False)
class View(Result, Generic[R, M]):
    """A set, or the part of it that meets some conditions."""

    _set: OpenSet[R, M]
    _parts: tuple[int, ...] | None = None
    _filters: tuple[Filter, ...] = ()
    _left_out: frozenset[str] = field(default=frozenset())

    @property
    def path(self) -> Path:
        """Directory of the set."""
        return self._set.directory

    @property
    def directory(self) -> Path:
        """The same as `path`."""
        return self._set.directory

    @property
    def is_narrowed(self) -> bool:
        """Whether it is limited to records that meet some conditions, or to some parts."""
        return bool(self._filters) or self._parts is not None

    @property
    def other_image_root(self) -> Path | None:
        """Directory of the images, if the set was opened with another one than its manifest names."""
        return self._set.other_image_root

    @property
    def manifest(self) -> M:
        """The manifest of the whole set, whatever this view is limited to."""
        return self._set.manifest

    def _summary(self) -> Mapping[str, object]:
        counts = self._counts()
        if self._filters:
            counts["where"] = "; ".join(map(str, self._filters))
        if self._parts is not None:
            counts["parts"] = [self.manifest.parts[index].file for index in self._parts]
        return counts

    def _counts(self) -> dict[str, object]:
        """Counts of the whole set, from its manifest."""
        return {self._kind.layout.folder: sum(part.rows for part in self.manifest.parts)}

    # Narrowing ----------------------------------------------------------------------------------------------

    def _with_filter(self, columns: Mapping[str, Column], given: Mapping[str, Choice | None]) -> Self:
        try:
            condition = Filter.of(columns, given)
        except ValueError as error:
            raise self._kind.error(str(error)) from None
        return replace(self, _filters=(*self._filters, condition))

    def without(self, *fields: str) -> Self:
        """The same records with some fields not read and left at their defaults: `without("anatomy")`.

        Fields of nested records can be named too: `without("report.sentences.states", "findings.measures")`. `table`
        and `sql` return those all the same.
        """
        for name in fields:
            if name not in self._kind.optional:
                beside = {
                    path.rpartition(".")[2] for path in self._kind.optional if _outer(path) == _outer(name)
                }
                of = f" of {_outer(name)}" if _outer(name) else ""
                only = f"only{of}: {', '.join(sorted(beside))}" if beside else f"no field{of} is optional"
                raise self._kind.error(f"cannot leave out {name!r}, {only}")
        left_out = self._left_out | frozenset(fields)
        read = [field_of(leaf) for leaf in self._kind.leaves if not within(field_of(leaf), left_out)]
        for name in sorted(left_out):
            # With no leaf left, neither the number of records nor their presence could be read.
            outer = _outer(name)
            if outer and not within(outer, left_out) and not any(within(path, [outer]) for path in read):
                raise self._kind.error(f"cannot leave out every field of {outer}")
        return replace(self, _left_out=left_out)

    def by_part(self) -> tuple[Self, ...]:
        """One view a part, for sharing work between processes."""
        return tuple(replace(self, _parts=(index,)) for index, _ in self._readers())

    # Reading ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[R]:
        seen: set[str] = set()
        for part, row, values in self._scan(self._leaves()):
            record = part.record(row, values)
            if values["id"] in seen:
                raise self._set.duplicate(part, row, values["id"])
            seen.add(values["id"])
            yield record

    def __len__(self) -> int:
        if not self._filters:
            return sum(part.info.rows for _, part in self._readers())
        return sum(1 for _ in self._scan(["id"]))

    def rows(self, start: int, stop: int) -> Iterator[R]:
        """Records by their place in the set, counted from 0 over all parts.

        As `list(view)[start:stop]`, but only the row groups that hold them are read.
        """
        return self.at(range(start, stop))

    def at(self, places: Iterable[int]) -> Iterator[R]:
        """The records at these places, in the order of the set; each row group is read at most once."""
        return self._read_records(self._rows_at(places))

    def batches_at(self, places: Iterable[int], *fields: str) -> Iterator[Any]:
        """Whole columns of the records at these places, in the order of the set.

        Returns Arrow batches of at most a row group each.
        """
        return (
            self._cast_columns(part, numbers, batch, fields)
            for part, numbers, batch in self._batches(self._rows_at(places), self._leaves_of(fields))
        )

    def columns(self, *fields: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Whole columns of all records as an Arrow table, read a part at a time."""
        leaves = self._leaves_of(fields)
        batches = (
            self._cast_columns(part, numbers, batch, fields)
            for _, part in self._readers()
            for numbers, batch in part.batches(leaves, keep=self._matching_rows(part))
        )
        return pa.Table.from_batches(batches, self._schema_of(fields))

    def pick(self, ids: Iterable[str]) -> Iterator[R]:
        """The records with these ids, in the order of the set; each row group is read at most once."""
        chosen: dict[int, set[int]] = {index: set() for index, _ in self._readers()}
        for record_id in ids:
            index, row = self._set.places.get(record_id, (-1, -1))
            if index not in chosen:
                raise self._unknown(record_id)
            chosen[index].add(row)
        if self._filters:
            for index, part in self._readers():
                kept = self._matching_rows(part) if chosen[index] else None
                for row in sorted(chosen[index]):
                    if kept is not None and not kept[row]:
                        raise self._unknown(
                            next(i for i, at in self._set.places.items() if at == (index, row))
                        )
        return self._read_records(chosen)

    def ids(self) -> list[str]:
        """Ids in the order of the set."""
        return [values["id"] for _, _, values in self._scan(["id"])]

    def __getitem__(self, record_id: str) -> R:
        found = self._find(record_id)
        if found is None:
            raise self._unknown(record_id)
        return found

    def __contains__(self, record_id: object) -> bool:
        return isinstance(record_id, str) and self._find(record_id) is not None

    # Tables -------------------------------------------------------------------------------------------------

    def to_frame(self) -> "pl.DataFrame":
        """One row a record, with the fields that hold a single value."""
        plain = [field.name for field in self._kind.schema if not pa.types.is_nested(field.type)]
        return self._frame(
            [name for name in plain if not pa.types.is_binary(self._kind.schema.field(name).type)]
        )

    def _frame(self, leaves: Sequence[str]) -> "pl.DataFrame":
        """Leaf columns of the records in their nested form, read a part at a time."""
        import polars as pl  # noqa: PLC0415 - a quarter of the time that importing a record would take

        frames = [
            cast(pl.DataFrame, pl.from_arrow(batch))
            for _, part in self._readers()
            for _, batch in part.batches(leaves, keep=self._matching_rows(part))
        ]
        if not frames:
            names = dict.fromkeys(field_of(leaf).partition(".")[0] for leaf in leaves)
            frames = [cast(pl.DataFrame, pl.from_arrow(self._kind.schema.empty_table().select(list(names))))]
        return pl.concat(frames)

    def table(self, columns: Sequence[str] | None = None) -> "pl.LazyFrame":
        """The records as a lazy polars table with nested columns."""
        import polars as pl  # noqa: PLC0415 - a quarter of the time that importing a record would take

        paths = self._paths()
        frame = (
            pl.scan_parquet(paths, glob=False, hive_partitioning=False)
            if paths
            else pl.LazyFrame(pl.from_arrow(self._kind.schema.empty_table()))
        )
        if self._filters:
            frame = frame.filter(pl.col("id").is_in(self.ids()))
        return frame.select(
            columns
            if columns is not None
            else [pl.exclude([name for name in self._left_out if not _outer(name)])]
        )

    def sql(self, query: str) -> "duckdb.DuckDBPyRelation":
        """A DuckDB query over the table `studies` or `cases`: `sql("SELECT split, count(*) FROM studies ...").pl()`."""
        import duckdb  # noqa: PLC0415 - as above

        connection = duckdb.connect()
        paths = self._paths()
        if paths:
            # DuckDB takes every name for a pattern.
            records = connection.read_parquet(
                [glob.escape(str(path)) for path in paths], hive_partitioning=False
            )
        else:
            records = connection.from_arrow(self._kind.schema.empty_table())
        if self._filters:
            connection.register("kept", pa.table({"id": pa.array(self.ids(), pa.string())}))
            records = records.filter("id IN (SELECT id FROM kept)")
        try:
            answer = records.query(self._kind.layout.folder, query)
        except duckdb.Error as error:
            raise self._kind.error(f"{self.directory}: DuckDB cannot run the query: {error}") from error
        if answer is None:
            raise self._kind.error(f"{self.directory}: the query returns no rows: {query}")
        return answer

    # Checking -----------------------------------------------------------------------------------------------

    def check(self, *, images: bool, ids: Collection[str] | None = None) -> Iterator[Problem]:
        """Everything wrong with the set: parts, rows, what records say of each other, regions.

        All records of the parts are checked, whatever the conditions of this view.

        Args:
            images: Whether to open every image file too, and to compare its size and checksum with the records.
            ids: Only the records with these ids; None for all.
        """
        seen: set[str] = set()
        wanted = None if ids is None else frozenset(ids)
        for _, part in self._readers():
            yield from self._part_problems(part, seen, wanted, images=images)

    def require_sound(self, ids: Collection[str] | None = None) -> None:
        """Refuse a set in which `carina check --no-files` finds a problem, before work on its records begins.

        Every command whose results an unsound record would falsify calls this. Image files are not opened: commands
        report a missing or changed image where they use it.

        Args:
            ids: Only the records with these ids are used; None for all.

        Raises:
            CarinaError: Of the kind's class: something is wrong. The message holds the first problem and the number of
                unsound records.
        """
        first: Problem | None = None
        unsound: set[str] = set()
        for problem in self.check(images=False, ids=ids):
            first = first or problem
            if problem.record is not None:
                unsound.add(problem.record)
        if first is None:
            return
        nouns = self._kind.layout.folder
        number = f" ({len(unsound)} {nouns} have problems)" if len(unsound) > 1 else ""
        raise self._kind.error(f"{first}{number}. {self._see_check}")

    def iterate_sound(self) -> Iterator[R]:
        """The records in order, as by iterating, up to the first in which `carina check --no-files` finds a problem.

        For commands that read every record once and whose output appears only when it is complete: reading the set an
        additional time (`require_sound`) would cost them more than this.

        Raises:
            CarinaError: Of the kind's class: a record is unsound.
        """
        for record in self:
            for problem in self._record_problems(record, images=False):
                named = f"{self.directory}: {self._kind.noun} {getattr(record, 'id', None)!r}"
                raise self._kind.error(f"{named}{problem}. {self._see_check}")
            yield record

    @property
    def _see_check(self) -> str:
        return (
            f"`carina check {self.directory}` lists all problems; correct or remove the "
            f"{self._kind.layout.folder} that it names"
        )

    def _part_problems(
        self, part: PartReader[R, M], seen: set[str], ids: frozenset[str] | None, *, images: bool
    ) -> Iterator[Problem]:
        try:
            keep = None if ids is None else [row["id"] in ids for _, row in part.rows(["id"])]
            for row, values in part.rows(self._kind.leaves, keep=keep):
                record_id = values.get("id")
                try:
                    record = part.record(row, values)
                except CarinaError as error:
                    yield Problem(str(error), record_id)
                    continue
                if record_id in seen:
                    yield Problem(str(self._set.duplicate(part, row, str(record_id))), record_id)
                seen.add(str(record_id))
                for problem in self._record_problems(record, images=images):
                    yield Problem(f"{part.place(row, record_id)}{problem}", record_id)
        except self._kind.error as error:
            yield Problem(str(error))

    def _record_problems(self, record: R, *, images: bool) -> Iterator[str]:
        """What is wrong with one record: the one place that decides whether a record is sound."""
        yield from (f": {fault}" for fault in self._kind.faults(record))
        yield from (f", {fault}" for fault in self._image_faults(record, files=images))

    def _image_faults(self, _record: R, *, files: bool) -> Iterable[str]:  # noqa: ARG002 - for views with images
        """What is wrong with the images of a record and, if asked, with their `files`; most records have no images."""
        return ()

    # Inside -------------------------------------------------------------------------------------------------

    @property
    def _kind(self) -> Kind[R, M]:
        return self._set.kind

    def _readers(self) -> Iterable[tuple[int, PartReader[R, M]]]:
        parts = range(len(self._set.parts)) if self._parts is None else self._parts
        return [(index, self._set.parts[index]) for index in parts]

    def _paths(self) -> list[Path]:
        readers = [part for _, part in self._readers()]
        for part in readers:
            part.check()
        return [part.path for part in readers]

    def _leaves(self) -> list[str]:
        return [leaf for leaf in self._kind.leaves if not within(field_of(leaf), self._left_out)]

    def _cast_columns(
        self,
        part: PartReader[R, M],
        rows: Sequence[int],
        batch: Any,  # noqa: ANN401
        fields: Sequence[str],
    ) -> Any:  # noqa: ANN401
        """Whole columns of a batch, cast to the schema of the records, whichever tool wrote them."""
        schema = self._schema_of(fields)
        chosen = batch.select(fields)
        for wanted, column in zip(schema, chosen.columns, strict=True):
            if column.null_count and not wanted.nullable:
                row = rows[column.is_null().index(True).as_py()]
                raise self._kind.error(f"{part.path}: row {row}, {wanted.name}: expected a value, found null")
        try:
            return chosen.cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise self._kind.error(f"{part.path}: rows {rows[0]} to {rows[-1]}: {error}") from error

    def _leaves_of(self, fields: Collection[str]) -> list[str]:
        for name in fields:
            if name not in self._kind.schema.names:
                there = ", ".join(self._kind.schema.names)
                raise self._kind.error(f"no column {name!r} in a {self._kind.noun}, only: {there}")
        return [leaf for leaf in self._kind.leaves if field_of(leaf).partition(".")[0] in fields]

    def _schema_of(self, fields: Iterable[str]) -> Any:  # noqa: ANN401 - pyarrow has no types
        return pa.schema([self._kind.schema.field(name) for name in fields])

    def _matching_rows(self, part: PartReader[R, M]) -> list[bool] | None:
        """Whether each row of a part meets the conditions; None where there are no conditions."""
        if not self._filters:
            return None
        leaves = sorted({leaf for condition in self._filters for leaf in condition.leaves()}) or ["id"]
        return [all(condition.matches(row) for condition in self._filters) for _, row in part.rows(leaves)]

    def _scan(self, leaves: Sequence[str]) -> Iterator[tuple[PartReader[R, M], int, Row]]:
        for _, part in self._readers():
            for row, values in part.rows(leaves, keep=self._matching_rows(part)):
                yield part, row, values

    def _rows_at(self, places: Iterable[int]) -> dict[int, set[int]]:
        """Rows by part, of places counted over all parts."""
        if self._filters:
            raise self._kind.error(f"{self!r}: records have places only in a view without conditions")
        wanted = sorted(set(places))
        for place in wanted[:1] + wanted[-1:]:
            if not 0 <= place < len(self):
                nouns = self._kind.layout.folder
                raise self._kind.error(f"{self.directory}: no place {place}, there are {len(self)} {nouns}")
        chosen: dict[int, set[int]] = {}
        first = 0
        for index, part in self._readers():
            last = first + part.info.rows
            within_part = wanted[bisect_left(wanted, first) : bisect_left(wanted, last)]
            chosen[index] = {place - first for place in within_part}
            first = last
        return chosen

    def _batches(
        self, rows: Mapping[int, Collection[int]], leaves: Sequence[str]
    ) -> Iterator[tuple[PartReader[R, M], Sequence[int], Any]]:
        """Arrow batches of rows by part, with the part and the numbers of the rows."""
        for index, part in self._readers():
            wanted = rows.get(index)
            if wanted:
                keep = [row in wanted for row in range(part.info.rows)]
                yield from ((part, numbers, batch) for numbers, batch in part.batches(leaves, keep=keep))

    def _read_records(self, rows: Mapping[int, Collection[int]]) -> Iterator[R]:
        """Records by part and row."""
        for part, numbers, batch in self._batches(rows, self._leaves()):
            for row, values in zip(numbers, row_values(batch), strict=True):
                yield part.record(row, values)

    def _find(self, record_id: str) -> R | None:
        index, row = self._set.places.get(record_id, (-1, -1))
        for listed, part in self._readers():
            if listed == index:
                kept = self._matching_rows(part)
                if kept is None or kept[row]:
                    return next(self._read_records({index: {row}}))
        return None

    def _unknown(self, record_id: str) -> CarinaError:
        which = " that matches" if self._filters else ""
        return self._kind.error(f"{self.directory}: no {self._kind.noun} {record_id!r}{which}")

    def _whole(self) -> Self:
        """The whole set, whatever this view is limited to."""
        return replace(self, _filters=(), _parts=None)


def _outer(path: str) -> str:
    """The field that a nested one is in; empty for a field of the record itself."""
    return path.rpartition(".")[0]
