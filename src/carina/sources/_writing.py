"""From the stream of a reader to the parts of a study set or a benchmark, resumable.

<out>/studies.json or <out>/bench.json    written last: until then there is nothing to open
<out>/import.json                         numbers of records that were read and used
<out>/skipped.csv                         records that could not be used, and why
<out>/defects.csv                         defects of records that are used, for sources that declare them
<out>/implausible.csv                     images of studies that do not look like what the study says of them
<out>/images/...                          copies of the images, with `copy_images`; images that the reader made
<out>/.import/...                         notes of finished parts, until the last is written
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple

import msgspec
import pyarrow as pa

from carina.cases import store as benchmarks
from carina.sources._defects import list_places
from carina.sources._encodings import describe_encoding
from carina.sources._evaluating import (
    EvaluatedItem,
    EvaluatedRecord,
    Evaluation,
    RecordDefects,
    get_kind,
)
from carina.sources._image_sets import read_categories
from carina.sources._imported import (
    COUNTS,
    IMPLAUSIBLE,
    SKIPPED,
    DefectiveRecord,
    ImportCounts,
    Imported,
    JoinCount,
    read_counts,
    write_tables,
)
from carina.sources._joining import JoinIndex, build_index, find_rows, get_join
from carina.sources._labels import name_of
from carina.sources._plausibility import Implausible, LookAtImages, describe_action, leave_out
from carina.sources._record import SourceError
from carina.sources._source import Call, Item, Plan, Skipped, Source, Stream
from carina.store import PartInfo
from carina.store.errors import CarinaError, ImageError
from carina.store.files import remove_temporary_files, sha256, write_bytes
from carina.store.garbage import collect_rarely
from carina.store.parts import unpack_records
from carina.store.resume import read_marker
from carina.store.workers import in_order
from carina.studies import store as study_sets
from carina.studies.image_files import inside
from carina.studies.plausibility import SeenImages
from carina.studies.rejected_regions import DEFECTS
from carina.studies.terms import CONFIRMED, is_known_name

OnError = Literal["skip", "stop"]
IMAGES: Final = "images"
"""Folder of copied images."""
PART_SIZE: Final = 1024
"""Records in a part; an interrupted import may have to read this many again."""
BATCH: Final = 128
"""Most items of a reader that a worker gets at a time: converting one record to columns takes half as long as fifty.
Not where a reader sends decoded images, which take much memory."""
_BATCH_SHARE: Final = 16
"""A batch is at most this part of what came before: the first reach all workers at once, and none of the last keeps a
worker busy for long while the others have nothing to do."""
_TABLES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NOTES: Final = ".import"


@dataclass(frozen=True, kw_only=True)
class Job:
    """An import with its options."""

    source: Source
    path: Path
    out: Path
    options: dict[str, Any]
    images: Path | None
    copy_images: bool
    limit: int | None
    joins: Mapping[str, tuple[Source, Path]] = field(default_factory=dict)
    """Sources that are joined, by name."""
    implausible: Implausible = "report"
    """What is done with images that do not look like what the study says of them."""

    def check(self) -> None:
        if self.joins and self.source.brings != "studies":
            raise CarinaError(f"source {self.source.name} carries questions: nothing can be joined to it")
        for source, _ in self.joins.values():
            get_join(source)
        if self.images is not None:
            if self.source.images_option is None:
                raise CarinaError(
                    f"source {self.source.name} finds its images at its own path: it takes no folder of images"
                )
            if not self.images.is_dir():
                raise CarinaError(f"{self.images}: no such directory of images")
        if self.copy_images and self.source.image_root == "out":
            raise CarinaError(f"source {self.source.name}: writes its images in any case (--copy-images)")
        if self.copy_images and self.image_folder is None:
            raise CarinaError(
                f"source {self.source.name}: name the folder of the images to copy them (--images)"
            )
        if (
            self.source.image_root in ("path", "out")
            and self.path.is_dir()
            and self.out.resolve().is_relative_to(self.path.resolve())
        ):
            raise SourceError(
                f"{self.out}: lies within {self.path}, which is not changed: choose another directory"
            )

    @property
    def image_folder(self) -> Path | None:
        """Where image keys start; None where that is unknown."""
        if self.images is not None or self.source.image_root == "images":
            return self.images
        if self.source.image_root == "out":
            return None
        return self.path if self.path.is_dir() else self.path.parent

    def name_file(self, file: str) -> str:
        """The name of a file of the source: below its path, where it lies there.

        None where the reader replaces identifiers: the name of a DICOM file may be that of a patient.
        """
        if self.source.image_root == "out":
            return ""
        root = self.path if self.path.is_dir() else self.path.parent
        if not file:
            return "" if self.path.is_dir() else self.path.name
        return file.removeprefix(f"{root}{os.sep}") if str(root) != "." else file

    @cached_property
    def plan(self) -> Plan:
        """How the reader understands its files."""
        if self.source.plan is None:
            ours = read_categories(self.options.get("categories")).values()
            encodings = tuple(self._describe_encodings())
            found = Plan(
                lines=tuple(f"Notice: {notice}" for notice in encodings),
                notices=encodings,
                confirmed=tuple(name for name in ours if name is not None),
            )
        else:
            found = self.source.plan(self.path, self._filled_options())
        return replace(found, confirmed=tuple(sorted({name_of(name) for name in found.confirmed})))

    def _describe_encodings(self) -> Iterator[str]:
        """A notice for each table that is not UTF-8."""
        given = [(self.source, self.path), *self.joins.values()]
        for source, path in given:
            for files in source.inputs(path).values():
                tables = files.values() if isinstance(files, Mapping) else [files]
                for file in tables:
                    is_table = isinstance(file, Path) and file.name.lower().endswith(_TABLES)
                    if is_table and (notice := describe_encoding(Path(file))):
                        yield notice

    def _filled_options(self) -> dict[str, Any]:
        images = {} if self.source.images_option is None else {"images": self.images}
        return {**self.options, **images}

    def stream(self, advance: Callable[[int], None]) -> Stream:
        filled = self._filled_options()
        if self.source.has_advance:
            filled["advance"] = advance
        if self.source.has_out:
            filled["out"] = self.out
        assert self.source.read is not None  # noqa: S101 - `import_source` has checked it
        return self.source.read(self.path, **filled)

    def look_at_images(self) -> LookAtImages | None:
        """How images are compared with their studies; None where they are not."""
        if self.implausible == "ignore" or self.source.brings != "studies":
            return None
        folder = self.image_folder
        keeps = self.options.get("missing_images") == "keep"
        return LookAtImages(folder and folder.resolve(), self.implausible, str(self.path), keeps)

    def _recorded_implausible(self) -> dict[str, str]:
        """The option, where it is not the usual one: it may change the studies."""
        return {} if self.implausible == "report" else {"implausible": self.implausible}

    def provenance(self, sets: Any) -> Any:  # noqa: ANN401 - of one kind of set or the other
        """What the manifest states: names and sums instead of paths, so that the folder can be moved or shared."""
        options: dict[str, Any] = {
            name: _checksum_inputs(files) for name, files in self.source.inputs(self.path).items()
        }
        recorded = self.options
        if self.source.record_options is not None:
            recorded = dict(self.source.record_options(self.path, self.options))
        for name, value in recorded.items():
            if not isinstance(value, Path) or not value.is_dir():
                options[name] = _checksum_inputs(value) if isinstance(value, Path) else value
        if unknown := [name for name in self.plan.confirmed if not is_known_name(name, "finding")]:
            options[CONFIRMED] = unknown
        if self.joins:
            options["with"] = {
                name: {file: _checksum_inputs(given) for file, given in source.inputs(path).items()}
                for name, (source, path) in self.joins.items()
            }
        folder = self.image_folder
        if self.copy_images or self.source.image_root == "out":
            root = IMAGES
        else:
            root = (
                "."
                if folder is None
                else Path(os.path.relpath(folder.resolve(), self.out.resolve())).as_posix()
            )
        return sets.Provenance(
            command=f"carina import {self.source.name}",
            options={**options, "limit": self.limit, **self._recorded_implausible()},
            sources=(self.source.info(), *(source.info() for source, _ in self.joins.values())),
            image_root=root,
        )


def _checksum_inputs(files: Path | Mapping[str, Path] | str) -> Any:  # noqa: ANN401 - JSON
    """SHA-256 of a file or of several by name, or as the source gives it; None for a file that is not there."""
    if isinstance(files, str):
        return files
    if isinstance(files, Mapping):
        return {name: _checksum_inputs(file) for name, file in files.items()}
    return sha256(files) if files.is_file() else None


# ---- the stream -----------------------------------------------------------------------------------------------------


class _StreamPosition(NamedTuple):
    """A position in a stream: number of items of the reader, and of records that the next item gives."""

    items: int = 0
    inner: int = 0


class _TakenItem(NamedTuple):
    """An item, where it stands, and the columns of the records of its batch."""

    position: _StreamPosition
    """The position after this item."""
    item: EvaluatedItem
    columns: Any
    """An Arrow batch; None where no record of the batch can be used."""


def _take_items(
    stream: Stream, start: _StreamPosition, evaluation: Evaluation, *, workers: int, batch: int
) -> Iterator[_TakenItem]:
    """The items of a stream from `start` on; they are evaluated by the workers, in order.

    `batch` is the largest number of items that a worker gets at a time.
    """
    rest = islice(stream, start.items, None)
    head = list(islice(rest, workers))
    # A reader may begin with records that are skipped: whether it yields calls shows later.
    while head and not callable(head[-1]) and len(head) < PART_SIZE and (more := list(islice(rest, 1))):
        head += more
    if not head:
        return
    # Records need no worker, unless their images are opened: they would only be sent to another process and back.
    is_work = evaluation.look is not None or any(map(callable, head))
    workers = min(workers, len(head)) if is_work else 1
    kind, number = get_kind(evaluation.brings), start.items
    for evaluated in in_order(evaluation, _make_batches(chain(head, rest), batch), workers=workers):
        columns = unpack_records(kind, evaluated.columns) if evaluated.columns else None
        for found in evaluated.found:
            begin = start.inner if number == start.items else 0
            for inner, item in enumerate(found[begin:], start=begin + 1):
                is_last = inner == len(found)
                position = _StreamPosition(number + 1) if is_last else _StreamPosition(number, inner)
                yield _TakenItem(position, item, columns)
            number += 1


def _make_batches(items: Iterable[Item | Call], largest: int) -> Iterator[list[Item | Call]]:
    """Batches that grow with what came before, up to a size."""
    rest, taken = iter(items), 0
    while batch := list(islice(rest, min(largest, 1 + taken // _BATCH_SHARE))):
        yield batch
        taken += len(batch)


# ---- writing --------------------------------------------------------------------------------------------------------


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """The position of the stream after a finished part, and the counts of the part."""

    place: _StreamPosition
    counts: ImportCounts
    ids: list[str]
    joined: dict[str, list[int]] = {}
    """Rows that were joined, by source."""
    images_joined: dict[str, int] = {}
    first_image: str = ""
    defective: list[DefectiveRecord] = []
    digests: list[tuple[str, str, bytes]] = []


@dataclass(kw_only=True)
class _State:
    """The progress of an import."""

    counts: ImportCounts = field(default_factory=ImportCounts)
    """Counts of all parts."""
    part: ImportCounts = field(default_factory=ImportCounts)
    """Counts of the part that is being read."""
    place: _StreamPosition = field(default_factory=_StreamPosition)
    parts: list[PartInfo] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    """Ids so far, for sources in which a repeated id gets a number."""
    seen: SeenImages = field(default_factory=SeenImages)
    """Images so far, to find those that come again."""
    digests: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Study, image and checksum of the pixels, of the part that is being read."""
    indexes: list[JoinIndex] = field(default_factory=list)
    joined: dict[str, list[int]] = field(default_factory=dict)
    """Rows that were joined in the part that is being read, by source."""
    images_joined: Counter[str] = field(default_factory=Counter)
    defective: list[DefectiveRecord] = field(default_factory=list)
    """Defects of the records of the part that is being read."""
    all_joined: dict[str, set[int]] = field(default_factory=dict)
    all_images_joined: Counter[str] = field(default_factory=Counter)
    first_image: str = ""
    """Key of the first image of the first study."""

    def close_part(self) -> None:
        self.counts.merge(self.part)
        self.part = ImportCounts()
        self.add_joined(self.joined, self.images_joined)
        self.joined, self.images_joined, self.defective, self.digests = {}, Counter(), [], []

    def find_repeated(self, item: EvaluatedItem, job: Job) -> EvaluatedItem:
        """The item with those of its images that were seen before, in this study or another."""
        outcome, result = item
        if result is None or isinstance(outcome, Skipped) or not result.digests:
            return item
        repeated = self.seen.find_repeated(outcome.id, result.digests)
        if repeated:
            result = result._replace(problems=(*result.problems, *repeated))
            if job.implausible == "exclude":
                return EvaluatedItem(leave_out(outcome.id, repeated[0], str(job.path)), result)
        self.seen.add(outcome.id, result.digests)
        self.digests += [(outcome.id, image, digest) for image, digest in result.digests]
        return EvaluatedItem(outcome, result)

    def count_joined(self, study: EvaluatedRecord) -> None:
        """Note which rows of joined sources belong to a study that is kept."""
        if study.images:
            self.first_image = self.first_image or study.images[0][0]
        for index in self.indexes:
            for key, _ in study.images:
                start, end = find_rows(index.source.index_file, key)
                self.joined.setdefault(index.source.name, []).extend(range(start, end))
                self.images_joined[index.source.name] += start < end

    def add_joined(self, rows: Mapping[str, Sequence[int]], images: Mapping[str, int]) -> None:
        for name, own in rows.items():
            self.all_joined.setdefault(name, set()).update(own)
        self.all_images_joined.update(images)

    def finish_joins(self) -> None:
        """Put the counts of joined sources into those of the import."""
        for index in self.indexes:
            name = index.source.name
            images = self.all_images_joined[name]
            self.counts.joins[name] = JoinCount(
                rows=index.rows,
                joined=len(self.all_joined.get(name, ())),
                left_out=dict(index.left_out),
                row_key=index.example,
                image_key=self.first_image,
                images=images,
                images_without=self.counts.images - images,
            )


