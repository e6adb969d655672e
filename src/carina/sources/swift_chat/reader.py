"""The reader of files of conversations, in the memory of a few records."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, cast

from msgspec import Meta

from carina.sources._json import Entry, read_entries
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Inputs, Repaired, Skipped, Stream, source
from carina.sources.swift_chat.case import read_case
from carina.sources.swift_chat.record import REMEDIES

_ENDINGS: Final = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_OWN_MANIFEST: Final = "carina.json"
"""Lies beside the conversations that `carina export` writes."""
_BATCH: Final = 32
"""Records handed to a worker at a time."""


def list_files(path: Path) -> list[Path]:
    """The file itself, or the JSON files of a folder in order of name.

    Raises:
        SourceError: There is none.
    """
    if not path.is_dir():
        if not path.exists():
            raise SourceError(f"{path}: no such file")
        return [path]
    found = sorted(
        file
        for file in path.iterdir()
        if file.name.endswith(_ENDINGS) and file.name != _OWN_MANIFEST and not file.name.startswith(".")
    )
    if not found:
        raise SourceError(f"{path}: holds no file that ends with {', '.join(_ENDINGS)}")
    return found


def _list_inputs(path: Path) -> Inputs:
    return {"files": {file.name: file for file in list_files(path)}}


def _count_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in list_files(path))


@source(
    name="swift-chat",
    title="Staged conversations in the layout of CXRTrek's sample",
    needs="a file .json or .jsonl (also .gz) of conversations, or a folder of them; becomes a benchmark, not studies.",
    tree="""
    conversations.jsonl    or .json, also .gz, or several of them
    ...                    the images, in the paths that the conversations name, or below --images
    """,
    licence="That of your copy: the text comes from credentialed reports, and Carina brings none.",
    truth=("questions", "keys", "boxes"),
    brings="cases",
    url="https://arxiv.org/abs/2505.23143",
    inputs=_list_inputs,
    image_root="images",
    defects=cast("dict[str, str]", REMEDIES),
    second_id="second case of a study",
    measure=_count_bytes,
    unit="bytes",
)
def read_conversations(
    path: Path,
    *,
    images: Annotated[
        Path | None, Meta(description="Folder of the image files; without it, sizes of images are unknown.")
    ] = None,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> Stream:
    """The conversations of a file, or of the files of a folder."""
    root = None if images is None else images.resolve()
    for file in list_files(path):
        before = 0
        for batch in _make_batches(read_entries(file)):
            yield partial(_read_batch, file, root, batch)
            advance(batch[-1].end - before)
            before = batch[-1].end


def _make_batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    while batch := list(islice(entries, _BATCH)):
        yield batch


def _read_batch(file: Path, images: Path | None, batch: list[Entry]) -> list[Repaired | Skipped]:
    return [_read_entry(file, images, entry) for entry in batch]


def _read_entry(file: Path, images: Path | None, entry: Entry) -> Repaired | Skipped:
    try:
        found = read_case(entry.content, images=images)
    except RecordError as error:
        fault = error
    except (ValueError, OverflowError, RecursionError) as error:
        # Such as a number of thousands of digits: one record, not the import.
        fault = RecordError("record", f"cannot be read: {str(error)[:200]}")
    else:
        return Repaired(
            record=found.case,
            number=entry.number,
            file=str(file),
            defects=cast("dict[str, int]", dict(found.defects)),
            unmapped=tuple(found.unmapped),
        )
    return Skipped(
        place=f"{file}: record {entry.number}", field=fault.field, reason=fault.reason, kind=fault.field
    )
