"""The reader of published bundles: each record is checked by itself, so one that is wrong does not stop the others."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

from msgspec import Meta

from carina.cases.model import Case
from carina.sources._json import Entry, decode_checked, read_entries
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._source import Inputs, Skipped, Stream, source
from carina.sources.chexpercept import layout
from carina.sources.chexpercept.case import inspect_picture, read_case, read_target

_IMAGE_COLUMNS: Final = ("key_id", "dicom_id")
_PATIENT_COLUMNS: Final = ("patient", "subject_id")


def _list_inputs(bundle: Path) -> Inputs:
    return {"records": bundle / layout.RECORDS, "keys": bundle / layout.KEYS}


def _count_records(bundle: Path) -> int:
    return survey_bundle(bundle).records


@source(
    name=layout.NAME,
    title="CheXpercept, a published bundle",
    needs=f"{layout.RECORDS} and the folder {layout.PICTURES}/ beside it; becomes a benchmark, not studies.",
    tree="""
    chexpercept.json
    chexpercept/
      ...       a folder a case, with its PNG files
    """,
    licence="That of your copy: its images are of a credentialed source, and Carina brings none.",
    truth=("questions", "keys"),
    brings="cases",
    url="https://arxiv.org/abs/2606.21020",
    inputs=_list_inputs,
    measure=_count_records,
)
def read_bundle(
    path: Path,
    *,
    patients: Annotated[
        Path | None,
        Meta(
            description="CSV table (.csv or .csv.gz) of patients: a column dicom_id or key_id, and a column patient or "
            "subject_id. Without it the patients are unknown."
        ),
    ] = None,
) -> Stream:
    """The records of a bundle, in the order of its file."""
    found = survey_bundle(path)
    table = _PatientTable.at(patients) if patients else None
    for entry in read_entries(path / layout.RECORDS, "named records"):
        keys = found.keys.get(entry.name) if found.keys is not None else None
        yield partial(
            _read_entry, path, entry, is_repeated=entry.name in found.repeated, keys=keys, patients=table
        )


@dataclass(frozen=True, kw_only=True)
class BundleSurvey:
    """Facts about a file that are needed before its records are read."""

    records: int
    repeated: frozenset[str]
    """Names that several records have, so that none of these records can be identified."""
    keys: dict[str, Any] | None
    """Answer keys by record, where they are in a file of their own."""


def survey_bundle(bundle: Path) -> BundleSurvey:
    """Survey the file in one pass.

    Raises:
        SourceError: It is not a bundle.
    """
    file = bundle / layout.RECORDS
    if not file.is_file():
        raise SourceError(f"{file}: missing, so {bundle} is not a CheXpercept bundle")
    stated = file.stat()
    return _survey_once(bundle, stated.st_mtime_ns, stated.st_size)


@lru_cache(maxsize=1)
def _survey_once(bundle: Path, _modified: int, _size: int) -> BundleSurvey:
    """Once for the progress bar and the reader."""
    seen = Counter(entry.name for entry in read_entries(bundle / layout.RECORDS, "named records"))
    if not seen:
        raise SourceError(f"{bundle / layout.RECORDS}: holds no record")
    return BundleSurvey(
        records=seen.total(),
        repeated=frozenset(name for name, times in seen.items() if times > 1),
        keys=_read_separate_keys(bundle / layout.KEYS),
    )


def _read_separate_keys(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    found: dict[str, Any] = {}
    for entry in read_entries(path, "named records"):
        called = printable(entry.name)
        if entry.name in found:
            raise SourceError(f"{path}: {called}: is given twice")
        try:
            found[entry.name] = decode_checked(entry.content)
        except RecordError as error:
            raise SourceError(f"{path}: {called}: {error}") from error
    return found


# ---- one record -----------------------------------------------------------------------------------------------------


def _read_entry(
    bundle: Path, entry: Entry, *, is_repeated: bool, keys: object, patients: "_PatientTable | None"
) -> list[Case | Skipped]:
    """A record as a case, or what is wrong with it."""
    record: Any = None
    try:
        record = decode_checked(entry.content)
        return [_make_case(bundle, entry.name, record, is_repeated=is_repeated, keys=keys, patients=patients)]
    except RecordError as error:
        return [
            Skipped(
                place=f"{bundle / layout.RECORDS}: {printable(entry.name)}",
                field=error.field,
                reason=error.reason,
                kind=error.kind,
                study=printable(_study_id(record)),
                target=printable(read_target(entry.name)),
                stage=error.field.partition("[")[0],
            )
        ]


def _make_case(
    bundle: Path,
    key_id: str,
    record: object,
    *,
    is_repeated: bool,
    keys: object,
    patients: "_PatientTable | None",
) -> Case:
    if is_repeated:
        raise RecordError("", "several records have this key_id", kind="json")
    table = patients.read() if patients else None
    patient = table.find(key_id=key_id, dicom_id=_study_id(record)) if table else None
    merged = layout.merge_keys(record, keys)
    return read_case(key_id, merged, partial(inspect_picture, bundle), patient=patient)


def _study_id(record: object) -> str:
    study = record.get("dicom_id") if isinstance(record, dict) else None
    return study if isinstance(study, str) else ""


# ---- patients -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Patients:
    """Patients by the name of a record or of an image."""

    column: str
    """`key_id` or `dicom_id`."""
    names: dict[str, str]

    def find(self, *, key_id: str, dicom_id: str) -> str | None:
        """The patient of a record; None if the table does not hold it."""
        return self.names.get(key_id if self.column == "key_id" else dicom_id)


@dataclass(frozen=True)
class _PatientTable:
    """A table of patients by its file: each worker process reads it once."""

    path: Path
    modified: int
    """Time of its last change: a file that was changed is read again."""

    @classmethod
    def at(cls, path: Path) -> "_PatientTable":
        """The table in a file; it is read here once, so that a fault is raised before the first record."""
        table = cls(path, path.stat().st_mtime_ns if path.is_file() else 0)
        table.read()
        return table

    @lru_cache(maxsize=1)  # noqa: B019 - one small object
    def read(self) -> Patients:
        return read_patients(self.path)


def read_patients(path: Path) -> Patients:
    """The table of patients: a CSV file, compressed with gzip or not.

    The metadata table of the image source serves as it is: its `subject_id` is the patient.

    Raises:
        SourceError: It cannot be read, has not the columns, or names two patients for one image.
    """
    try:
        with _open_text(path) as file:
            return _read_table(path, file)
    except (OSError, EOFError) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise SourceError(f"{path}: not a table in CSV: {error}") from error


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read_table(path: Path, file: TextIO) -> Patients:
    rows = csv.reader(file)
    heading = [name.strip() for name in next(rows, [])]
    column, patient = (_find_column(path, heading, known) for known in (_IMAGE_COLUMNS, _PATIENT_COLUMNS))
    names: dict[str, str] = {}
    for name, found in _read_pairs(path, rows, heading.index(column), heading.index(patient)):
        if names.setdefault(name, found) != found:
            both = f"{describe(names[name])} and {describe(found)}"
            raise SourceError(f"{path}: {column} {describe(name)} has two patients, {both}")
    return Patients(column, names)


def _read_pairs(
    path: Path, rows: Iterator[list[str]], column: int, patient: int
) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) <= max(column, patient) or not row[column].strip() or not row[patient].strip():
            raise SourceError(f"{path}: row {number}: expected a name and a patient")
        yield row[column].strip(), row[patient].strip()


def _find_column(path: Path, heading: list[str], known: tuple[str, ...]) -> str:
    for name in known:
        if name in heading:
            return name
    raise SourceError(
        f"{path}: has no column {' or '.join(known)}; its first row is {describe(', '.join(heading))}"
    )
