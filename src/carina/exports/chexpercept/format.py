"""A benchmark as a bundle in the published CheXpercept layout.

<out>/chexpercept.json               the records, with their answers
<out>/keys.json                      the answers, with `--keys separate`
<out>/chexpercept/<key_id>/...png    pictures
<out>/carina.json                    counts, sources, checksums
"""

import hashlib
import json
import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Literal, TextIO

import msgspec
from msgspec import Meta

from carina.cases import Benchmark, Case, Views
from carina.exports._exporter import exporter
from carina.exports._folder import PARTS, SCHEMA, Format, LineFile, Sink, Written
from carina.exports.chexpercept.record import is_from_bundle, list_files, make_key_id, make_record
from carina.sources._record import RecordError
from carina.sources.chexpercept import layout
from carina.sources.chexpercept.case import PROTOCOL, Picture, read_case
from carina.store import SourceInfo
from carina.store.errors import BenchmarkError, ImageError
from carina.store.files import replacing, write_bytes
from carina.version import __version__

KIND: Final = "carina/chexpercept"
_ENDING: Final = ".records"
"""Ending of the files that hold the records of a part until all are written."""

Keys = Literal["inline", "separate"]


@exporter(
    name=layout.NAME,
    title="the published layout of CheXpercept, for percept cases",
    examples=("--keys separate", "--neutral-names"),
)
def chexpercept(
    bench: Benchmark,
    *,
    neutral_names: Annotated[
        bool,
        Meta(description="Give option files of imported bundles names that do not reveal the right answer."),
    ] = False,
    keys: Annotated[
        Keys,
        Meta(
            description="inline: answers beside their questions; separate: answers in a file keys.json, which can be "
            "withheld. Which questions a record has still reveals the path of its case."
        ),
    ] = "inline",
) -> Format[Any]:
    """Bundles of percept cases."""
    others = sorted(set(bench.manifest.counts.protocols) - {PROTOCOL})
    if others:
        raise BenchmarkError(
            f"{bench.directory}: holds cases of {', '.join(others)}; the CheXpercept layout holds {PROTOCOL} cases only"
        )
    return BundleFormat(bench.directory, neutral_names=neutral_names, keys=keys)


class BundleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of cases, questions and pictures that were written."""

    cases: int
    questions: int
    pictures: int
    cells: dict[str, int]
    """Cases by lesion and path."""


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`carina.json`, beside the records."""

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
    counts: BundleCounts
    files: dict[str, str]
    """SHA-256 of every file, by path."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A case as it is written."""

    key_id: str
    text: str
    """Its JSON object, indented."""
    keys: str | None
    """Its answers, where they are in a file of their own."""
    files: dict[str, str]
    """SHA-256 of its pictures, by path."""


class BundleFormat(Format[Record]):
    """How a bundle is written."""

    kind = KIND
    by_split = False

    def __init__(self, directory: Path, *, neutral_names: bool = False, keys: Keys = "inline") -> None:
        self._directory = directory
        self._keys: Keys = keys
        # Names that reveal the answer would make separate keys pointless.
        self._hides_names = neutral_names or keys == "separate"
        self.closing = (layout.RECORDS, layout.KEYS) if keys == "separate" else (layout.RECORDS,)
        self.options = {"neutral_names": neutral_names, "keys": keys}
        self.arguments = f"{' --neutral-names' if neutral_names else ''} --keys {keys}"

    def prepare(self, bench: Benchmark, views: Views, folder: Path, case: Case) -> Record:
        """Write the pictures of a case and make its record as text."""
        files = list_files(case, neutral_names=self._hides_names)
        pictures: dict[str, Picture] = {}
        for view, file in files.items():
            path = folder / file
            if is_from_bundle(case):
                content = _read_original(bench, case, view)
            elif path.is_file():  # whole, of an interrupted export: files get their names when they are
                content = path.read_bytes()
            else:
                content = views.png(case, view)
            if not path.is_file() or path.read_bytes() != content:
                write_bytes(path, content)
            pictures[view] = Picture(file, *_read_size(content), hashlib.sha256(content).hexdigest())
        record = make_record(
            case,
            lambda view: (pictures[view].width, pictures[view].height),
            neutral_names=self._hides_names,
        )
        _check_round_trip(case, record, pictures)
        questions, keys = layout.split_keys(record) if self._keys == "separate" else (record, None)
        return Record(
            key_id=make_key_id(case),
            text=_indent_json(questions),
            keys=None if keys is None else _indent_json(keys),
            files={picture.key: picture.sha256 for picture in pictures.values()},
        )

    def open_sink(self, folder: Path, name: str) -> "_PartFile":
        return _PartFile(folder / PARTS / f"{name}{_ENDING}")

    def make_manifest(self, written: Written) -> BundleManifest:
        manifest = written.bench.manifest
        return BundleManifest(
            carina=__version__,
            seed=manifest.seed,
            benchmark=manifest.fingerprint,
            fingerprint=written.fingerprint,
            keys=self._keys,
            sources=manifest.sources,
            counts=BundleCounts(
                cases=written.cases,
                questions=written.questions,
                pictures=len(written.files),
                cells=written.cells,
            ),
            files=written.files,
        )

    def find_missing(
        self,
        files: Collection[str],
        pictures: Collection[str],  # noqa: ARG002 - they are among the files
        stated: int,
        parts: int,  # noqa: ARG002 - their records are joined
    ) -> str | None:
        missing = next((name for name in self.closing if name not in files), None)
        return missing or (None if len(files) - len(self.closing) == stated else f"{stated:,} pictures")

    def close(self, folder: Path, _manifest: BundleManifest) -> list[Path]:
        """Join the records of all parts."""
        names: set[str] = set()
        files = [folder / name for name in self.closing]
        with (
            _open_json_object(folder / layout.RECORDS, is_wanted=True) as records,
            _open_json_object(folder / layout.KEYS, is_wanted=self._keys == "separate") as keys,
        ):
            for record in _read_parts(folder):
                if record.key_id in names:
                    raise BenchmarkError(
                        f"{self._directory}: two cases would have the key_id {record.key_id!r}"
                    )
                names.add(record.key_id)
                records(record.key_id, record.text)
                if record.keys is not None:
                    keys(record.key_id, record.keys)
        return files


