"""A benchmark written as a folder for others: case by case, part by part, and there only when it is whole.

Everything is made below a hidden name beside the target. One part of the benchmark gives one file a split; an export
that was interrupted goes on with the first part that is not finished. Memory holds a few cases, whatever the number.
"""

import hashlib
import shutil
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

import carina
from carina.cases.benchmark import Benchmark, open_benchmark
from carina.cases.chat import pictures
from carina.cases.exporting import MANIFEST, exporting, finished
from carina.cases.model import Case
from carina.cases.render import RENDER_VERSION, Views
from carina.errors import BenchmarkError
from carina.files import sha256, write_bytes
from carina.store import SourceInfo
from carina.workers import in_order

SCHEMA: Final = "1.0"
UNSPLIT: Final = "unsplit"
"""Name of the split of cases that have none."""
_PARTS: Final = ".parts"
"""Notes of finished parts, while others are not."""

Item = TypeVar("Item")
"""What a format makes of a case."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much was written."""

    cases: int
    questions: int
    pictures: int
    """Different ones."""
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


@dataclass(frozen=True, kw_only=True)
class Ready(Generic[Item]):
    """A case made ready to be written."""

    split: str
    questions: int
    item: Item


class Sink(AbstractContextManager["Sink[Item]"], Generic[Item]):
    """Files to which items are added; they get their names when the block ends well."""

    @abstractmethod
    def add(self, item: Item) -> None:
        """Write one item."""

    @property
    @abstractmethod
    def files(self) -> list[Path]:
        """Those that got their names."""


class Format(Protocol[Item]):
    """One way of writing cases. Picklable: `ready` runs in workers, the rest in one process."""

    @property
    def kind(self) -> str:
        """As the manifest states it."""

    @property
    def options(self) -> dict[str, Any]:
        """All that decides the bytes."""

    def ready(self, bench: Benchmark, views: Views, target: Path, case: Case) -> Item:
        """Place the pictures of a case below `target`, and make the rest ready."""

    def sink(self, target: Path, name: str) -> "Sink[Item]":
        """Takes the items of one part and split, into files whose names begin so."""

    def close(self, target: Path, manifest: ExportManifest) -> list[Path]:
        """Write what describes the whole; the files that this gave."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished part gave."""

    files: dict[str, str]
    questions: int
    splits: dict[str, int]


@dataclass(frozen=True)
class _Work(Generic[Item]):
    """What a worker must know."""

    directory: Path
    images: Path | None
    benchmark: str
    """Its fingerprint."""
    target: Path
    form: Format[Item]


def export_folder(
    directory: Path,
    out: Path,
    form: Format[Item],
    *,
    command: str,
    images: Path | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> ExportManifest:
    """Write the benchmark in `directory` to `out`, which must not hold anything else.

    `images` says where the images lie, where that is not what the benchmark says. The same export that is there
    already is left as it is.
    """
    bench = open_benchmark(directory, images)
    if not len(bench):
        raise BenchmarkError(f"{directory}: holds no case to export")
    fingerprint = _fingerprint(bench, form)
    there = finished(out, fingerprint, ExportManifest, BenchmarkError)
    if there is not None:
        progress(there.counts.cases)
        return there
    with exporting(out, fingerprint, BenchmarkError) as partly:
        parts = list(
            _parts(
                bench, _Work(directory, images, bench.manifest.fingerprint, partly, form), workers, progress
            )
        )
        splits: Counter[str] = Counter()
        for part in parts:
            splits.update(part.splits)
        manifest = ExportManifest(
            kind=form.kind,
            carina=carina.__version__,
            command=command,
            seed=bench.manifest.seed,
            benchmark=bench.manifest.fingerprint,
            fingerprint=fingerprint,
            options=form.options,
            sources=bench.manifest.sources,
            counts=Counts(
                cases=splits.total(),
                questions=sum(part.questions for part in parts),
                pictures=pictures.count(partly),
                splits=dict(sorted(splits.items())),
            ),
            files={name: digest for part in parts for name, digest in sorted(part.files.items())},
        )
        closing = {path.name: sha256(path) for path in form.close(partly, manifest)}
        manifest = msgspec.structs.replace(manifest, files=manifest.files | closing)
        encoded = msgspec.json.encode(manifest, order="deterministic")
        write_bytes(partly / MANIFEST, msgspec.json.format(encoded, indent=2) + b"\n")
        shutil.rmtree(partly / _PARTS)
    return manifest


# ---- parts --------------------------------------------------------------------------------------------------------


def _parts(
    bench: Benchmark, work: _Work[Item], workers: int, progress: Callable[[int], None]
) -> Iterator[_Part]:
    """What each part gave, in order; those that are finished are not made again."""
    views = bench.by_part()
    done = {index: part for index in range(len(views)) if (part := _kept(work.target, index))}
    for part in done.values():
        progress(sum(part.splits.values()))
    tasks = ((index, case) for index, view in enumerate(views) if index not in done for case in view)
    made = in_order(partial(_ready, work), tasks, workers=workers)
    groups = groupby(made, key=itemgetter(0))
    for index in range(len(views)):
        if index in done:
            yield done[index]
            continue
        number, group = next(groups)
        assert number == index  # noqa: S101 - a part without cases is never written
        yield _write_part(work, index, (item for _, item in group), progress)


@lru_cache(maxsize=1)
def _opened(directory: Path, images: Path | None, _benchmark: str) -> tuple[Benchmark, Views]:
    """Once a process, however many cases it writes."""
    bench = open_benchmark(directory, images, verify=False)
    return bench, Views(bench)


def _ready(work: _Work[Item], task: tuple[int, Case]) -> tuple[int, Ready[Item]]:
    index, case = task
    bench, views = _opened(work.directory, work.images, work.benchmark)
    item = work.form.ready(bench, views, work.target, case)
    return index, Ready(split=case.split or UNSPLIT, questions=len(case.steps), item=item)


def _write_part(
    work: _Work[Item], index: int, made: Iterator[Ready[Item]], progress: Callable[[int], None]
) -> _Part:
    """The files of a part, one a split: cases of several splits may come in any order."""
    splits: Counter[str] = Counter()
    questions = 0
    sinks: dict[str, Sink[Item]] = {}
    with ExitStack() as stack:
        for ready in made:
            if ready.split not in sinks:
                sink = work.form.sink(work.target, f"{ready.split}-{index:05d}")
                sinks[ready.split] = stack.enter_context(sink)
            sinks[ready.split].add(ready.item)
            splits[ready.split] += 1
            questions += ready.questions
            progress(1)
    files = {
        path.relative_to(work.target).as_posix(): sha256(path)
        for sink in sinks.values()
        for path in sink.files
    }
    part = _Part(files=files, questions=questions, splits=dict(sorted(splits.items())))
    write_bytes(_note(work.target, index), msgspec.json.encode(part))
    return part


def _note(target: Path, index: int) -> Path:
    return target / _PARTS / f"{index:05d}.json"


def _kept(target: Path, index: int) -> _Part | None:
    """What an interrupted export has finished: files get their names when they are whole, the note comes last."""
    try:
        return msgspec.json.decode(_note(target, index).read_bytes(), type=_Part)
    except FileNotFoundError:
        return None


# ---- fingerprint --------------------------------------------------------------------------------------------------


def _fingerprint(bench: Benchmark, form: Format[Any]) -> str:
    parts = [part.sha256 for part in bench.manifest.parts]
    decisive = (
        carina.__version__,
        SCHEMA,
        RENDER_VERSION,
        bench.manifest.fingerprint,
        parts,
        form.kind,
        form.options,
    )
    return hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()
