"""A benchmark as a folder that `datasets.load_dataset` opens.

<out>/README.md                    the data card; its head says which files are which split
<out>/croissant.json               the same for machines, after MLCommons Croissant
<out>/data/train-00000.parquet     one or more a part of the benchmark and split
<out>/images/<ab>/<name>.png       pictures, with `--pictures copy`
<out>/carina.json                  counts, sources, checksums

Columns are those of a benchmark, and a column of pictures where they are wanted. `datasets` reads nested Arrow columns
as they are; only pictures need a description, which it looks for in the metadata of the file.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta

from carina.cases import store
from carina.cases.benchmark import Benchmark
from carina.cases.messages import answer
from carina.cases.model import Case, without_keys
from carina.cases.render import Views
from carina.exports._exporter import exporter
from carina.exports._folder import ExportManifest, Format, Sink
from carina.exports._pictures import PictureMode, write_picture
from carina.exports.hf.card import make_card
from carina.exports.hf.croissant import make_croissant
from carina.store.columns import arrow_schema
from carina.store.files import replacing, write_bytes
from carina.store.tables import to_table

DATA: Final = "data"
CARD: Final = "README.md"
CROISSANT: Final = "croissant.json"
GROUP_ROWS: Final = 128
GROUP_BYTES: Final = 1 << 25
"""Bytes of pictures that are held in memory at a time."""
FILE_BYTES: Final = 400 << 20
"""Bytes of pictures in one file: the hub advises against files beyond 500 MB."""
PICTURES: Final = "pictures"
"""Column of pictures, one a view in the order of `views`."""
_EMBEDDED: Final = pa.list_(pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())]))
_COPIED: Final = pa.list_(pa.string())
_FEATURES: Final = {PICTURES: {"feature": {"_type": "Image"}, "_type": "List"}}

Picture = bytes | str
"""Content, or a path relative to the folder."""
_Row = tuple[Case, list[Picture]]


@exporter(
    name="hf",
    title="a folder that datasets.load_dataset opens, with a data card and Croissant metadata",
    examples=("--pictures embed",),
)
def hf(
    bench: Benchmark,
    *,
    answers: Annotated[
        Literal["with", "without"], Meta(description="Whether the right answers are written.")
    ] = "with",
    pictures: Annotated[
        PictureMode,
        Meta(
            description="none: refer to images by key; copy: PNG files in the folder; embed: PNG in the rows. The "
            "default is none, because images of restricted sources may not be shared."
        ),
    ] = "none",
) -> Format[Any]:
    """Folders of any benchmark for the Hugging Face hub."""
    return HubFormat(
        bench.directory.resolve().name,
        bench.manifest.counts,
        has_answers=answers == "with",
        pictures=pictures,
    )


class HubFormat(Format[_Row]):
    """How the folder is written."""

    kind = "carina/hf"
    closing = (CARD, CROISSANT)

    def __init__(self, name: str, counts: store.Counts, *, has_answers: bool, pictures: PictureMode) -> None:
        self._name = name
        self._counts = counts
        self._has_answers = has_answers
        self._pictures: PictureMode = pictures
        self.options = {"answers": has_answers, "pictures": pictures, "name": name}
        self.arguments = f"{'' if has_answers else ' --answers without'} --pictures {pictures}"
        self.renders = pictures != "none"

    def prepare(self, _bench: Benchmark, views: Views, folder: Path, case: Case) -> _Row:
        pictures: list[Picture] = []
        if self.renders:
            for view in case.views:
                content = views.png(case, view.id)
                pictures.append(write_picture(folder, content) if self._pictures == "copy" else content)
        return _prepare_case(case, has_answers=self._has_answers), pictures

    def open_sink(self, folder: Path, name: str) -> "_ParquetFiles":
        return _ParquetFiles(folder / DATA, name, self._pictures)

    def close(self, folder: Path, manifest: ExportManifest) -> list[Path]:
        write_bytes(folder / CARD, make_card(self._name, manifest, self._counts).encode())
        described = msgspec.json.encode(make_croissant(self._name, manifest))
        write_bytes(folder / CROISSANT, msgspec.json.format(described, indent=2) + b"\n")
        return [folder / name for name in self.closing]


# ---- rows -----------------------------------------------------------------------------------------------------------


def _prepare_case(case: Case, *, has_answers: bool) -> Case:
    """A case for publication: every key also in words, or no key at all; without the original record."""
    if not has_answers:
        return without_keys(case)
    steps = tuple(
        step
        if step.key.text is not None
        else msgspec.structs.replace(step, key=msgspec.structs.replace(step.key, text=answer(case, step)))
        for step in case.steps
    )
    return msgspec.structs.replace(case, steps=steps, extra=None)


def _make_schema(mode: PictureMode) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The columns of a file."""
    columns = arrow_schema(Case)
    if mode == "none":
        return columns
    if mode == "copy":
        return columns.append(pa.field(PICTURES, _COPIED))
    explained = {"huggingface": json.dumps({"info": {"features": _FEATURES}})}
    return columns.append(pa.field(PICTURES, _EMBEDDED)).with_metadata(explained)


def _make_table(cases: Sequence[Case], pictures: Sequence[Sequence[Picture]], mode: PictureMode) -> Any:  # noqa: ANN401
    """Rows of cases with their pictures, which are as many as their views."""
    found = to_table(Case, cases)
    if mode != "none":
        rows = [
            [{"bytes": picture, "path": None} if mode == "embed" else picture for picture in of_one]
            for of_one in pictures
        ]
        field = _make_schema(mode).field(PICTURES)
        found = found.append_column(field, pa.array(rows, field.type))
    return found.cast(_make_schema(mode))


class _ParquetFiles(Sink[_Row]):
    """Parquet files; a new file is started where pictures make one large."""

    def __init__(self, folder: Path, name: str, mode: PictureMode) -> None:
        self._folder = folder
        self._name = name
        self._mode: PictureMode = mode
        self._files: list[Path] = []
        self._rows: list[_Row] = []
        self._held = 0
        """Bytes of pictures in `_rows`."""
        self._written = 0
        """Bytes of pictures in the open file."""
        self._stack = ExitStack()
        self._writer: Any = None

    def __enter__(self) -> "_ParquetFiles":
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            if error is None:
                self._flush()
        except BaseException as failed:
            self._stack.__exit__(type(failed), failed, failed.__traceback__)
            raise
        return self._stack.__exit__(kind, error, trace)

    def add(self, item: _Row) -> None:
        self._rows.append(item)
        self._held += sum(len(picture) for picture in item[1])
        if len(self._rows) >= GROUP_ROWS or self._held >= GROUP_BYTES:
            self._flush()

    @property
    def files(self) -> list[Path]:
        return self._files

    def _open(self) -> None:
        number = f"-{len(self._files):03d}" if self._mode == "embed" else ""
        path = self._folder / f"{self._name}{number}.parquet"
        temporary = self._stack.enter_context(replacing(path))
        self._writer = self._stack.enter_context(
            pq.ParquetWriter(temporary, _make_schema(self._mode), compression="zstd", compression_level=3)
        )
        self._files.append(path)
        self._written = 0

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._written >= FILE_BYTES:
            self._stack.close()
            self._open()
        cases, pictures = zip(*self._rows, strict=True)
        self._writer.write_table(_make_table(cases, pictures, self._mode))
        self._written += self._held
        self._rows, self._held = [], 0
