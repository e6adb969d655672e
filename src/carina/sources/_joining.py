"""Sets that are joined to another while it is imported: `carina import mimic-cxr-jpg PATH -o OUT --with chexmask=PATH`.

A source that can be joined declares a `Join`: an index of its rows by image, and what the rows of one image add to it.
The key of an image is the path of its file without the ending, or the last part of that path (the dicom_id of MIMIC,
the Image Index of NIH). The index is a small file, so that the rows themselves may be larger than memory and workers
read only those that they need.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.sources._added import ADDED_DEFECTS, Addition, add_to_study, unwrap, wrap
from carina.sources._defects import DefectCounts, RecordPlace, list_places
from carina.sources._record import RecordError
from carina.sources._source import Item, Repaired, Source
from carina.sources._tables import RowPlace
from carina.store.errors import CarinaError
from carina.studies.model import Image, Study

_ROW: Final = np.dtype([("key", "<u8"), ("number", "<i8"), ("start", "<i8"), ("end", "<i8")])

_BAD_ROW: Final = "a row of the joined set that cannot be read is left out"


@dataclass(frozen=True, kw_only=True)
class Join:
    """How a source is joined to the studies of another."""

    key: str
    """What identifies an image, in words."""
    index: Callable[[Path], Iterator[tuple[str, RowPlace] | str]]
    """From the path of the source to the key of an image and the place of a row, for every row; or the reason why a row
    is left out."""
    make: Callable[[Path, Sequence[RowPlace], Image], Addition]
    """From the path, the rows of one image and the image of the other source to what they add."""


class JoinedSource(NamedTuple):
    """One source that is joined, and the file of its index."""

    name: str
    path: Path
    index_file: Path
    make: Callable[[Path, Sequence[RowPlace], Image], Addition]


class JoinIndex(NamedTuple):
    """A joined source with the counts of its index."""

    source: JoinedSource
    rows: int
    left_out: Mapping[str, int]


def get_join(source: Source) -> Join:
    """What the source declares.

    Raises:
        CarinaError: It cannot be joined.
    """
    if not isinstance(source.join, Join):
        raise CarinaError(f"source {source.name} cannot be joined to another: use its own import")
    return source.join


def joined_defects(sources: Sequence[Source]) -> dict[str, str]:
    """Defects of what joined sources add, by their names with the name of the source before them."""
    return {
        f"{source.name}: {defect}": done
        for source in sources
        for defect, done in {**source.defects, **ADDED_DEFECTS, "row": _BAD_ROW}.items()
    }


def build_index(source: Source, path: Path, folder: Path) -> JoinIndex:
    """Read a source that is joined once, and write its index into a folder."""
    join = get_join(source)
    left_out: Counter[str] = Counter()
    found: list[tuple[int, int, int, int]] = []
    for entry in join.index(path):
        if isinstance(entry, str):
            left_out[entry] += 1
        else:
            found.append((_hash(entry[0]), *entry[1]))
    rows = np.array(found, _ROW)
    rows.sort(order=["key", "number"])
    file = folder / f"{source.name}.npy"
    np.save(file, rows)
    return JoinIndex(JoinedSource(source.name, path, file, join.make), len(rows), left_out)


def find_rows(index: Path, image: Image) -> tuple[int, int]:
    """First row of an image in an index, and the row after its last."""
    keys = _open_index(index)["key"]
    stem = str(PurePosixPath(image.key).with_suffix(""))
    for key in (stem, stem.rsplit("/", 1)[-1]):
        start, end = (int(np.searchsorted(keys, np.uint64(_hash(key)), side)) for side in ("left", "right"))
        if start < end:
            return start, end
    return 0, 0


def add_joined(joined: Sequence[JoinedSource], item: Item) -> Item:
    """The item with what the joined sources add to its images."""
    if not isinstance(item, Study | Repaired) or (
        isinstance(item, Repaired) and not isinstance(item.record, Study)
    ):
        return item
    study, defects = unwrap(item)
    for one in joined:
        own = DefectCounts()
        for image in study.images:
            start, end = find_rows(one.index_file, image)
            places = [
                RowPlace(int(row["number"]), int(row["start"]), int(row["end"]))
                for row in _open_index(one.index_file)[start:end]
            ]
            if not places:
                continue
            own.place = RecordPlace(str(one.path), places[0].number)
            try:
                addition = one.make(one.path, places, image)
                study = add_to_study(study, addition, own)
            except RecordError:
                own["row"] += 1
        for defect, place, times in list_places(own, own.places, own.place):
            defects.place = place
            defects[f"{one.name}: {defect}"] += times
    return wrap(item, study, defects)


def _hash(key: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


@lru_cache(maxsize=16)
def _open_index(file: Path) -> NDArray[Any]:
    # Mapped, so that workers share it; a file without rows cannot be.
    rows: NDArray[Any] = np.load(file)
    return np.load(file, mmap_mode="r") if len(rows) else rows