def run_import(
    job: Job, on_error: OnError, workers: int, stream: Stream, progress: Callable[[int], None]
) -> Imported:
    """Import a source; an interrupted import resumes, and a finished one is left as it is."""
    with collect_rarely(), _build_indexes(job) as indexes:
        state = _State(indexes=indexes)
        return _run_import(job, state, stream, on_error=on_error, workers=workers, progress=progress)


@contextmanager
def _build_indexes(job: Job) -> Iterator[list[JoinIndex]]:
    """Indexes of the sets that are joined; nothing is written where there are none."""
    if not job.joins:
        yield []
        return
    with TemporaryDirectory(prefix="carina-import-") as folder:
        yield [build_index(source, path, Path(folder)) for source, path in job.joins.values()]


def _run_import(
    job: Job,
    state: "_State",
    stream: Stream,
    *,
    on_error: OnError,
    workers: int,
    progress: Callable[[int], None],
) -> Imported:
    sets: Any = study_sets if job.source.brings == "studies" else benchmarks
    kind = get_kind(job.source.brings)
    create: Any = study_sets.create_studies if sets is study_sets else benchmarks.create_benchmark
    evaluation = Evaluation(
        source=job.source.name, brings=job.source.brings, place=str(job.path),
        joined=[index.source for index in state.indexes], look=job.look_at_images(),
    )  # fmt: skip

    def read_records() -> Iterator[_KeptRecord]:
        batch = 1 if job.source.image_root == "out" else BATCH
        taken = _take_items(stream, state.place, evaluation, workers=workers, batch=batch)
        return _keep_records(job, taken, state, on_error, progress)

    records: Iterator[_KeptRecord] | None = None
    if read_marker(job.out) is None and not (job.out / kind.layout.file).exists():
        # A source without a record that can be used leaves no directory behind.
        records, is_usable = _look_ahead(read_records())
        if not is_usable:
            return _count_unusable(job, state)
    provenance = job.provenance(sets)
    beside = (COUNTS, SKIPPED, DEFECTS, IMPLAUSIBLE, *job.plan.files)
    with create(job.out, provenance, beside=beside, notes=(_NOTES,)) as build:
        counts = None if build.finished() is None else read_counts(job.out)
        if counts is not None:
            progress(counts.records)
            return Imported(job.source, job.out, counts, job.plan)
        if records is None:
            _read_finished_parts(state, sets, job.out, provenance)
            progress(state.counts.records)
            records, is_usable = _look_ahead(read_records())
            if not is_usable and not state.parts:
                return _count_unusable(job, state)
        rest = _copy_images(records, job) if job.copy_images else _write_images(records, job)
        with _PartWriter(job.out, build.write_packed_part, state.parts) as writer:
            while chunk := list(islice(rest, PART_SIZE)):
                ids = [kept.record.id for kept in chunk] if job.source.second_id else []
                note = _Note(
                    place=state.place, counts=state.part, ids=ids, joined=state.joined,
                    images_joined=dict(state.images_joined), first_image=state.first_image,
                    defective=state.defective, digests=state.digests,
                )  # fmt: skip
                writer.write(_slice_columns(chunk), note)
                state.close_part()
        state.close_part()
        state.finish_joins()
        imported = Imported(job.source, job.out, state.counts, job.plan)
        if (job.out / IMAGES).is_dir():
            remove_temporary_files(job.out / IMAGES)
        build.close(
            state.parts, lambda _manifest: write_tables(imported, _read_defective(job.out, len(state.parts)))
        )
    return imported