class _PartFile(Sink[Record]):
    """The records of a part, a line each, until all parts are written."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)
        self._checksums: dict[str, str] = {}

    def __enter__(self) -> "_PartFile":
        self._lines.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._lines.__exit__(kind, error, trace)

    def add(self, item: Record) -> None:
        self._lines.add(msgspec.json.encode(item))
        self._checksums |= item.files

    @property
    def files(self) -> list[Path]:
        return []

    @property
    def checksums(self) -> dict[str, str]:
        return self._checksums


def _read_parts(folder: Path) -> Iterator[Record]:
    for path in sorted((folder / PARTS).glob(f"*{_ENDING}")):
        with path.open("rb") as lines:
            for line in lines:
                yield msgspec.json.decode(line, type=Record)


# ---- pictures -------------------------------------------------------------------------------------------------------


def _read_original(bench: Benchmark, case: Case, view: str) -> bytes:
    """The bytes of an imported picture; an error where the file has changed since the import."""
    image = case.image(case.view(view).panels[0].image)
    path = bench.image_path(image)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror}") from error
    if image.sha256 is not None and hashlib.sha256(content).hexdigest() != image.sha256:
        raise ImageError(f"{path}: is not the picture that was imported: its SHA-256 has changed")
    return content


def _read_size(content: bytes) -> tuple[int, int]:
    """Width and height from the header of a PNG; only those of rendered pictures are used."""
    width, height = struct.unpack_from(">II", content, 16) if len(content) >= 24 else (0, 0)
    return width, height


def _check_round_trip(case: Case, record: dict[str, Any], pictures: dict[str, Picture]) -> None:
    """Check that a record of a case that Carina built reads back as the same questions with the same answers."""
    if is_from_bundle(case):
        return
    by_key = {picture.key: picture for picture in pictures.values()}
    try:
        again = read_case(make_key_id(case), record, by_key.__getitem__)
    except RecordError as error:
        raise BenchmarkError(f"case {case.id!r}: cannot be written as a published record: {error}") from error
    for step, other in zip(case.steps, again.steps, strict=True):
        if (step.id, step.question, step.right) != (other.id, other.question, other.right):
            raise BenchmarkError(
                f"case {case.id!r}, step {step.id!r}: would be another question in a published record"
            )


# ---- JSON -----------------------------------------------------------------------------------------------------------


@contextmanager
def _open_json_object(path: Path, *, is_wanted: bool) -> Iterator[Callable[[str, str], None]]:
    """A file with one JSON object; the function adds a name and its value."""
    if not is_wanted:
        yield lambda _name, _value: None
        return
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield _make_adder(file)
        file.write("\n}\n")


def _make_adder(file: TextIO) -> Callable[[str, str], None]:
    separators = iter(("{\n",))

    def add(name: str, value: str) -> None:
        file.write(f"{next(separators, ',' + chr(10))}  {json.dumps(name, ensure_ascii=False)}: {value}")

    return add


def _indent_json(value: object) -> str:
    # A line break within a text is written as two other characters, so every line break is one of the layout.
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n  ")
