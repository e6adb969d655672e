"""A benchmark written as a folder for other tools, part by part; the folder appears when it is complete.

Everything is written to a hidden folder beside the target, which is renamed at the end. Each part of the benchmark
gives one file for each split; an interrupted export resumes with the first part that is not finished. Memory holds a
few cases, whatever their number.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Generic, TypeVar

import msgspec

from carina.cases.benchmark import Benchmark, open_benchmark
from carina.cases.model import Case
from carina.cases.render import RENDER_VERSION, Views
from carina.exports import _pictures
from carina.store import SourceInfo
from carina.store.documents import check_regular, decode_json, read_file
from carina.store.errors import BenchmarkError
from carina.store.files import replacing, sha256, write_bytes
from carina.store.resume import is_empty, partial_directory
from carina.store.workers import in_order
from carina.version import __version__

MANIFEST: Final = "carina.json"
SCHEMA: Final = "1.0"
UNSPLIT: Final = "unsplit"
"""Name of the split of cases that have none."""
PARTS: Final = ".parts"
"""Folder for notes of finished parts, and for files that a format needs until the end."""
_AGAIN: Final = "remove the directory and export again"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PICTURE_STEM: Final = re.compile(rf"[0-9a-f]{{{_pictures.NAME_DIGITS},64}}")
"""The name of a picture, without ending: the first digits of its SHA-256."""

Item = TypeVar("Item")
"""What a format makes of a case."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of cases, questions and pictures that were written."""

    cases: int
    questions: int
    pictures: int
    """Different pictures."""
    splits: dict[str, int]
    """Cases by split."""


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`carina.json`: what the folder was made from and holds."""

    kind: str
    schema: str = SCHEMA
    carina: str
    command: str
    seed: int | None
    benchmark: str
    """Fingerprint of the benchmark."""
    fingerprint: str
    """The same for everything that gives the same bytes."""
    options: dict[str, Any]
    sources: tuple[SourceInfo, ...]
    counts: Counts
    files: dict[str, str]
    """SHA-256 of every file but pictures, which are named by theirs."""
    pictures: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Paths of the pictures, which hold the first 32 digits of their SHA-256; left out where none were written."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """The contents of all parts of an export, for its manifest."""

    bench: Benchmark
    fingerprint: str
    command: str
    questions: int
    pictures: tuple[str, ...]
    """Paths of those that were placed in the folder `images`."""
    splits: dict[str, int]
    """Cases by split."""
    cells: dict[str, int]
    """Cases by target and path."""
    files: dict[str, str]
    """SHA-256 by path."""

    @property
    def cases(self) -> int:
        return sum(self.splits.values())


class Sink(AbstractContextManager["Sink[Item]"], Generic[Item]):
    """Files to which items are added; they get their final names when the block ends without an error."""

    @abstractmethod
    def add(self, item: Item) -> None:
        """Write one item."""

    @property
    @abstractmethod
    def files(self) -> list[Path]:
        """Files that have their final names."""

    @property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of further files, by path relative to the folder."""
        return {}


class LineFile(Sink[bytes]):
    """A file with one item a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()
        self._file: BinaryIO

    def __enter__(self) -> "LineFile":
        temporary = self._stack.enter_context(replacing(self._path))
        self._file = self._stack.enter_context(temporary.open("wb"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def add(self, item: bytes) -> None:
        self._file.write(item)
        self._file.write(b"\n")

    @property
    def files(self) -> list[Path]:
        return [self._path]


class Format(ABC, Generic[Item]):
    """One way of writing cases. Must be picklable: `prepare` runs in workers, the rest in one process."""

    kind: str
    """Name of the format in the manifest, such as `carina/chat`."""
    options: Mapping[str, Any] = {}
    """Everything that the bytes depend on."""
    arguments: str = ""
    """Options of the command, for the manifest."""
    renders: bool = True
    """Whether it renders views, which is faster with several processes."""
    by_split: bool = True
    """Whether the cases of each split have files of their own."""
    closing: tuple[str, ...] = ()
    """Names of the files that `close` writes."""

    @abstractmethod
    def prepare(self, bench: Benchmark, views: Views, folder: Path, case: Case) -> Item:
        """Make a case ready to be written; place its pictures below `folder`.

        Args:
            bench: The benchmark.
            views: Renders the views of its cases.
            folder: The folder of the export.
            case: The case.
        """

    @abstractmethod
    def open_sink(self, folder: Path, name: str) -> Sink[Item]:
        """The files for the cases of one part, or of one part and split.

        Args:
            folder: The folder of the export.
            name: Beginning of the names of the files, such as `train-00000`, or `00000` without `by_split`.
        """

    def make_manifest(self, written: Written) -> Any:  # noqa: ANN401 - a struct with kind, fingerprint, counts and files
        """What `carina.json` states, before the files of `close` are added."""
        manifest = written.bench.manifest
        return ExportManifest(
            kind=self.kind,
            carina=__version__,
            command=written.command,
            seed=manifest.seed,
            benchmark=manifest.fingerprint,
            fingerprint=written.fingerprint,
            options=dict(self.options),
            sources=manifest.sources,
            counts=Counts(
                cases=written.cases,
                questions=written.questions,
                pictures=len(written.pictures),
                splits=written.splits,
            ),
            files=written.files,
            pictures=written.pictures or msgspec.UNSET,
        )

    def find_missing(
        self, files: Collection[str], pictures: Collection[str], stated: int, parts: int
    ) -> str | None:
        """Compare the lists of a manifest with what every export in this format holds.

        Args:
            files: Paths of the files that the manifest lists.
            pictures: Paths of the pictures that it lists.
            stated: Number of pictures that it states.
            parts: Number of parts of the benchmark.

        Returns:
            What the manifest does not list, in words; None where nothing is missing.
        """
        for name in self.closing:
            if name not in files:
                return name
        stems = [Path(name).stem for name in files]
        for part in range(parts):
            if not any(f"-{part:05d}" in stem for stem in stems):
                return f"a file of part {part:05d}"
        return None if len(pictures) == stated else f"{stated:,} pictures"

    def close(self, folder: Path, manifest: Any) -> list[Path]:  # noqa: ANN401, ARG002 - of `make_manifest`; for subclasses
        """Write the files that describe or join the whole; returns their paths."""
        return []


class _StatedCounts(msgspec.Struct, frozen=True):
    """The counts of a manifest that are compared with its lists."""

    pictures: int = 0


class _Header(msgspec.Struct, frozen=True):
    """The fields that identify an export, and the files that belong to it."""

    kind: str
    fingerprint: str
    counts: _StatedCounts = _StatedCounts()
    files: dict[str, str] = {}
    pictures: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a finished part."""

    files: dict[str, str]
    questions: int
    splits: dict[str, int]
    cells: dict[str, int]