class _PartWriter:
    """Writes a part and its note while the records of the next part are read, which frees the workers from waiting.

    Parts and notes are written in order. An error is raised when the next part is given, or at the end.
    """

    def __init__(self, out: Path, write_part: Callable[[int, Any], PartInfo], parts: list[PartInfo]) -> None:
        self._out, self._write_part, self._parts = out, write_part, parts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="parts")
        self._last: Future[None] | None = None

    def __enter__(self) -> "_PartWriter":
        return self

    def __exit__(self, *error: object) -> None:
        # What has begun is finished, also after an interrupt: it takes a part of a second.
        self._thread.shutdown(wait=True)
        if error[0] is None:
            self._finish()

    def write(self, batches: Sequence[Any], note: _Note) -> None:
        """Begin to write the next part; the one before is finished first."""
        self._finish()
        self._last = self._thread.submit(self._write, batches, note)

    def _finish(self) -> None:
        if self._last is not None:
            self._last.result()

    def _write(self, batches: Sequence[Any], note: _Note) -> None:
        index = len(self._parts)
        self._parts.append(self._write_part(index, batches))
        _write_note(self._out, index, note)


class _KeptRecord(NamedTuple):
    """A record to be written."""

    record: EvaluatedRecord
    columns: Any
    """The Arrow batch that holds it."""
    has_new_id: bool = False
    """Whether its id is not the one in its columns, which another record has."""


