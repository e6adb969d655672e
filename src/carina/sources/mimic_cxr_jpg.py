"""MIMIC-CXR-JPG: images, views, dates, priors, labels mined from reports, expert labels of test studies, and reports.

The tables state the size of every image, so that no image is opened unless that is asked for. Labels of CheXpert and
NegBio were mined from the reports: a blank label is not mentioned, which is not absent. The labels of
`mimic-cxr-2.1.0-test-set-labeled.csv` are by a radiologist and count more. Studies of a patient are ordered by date and
time of day, never by their ids, which are random.
"""

import datetime
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.reports.sections import split_sections
from carina.sources._added import add_report_facts
from carina.sources._chexpert_labels import FINDINGS, LABELS, find_columns, read_labels, state_labels
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, ImageFolder, StudyDraft, assess_labels, make_or_skip
from carina.sources._tables import Row, read_rows
from carina.sources._values import read_split, read_view
from carina.studies.model import Assessed, Image
from carina.studies.vocabulary import Split, View

TABLES: Final = ("metadata", "split", "chexpert", "negbio")
EXPERT: Final = "test-set-labeled"
ARCHIVE: Final = "mimic-cxr-reports.zip"
MAX_REPORT: Final = 1 << 20
"""Bytes of one report: a hundred times the usual."""
_LABELS: Final = {
    "chexpert": ("chexpert",), "negbio": ("negbio",), "both": ("chexpert", "negbio"), "none": (), "expert": (),
}  # fmt: skip
Labels = Literal["chexpert", "negbio", "both", "expert", "none"]


class _Picture(NamedTuple):
    """One row of the metadata, as short as it can be: there are 377,110."""

    dicom_id: str
    view: View
    width: int
    height: int


class _Entry:
    """One study: its images, its time, and the numbers of its rows."""

    __slots__ = ("date", "images", "number", "patient", "time")

    def __init__(self, patient: str, number: int) -> None:
        self.patient, self.number = patient, number
        self.images: list[_Picture] = []
        self.date: datetime.date | None = None
        self.time: tuple[datetime.date, float] | None = None
        """Day and seconds since midnight; the earliest of the images."""


class _LabelTable(NamedTuple):
    path: Path
    rows: Mapping[str, str]
    """Labels as letters, by study."""
    columns: Mapping[str, str]


class _Known(NamedTuple):
    """What the tables say about one study."""

    study: str
    entry: _Entry
    place: Place
    split: Split | None
    expert: tuple[str, Mapping[str, str]] | None
    mined: tuple[tuple[str, Mapping[str, str]], ...]


def _inputs(path: Path) -> Inputs:
    found = {name: _find_table(path, name) for name in (*TABLES, EXPERT)}
    return {name: file for name, file in found.items() if file is not None} | {"reports": path / ARCHIVE}


