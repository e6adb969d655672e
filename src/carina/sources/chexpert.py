"""CheXpert, with the reports of CheXpert Plus.

Labels of the training set were mined from reports: a blank label is not mentioned, which is not absent. Those of the
validation and test sets are by radiologists. The tables state no sizes: every image file is opened.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.reports.sections import split_sections
from carina.sources._chexpert_labels import (
    assess_expert,
    find_columns,
    read_labels,
    state_labels,
)
from carina.sources._draft_images import ImageFolder, find_image
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, RowPlace, index_rows, read_row, read_rows
from carina.sources._values import read_age, read_sex, read_view
from carina.studies.model import Assessed, Report, ReportSection
from carina.studies.vocabulary import Section, Split, View

TABLES: Final[Mapping[str, Split]] = {
    "train.csv": "train", "valid.csv": "val", "val_labels.csv": "val", "test_labels.csv": "test",
}  # fmt: skip
_IMAGE: Final = re.compile(
    r"(?:.*/)?((?:train|valid|val|test)/(patient\d+)/(study\d+)/(view\d+_(frontal|lateral)))\.\w+"
)
_SECTIONS: Final[Mapping[Section, tuple[str, ...]]] = {
    "indication": ("section_clinical_history", "section_history"),
    "comparison": ("section_comparison",),
    "technique": ("section_technique", "section_procedure_comments"),
    "findings": ("section_findings", "section_narrative"),
    "impression": ("section_impression", "section_summary"),
}
"""Columns of CheXpert Plus that hold a section; the first that has text is used."""
_PATH_TO_IMAGE: Final = "path_to_image"
_ORDER: Final = "patient_report_date_order"
_PLUS: Final = (_PATH_TO_IMAGE, "report", _ORDER)


class ImageName(NamedTuple):
    """The parts of a path such as CheXpert-v1.0/train/patient00001/study1/view1_frontal.jpg."""

    path: str
    """From train, valid or test on, without the ending."""
    patient: str
    study: str
    view: str
    side: str

    @property
    def study_id(self) -> str:
        return f"{self.patient}_{self.study}"


class _Entry:
    """One study: its labels as letters, and its images."""

    __slots__ = ("age", "columns", "file", "images", "labels", "number", "sex", "split")

    def __init__(self, row: Row, split: Split, labels: str, columns: Mapping[str, str]) -> None:
        self.file, self.number = row.file, row.number
        self.split, self.labels, self.columns = split, labels, columns
        self.age, self.sex = read_age(row.values.get("Age", "")), read_sex(row.values.get("Sex", ""))
        self.images: list[tuple[ImageName, View]] = []


class _Plus(NamedTuple):
    """Rows of CheXpert Plus: one place a study."""

    file: Path
    rows: Mapping[str, RowPlace]
    places: Mapping[str, Place]


def read_image_name(text: str) -> ImageName:
    """Take a path of CheXpert apart, whatever stands before train, valid or test.

    Raises:
        RecordError: It is none.
    """
    match = _IMAGE.fullmatch(text)
    if match is None:
        reason = f"is {describe(text)}, expected such as train/patient00001/study1/view1_frontal.jpg"
        raise RecordError("Path", reason, kind="path")
    return ImageName(*match.groups())


def _inputs(path: Path) -> Inputs:
    return {name: path / name for name in _find_tables(path)}


@source(
    name="chexpert",
    title="CheXpert, with the reports of CheXpert Plus",
    needs="a folder with train.csv, valid.csv or test_labels.csv and the images in train/, valid/ and test/; "
    "df_chexpert_plus_240401.csv by --plus where reports are wanted.",
    tree="""
    train.csv            or valid.csv, or test_labels.csv
    train/
      patient00001/
        study1/
          view1_frontal.jpg
    """,
    licence="Stanford University Dataset Research Use Agreement (Stanford AIMI)",
    truth=("labels", "expert labels", "report", "series"),
    url="https://stanfordmlgroup.github.io/competitions/chexpert/",
    citation="Irvin J, Rajpurkar P, Ko M, et al. CheXpert: A Large Chest Radiograph Dataset with Uncertainty Labels "
    "and Expert Comparison. AAAI 2019. Reports: Chambon P, Delbrouck JB, Sounack T, et al. CheXpert Plus: Augmenting a "
    "Large Chest X-ray Dataset with Text Radiology Reports, Patient Demographics and Additional Image Formats. "
    "arXiv:2405.19538, 2024.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "image missing": "an image of the study is not there: left out, or kept without its size",
        "no report": "the table of reports does not list the study",
    },
    unit="studies",
)
def read_chexpert(
    path: Path,
    *,
    plus: Annotated[
        Path | None,
        Meta(description="df_chexpert_plus_240401.csv: reports, and the order of a patient's studies."),
    ] = None,
    missing_images: Annotated[
        Literal["skip", "keep"],
        Meta(description="A study without any image file: skip it, or keep it with images of unknown size."),
    ] = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study a folder such as patient00001/study1, with all its views."""
    entries: dict[str, _Entry] = {}
    for name in _find_tables(path):
        yield from _read_table(path / name, TABLES[name], entries)
    reports = None
    if plus is not None:
        reports = _index_plus(plus)
        yield from _count_unknown(reports, entries)
    for study, entry in entries.items():
        place = None if reports is None else reports.rows.get(study)
        known = None if reports is None or place is None else (reports.file, place)
        order = UNKNOWN if reports is None else reports.places.get(study, UNKNOWN)
        make = partial(
            _make_study,
            entry,
            images or path,
            known=known,
            order=order,
            missing=missing_images,
            is_report_expected=plus is not None,
        )
        yield partial(make_or_skip, make, f"{path}: {study}", study)