@dataclass(frozen=True)
class _Work(Generic[Item]):
    """What a worker needs to prepare cases."""

    directory: Path
    images: Path | None
    benchmark: str
    """Its fingerprint."""
    folder: Path
    form: Format[Item]


@dataclass(frozen=True, kw_only=True)
class _PreparedCase(Generic[Item]):
    """A case that is ready to be written."""

    split: str
    cell: str
    questions: int
    item: Item


def write_folder(
    bench: Benchmark,
    out: Path,
    form: Format[Item],
    *,
    to: str,
    images: Path | None,
    workers: int,
    progress: Callable[[int], None],
) -> bytes:
    """Write a benchmark to `out`, which must not hold anything else; returns the bytes of `carina.json`.

    The same export that is there already is compared with its checksums and left as it is.
    """
    if not len(bench):
        raise BenchmarkError(f"{bench.directory}: holds no case to export")
    fingerprint = _make_fingerprint(bench, form)
    is_complete = partial(_is_complete, out, form, fingerprint, len(bench.manifest.parts))
    with partial_directory(out, fingerprint, is_complete, error=BenchmarkError, notes=(PARTS,)) as folder:
        if folder is None:
            progress(len(bench))
            return (out / MANIFEST).read_bytes()
        work = _Work(bench.directory, images, bench.manifest.fingerprint, folder, form)
        parts = list(_write_parts(bench, work, workers, progress))
        manifest = form.make_manifest(
            Written(
                bench=bench,
                fingerprint=fingerprint,
                command=f"carina export {bench.directory.resolve().name} --to {to}{form.arguments}",
                questions=sum(part.questions for part in parts),
                pictures=_pictures.list_pictures(folder),
                splits=_add_counts(part.splits for part in parts),
                cells=_add_counts(part.cells for part in parts),
                files={name: digest for part in parts for name, digest in sorted(part.files.items())},
            )
        )
        closing = {path.name: sha256(path) for path in form.close(folder, manifest)}
        manifest = msgspec.structs.replace(manifest, files=manifest.files | closing)
        encoded = msgspec.json.encode(manifest, order="deterministic")
        content = msgspec.json.format(encoded, indent=2) + b"\n"
        write_bytes(folder / MANIFEST, content)
    return content


def _add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))


def _make_fingerprint(bench: Benchmark, form: Format[Any]) -> str:
    """The same for everything that gives the same bytes."""
    parts = [part.sha256 for part in bench.manifest.parts]
    decisive = (
        __version__,
        SCHEMA,
        RENDER_VERSION,
        bench.manifest.fingerprint,
        parts,
        form.kind,
        dict(form.options),
    )
    return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()


# ---- the directory --------------------------------------------------------------------------------------------------