def _slice_columns(records: Sequence[_KeptRecord]) -> list[Any]:
    """The rows of records: slices of their batches, as long as they follow each other there."""
    slices = []
    first = 0
    for number, kept in enumerate(records, start=1):
        following = records[number] if number < len(records) else None
        if (
            following is None
            or following.columns is not kept.columns
            or following.record.row != kept.record.row + 1
            or following.has_new_id
            or kept.has_new_id
        ):
            rows = kept.columns.slice(records[first].record.row, number - first)
            slices.append(_replace_id(rows, kept.record.id) if kept.has_new_id else rows)
            first = number
    return slices


def _replace_id(row: Any, name: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """One row with another id."""
    columns = [pa.array([name]) if field.name == "id" else row.column(field.name) for field in row.schema]
    return pa.RecordBatch.from_arrays(columns, schema=row.schema)


def _look_ahead(records: Iterator[_KeptRecord]) -> tuple[Iterator[_KeptRecord], bool]:
    """The same records, and whether there is one; reads up to the first."""
    first = list(islice(records, 1))
    return chain(first, records), bool(first)


def _count_unusable(job: Job, state: _State) -> Imported:
    """The result of an import without a record that can be used."""
    if not state.part.records:
        raise SourceError(f"{job.path}: holds no record")
    state.close_part()
    return Imported(job.source, job.out, state.counts, job.plan)


def _keep_records(
    job: Job,
    taken: Iterator[_TakenItem],
    state: _State,
    on_error: OnError,
    progress: Callable[[int], None],
) -> Iterator[_KeptRecord]:
    """The records that are used; counts all of them."""
    if state.counts.kept == job.limit:
        return
    for position, item, columns in taken:
        progress(1)
        state.part.records += 1
        record, plausibility = state.find_repeated(item, job)
        if plausibility is not None:
            state.part.add_plausibility(plausibility, partial(describe_action, job.implausible))
        if isinstance(record, Skipped):
            if on_error == "stop":
                raise SourceError(record.message)
            state.part.skipped.append(record)
            continue
        name, found, defect = record.id, record.defects, job.source.second_id
        if defect is not None:
            name = _make_id_unique(record.id, state.ids)
        has_new_id = name != record.id
        if has_new_id and defect is not None:
            found = found or RecordDefects()
            found = found._replace(times={**found.times, defect: found.times.get(defect, 0) + 1})
            record = record._replace(id=name)
        state.part.add(record.counts)
        if job.source.brings == "studies":
            state.count_joined(record)
        if found is not None:
            _count_defects(job, state, name, found)
        state.place = position
        yield _KeptRecord(record, columns, has_new_id)
        if state.counts.kept + state.part.kept == job.limit:
            return


def _count_defects(job: Job, state: _State, name: str, defects: RecordDefects) -> None:
    """Count the defects of a record, and note where each stands."""
    found = list(list_places(defects.times, defects.places, defects.place))
    own = state.counts.records + state.part.records  # of a record that is a file of its own
    file, number = defects.place
    numbered = (
        (defect, own if place.file == file and not number else place.number, times)
        for defect, place, times in found
    )
    state.part.add_defects(numbered, defects.unmapped)
    state.defective.extend(
        DefectiveRecord(defect, times, name, job.name_file(place.file), place.number)
        for defect, place, times in found
    )


def _make_id_unique(name: str, ids: set[str]) -> str:
    """An id that no record had before: the second "a" becomes "a-2"."""
    unique, number = name, 1
    while unique in ids:
        number += 1
        unique = f"{name}-{number}"
    ids.add(unique)
    return unique


def _copy_images(records: Iterable[_KeptRecord], job: Job) -> Iterator[_KeptRecord]:
    """The same records; the images of each are copied before it is yielded."""
    folder = job.image_folder
    assert folder is not None  # noqa: S101 - `Job.check` has refused it
    root = folder.resolve()
    for kept in records:
        for key, digest in kept.record.images:
            try:
                original = inside(root, key)
            except ValueError as error:
                raise ImageError(f"{folder / key}: {error}") from error
            _copy_image(original, job.out / IMAGES / key, digest)
        yield kept


def _write_images(records: Iterable[_KeptRecord], job: Job) -> Iterator[_KeptRecord]:
    """The same records; images that the reader made are written before their record is yielded."""
    for kept in records:
        for key, content in kept.record.files.items():
            path = inside((job.out / IMAGES).resolve(), key)
            if not (path.is_file() and path.read_bytes() == content):
                write_bytes(path, content)
        yield kept._replace(record=kept.record._replace(files={})) if kept.record.files else kept


def _copy_image(original: Path, copy: Path, digest: str | None) -> None:
    if copy.is_file():
        if sha256(copy) == (digest or sha256(original)):
            return
        raise ImageError(f"{copy}: is there already and is not a copy of {original}: move it away")
    try:
        write_bytes(copy, original.read_bytes())
    except FileNotFoundError:
        raise ImageError(f"{original}: no such image file") from None
    if digest is not None and sha256(copy) != digest:
        raise ImageError(f"{original}: changed while it was read")


# ---- notes ----------------------------------------------------------------------------------------------------------


def _read_finished_parts(state: _State, sets: Any, out: Path, provenance: Any) -> None:  # noqa: ANN401 - of one kind of set or the other
    """Add the parts of an interrupted import to its state, from the first on, up to the first that is not complete."""
    while True:
        index = len(state.parts)
        try:
            note = msgspec.json.decode(_note_path(out, index).read_bytes(), type=_Note)
        except (OSError, msgspec.DecodeError):
            return
        part = sets.finished_part(out, index, fingerprint=provenance.fingerprint)
        if part is None:
            return
        state.parts.append(part)
        state.place = note.place
        state.counts.merge(note.counts)
        state.ids.update(note.ids)
        for study, image, digest in note.digests:
            state.seen.add(study, [(image, digest)])
        state.add_joined(note.joined, note.images_joined)
        state.first_image = state.first_image or note.first_image


def _read_defective(out: Path, parts: int) -> Iterator[DefectiveRecord]:
    """Defects of the records of all parts, from the notes: there may be too many to keep."""
    for index in range(parts):
        yield from msgspec.json.decode(_note_path(out, index).read_bytes(), type=_Note).defective


def _write_note(out: Path, index: int, note: _Note) -> None:
    write_bytes(_note_path(out, index), msgspec.json.encode(note))


def _note_path(out: Path, index: int) -> Path:
    return out / _NOTES / f"{index:05d}.json"