def _find_tables(path: Path) -> list[str]:
    found = [name for name in TABLES if (path / name).is_file()]
    if not found:
        raise SourceError(f"{path / 'train.csv'}: missing; put train.csv, valid.csv or test_labels.csv there")
    return found


def _read_table(table: Path, split: Split, entries: dict[str, _Entry]) -> Iterator[Skipped]:
    """Fill in the studies; yield the rows that cannot be used."""
    columns: dict[str, str] = {}
    for row in read_rows(table, ("Path",)):
        columns = columns or find_columns(tuple(row.values))
        try:
            _add_row(row, _Entry(row, split, read_labels(row, columns), columns), entries)
        except RecordError as error:
            yield Skipped.from_error(error, row.place)


def _add_row(row: Row, fresh: _Entry, entries: dict[str, _Entry]) -> None:
    name = read_image_name(row.required("Path"))
    entry = entries.setdefault(name.study_id, fresh)
    if any(known.path == name.path for known, _ in entry.images):
        raise RecordError("Path", "is there twice", kind="duplicate")
    if entry.labels != fresh.labels:
        raise RecordError("labels", "are not those of the other views of the study", kind="label")
    entry.images.append((name, _read_view(name, row)))


def _read_view(name: ImageName, row: Row) -> View:
    """PA or AP is stated for frontal images alone, and not in the table of the test set."""
    if name.side == "lateral":
        return "lateral"
    view = read_view(row.values.get("AP/PA", ""))
    return view if view != "lateral" else "unknown"


def _index_plus(table: Path) -> _Plus:
    rows: dict[str, RowPlace] = {}
    times: list[tuple[str, str, float | None]] = []
    for row, place in index_rows(table, _PLUS):
        try:
            name = read_image_name(row.required(_PATH_TO_IMAGE))
            if name.study_id not in rows:
                times.append((name.study_id, name.patient, row.optional_number(_ORDER)))
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
        rows.setdefault(name.study_id, place)
    return _Plus(table, rows, order_studies(times))


def _count_unknown(plus: _Plus, entries: Mapping[str, _Entry]) -> Iterator[Skipped]:
    unknown = sum(study not in entries for study in plus.rows)
    if unknown:
        reason = f"{unknown:,} of {len(plus.rows):,} studies are in none of the tables of labels"
        yield Skipped(place=str(plus.file), field=_PATH_TO_IMAGE, reason=reason, kind="not joined")


def _make_study(
    entry: _Entry,
    root: Path,
    *,
    known: tuple[Path, RowPlace] | None,
    order: Place,
    missing: Literal["skip", "keep"],
    is_report_expected: bool,
) -> Item:
    first = entry.images[0][0]
    draft = StudyDraft(
        first.study_id, patient=first.patient, source="chexpert", number=entry.number, file=entry.file
    )
    for name, view in entry.images:
        key = find_image(root, (f"{name.path}.jpg", f"{name.path}.png"))
        draft.defects["image missing"] += key is None
        if key is not None or missing == "keep":
            size = None if key else (0, 0)
            draft.add_image(root, key or f"{name.path}.jpg", view, size=size, missing="keep")
    if not draft.images:
        raise RecordError("image", f"{first.path}.jpg is missing", kind="image missing")
    is_mined = entry.split == "train"
    draft.is_by_program = is_mined
    state_labels(draft, entry.labels, entry.columns)
    more = None if known is None else read_row(*known)
    report = None if more is None else _read_report(more)
    draft.defects["no report"] += is_report_expected and report is None
    values = more.values if more else {}
    draft.facts = {
        "order": order.order, "prior": order.prior, "later": order.later, "split": entry.split, "report": report,
        "indication": report and report.text("indication"),
        "age": entry.age if entry.age is not None else read_age(values.get("age", "")),
        "sex": entry.sex or read_sex(values.get("sex", "")),
    }  # fmt: skip
    # What programs looked for in a report is known only where they state "No Finding".
    return draft.finish(assessed=Assessed(text=True) if is_mined else assess_expert(entry.labels, text=False))


def _read_report(row: Row) -> Report | None:
    """The sections of a row; the whole text where no section has any. Line breaks are written as two characters."""
    texts = {
        name: next((text for column in columns if (text := _text(row, column))), "")
        for name, columns in _SECTIONS.items()
    }
    sections = tuple(ReportSection(name=name, text=text) for name, text in texts.items() if text)
    if sections:
        return Report(sections=sections)
    whole = _text(row, "report")
    return split_sections(whole) if whole else None


def _text(row: Row, column: str) -> str:
    text = row.values.get(column, "").replace("\\n", "\n").strip()
    return "" if text == "nan" else text
