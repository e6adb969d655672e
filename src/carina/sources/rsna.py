"""The RSNA Pneumonia Detection Challenge: boxes of lung opacities, in the form of Kaggle or of MD.ai.

Every image has one of three classes: lung opacity, normal, or abnormal without an opacity. Boxes are those of the
published consensus, on images of 1024 x 1024 pixels.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carina.sources._converted import ConvertedImages, add_converted_image
from carina.sources._defects import DefectCounts, add_defects
from carina.sources._draft_images import MissingImages
from carina.sources._json import decode_as
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.studies.vocabulary import ABNORMALITY

TABLE: Final = "stage_2_train_labels.csv"
CLASSES: Final = "stage_2_detailed_class_info.csv"
EXPORT: Final = "pneumonia-challenge-annotations-adjudicated-kaggle_2018.json"
OPACITY: Final = "Lung Opacity"
NORMAL: Final = "Normal"
NOT_NORMAL: Final = "No Lung Opacity / Not Normal"
SIDE: Final = 1024
_GROUP: Final = "Calculated"
"""Group of labels of the export that holds the consensus."""
_BOX: Final = ("x", "y", "width", "height")


class _Entry(NamedTuple):
    """One image, in either form."""

    study: str
    name: str
    """Of the image file, without its ending."""
    folders: tuple[str, ...]
    file: str
    number: int
    labels: tuple[str, ...]
    boxes: tuple[tuple[float, float, float, float], ...]
    defects: DefectCounts
    """Boxes that cannot be read."""


def _inputs(path: Path) -> dict[str, Path]:
    return {"labels": path / TABLE, "classes": path / CLASSES, "export": path / EXPORT}


@source(
    name="rsna",
    title="RSNA Pneumonia Detection Challenge, with boxes",
    needs=f"a folder with {TABLE} and {CLASSES} of Kaggle, or with {EXPORT} of MD.ai, and the images as PNG or JPEG "
    "files; the tables alone with --missing-images keep.",
    tree="""
    stage_2_train_labels.csv           or pneumonia-challenge-annotations-adjudicated-kaggle_2018.json
    stage_2_detailed_class_info.csv
    stage_2_train_images/              converted to PNG, or given with --images
      0004cfab-14fd-4e49-80ba-63a80b6bddd6.png
    """,
    licence="Terms of the competition: research and education, no redistribution",
    truth=("boxes", "labels"),
    url="https://www.rsna.org/rsnai/ai-image-challenge/rsna-pneumonia-detection-challenge-2018",
    citation="Shih G, Wu CC, Halabi SS, et al. Augmenting the National Institutes of Health Chest Radiograph Dataset "
    "with Expert Annotations of Possible Pneumonia. Radiology: Artificial Intelligence 2019;1(1):e180041.",
    inputs=_inputs,
    defects=DEFECTS,
    unit="images",
)
def read_rsna(
    path: Path, *, missing_images: MissingImages = "skip", images: ConvertedImages = None
) -> Stream:
    """Read one study an image."""
    root = images or path
    if (path / TABLE).is_file():
        found = _read_tables(path)
    elif (path / EXPORT).is_file():
        found = _read_export(path / EXPORT)
    else:
        raise SourceError(f"{path / TABLE}: missing; put {TABLE} of Kaggle, or {EXPORT} of MD.ai, there")
    for place, entry in found:
        if isinstance(entry, Skipped):
            yield entry
        else:
            yield partial(make_or_skip, _make_study, place, entry.study, root, entry, missing_images)


def _make_study(root: Path, entry: _Entry, missing: MissingImages) -> Item:
    draft = StudyDraft(entry.study, patient=entry.study, source="rsna", number=entry.number, file=entry.file)
    frame = add_converted_image(draft, root, entry.name, entry.folders, size=(SIDE, SIDE), missing=missing)
    add_defects(draft.defects, entry.defects)
    for box in entry.boxes:
        draft.add_box(OPACITY, frame.image.key, frame.scale_box(box), annotator="consensus")
    has_opacity = bool(entry.boxes) or OPACITY in entry.labels
    for label in entry.labels:
        if label == OPACITY:
            draft.state(OPACITY)
        elif label not in (NORMAL, NOT_NORMAL):
            raise RecordError(
                "class", f"is {label!r}, expected {OPACITY}, {NORMAL} or {NOT_NORMAL}", kind="label"
            )
        elif has_opacity:
            draft.defects["conflict"] += 1
        elif label == NORMAL:
            draft.state_normal(label)
        else:
            draft.state(label, words=ABNORMALITY)
    return draft.finish(assessed=assess_labels((OPACITY,)))


# ---- the form of Kaggle ---------------------------------------------------------------------------------------------


def _read_tables(path: Path) -> Iterator[tuple[str, _Entry | Skipped]]:
    rows = group_rows(read_rows(path / TABLE, ("patientId", *_BOX, "Target")), "patientId")
    classes = path / CLASSES
    labels = group_rows(read_rows(classes, ("patientId", "class")), "patientId") if classes.is_file() else {}
    folders = ("stage_2_train_images/", "images/", "")
    for name, own in rows.items():
        place = own[0].place
        try:
            stated = dict.fromkeys(row.required("class") for row in labels.get(name, ()))
            boxes, defects, is_positive = _read_boxes(own)
            if is_positive:
                stated = {OPACITY: None, **stated}
            own[0].required("patientId")
        except RecordError as error:
            yield place, _skip(place, name, error)
            continue
        yield place, _Entry(name, name, folders, own[0].file, own[0].number, tuple(stated), boxes, defects)


def _read_boxes(
    rows: Sequence[Row],
) -> tuple[tuple[tuple[float, float, float, float], ...], DefectCounts, bool]:
    """Boxes of an image, those that cannot be read, and whether it has the target."""
    boxes: list[tuple[float, float, float, float]] = []
    defects, positives = DefectCounts(), 0
    for row in rows:
        if row.choice("Target", {"1": True, "0": False}):
            positives += 1
            try:
                x, y, width, height = (row.number_of(column) for column in _BOX)
                boxes.append((x, y, width, height))
            except RecordError:
                defects.read_row(row)
                defects["region"] += 1
    return tuple(boxes), defects, positives > 0


def _skip(place: str, study: str, error: RecordError) -> Skipped:
    return Skipped.from_error(error, place, study=study)


# ---- the form of MD.ai ----------------------------------------------------------------------------------------------


class _Label(msgspec.Struct):
    id: str
    name: str


class _LabelGroup(msgspec.Struct):
    name: str
    labels: list[_Label]


class _Box(msgspec.Struct):
    x: float
    y: float
    width: float
    height: float


class _Annotation(msgspec.Struct):
    """Of an image, or of a study, which has one image."""

    labelId: str  # noqa: N815 - as it is published
    StudyInstanceUID: str
    SeriesInstanceUID: str | None = None
    SOPInstanceUID: str | None = None
    data: _Box | None = None
    height: float | None = None
    """Of the image on which the box was drawn."""
    width: float | None = None


class _DataSet(msgspec.Struct):
    annotations: list[_Annotation]


class _Export(msgspec.Struct):
    labelGroups: list[_LabelGroup]  # noqa: N815
    datasets: list[_DataSet]


def _read_export(path: Path) -> Iterator[tuple[str, _Entry | Skipped]]:
    try:
        export = decode_as(path.read_bytes(), _Export)
    except RecordError as error:
        raise SourceError(f"{path}: {error}") from error
    names = {
        label.id: label.name for group in export.labelGroups if group.name == _GROUP for label in group.labels
    }
    if not names or not export.datasets:
        raise SourceError(f"{path}: no group of labels {_GROUP!r}, or no data set")
    studies: dict[str, list[_Annotation]] = {}
    for annotation in export.datasets[0].annotations:
        if annotation.labelId in names:
            studies.setdefault(annotation.StudyInstanceUID, []).append(annotation)
    for number, (study, own) in enumerate(studies.items(), start=1):
        place = f"{path}: study {study}"
        image = next((one for one in own if one.SOPInstanceUID and one.SeriesInstanceUID), None)
        found = None if image is None else (image.SOPInstanceUID or "", f"{study}/{image.SeriesInstanceUID}/")
        if found is None:
            yield place, Skipped(place=place, reason="names no image", kind="no image", study=study)
            continue
        labels = tuple(dict.fromkeys(names[one.labelId] for one in own))
        boxes = tuple(
            _scale_box(d, one) for one in own if names[one.labelId] == OPACITY and (d := one.data) is not None
        )
        yield (
            place,
            _Entry(
                study,
                found[0],
                (found[1], f"images/{found[1]}", "images/", ""),
                str(path),
                number,
                labels,
                boxes,
                DefectCounts(),
            ),
        )


def _scale_box(box: _Box, drawn: _Annotation) -> tuple[float, float, float, float]:
    """A box in pixels of the published images, which are `SIDE` wide and high; an export may state another size."""
    across, down = (SIDE / length if length else 1.0 for length in (drawn.width, drawn.height))
    return box.x * across, box.y * down, box.width * across, box.height * down
