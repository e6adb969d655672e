"""A benchmark as conversations in JSON lines, for trainers and runners of others.

<out>/train-00000.jsonl ...      one a part of the benchmark and split; `unsplit` where cases have none
<out>/images/<ab>/<name>.png     each picture once, named by its content
<out>/carina.json                counts, sources, checksums
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from carina.cases.benchmark import Benchmark
from carina.cases.messages import messages
from carina.cases.model import Case, without_keys
from carina.cases.render import Views
from carina.exports._exporter import exporter
from carina.exports._folder import Format, LineFile
from carina.exports._pictures import PictureMode, make_address
from carina.exports.chat.layouts import LAYOUTS
from carina.exports.chat.staged import make_staged_record
from carina.store.errors import CarinaError

LayoutName = Literal["openai", "llava", "swift", "staged"]


@exporter(
    name="chat",
    title="conversations in JSON lines, for trainers and runners",
    examples=("--layout swift", "--layout openai --answers without --pictures none"),
)
def chat(
    _bench: Benchmark,
    *,
    layout: Annotated[
        LayoutName,
        Meta(
            description="Layout of a record; staged is the interchange form, which refers to images by key."
        ),
    ] = "openai",
    answers: Annotated[
        Literal["with", "without"], Meta(description="Whether the right answers are written.")
    ] = "with",
    pictures: Annotated[
        PictureMode | None,
        Meta(
            description="none: refer to images by key; copy: PNG files in the folder; embed: PNG in the records. "
            "By default copy; none in the layout staged."
        ),
    ] = None,
    system: Annotated[
        str | None, Meta(description="System message before each conversation; layouts openai and swift.")
    ] = None,
) -> Format[bytes]:
    """Conversations of any benchmark."""
    return ChatFormat(layout, has_answers=answers == "with", pictures=pictures, system=system)


class ChatFormat(Format[bytes]):
    """How conversations are written.

    Raises:
        CarinaError: The layout cannot hold what the options ask for.
    """

    kind = "carina/chat"

    def __init__(
        self,
        layout: LayoutName = "openai",
        *,
        has_answers: bool = True,
        pictures: PictureMode | None = None,
        system: str | None = None,
    ) -> None:
        self._layout = layout
        self._has_answers = has_answers
        self._system = system
        self._pictures: PictureMode = pictures or ("none" if layout == "staged" else "copy")
        if layout == "staged" and self._pictures != "none":
            raise CarinaError("layout staged refers to images by key: pictures must be none")
        if self._pictures == "embed" and layout != "openai":
            raise CarinaError(f"layout {layout} refers to pictures by path: pictures must be none or copy")
        if system is not None and layout not in ("openai", "swift"):
            raise CarinaError(f"layout {layout} has no system message")
        self.options = {
            "layout": layout,
            "answers": has_answers,
            "pictures": self._pictures,
            "system": system,
        }
        without = "" if has_answers else " --answers without"
        self.arguments = f" --layout {layout}{without} --pictures {self._pictures}"
        self.renders = self._pictures != "none"

    def prepare(self, _bench: Benchmark, views: Views, folder: Path, case: Case) -> bytes:
        address = partial(make_address, views, folder, case, mode=self._pictures)
        return msgspec.json.encode(self.record(case, address))

    def record(self, case: Case, address: Callable[[str], str]) -> dict[str, Any]:
        """The record of a case; `address` gives the address of the picture of a view."""
        if not self._has_answers:
            case = without_keys(case)
        if self._layout == "staged":
            return make_staged_record(case, answers=self._has_answers)
        found = LAYOUTS[self._layout](case, messages(case, answers=self._has_answers), address)
        if self._system is not None:
            found["messages"].insert(0, {"role": "system", "content": self._system})
        return found

    def open_sink(self, folder: Path, name: str) -> LineFile:
        return LineFile(folder / f"{name}.jsonl")
