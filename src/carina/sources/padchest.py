"""PadChest: 160,861 images with labels of reports, by physicians and by a program.

The table holds no free text: `Report` is stemmed Spanish and is not used. A label that is not listed was not stated,
which is not absent. Studies with the labels "exclude" and "suboptimal study" are left out unless they are asked for.
"""

import ast
import datetime
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta

from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._record import RecordError, SourceError
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import BLANK, Row, RowPlace, index_rows, read_row
from carina.sources._values import read_sex, read_view
from carina.studies.model import Assessed

TABLE: Final = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
NORMAL: Final = "normal"
NOT_TO_USE: Final = ("exclude", "suboptimal study")
_COLUMNS: Final = ("ImageID", "ImageDir", "StudyID", "PatientID", "Projection", "StudyDate_DICOM", "Labels")
_NO_FINDING: Final = ("unchanged",)
"""Labels that name nothing."""
_DATE: Final = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:\.0)?")


class _Entry(NamedTuple):
    patient: str
    places: list[RowPlace]


def _find_table(path: Path) -> Path:
    found = [path] if path.is_file() else sorted(path.glob("PADCHEST_chest_x_ray_images_labels_160K*.csv"))
    if not found:
        raise SourceError(
            f"{path / TABLE}: missing; put the table of labels beside the folders of images, decompressed"
        )
    return found[-1]


def _inputs(path: Path) -> Inputs:
    return {"table": _find_table(path)}


