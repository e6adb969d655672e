"""A benchmark as a folder that `datasets.load_dataset` opens.

<out>/README.md                    the data card; its head says which files are which split
<out>/croissant.json               the same for machines, after MLCommons Croissant
<out>/data/train-00000.parquet     one or more a part of the benchmark and split
<out>/images/<ab>/<name>.png       pictures, where copies are asked for
<out>/carina.json                  counts, sources, checksums
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from carina.cases import store
from carina.cases.benchmark import Benchmark, open_benchmark
from carina.cases.chat import pictures as placed
from carina.cases.chat.folder import ExportManifest, Sink, export_folder
from carina.cases.chat.pictures import Mode
from carina.cases.hub.card import card
from carina.cases.hub.columns import Picture, published, schema, table
from carina.cases.hub.croissant import croissant
from carina.cases.model import Case
from carina.cases.render import Views
from carina.files import replacing, write_bytes

KIND: Final = "carina/hf"
DATA: Final = "data"
CARD: Final = "README.md"
CROISSANT: Final = "croissant.json"
GROUP_ROWS: Final = 128
GROUP_BYTES: Final = 1 << 25
"""Of pictures: what is held in memory at a time."""
FILE_BYTES: Final = 400 << 20
"""Of pictures in one file: the hub advises against files beyond 500 MB."""

_Row = tuple[Case, list[Picture]]


class HubOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the folder is written."""

    answers: bool = True
    pictures: Mode = "none"


def export_hub(
    directory: Path,
    out: Path,
    options: HubOptions,
    *,
    images: Path | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> ExportManifest:
    """Write the benchmark in `directory` to `out`, as `export_folder` does."""
    name = directory.resolve().name
    command = f"carina export {name} --to hf"
    command += "" if options.answers else " --answers without"
    command += f" --pictures {options.pictures}"
    form = _Hub(name, open_benchmark(directory).manifest.counts, options)
    return export_folder(
        directory, out, form, command=command, images=images, workers=workers, progress=progress
    )


class _Hub:
    kind: Final = KIND

    def __init__(self, name: str, counts: store.Counts, options: HubOptions) -> None:
        self._name = name
        self._counts = counts
        self._options = options

    @property
    def options(self) -> dict[str, Any]:
        return {"answers": self._options.answers, "pictures": self._options.pictures, "name": self._name}

    def ready(self, _bench: Benchmark, views: Views, target: Path, case: Case) -> _Row:
        drawn: list[Picture] = []
        if self._options.pictures != "none":
            for view in case.views:
                content = views.png(case, view.id)
                drawn.append(placed.place(target, content) if self._options.pictures == "copy" else content)
        return published(case, answers=self._options.answers), drawn

    def sink(self, target: Path, name: str) -> "_Tables":
        return _Tables(target / DATA, name, self._options.pictures)

    def close(self, target: Path, manifest: ExportManifest) -> list[Path]:
        write_bytes(target / CARD, card(self._name, manifest, self._counts).encode())
        described = msgspec.json.encode(croissant(self._name, manifest))
        write_bytes(target / CROISSANT, msgspec.json.format(described, indent=2) + b"\n")
        return [target / CARD, target / CROISSANT]


class _Tables(Sink[_Row]):
    """Parquet files, a new one begun where pictures make one large."""

    def __init__(self, folder: Path, name: str, mode: Mode) -> None:
        self._folder = folder
        self._name = name
        self._mode: Mode = mode
        self._files: list[Path] = []
        self._rows: list[_Row] = []
        self._held = 0
        """Bytes of pictures in `_rows`."""
        self._written = 0
        """Bytes of pictures in the open file."""
        self._stack = ExitStack()
        self._writer: Any = None

    def __enter__(self) -> "_Tables":
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
            pq.ParquetWriter(temporary, schema(self._mode), compression="zstd", compression_level=3)
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
        self._writer.write_table(table(cases, pictures, self._mode))
        self._written += self._held
        self._rows, self._held = [], 0
