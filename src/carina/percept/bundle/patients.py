"""Which patient an image is of, from a table that the user has: a bundle does not tell.

The metadata table of the image source serves as it is: `subject_id` is taken for the patient.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from carina.percept.bundle.faults import BundleError
from carina.percept.bundle.fields import shown

_BY: Final = ("key_id", "dicom_id")
_PATIENT: Final = ("patient", "subject_id")


@dataclass(frozen=True)
class Patients:
    """Patients by the name of a record or of an image."""

    column: str
    """`key_id` or `dicom_id`."""
    names: dict[str, str]

    def find(self, *, key_id: str, dicom_id: str) -> str | None:
        return self.names.get(key_id if self.column == "key_id" else dicom_id)


def read_patients(path: Path) -> Patients:
    """The table, a CSV file or one compressed with gzip."""
    try:
        with _opened(path) as file:
            return _read(path, file)
    except (OSError, EOFError) as error:
        raise BundleError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (UnicodeDecodeError, csv.Error, zlib.error) as error:
        raise BundleError(f"{path}: not a table in CSV: {error}") from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read(path: Path, file: TextIO) -> Patients:
    rows = csv.reader(file)
    heading = [name.strip() for name in next(rows, [])]
    column, patient = (_column(path, heading, known) for known in (_BY, _PATIENT))
    names: dict[str, str] = {}
    for name, found in _pairs(path, rows, heading.index(column), heading.index(patient)):
        if names.setdefault(name, found) != found:
            two = f"{shown(names[name])} and {shown(found)}"
            raise BundleError(f"{path}: {column} {shown(name)} is of two patients, {two}")
    return Patients(column, names)


def _pairs(path: Path, rows: Iterator[list[str]], column: int, patient: int) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) <= max(column, patient) or not row[column].strip() or not row[patient].strip():
            raise BundleError(f"{path}: row {number}: expected a name and a patient")
        yield row[column].strip(), row[patient].strip()


def _column(path: Path, heading: list[str], known: tuple[str, ...]) -> str:
    for name in known:
        if name in heading:
            return name
    raise BundleError(
        f"{path}: has no column {' or '.join(known)}; its first row is {shown(', '.join(heading))}"
    )
