"""A bundle as a stream of cases, each record checked by itself: one that is wrong does not stop the others."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from carina.cases.model import Case
from carina.percept.bundle import layout
from carina.percept.bundle.case import case_of, target_of
from carina.percept.bundle.faults import BundleError, Reason, RecordError, told
from carina.percept.bundle.keys import merge
from carina.percept.bundle.patients import Patients
from carina.percept.bundle.pictures import probe
from carina.percept.bundle.scan import Entry, entries
from carina.workers import in_order


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A record that cannot be used, and why."""

    key_id: str
    study: str
    target: str
    field: str
    reason: Reason
    message: str
    """A sentence that names the file, the record and the field."""


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What stands in the file before any of it is believed."""

    records: int
    repeated: frozenset[str]
    """Names that several records have: none of them can be told from the other."""
    keys: dict[str, Any] | None
    """What is right, by record, where it lies in a file of its own."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    entry: Entry
    repeated: bool
    keys: object
    patient: str | None


def survey(bundle: Path) -> Survey:
    """Go through the file once; raises `BundleError` where it is not a bundle at all."""
    seen = Counter(entry.key_id for entry in entries(bundle / layout.RECORDS))
    if not seen:
        raise BundleError(f"{bundle / layout.RECORDS}: holds no record")
    return Survey(
        records=seen.total(),
        repeated=frozenset(key_id for key_id, times in seen.items() if times > 1),
        keys=_separate_keys(bundle / layout.KEYS),
    )


def read_bundle(
    bundle: Path, found: Survey, *, patients: Patients | None = None, workers: int = 1
) -> Iterator[Case | Skipped]:
    """Each record as a case, or what is wrong with it, in the order of the file."""
    yield from in_order(partial(_read, bundle), _tasks(bundle, found, patients), workers=workers)


def _tasks(bundle: Path, found: Survey, patients: Patients | None) -> Iterator[_Task]:
    for entry in entries(bundle / layout.RECORDS):
        patient = patients and patients.find(key_id=entry.key_id, dicom_id=_study(entry))
        yield _Task(
            entry=entry,
            repeated=entry.key_id in found.repeated,
            keys=found.keys.get(entry.key_id) if found.keys is not None else None,
            patient=patient or None,
        )


def _read(bundle: Path, task: _Task) -> Case | Skipped:
    entry = task.entry
    try:
        return _case(bundle, task)
    except RecordError as error:
        return Skipped(
            key_id=entry.key_id,
            study=_study(entry),
            target=target_of(entry.key_id),
            field=error.field,
            reason=error.reason,
            message=f"{bundle / layout.RECORDS}: {told(entry.key_id)}: {error}",
        )


def _case(bundle: Path, task: _Task) -> Case:
    entry = task.entry
    if task.repeated:
        raise RecordError("json", "", "several records have this key_id")
    if entry.faults:
        raise RecordError("json", "", entry.faults[0])
    record = merge(entry.record, task.keys)
    return case_of(entry.key_id, record, partial(probe, bundle), patient=task.patient)


def _study(entry: Entry) -> str:
    study = entry.record.get("dicom_id") if isinstance(entry.record, dict) else None
    return study if isinstance(study, str) else ""


def _separate_keys(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    found: dict[str, Any] = {}
    for entry in entries(path):
        if entry.faults or entry.key_id in found:
            raise BundleError(
                f"{path}: {told(entry.key_id)}: {entry.faults[0] if entry.faults else 'is there twice'}"
            )
        found[entry.key_id] = entry.record
    return found
