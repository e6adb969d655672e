"""Sets that are joined to another while it is imported: `carina import mimic-cxr-jpg PATH -o OUT --with chexmask=PATH`.

A source that can be joined declares a `Join`: an index of its rows by image, and what the rows of one image add to it.
The key of an image is the path of its file without the ending, or the last part of that path (the dicom_id of MIMIC,
the Image Index of NIH). The index is a small file, so that the rows themselves may be larger than memory and workers
read only those that they need.

Where the joined set publishes a split, it counts for all studies of a patient, also for those without a row: a patient
is in one split.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.sources._added import ADDED_DEFECTS, Addition, add_to_study, unwrap, wrap
from carina.sources._defects import DefectCounts, RecordPlace, list_places
from carina.sources._record import RecordError
from carina.sources._source import Item, Repaired, Source
from carina.sources._tables import RowPlace
from carina.store.errors import CarinaError
from carina.studies.model import Image, Study
from carina.studies.vocabulary import Split

_ROW: Final = np.dtype([("key", "<u8"), ("number", "<i8"), ("start", "<i8"), ("end", "<i8")])
_SPLIT_ROW: Final = np.dtype([("key", "<u8"), ("split", "u1"), ("number", "<i8")])
_SPLITS: Final = get_args(Split)

_BAD_ROW: Final = "a row of the joined set that cannot be read is left out"


class PatientSplit(NamedTuple):
    """The split into which a row of a joined set puts its patient."""

    patient: str
    """As the studies of the other set name the patient."""
    split: Split
    number: int
    """Of the row."""


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
    splits: Callable[[Path], Iterator[PatientSplit]] | None = None
    """From the path of the source to the split of the patient of every row that states one; None where the source has
    no split of its own."""


class JoinedSource(NamedTuple):
    """One source that is joined, and the files of its index."""

    name: str
    path: Path
    index_file: Path
    make: Callable[[Path, Sequence[RowPlace], Image], Addition]
    split_file: Path | None
    """Splits by patient."""


class JoinIndex(NamedTuple):
    """A joined source with the counts of its index."""

    source: JoinedSource
    rows: int
    left_out: Mapping[str, int]
    example: str = ""
    """Name of the image of the first row."""


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
    example = ""
    for entry in join.index(path):
        if isinstance(entry, str):
            left_out[entry] += 1
        else:
            example = example or entry[0]
            found.append((_hash(entry[0]), *entry[1]))
    rows = np.array(found, _ROW)
    rows.sort(order=["key", "number"])
    file = folder / f"{source.name}.npy"
    np.save(file, rows)
    split_file = None
    if join.splits is not None:
        split_file = folder / f"{source.name}.splits.npy"
        np.save(split_file, _index_splits(join.splits(path)))
    return JoinIndex(
        JoinedSource(source.name, path, file, join.make, split_file), len(rows), left_out, example
    )


def _index_splits(found: Iterator[PatientSplit]) -> NDArray[Any]:
    """The first row of every patient, ordered by patient; without patients whom the rows put into several splits."""
    first: dict[str, PatientSplit] = {}
    several: set[str] = set()
    for each in found:
        if first.setdefault(each.patient, each).split != each.split:
            several.add(each.patient)
    rows = np.array(
        [
            (_hash(patient), _SPLITS.index(each.split), each.number)
            for patient, each in first.items()
            if patient not in several
        ],
        _SPLIT_ROW,
    )
    rows.sort(order="key")
    return rows


def find_rows(index: Path, key: str) -> tuple[int, int]:
    """First row of an image in an index, by its key, and the row after its last."""
    keys = _open_index(index)["key"]
    stem = str(PurePosixPath(key).with_suffix(""))
    for name in (stem, stem.rsplit("/", 1)[-1]):
        start, end = (int(np.searchsorted(keys, np.uint64(_hash(name)), side)) for side in ("left", "right"))
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
            start, end = find_rows(one.index_file, image.key)
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
        study = _join_split(study, one, own)
        for defect, place, times in list_places(own, own.places, own.place):
            defects.place = place
            defects[f"{one.name}: {defect}"] += times
    return wrap(item, study, defects)


def _join_split(study: Study, joined: JoinedSource, defects: DefectCounts) -> Study:
    """The study with the split that a joined source states for its patient; counts a difference."""
    if joined.split_file is None:
        return study
    rows, key = _open_index(joined.split_file), np.uint64(_hash(study.patient))
    place = int(np.searchsorted(rows["key"], key))
    if place == len(rows) or rows["key"][place] != key:
        return study
    split = _SPLITS[rows["split"][place]]
    if study.split not in (None, split):
        defects.place = RecordPlace(str(joined.path), int(rows["number"][place]))
        defects["split"] += 1
    return msgspec.structs.replace(study, split=split)


def _hash(key: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )


@lru_cache(maxsize=16)
def _open_index(file: Path) -> NDArray[Any]:
    # Mapped, so that workers share it; a file without rows cannot be.
    rows: NDArray[Any] = np.load(file)
    return np.load(file, mmap_mode="r") if len(rows) else rows