@source(
    name="mimic-cxr-jpg",
    title="MIMIC-CXR-JPG with views, priors, labels and reports",
    needs="a folder with mimic-cxr-2.0.0-metadata.csv.gz; the tables split, chexpert, negbio and "
    f"mimic-cxr-2.1.0-test-set-labeled.csv and {ARCHIVE} of MIMIC-CXR where they are wanted, and the images in files/.",
    tree="""
    mimic-cxr-2.0.0-metadata.csv.gz
    mimic-cxr-2.0.0-split.csv.gz             where the split is wanted
    mimic-cxr-2.0.0-chexpert.csv.gz          where these labels are wanted
    mimic-cxr-2.0.0-negbio.csv.gz            with --labels negbio or both
    mimic-cxr-2.1.0-test-set-labeled.csv     where labels by a radiologist are wanted
    mimic-cxr-reports.zip                    or --reports PATH, where reports are wanted
    files/
      p10/
        p10000001/
          s50000001/
            00000000-00000000-00000000-00000000-00000001.jpg
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("labels", "expert labels", "report", "series"),
    url="https://physionet.org/content/mimic-cxr-jpg/2.1.0/",
    citation="Johnson AEW, Pollard TJ, Greenbaum NR, et al. MIMIC-CXR-JPG, a large publicly available database of "
    "labeled chest radiographs. arXiv:1901.07042, 2019. Johnson AEW, Pollard TJ, Berkowitz SJ, et al. MIMIC-CXR, a "
    "de-identified publicly available database of chest radiographs with free-text reports. Scientific Data 2019.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "no report": "the study has no report among those that were given",
        "no split": "the table of splits does not list the study",
        "no label": "the tables of mined labels do not list the study",
    },
    unit="studies",
)
def read_mimic_cxr_jpg(
    path: Path,
    *,
    reports: Annotated[
        Path | None,
        Meta(
            description=f"{ARCHIVE}, or the folder that holds its files/. Without it, {ARCHIVE} in PATH if it is there."
        ),
    ] = None,
    labels: Annotated[
        Labels,
        Meta(
            description="Labels mined from reports: those of chexpert, negbio, both (chexpert counts more) or none. "
            "Labels by a radiologist are used in any case and count more; expert imports only studies with them."
        ),
    ] = "chexpert",
    facts: Annotated[
        bool, Meta(description="Also read findings from the text of the reports, by rules. Takes minutes.")
    ] = False,
    open_images: Annotated[
        bool,
        Meta(
            description="Open every image file; skip studies whose files are missing or not of the size that the table "
            "states. Without it, no image is opened."
        ),
    ] = False,
    images: ImageFolder = None,
) -> Stream:
    """Read one study a study id, with all its images."""
    entries: dict[str, _Entry] = {}
    yield from _read_metadata(path, entries)
    places = order_studies((study, entry.patient, entry.time) for study, entry in entries.items())
    has_split, splits = _read_splits(path)
    expert = _read_label_table(path, EXPERT)
    mined = [table for name in _LABELS[labels] if (table := _read_label_table(path, name)) is not None]
    for table in (expert, *mined):
        if table is not None:
            yield from _count_unknown(table, entries)
    texts = _Reports.find(path, reports)
    for study, entry in entries.items():
        if labels == "expert" and (expert is None or study not in expert.rows):
            continue
        known = _Known(
            study=study,
            entry=entry,
            place=places.get(study, UNKNOWN),
            split=splits.get(study),
            expert=None
            if expert is None or study not in expert.rows
            else (expert.rows[study], expert.columns),
            mined=tuple((table.rows[study], table.columns) for table in mined if study in table.rows),
        )
        expected = {"no report": texts is not None, "no split": has_split, "no label": bool(mined)}
        text = None if texts is None else texts.locate(entry.patient, study)
        make = partial(
            _make_study,
            known,
            images or path,
            text=text,
            expected=expected,
            facts=facts,
            open_images=open_images,
        )
        yield partial(make_or_skip, make, f"{path}: {study}", study)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _find_table(path: Path, name: str) -> Path | None:
    """The newest file of a table; the names say 2.0.0 in release 2.1.0, and may be compressed or not."""
    found = sorted(path.glob(f"mimic-cxr-*-{name}.csv*"))
    return next((file for file in reversed(found) if file.name.endswith((".csv", ".csv.gz"))), None)


def _read_metadata(path: Path, entries: dict[str, _Entry]) -> Iterator[Skipped]:
    """Fill in the studies; yield the rows that cannot be used."""
    table = _find_table(path, "metadata")
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
            yield Skipped(place=row.place, field=error.field, reason=error.reason, kind=error.kind)


def _add_row(row: Row, entries: dict[str, _Entry]) -> None:
    study, patient = f"s{_digits(row, 'study_id', 's')}", f"p{_digits(row, 'subject_id', 'p')}"
    picture = _Picture(
        row.required("dicom_id").removesuffix(".dcm").removesuffix(".jpg"),
        read_view(row.text("ViewPosition")),
        row.integer("Columns"),
        row.integer("Rows"),
    )
    entry = entries.setdefault(study, _Entry(patient, row.number))
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


def _add_time(entry: _Entry, row: Row) -> None:
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


def _read_splits(path: Path) -> tuple[bool, dict[str, Split]]:
    """Whether there is a table of splits, and the split by study."""
    table = _find_table(path, "split")
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


def _read_label_table(path: Path, name: str) -> _LabelTable | None:
    table = _find_table(path, name)
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
    return _LabelTable(table, rows, columns)


def _count_unknown(table: _LabelTable, entries: Mapping[str, _Entry]) -> Iterator[Skipped]:
    unknown = sum(study not in entries for study in table.rows)
    if unknown:
        reason = f"{unknown:,} of {len(table.rows):,} studies have no image in the table of metadata"
        yield Skipped(place=str(table.path), field="study_id", reason=reason, kind="not joined")


# ---- reports --------------------------------------------------------------------------------------------------------


class _Reports(NamedTuple):
    """Reports in the archive, or in its unpacked tree."""

    folder: Path | None
    archive: zipfile.ZipFile | None
    members: Mapping[str, str]
    """Members of the archive by the name of the file."""

    @classmethod
    def find(cls, path: Path, given: Path | None) -> "_Reports | None":
        where = given or path / ARCHIVE
        if given is None and not where.is_file():
            return None
        if where.is_dir():
            return cls(where / "files" if (where / "files").is_dir() else where, None, {})
        try:
            archive = zipfile.ZipFile(where)
        except FileNotFoundError:
            raise SourceError(
                f"{where}: missing; give {ARCHIVE} or the folder that holds its files/"
            ) from None
        except (OSError, zipfile.BadZipFile) as error:
            raise SourceError(f"{where}: cannot be read: {printable(str(error))}") from error
        names = (name for name in archive.namelist() if name.endswith(".txt"))
        return cls(None, archive, {name.rsplit("/", 1)[-1]: name for name in names})

    def locate(self, patient: str, study: str) -> bytes | Path | None:
        """The text, or the file that holds it; None where there is none."""
        if self.archive is None:
            assert self.folder is not None  # noqa: S101 - one of the two
            return self.folder / patient[:3] / patient / f"{study}.txt"
        name = self.members.get(f"{study}.txt")
        if name is None:
            return None
        try:
            with self.archive.open(name) as member:
                return member.read(MAX_REPORT + 1)
        except (OSError, zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
            raise SourceError(
                f"{self.archive.filename}: {name} cannot be read: {printable(str(error))}"
            ) from error


def _read_text(place: bytes | Path | None) -> str | None:
    if isinstance(place, Path):
        try:
            with place.open("rb") as file:
                place = file.read(MAX_REPORT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError("report", f"cannot be read: {error.strerror}", kind="report") from error
    if place is None:
        return None
    if len(place) > MAX_REPORT:
        raise RecordError("report", f"more than {MAX_REPORT:,} bytes", kind="report")
    return place.decode("utf-8", "replace").strip()


# ---- the study ------------------------------------------------------------------------------------------------------


def _make_study(
    known: _Known,
    root: Path,
    *,
    text: bytes | Path | None,
    expected: Mapping[str, bool],
    facts: bool,
    open_images: bool,
) -> Item:
    entry = known.entry
    draft = StudyDraft(known.study, patient=entry.patient, source="mimic-cxr-jpg", number=entry.number)
    folder = f"files/{entry.patient[:3]}/{entry.patient}/{known.study}"
    for dicom_id, view, width, height in entry.images:
        key = f"{folder}/{dicom_id}.jpg"
        if open_images:
            draft.add_image(root, key, view, size=(width, height))
        else:
            draft.images.append(Image(key=key, view=view, width=width, height=height))
    written = _read_text(text)
    report = split_sections(written) if written else None
    if known.expert is not None:
        state_labels(draft, *known.expert)
    for labels, columns in known.mined:
        state_labels(draft, labels, columns)
    for defect, has in (("no report", report), ("no split", known.split), ("no label", known.mined)):
        draft.defects[defect] += bool(expected[defect] and not has)
    draft.facts = {
        "order": known.place.order, "prior": known.place.prior, "later": known.place.later,
        "date": entry.date, "split": known.split, "report": report, "indication": report and report.text("indication"),
    }  # fmt: skip
    is_text_read = bool(known.mined) or (facts and report is not None)
    text_only = Assessed(text=is_text_read)
    assessed = text_only if known.expert is None else assess_labels(FINDINGS, text=True)
    item = draft.finish(assessed=assessed)
    trusted = () if known.expert is None else FINDINGS
    return add_report_facts(item, trusted=trusted, number=entry.number) if facts and report else item
