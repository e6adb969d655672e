"""Tables of MIMIC-CXR-JPG: metadata of images, splits, and labels."""

import datetime
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from carina.sources._chexpert_labels import LABELS, find_columns, read_labels
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._source import Skipped
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_split, read_view
from carina.studies.vocabulary import Split, View

TABLES: Final = ("metadata", "split", "chexpert", "negbio")
EXPERT: Final = "test-set-labeled"


class ImageRow(NamedTuple):
    """One row of the metadata, as short as it can be: there are 377,110."""

    dicom_id: str
    view: View
    width: int
    height: int


class StudyRows:
    """One study: its images, its time, and the numbers of its rows."""

    __slots__ = ("date", "file", "images", "number", "patient", "time")

    def __init__(self, patient: str, file: str, number: int) -> None:
        self.patient, self.file, self.number = patient, file, number
        self.images: list[ImageRow] = []
        self.date: datetime.date | None = None
        self.time: tuple[datetime.date, float] | None = None
        """Day and seconds since midnight; the earliest of the images."""


class LabelTable(NamedTuple):
    path: Path
    rows: Mapping[str, str]
    """Labels as letters, by study."""
    columns: Mapping[str, str]


def find_table(path: Path, name: str) -> Path | None:
    """The newest file of a table; the names say 2.0.0 in release 2.1.0, and may be compressed or not."""
    found = sorted(path.glob(f"mimic-cxr-*-{name}.csv*"))
    return next((file for file in reversed(found) if file.name.endswith((".csv", ".csv.gz"))), None)


def read_metadata(path: Path, entries: dict[str, StudyRows]) -> Iterator[Skipped]:
    """Fill in the studies; yield the rows that cannot be used."""
    table = find_table(path, "metadata")
    if table is None:
        raise SourceError(
            f"{path / 'mimic-cxr-2.0.0-metadata.csv.gz'}: missing; put the tables of MIMIC-CXR-JPG there"
        )
    columns = (
        "dicom_id",
        "subject_id",
        "study_id",
        "ViewPosition",
        "Rows",
        "Columns",
        "StudyDate",
        "StudyTime",
    )
    for row in read_rows(table, columns):
        try:
            _add_row(row, entries)
        except RecordError as error:
            yield Skipped.from_error(error, row.place)


def _add_row(row: Row, entries: dict[str, StudyRows]) -> None:
    study, patient = f"s{_digits(row, 'study_id', 's')}", f"p{_digits(row, 'subject_id', 'p')}"
    picture = ImageRow(
        row.required("dicom_id").removesuffix(".dcm").removesuffix(".jpg"),
        read_view(row.text("ViewPosition")),
        row.integer("Columns"),
        row.integer("Rows"),
    )
    entry = entries.setdefault(study, StudyRows(patient, row.file, row.number))
    if entry.patient != patient:
        raise RecordError("subject_id", f"is {patient}, but {study} is of {entry.patient}", kind="patient")
    if any(known.dicom_id == picture.dicom_id for known in entry.images):
        raise RecordError("dicom_id", "is there twice", kind="duplicate")
    entry.images.append(picture)
    _add_time(entry, row)


def _digits(row: Row, column: str, letter: str) -> str:
    """An id without its letter: tables write 50000001, 50000001.0 and s50000001."""
    text = row.required(column).removeprefix(letter).removesuffix(".0")
    if not (text.isascii() and text.isdigit()):
        raise RecordError(column, f"is {printable(text)!r}, expected digits", kind="id")
    return text


def _add_time(entry: StudyRows, row: Row) -> None:
    """Date and time of the earliest image; a time without a date is none."""
    day = _read_date(row.values.get("StudyDate", "").strip())
    second = _read_time_of_day(row.values.get("StudyTime", "").strip())
    if day is None:
        return
    entry.date = day if entry.date is None else min(day, entry.date)
    if second is not None:
        entry.time = (day, second) if entry.time is None else min((day, second), entry.time)


def _read_time_of_day(text: str) -> float | None:
    """Seconds since midnight; the table writes 00:05:07.25 as 507.25."""
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdecimal() or not whole or len(whole) > 6:
        return None
    filled = whole.zfill(6)
    hours, minutes, seconds = int(filled[:2]), int(filled[2:4]), int(filled[4:])
    return hours * 3600 + minutes * 60 + seconds + float(f"0.{fraction or 0}")


def _read_date(text: str) -> datetime.date | None:
    try:
        return datetime.datetime.strptime(text.removesuffix(".0"), "%Y%m%d").date()
    except ValueError:
        return None


def read_splits(path: Path) -> tuple[bool, dict[str, Split]]:
    """Whether there is a table of splits, and the split by study."""
    table = find_table(path, "split")
    if table is None:
        return False, {}
    splits: dict[str, Split] = {}
    for row in read_rows(table, ("dicom_id", "study_id", "split")):
        try:
            split = read_split(row.text("split"))
            study = f"s{_digits(row, 'study_id', 's')}"
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
        if split is not None:
            splits[study] = split
    return True, splits


def read_label_table(path: Path, name: str) -> LabelTable | None:
    table = find_table(path, name)
    if table is None:
        return None
    rows: dict[str, str] = {}
    columns: dict[str, str] = {}
    for row in read_rows(table, ("study_id",)):
        columns = columns or find_columns(tuple(row.values))
        try:
            rows[f"s{_digits(row, 'study_id', 's')}"] = sys.intern(read_labels(row, columns))
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
    if rows and not columns:
        raise SourceError(f"{table}: no column of a label, expected some of {', '.join(LABELS)}")
    return LabelTable(table, rows, columns)


def count_unknown(table: LabelTable, entries: Mapping[str, StudyRows]) -> Iterator[Skipped]:
    unknown = sum(study not in entries for study in table.rows)
    if unknown:
        reason = f"{unknown:,} of {len(table.rows):,} studies have no image in the table of metadata"
        yield Skipped(place=str(table.path), field="study_id", reason=reason, kind="not joined")