@source(
    name="padchest",
    title="PadChest: labels of reports and series of studies",
    needs=f"a folder with {TABLE} and the PNG files in folders 0 to 54; the table alone with --missing-images keep.",
    tree="""
    PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv
    0/
      00000000000000000000000000000000000000_00-000-000.png
    """,
    licence="BIMCV PadChest dataset research use agreement",
    truth=("labels", "series"),
    url="https://bimcv.cipf.es/bimcv-projects/padchest/",
    citation="Bustos A, Pertusa A, Salinas JM, de la Iglesia-Vaya M. PadChest: A large chest x-ray image dataset with "
    "multi-label annotated reports. Medical Image Analysis 2020;66:101797.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "labels": "a list of labels that cannot be read is left out",
        "size": "the table states no size, and the image is not there: its size is unknown",
        "image missing": "an image of the study is not there: left out, or kept with the size that the table states",
        "MONOCHROME1": "dark was stored as high; whether the PNG file was inverted is not documented: look at it",
    },
    unit="studies",
)
def read_padchest(
    path: Path,
    *,
    method: Annotated[
        Literal["any", "physician"],
        Meta(description="Use all studies, or only those that a physician has labelled."),
    ] = "any",
    keep_unusable: Annotated[
        bool, Meta(description='Keep studies with the labels "exclude" and "suboptimal study".')
    ] = False,
    missing_images: MissingImages = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study a study id, with all its images."""
    table = _find_table(path)
    root = images or (path if path.is_dir() else path.parent)
    entries: dict[str, _Entry] = {}
    times: dict[str, datetime.date | None] = {}
    yield from _index_studies(table, entries, times)
    places = order_studies((study, entry.patient, times[study]) for study, entry in entries.items())
    for study, entry in entries.items():
        place = f"{table}: row {entry.places[0].number}"
        make = partial(
            _make_study,
            study,
            entry,
            table=table,
            root=root,
            order=places.get(study, UNKNOWN),
            method=method,
            keep_unusable=keep_unusable,
            missing=missing_images,
        )
        yield partial(make_or_skip, make, place, study)


def _index_studies(
    table: Path, entries: dict[str, _Entry], times: dict[str, datetime.date | None]
) -> Iterator[Skipped]:
    """Fill in the studies; yield the rows that cannot be used."""
    seen: set[str] = set()
    for row, place in index_rows(table, _COLUMNS):
        try:
            study = _add_row(row, place, entries, seen)
        except RecordError as error:
            yield Skipped.from_error(error, row.place)
        else:
            # The first row of a study that states its date.
            times[study] = times.get(study) or read_date(row.values["StudyDate_DICOM"])


def _add_row(row: Row, place: RowPlace, entries: dict[str, _Entry], seen: set[str]) -> str:
    study, patient, image = (row.required(column) for column in ("StudyID", "PatientID", "ImageID"))
    if image in seen:
        raise RecordError("ImageID", "is there twice", kind="duplicate")
    entry = entries.setdefault(study, _Entry(patient, []))
    if entry.patient != patient:
        raise RecordError("PatientID", "is not that of the other images of the study", kind="patient")
    seen.add(image)
    entry.places.append(place)
    return study


def read_date(text: str) -> datetime.date | None:
    """The day of 20140915, 20140915.0 or 2014-09-15; None for anything else."""
    match = _DATE.match(text.strip())
    try:
        return None if match is None else datetime.date(*map(int, match.groups()))
    except ValueError:
        return None


def _make_study(
    study: str,
    entry: _Entry,
    *,
    table: Path,
    root: Path,
    order: Place,
    method: str,
    keep_unusable: bool,
    missing: MissingImages,
) -> Item:
    rows = [read_row(table, at) for at in entry.places]
    if method == "physician" and any(row.text("MethodLabel") != "Physician" for row in rows):
        raise RecordError("MethodLabel", "is not Physician", kind="method")
    draft = StudyDraft(
        study, patient=entry.patient, source="padchest", number=rows[0].number, file=rows[0].file
    )
    labels: dict[str, None] = {}
    for row in rows:
        draft.defects.read_row(row)
        found = _read_labels(row.text("Labels"))
        draft.defects["labels"] += found is None
        labels |= dict.fromkeys(found or ())
    unusable = [label for label in NOT_TO_USE if label in labels]
    if unusable and not keep_unusable:
        raise RecordError(
            "Labels", f"{unusable[0]!r} means that the study is not to be used", kind=unusable[0]
        )
    for row in rows:
        draft.defects.read_row(row)
        _add_image(draft, root, row, missing)
    if not draft.images:
        raise RecordError("ImageID", f"{rows[0].text('ImageID')} is missing", kind="image missing")
    draft.is_by_program = any(row.text("MethodLabel") != "Physician" for row in rows)
    for label in labels:
        if label == NORMAL:
            draft.state_normal(label)
        elif label not in (*_NO_FINDING, *NOT_TO_USE):
            draft.state(label)
    date = next(filter(None, (read_date(row.text("StudyDate_DICOM")) for row in rows)), None)
    draft.facts = {
        "order": order.order, "prior": order.prior, "later": order.later, "date": date,
        "age": _read_age(rows[0], date), "sex": read_sex(rows[0].values.get("PatientSex_DICOM", "")),
    }  # fmt: skip
    return draft.finish(assessed=Assessed(text=True))


def _add_image(draft: StudyDraft, root: Path, row: Row, missing: MissingImages) -> None:
    name, folder = row.required("ImageID"), row.text("ImageDir").removesuffix(".0")
    keys = (f"{folder}/{name}", f"images/{folder}/{name}", f"images/{name}", name)
    key = find_image(root, keys)
    draft.defects["image missing"] += key is None
    draft.defects["MONOCHROME1"] += (
        row.values.get("PhotometricInterpretation_DICOM", "").strip() == "MONOCHROME1"
    )
    view = read_view(row.text("Projection"))
    if key is not None:
        draft.add_image(root, key, view)
    elif missing == "keep":
        size = tuple(
            int(row.optional_number(column) or 0)
            for column in ("Columns_DICOM", "Rows_DICOM")
            if column in row.values
        )
        draft.defects["size"] += len(size) != 2 or not all(size)
        draft.add_image(
            root, keys[0], view, size=(size[0], size[1]) if len(size) == 2 else (0, 0), missing="keep"
        )


def _read_labels(text: str) -> list[str] | None:
    """The labels of a list as Python writes it; None where it is none."""
    if not text:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(label, str) for label in found):
        return None
    words = [" ".join(label.split()) for label in found]
    # "None" and "nan" stand as text in the lists, and name nothing.
    return [label for label in words if label.lower() not in BLANK]


def _read_age(row: Row, date: datetime.date | None) -> int | None:
    """Years between the year of birth and that of the study."""
    match = re.match(r"\d{4}", row.values.get("PatientBirth", "").strip())
    if match is None or date is None or not 0 <= date.year - int(match[0]) <= 120:
        return None
    return date.year - int(match[0])