def _is_complete(out: Path, form: Format[Any], fingerprint: str, parts: int) -> bool:
    """Whether the folder already holds the same export, with every file as it was written.

    Raises:
        BenchmarkError: Something else is there, a file was changed or removed, or the manifest was changed.
    """
    if is_empty(out):
        return False
    found = None
    with suppress(BenchmarkError):
        content = read_file(out / MANIFEST, error=BenchmarkError)
        found = decode_json(content, _Header, path=out / MANIFEST, error=BenchmarkError)
    if found is None or (found.kind, found.fingerprint) != (form.kind, fingerprint):
        raise BenchmarkError(f"{out}: holds something else already: choose another directory, or remove it")
    digests = found.files | {name: Path(name).stem for name in found.pictures}
    for name, digest in digests.items():
        _check_entry(out / MANIFEST, name, digest, _SHA256 if name in found.files else _PICTURE_STEM)
    missing = form.find_missing(found.files, found.pictures, found.counts.pictures, parts)
    if missing is not None:
        raise BenchmarkError(f"{out / MANIFEST}: does not list {missing}; {_AGAIN}")
    for name, digest in digests.items():
        _check_file(out / name, digest)
    return True


def _check_entry(manifest: Path, name: str, digest: str, form: re.Pattern[str]) -> None:
    """Check that an entry of a manifest is a plain path within the folder, with a checksum that decides."""
    names = name.split("/")
    if "\0" in name or "\\" in name or any(each in {"", ".", ".."} for each in names):
        raise BenchmarkError(f"{manifest}: lists {name!r}, which is no path within the export; {_AGAIN}")
    if not form.fullmatch(digest):
        raise BenchmarkError(f"{manifest}: lists {name!r} with {digest!r}, which is no SHA-256; {_AGAIN}")


def _check_file(path: Path, digest: str) -> None:
    """Compare a file with the first digits of its SHA-256, or all of them."""
    try:
        check_regular(path, error=BenchmarkError, max_bytes=None)
        problem = None if sha256(path).startswith(digest) else "was changed since it was exported"
    except (FileNotFoundError, NotADirectoryError):
        problem = "is missing"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem is not None:
        raise BenchmarkError(f"{path}: {problem}; {MANIFEST} states another content. {_AGAIN.capitalize()}")


# ---- parts ----------------------------------------------------------------------------------------------------------


def _write_parts(
    bench: Benchmark, work: _Work[Item], workers: int, progress: Callable[[int], None]
) -> Iterator[_Part]:
    """Write the parts that are not finished; yields the contents of all parts, in order."""
    views = bench.by_part()
    done = {index: part for index in range(len(views)) if (part := _read_note(work.folder, index))}
    for part in done.values():
        progress(sum(part.splits.values()))
    tasks = (
        (index, case)
        for index, view in enumerate(views)
        if index not in done
        for case in view.iterate_sound()
    )
    prepared = in_order(partial(_prepare, work), tasks, workers=workers)
    groups = groupby(prepared, key=itemgetter(0))
    for index in range(len(views)):
        if index in done:
            yield done[index]
            continue
        number, group = next(groups)
        assert number == index  # noqa: S101 - a part without cases is never written
        yield _write_part(work, index, (item for _, item in group), progress)


@lru_cache(maxsize=1)
def _open_benchmark(directory: Path, images: Path | None, _benchmark: str) -> tuple[Benchmark, Views]:
    """Open the benchmark and its views, once in each process."""
    bench = open_benchmark(directory, images, verify=False)
    return bench, Views(bench)


def _prepare(work: _Work[Item], task: tuple[int, Case]) -> tuple[int, _PreparedCase[Item]]:
    index, case = task
    bench, views = _open_benchmark(work.directory, work.images, work.benchmark)
    item = work.form.prepare(bench, views, work.folder, case)
    return index, _PreparedCase(
        split=case.split or UNSPLIT, cell=case.cell, questions=len(case.steps), item=item
    )


def _write_part(
    work: _Work[Item],
    index: int,
    prepared: Iterator[_PreparedCase[Item]],
    progress: Callable[[int], None],
) -> _Part:
    """Write the files of a part; cases of several splits may come in any order."""
    splits: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    questions = 0
    sinks: dict[str, Sink[Item]] = {}
    with ExitStack() as stack:
        for case in prepared:
            name = f"{case.split}-{index:05d}" if work.form.by_split else f"{index:05d}"
            if name not in sinks:
                sinks[name] = stack.enter_context(work.form.open_sink(work.folder, name))
            sinks[name].add(case.item)
            splits[case.split] += 1
            cells[case.cell] += 1
            questions += case.questions
            progress(1)
    files: dict[str, str] = {}
    for sink in sinks.values():
        files |= {path.relative_to(work.folder).as_posix(): sha256(path) for path in sink.files}
        files |= sink.checksums
    part = _Part(files=files, questions=questions, splits=dict(splits), cells=dict(cells))
    write_bytes(_note_path(work.folder, index), msgspec.json.encode(part))
    return part


def _note_path(folder: Path, index: int) -> Path:
    return folder / PARTS / f"{index:05d}.json"


def _read_note(folder: Path, index: int) -> _Part | None:
    """The contents of a part that an interrupted export has finished; the note is written after the files."""
    try:
        return msgspec.json.decode(_note_path(folder, index).read_bytes(), type=_Part)
    except FileNotFoundError:
        return None
