"""Localisation maps on disk: small grids as a model gives them, with the frame that brings them onto the image.

A set like any other (`carina.store`): parts of Parquet and a manifest, written so that nothing is ever half there.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import numpy as np

from carina import store
from carina.errors import MapsError
from carina.models.frame import Frame, Map
from carina.store import Kind, OpenSet, View, Writer
from carina.studies.model import Record
from carina.studies.vocabulary import Split

_VERSION: Final = (1, 0)


class Placed(Record, frozen=True, kw_only=True):
    """A frame, field by field (`carina.models.frame.Frame`)."""

    height: int
    width: int
    rows: int
    columns: int
    side: int
    top: int
    left: int


class LocalisationMap(Record, frozen=True, kw_only=True):
    """Where a model sees what it was asked for, on one image."""

    id: str
    """Of the case."""
    study: str
    patient: str | None
    split: Split | None
    target: str
    present: bool
    """Whether it is there."""
    positive: tuple[str, ...]
    """Prompts, as they were put to the model."""
    negative: tuple[str, ...] = ()
    placed: Placed
    rows: int
    columns: int
    grid: bytes
    """16-bit floats, row by row, little-endian, over the whole square of the frame: how far each value lies below the
    highest, as a share of the range. So the finest steps are at the peak, whatever the scale of the map."""
    highest: float
    range: float
    score: float | None = None
    """How well image and prompts agree; None for maps without a model."""
    against: float | None = None
    """The same for the negative prompts."""

    @property
    def frame(self) -> Frame:
        return Frame(**msgspec.structs.asdict(self.placed))

    @property
    def values(self) -> Map:
        """The grid as the model gave it."""
        below = np.frombuffer(self.grid, "<f2").reshape(self.rows, self.columns).astype(np.float64)
        return np.asarray(self.highest - self.range * below, np.float32)

    @property
    def recognised(self) -> float | None:
        """What the presence of the finding is told by: the score, less that of the negative prompts."""
        if self.score is None:
            return None
        return self.score - (self.against or 0.0)

    @property
    def probability(self) -> float | None:
        """Of the finding, where its presence is set against its absence; else a number that rises with the score."""
        return None if self.recognised is None else logistic(self.recognised)


def logistic(value: float) -> float:
    """From any number to one between 0 and 1."""
    return (1 + math.tanh(value / 2)) / 2


def placed(frame: Frame) -> Placed:
    return Placed(
        height=frame.height,
        width=frame.width,
        rows=frame.rows,
        columns=frame.columns,
        side=frame.side,
        top=frame.top,
        left=frame.left,
    )


class Packed(NamedTuple):
    """A grid as it is stored."""

    grid: bytes
    highest: float
    range: float


def packed(values: Map) -> Packed:
    """A grid as 16-bit floats; a value that is no number stays none."""
    known = values[np.isfinite(values)].astype(np.float64)
    highest = float(known.max()) if known.size else 0.0
    extent = highest - float(known.min()) if known.size else 0.0
    below = (
        (highest - values.astype(np.float64)) / extent
        if extent
        else np.where(np.isfinite(values), 0.0, np.nan)
    )
    return Packed(np.where(np.isfinite(values), below, np.nan).astype("<f2").tobytes(), highest, extent)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    maps: int
    present: int
    targets: dict[str, int]


class Manifest(store.Manifest, frozen=True, kw_only=True):
    """`maps.json`, field by field."""

    counts: Counts


class Provenance(store.Provenance, frozen=True, kw_only=True):
    """What maps are made from, as told by the command that makes them."""

    stamp: ClassVar[str] = f"{store.MAPS.kind} {'.'.join(map(str, _VERSION))}"


def _count(batches: Iterable[Any]) -> Counts:
    maps, present = 0, 0
    targets: dict[str, int] = {}
    for batch in batches:
        maps += batch.num_rows
        present += sum(batch.column("present").to_pylist())
        for (target,), times in store.tally(batch.to_struct_array(), "target").items():
            targets[target] = targets.get(target, 0) + times
    return Counts(maps=maps, present=present, targets=dict(sorted(targets.items())))


def _faults(record: LocalisationMap) -> Iterator[str]:
    if len(record.grid) != 2 * record.rows * record.columns:
        yield (
            f"grid: holds {len(record.grid)} bytes, expected {2 * record.rows * record.columns} for "
            f"{record.rows} x {record.columns} numbers of 16 bits"
        )


_MAPS: Final = Kind(
    layout=store.MAPS,
    noun="map",
    record=LocalisationMap,
    version=_VERSION,
    error=MapsError,
    manifest=Manifest,
    faults=_faults,
    counted=("id", "present", "target"),
    count=_count,
    row_group=256,
    statistics=("id", "study", "patient", "split", "target"),
    unrepeated=("grid", "score", "against"),
)

_WRITER: Final = Writer(_MAPS)
claim = _WRITER.claim
write_part = _WRITER.write_part
finished_part = _WRITER.finished_part
whole_set = _WRITER.whole_set
write_manifest = _WRITER.write_manifest


@dataclass(frozen=True, eq=False, repr=False)
class Maps(View[LocalisationMap, Manifest]):
    """The maps of a run."""


def open_maps(path: str | Path, *, verify: bool = True) -> Maps:
    """The maps in a directory (or named by its `maps.json`)."""
    return Maps(OpenSet(_MAPS, Path(path), verify=verify))
