"""A benchmark as conversations in JSON lines, for trainers and runners of others.

<out>/train-00000.jsonl ...      one a part of the benchmark and split; `unsplit` where cases have none
<out>/images/<ab>/<name>.png     each picture once, named by its content
<out>/carina.json                counts, sources, checksums
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Literal

import msgspec

from carina.cases.benchmark import Benchmark
from carina.cases.chat.folder import ExportManifest, Sink, export_folder
from carina.cases.chat.layouts import LAYOUTS
from carina.cases.chat.messages import messages
from carina.cases.chat.pictures import Mode, refer
from carina.cases.chat.staged import staged
from carina.cases.model import Case, without_keys
from carina.cases.render import Views
from carina.errors import CarinaError
from carina.files import replacing

KIND: Final = "carina/chat"
LayoutName = Literal["openai", "llava", "swift", "staged"]
NAMES: Final[tuple[LayoutName, ...]] = ("openai", "llava", "swift", "staged")


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How conversations are written; `CarinaError` for what a layout cannot hold."""

    layout: LayoutName = "openai"
    answers: bool = True
    pictures: Mode | None = None
    """None stands for what the layout is made for: keys in `staged`, copies in the others."""
    system: str | None = None
    """A message before the conversation."""

    def __post_init__(self) -> None:
        if self.layout == "staged" and self.mode != "none":
            raise CarinaError("--layout staged refers to images by key: it takes no pictures but none")
        if self.pictures == "embed" and self.layout != "openai":
            raise CarinaError(f"--layout {self.layout} refers to pictures by path: none or copy, not embed")
        if self.system is not None and self.layout not in ("openai", "swift"):
            raise CarinaError(f"--layout {self.layout} has no system message")

    @property
    def mode(self) -> Mode:
        return self.pictures or ("none" if self.layout == "staged" else "copy")


def record(case: Case, options: ChatOptions, address: Callable[[str], str]) -> dict[str, Any]:
    """The record of a case in a layout; `address` says where the picture of a view is."""
    if not options.answers:
        case = without_keys(case)
    if options.layout == "staged":
        return staged(case, answers=options.answers)
    found = LAYOUTS[options.layout](case, messages(case, answers=options.answers), address)
    if options.system is not None:
        found["messages"].insert(0, {"role": "system", "content": options.system})
    return found


def export_chat(
    directory: Path,
    out: Path,
    options: ChatOptions,
    *,
    images: Path | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> ExportManifest:
    """Write the conversations of the benchmark in `directory` to `out`, as `export_folder` does."""
    command = f"carina export {directory.resolve().name} --to chat --layout {options.layout}"
    command += "" if options.answers else " --answers without"
    command += f" --pictures {options.mode}"
    return export_folder(
        directory, out, _Chat(options), command=command, images=images, workers=workers, progress=progress
    )


class _Chat:
    kind: Final = KIND

    def __init__(self, options: ChatOptions) -> None:
        self._options = options

    @property
    def options(self) -> dict[str, Any]:
        given = self._options
        return {
            "layout": given.layout,
            "answers": given.answers,
            "pictures": given.mode,
            "system": given.system,
        }

    def ready(self, _bench: Benchmark, views: Views, target: Path, case: Case) -> bytes:
        address = partial(refer, views, target, case, mode=self._options.mode)
        return msgspec.json.encode(record(case, self._options, address))

    def sink(self, target: Path, name: str) -> "_Lines":
        return _Lines(target / f"{name}.jsonl")

    def close(self, _target: Path, _manifest: ExportManifest) -> list[Path]:
        return []


class _Lines(Sink[bytes]):
    """A file with one record a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()
        self._file: BinaryIO

    def __enter__(self) -> "_Lines":
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
