"""From a benchmark on disk to a bundle in the published layout.

Everything is written below a hidden name beside the target, which gets its name when all is there; an export that was
interrupted goes on with the pictures that lie there.
"""

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TextIO

import msgspec

import carina
from carina.cases import Benchmark, Case, Views, open_benchmark
from carina.cases.exporting import MANIFEST, exporting, finished
from carina.cases.render import RENDER_VERSION
from carina.errors import ImageError
from carina.files import replacing, sha256, write_bytes
from carina.percept.bundle import layout
from carina.percept.bundle.case import PROTOCOL, case_of
from carina.percept.bundle.faults import BundleError, RecordError
from carina.percept.bundle.keys import split
from carina.percept.bundle.pictures import Picture
from carina.percept.bundle.record import came_from_a_bundle, files_of, key_id_of, record_of
from carina.store import SourceInfo
from carina.workers import in_order

KIND: Final = "carina/chexpercept"
SCHEMA: Final = "1.0"


class Pictures(Protocol):
    """What draws the views of our own cases."""

    def png(self, case: Case, view_id: str) -> bytes: ...


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a bundle is written."""

    neutral_names: bool = False
    """Names of option files that do not tell the right one, also where the bundle was imported with such names."""
    keys: Literal["inline", "separate"] = "inline"
    """Whether what is right stands in the records or in a file of its own; then names are neutral in any case."""

    @property
    def hides_names(self) -> bool:
        return self.neutral_names or self.keys == "separate"


class ExportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much was written."""

    cases: int
    questions: int
    pictures: int
    cells: dict[str, int]


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`carina.json`, which lies beside the records."""

    kind: str = KIND
    schema: str = SCHEMA
    carina: str
    seed: int | None
    benchmark: str
    """Fingerprint of the benchmark."""
    fingerprint: str
    """The same for everything that gives the same bytes."""
    keys: str
    sources: tuple[SourceInfo, ...]
    counts: ExportCounts
    files: dict[str, str]
    """SHA-256 of every file, by path."""


@dataclass(frozen=True)
class _Written:
    key_id: str
    cell: str
    questions: int
    asked: str
    keys: str | None
    files: dict[str, str]


def export_bundle(
    directory: Path,
    out: Path,
    options: ExportOptions,
    *,
    images: Path | None = None,
    pictures: Pictures | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> ExportManifest:
    """Write the cases of the benchmark in `directory` to `out`, which must not hold anything else.

    `images` says where the images lie, where that is not what the benchmark says. `pictures` draws the views instead of
    `carina.cases.Views`, in this process alone.
    """
    bench = open_benchmark(directory, images)
    others = sorted(set(bench.manifest.counts.protocols) - {PROTOCOL})
    if others:
        raise BundleError(
            f"{directory}: holds cases of {', '.join(others)}; CheXpercept's layout holds {PROTOCOL} alone"
        )
    fingerprint = _fingerprint(bench, options)
    there = finished(out, fingerprint, ExportManifest, BundleError)
    if there is not None:
        return there
    with exporting(out, fingerprint, BundleError) as partly:
        if pictures is None and workers > 1:
            write = partial(_write_in_worker, directory, images, partly, options)
        else:
            write = partial(_write_case, bench, pictures or Views(bench), partly, options)
            workers = 1
        written = in_order(write, bench, workers=workers)
        manifest = _assemble(bench, partly, options, fingerprint, _counted(written, progress))
        write_bytes(partly / MANIFEST, _pretty(manifest))
    return manifest


# ---- one case -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _opened(directory: Path, images: Path | None) -> tuple[Benchmark, Views]:
    """Once a process, however many cases it writes."""
    bench = open_benchmark(directory, images, verify=False)
    return bench, Views(bench)


def _write_in_worker(
    directory: Path, images: Path | None, target: Path, options: ExportOptions, case: Case
) -> _Written:
    bench, views = _opened(directory, images)
    return _write_case(bench, views, target, options, case)


def _write_case(
    bench: Benchmark, pictures: Pictures, target: Path, options: ExportOptions, case: Case
) -> _Written:
    """The pictures of a case in their place, and its record as text."""
    files = files_of(case, neutral_names=options.hides_names)
    made: dict[str, Picture] = {}
    for view, file in files.items():
        path = target / file
        content = _kept(path) if not came_from_a_bundle(case) else _copy(bench, case, view)
        if content is None:
            content = pictures.png(case, view)
        if not path.is_file() or path.read_bytes() != content:
            write_bytes(path, content)
        made[view] = Picture(file, *_size(content), hashlib.sha256(content).hexdigest())
    record = record_of(
        case, lambda view: (made[view].width, made[view].height), neutral_names=options.hides_names
    )
    _check(case, record, made)
    asked, keys = split(record) if options.keys == "separate" else (record, None)
    return _Written(
        key_id=key_id_of(case),
        cell=case.cell,
        questions=len(case.steps),
        asked=_indented(asked),
        keys=None if keys is None else _indented(keys),
        files={picture.key: picture.sha256 for picture in made.values()},
    )


def _kept(path: Path) -> bytes | None:
    """What an interrupted export has written: whole, since files get their names when they are."""
    return path.read_bytes() if path.is_file() else None


def _copy(bench: Benchmark, case: Case, view: str) -> bytes:
    """The bytes of a finished picture, as long as they are those that were imported."""
    image = case.image(case.view(view).panels[0].image)
    path = bench.image_path(image)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror}") from error
    if image.sha256 is not None and hashlib.sha256(content).hexdigest() != image.sha256:
        raise ImageError(f"{path}: is not the picture that was imported: its SHA-256 is another")
    return content


def _size(content: bytes) -> tuple[int, int]:
    """Width and height as the head of a PNG states them; of other pictures nobody asks."""
    width, height = struct.unpack_from(">II", content, 16) if len(content) >= 24 else (0, 0)
    return width, height


def _check(case: Case, record: dict[str, Any], made: dict[str, Picture]) -> None:
    """What we write can be read: the same questions with the same right answers."""
    if came_from_a_bundle(case):
        return
    by_key = {picture.key: picture for picture in made.values()}
    try:
        again = case_of(key_id_of(case), record, by_key.__getitem__)
    except RecordError as error:
        raise BundleError(f"case {case.id!r}: cannot be written as a published record: {error}") from error
    for step, other in zip(case.steps, again.steps, strict=True):
        if (step.id, step.question, step.right) != (other.id, other.question, other.right):
            raise BundleError(
                f"case {case.id!r}, step {step.id!r}: would be another question in a published record"
            )


# ---- the whole ----------------------------------------------------------------------------------------------------


def _counted(written: Iterator[_Written], progress: Callable[[int], None]) -> Iterator[_Written]:
    for item in written:
        progress(1)
        yield item


def _assemble(
    bench: Benchmark, target: Path, options: ExportOptions, fingerprint: str, written: Iterator[_Written]
) -> ExportManifest:
    """The records one after another into their file, and what the manifest says of them."""
    files: dict[str, str] = {}
    cells: Counter[str] = Counter()
    names: set[str] = set()
    questions = 0
    separate = options.keys == "separate"
    with (
        _object(target / layout.RECORDS, wanted=True) as records,
        _object(target / layout.KEYS, wanted=separate) as keys,
    ):
        for item in written:
            if item.key_id in names:
                raise BundleError(f"{bench.directory}: two cases would have the key_id {item.key_id!r}")
            names.add(item.key_id)
            records(item.key_id, item.asked)
            if item.keys is not None:
                keys(item.key_id, item.keys)
            files |= item.files
            cells[item.cell] += 1
            questions += item.questions
    if not names:
        raise BundleError(f"{bench.directory}: holds no case to export")
    pictures = len(files)
    for name in (layout.RECORDS, *((layout.KEYS,) if separate else ())):
        files[name] = sha256(target / name)
    return ExportManifest(
        carina=carina.__version__,
        seed=bench.manifest.seed,
        benchmark=bench.manifest.fingerprint,
        fingerprint=fingerprint,
        keys=options.keys,
        sources=bench.manifest.sources,
        counts=ExportCounts(
            cases=len(names), questions=questions, pictures=pictures, cells=dict(sorted(cells.items()))
        ),
        files=dict(sorted(files.items())),
    )


@contextmanager
def _object(path: Path, *, wanted: bool) -> Iterator[Callable[[str, str], None]]:
    """A file with one JSON object, to which names and values are added as they come."""
    if not wanted:
        yield lambda _name, _value: None
        return
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield _adding(file)
        file.write("\n}\n")


def _adding(file: TextIO) -> Callable[[str, str], None]:
    separators = iter(("{\n",))

    def add(name: str, value: str) -> None:
        file.write(f"{next(separators, ',' + chr(10))}  {json.dumps(name, ensure_ascii=False)}: {value}")

    return add


def _indented(value: object) -> str:
    # A line break within a text is written as two other characters, so every line break is one of the layout.
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")


def _pretty(manifest: ExportManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=2) + b"\n"


def _fingerprint(bench: Benchmark, options: ExportOptions) -> str:
    parts = [part.sha256 for part in bench.manifest.parts]
    decisive = (
        carina.__version__,
        SCHEMA,
        RENDER_VERSION,
        bench.manifest.fingerprint,
        parts,
        options,
        repr(bench),
    )
    return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()
