"""Localisation maps on disk: the small grids that a model gives, with the frame that places them on the image.

Stored as a set (`carina.store`): Parquet parts and a manifest, each written completely or not at all.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import numpy as np

from carina import store
from carina.explanations.layout import LAYOUT
from carina.models.frame import Frame, Map
from carina.store import Kind, OpenSet, View, Writer
from carina.store.errors import MapsError
from carina.studies.model import Record
from carina.studies.pixels import MAX_PIXELS
from carina.studies.vocabulary import Split

_VERSION: Final = (1, 0)


class StoredFrame(Record, frozen=True, kw_only=True):
    """A stored `carina.models.frame.Frame`, with the same fields."""

    height: int
    width: int
    rows: int
    columns: int
    side: int
    top: int
    left: int


class LocalisationMap(Record, frozen=True, kw_only=True):
    """The localisation map of one probe, as it is stored."""

    id: str
    """Id of the case."""
    study: str
    patient: str | None
    split: Split | None
    target: str
    present: bool
    """Whether the finding is present."""
    positive: tuple[str, ...]
    """Prompts for the finding, as the model got them."""
    negative: tuple[str, ...] = ()
    placed: StoredFrame
    rows: int
    columns: int
    grid: bytes
    """Cells over the whole square of the frame, row by row, as little-endian 16-bit floats: the distance of each value
    below the highest, as a share of the range. Steps are finest at the peak, whatever the scale of the map."""
    highest: float
    range: float
    score: float | None = None
    """Agreement of the image with the prompts; None for maps without a model."""
    against: float | None = None
    """Agreement of the image with the negative prompts."""

    @property
    def frame(self) -> Frame:
        return Frame(**msgspec.structs.asdict(self.placed))

    @property
    def values(self) -> Map:
        """The grid as the model gave it.

        Raises:
            MapsError: The grid holds more or fewer numbers than the record states.
        """
        for fault in _faults(self):
            raise MapsError(f"map {self.id!r}: {fault}")
        below = np.frombuffer(self.grid, "<f2").reshape(self.rows, self.columns).astype(np.float64)
        return np.asarray(self.highest - self.range * below, np.float32)

    @property
    def recognised(self) -> float | None:
        """Score for the presence of the finding: that of the prompts minus that of the negative prompts."""
        if self.score is None:
            return None
        return self.score - (self.against or 0.0)

    @property
    def probability(self) -> float | None:
        """Probability of the finding where the model has negative prompts; else a number that rises with the score."""
        return None if self.recognised is None else logistic(self.recognised)


def logistic(value: float) -> float:
    """The logistic function."""
    return (1 + math.tanh(value / 2)) / 2


def store_frame(frame: Frame) -> StoredFrame:
    return StoredFrame(
        height=frame.height,
        width=frame.width,
        rows=frame.rows,
        columns=frame.columns,
        side=frame.side,
        top=frame.top,
        left=frame.left,
    )


class PackedGrid(NamedTuple):
    """The stored form of a grid."""

    grid: bytes
    highest: float
    range: float


def pack_grid(values: Map) -> PackedGrid:
    """Pack a grid as 16-bit floats; values that are not finite become NaN."""
    known = values[np.isfinite(values)].astype(np.float64)
    highest = float(known.max()) if known.size else 0.0
    extent = highest - float(known.min()) if known.size else 0.0
    below = (
        (highest - values.astype(np.float64)) / extent
        if extent
        else np.where(np.isfinite(values), 0.0, np.nan)
    )
    return PackedGrid(np.where(np.isfinite(values), below, np.nan).astype("<f2").tobytes(), highest, extent)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    maps: int
    present: int
    targets: dict[str, int]


class Manifest(store.Manifest, frozen=True, kw_only=True):
    """`maps.json`, field by field."""

    counts: Counts


class Provenance(store.Provenance, frozen=True, kw_only=True):
    """Command, seed, options and sources of the maps."""

    stamp: ClassVar[str] = f"{LAYOUT.kind} {'.'.join(map(str, _VERSION))}"


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
    if min(record.rows, record.columns) < 1:
        yield f"grid: {record.rows} x {record.columns} cells, expected 1 x 1 or more"
    elif len(record.grid) != 2 * record.rows * record.columns:
        yield (
            f"grid: holds {len(record.grid)} bytes, expected {2 * record.rows * record.columns} for "
            f"{record.rows} x {record.columns} numbers of 16 bits"
        )
    for name in ("highest", "range", "score", "against"):
        number = getattr(record, name)
        if number is not None and not math.isfinite(number):
            yield f"{name}: {number}, expected a finite number"
    placed = record.placed
    sizes = (placed.height, placed.width, placed.rows, placed.columns, placed.side)
    if min(sizes) < 1 or max(sizes) > MAX_PIXELS or placed.height * placed.width > MAX_PIXELS:
        yield f"placed: a frame of {placed.height} x {placed.width} in a square of {placed.side} pixels"


MAPS: Final = Kind(
    layout=LAYOUT,
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

_WRITER: Final = Writer(MAPS)
create_maps = _WRITER.create
write_part = _WRITER.write_part
complete_part = _WRITER.complete_part


@dataclass(frozen=True, eq=False, repr=False)
class Maps(View[LocalisationMap, Manifest]):
    """The localisation maps of a run."""


def open_maps(path: str | Path, *, verify: bool = True) -> Maps:
    """Open the maps in a directory, which may also be named by its `maps.json`.

    Raises:
        MapsError: There are no maps, or they are damaged.
    """
    return Maps(OpenSet(MAPS, Path(path), verify=verify))
