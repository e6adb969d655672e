"""What workers make of the items of a reader: records as columns, and what the process that writes them has to know.

Records are sent as columns: the process that writes them, of which there is one, has not to decode and convert each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from carina.cases import Case
from carina.cases import store as benchmarks
from carina.sources._defects import DefectPlaces, RecordPlace
from carina.sources._imported import RecordCounts
from carina.sources._joining import JoinedSource, add_joined
from carina.sources._plausibility import CheckedItem, LookAtImages
from carina.sources._source import Brings, Call, Item, Repaired, Skipped, WithImages
from carina.store.garbage import collect_rarely
from carina.store.parts import pack_records
from carina.studies import Study
from carina.studies import store as study_sets
from carina.studies.plausibility import PlausibilityResult

_NONE: Final[Mapping[str, Any]] = {}


def get_kind(brings: Brings) -> Any:  # noqa: ANN401 - of one kind of set or the other
    """The kind of set that a source becomes."""
    return study_sets.STUDIES if brings == "studies" else benchmarks.CASES


class RecordDefects(NamedTuple):
    """What was wrong in a record that is used, as `Repaired` says it."""

    times: Mapping[str, int] = _NONE
    place: RecordPlace = RecordPlace()
    places: DefectPlaces = _NONE
    unmapped: tuple[str, ...] = ()


class EvaluatedRecord(NamedTuple):
    """What the process that writes a record has to know of it."""

    id: str
    row: int
    """Number of the row in the columns of its batch."""
    images: tuple[tuple[str, str | None], ...]
    """Key and SHA-256 of each image."""
    counts: RecordCounts
    defects: RecordDefects | None = None
    files: Mapping[str, bytes] = _NONE
    """Image files that the reader made."""


class EvaluatedItem(NamedTuple):
    """An item of a reader, and what was found in its images."""

    outcome: EvaluatedRecord | Skipped
    plausibility: PlausibilityResult | None = None
    """None where nobody has looked."""


class EvaluatedBatch(NamedTuple):
    """Several items of a reader."""

    found: list[list[EvaluatedItem]]
    """What each of them gives."""
    columns: bytes
    """The records, as `pack_records` packs them; empty where there is none."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Makes the records of several items, with what is joined to them, and checks each; sent to worker processes."""

    source: str
    brings: Brings
    place: str
    """Where the items come from, for messages."""
    joined: Sequence[JoinedSource] = ()
    """Sources to join."""
    look: LookAtImages | None = None
    """Opens the images."""

    def __call__(self, batch: Sequence[Item | Call]) -> EvaluatedBatch:
        """What each item gives."""
        kind = get_kind(self.brings)
        records: list[Study | Case] = []
        with collect_rarely():
            found = [[self._evaluate(kind, one, records) for one in self._make(item)] for item in batch]
            return EvaluatedBatch(found, pack_records(kind, records, self.place) if records else b"")

    def _make(self, item: Item | Call) -> Iterable[Item]:
        found = item() if callable(item) else [item]
        return [add_joined(self.joined, one) for one in found] if self.joined else found

    def _evaluate(self, kind: Any, item: Item, records: list[Study | Case]) -> EvaluatedItem:  # noqa: ANN401 - of one kind of set or the other
        """One item; its record, where it can be used, is added to those of the batch."""
        checked = CheckedItem(self._check_record(kind, item))
        if self.look is not None:
            checked = self.look(checked.item)
        used = checked.item
        if isinstance(used, Skipped):
            return EvaluatedItem(used, checked.plausibility)
        files: Mapping[str, bytes] = _NONE
        if isinstance(used, WithImages):
            files, used = used.files, used.item
        defects = None
        if isinstance(used, Repaired):
            defects = RecordDefects(used.defects, used.place, used.places, used.unmapped)
            used = used.record
        images = tuple((image.key, image.sha256) for image in used.images)
        record = EvaluatedRecord(used.id, len(records), images, RecordCounts.of(used), defects, files)
        records.append(used)
        return EvaluatedItem(record, checked.plausibility)

    def _check_record(self, kind: Any, item: Item) -> Item:  # noqa: ANN401 - of one kind of set or the other
        """The record, or the reason why it cannot be stored."""
        if isinstance(item, Skipped):
            return item
        used = item.item if isinstance(item, WithImages) else item
        record = used.record if isinstance(used, Repaired) else used
        if not isinstance(record, kind.record):
            raise TypeError(
                f"the reader of {self.source} yields {type(record).__name__}, but brings {self.brings}"
            )
        fault = next(iter(kind.faults(record)), None)
        if fault is None:
            return item
        target = (record.target if isinstance(record, Case) else None) or ""
        study = record.study if isinstance(record, Case) else record.id
        return Skipped(
            place=f"{self.place}: {record.id}", reason=fault, kind="record", study=study, target=target
        )
