"""VinDr-CXR, and its form as the VinBigData competition: boxes and labels of three readers, kept apart.

A finding is present where at least half of the readers of the image state it, else uncertain; each reader's boxes stay
that reader's. The test images have one consensus. Boxes are in pixels of the original DICOM images.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from carina.sources._converted import ConvertedImages, add_converted_image, find_folders
from carina.sources._draft_images import MissingImages
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.sources._votes import Vote, state_votes
from carina.studies.vocabulary import ABNORMALITY, Split

COMPETITION: Final = "train.csv"
LOCAL_LABELS: Final = (
    "Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Clavicle fracture", "Consolidation", "Edema",
    "Emphysema", "Enlarged PA", "ILD", "Infiltration", "Lung Opacity", "Lung cavity", "Lung cyst", "Mediastinal shift",
    "Nodule/Mass", "Pleural effusion", "Pleural thickening", "Pneumothorax", "Pulmonary fibrosis", "Rib fracture",
    "Other lesion",
)  # fmt: skip
COMPETITION_LABELS: Final = (
    "Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Consolidation", "ILD", "Infiltration",
    "Lung Opacity", "Nodule/Mass", "Other lesion", "Pleural effusion", "Pleural thickening", "Pneumothorax",
    "Pulmonary fibrosis",
)  # fmt: skip
NO_FINDING: Final = "No finding"
CONSENSUS: Final = "consensus"
"""Annotator of the test images."""
_CORNERS: Final = ("x_min", "y_min", "x_max", "y_max")
_SIZES: Final = (("width", "height"), ("dim1", "dim0"), ("Columns", "Rows"))
"""Columns of width and height in tables of sizes; the second pair is that of the PNG copies on Kaggle."""
_NO_LABEL: Final = ("image_id", "rad_id", "rad_ID")
"""Columns of a table of labels that are no labels."""
_STATED: Final = {"1": True, "0": False, "1.0": True, "0.0": False}
_ONE_WORD: Final = {"Other diseases": "Other disease"}
"""The label of the training images as the test images write it."""


class _Table(NamedTuple):
    boxes: Path
    labels: Path | None
    split: Split
    drawn: tuple[str, ...]
    """Labels of the boxes, by the published list: the table of boxes names only those that were drawn."""


class _ImagePlace(NamedTuple):
    root: Path
    folders: tuple[str, ...]
    """Folders below the root in which a file may be."""
    missing_images: MissingImages


def _find_tables(path: Path) -> tuple[_Table, ...]:
    folder = path / "annotations"
    splits: tuple[Split, Split] = ("train", "test")
    tables = tuple(
        _Table(folder / f"annotations_{split}.csv", folder / f"image_labels_{split}.csv", split, LOCAL_LABELS)
        for split in splits
    )
    found = tuple(table for table in tables if table.boxes.is_file())
    if not found and (path / COMPETITION).is_file():
        return (_Table(path / COMPETITION, None, "train", COMPETITION_LABELS),)
    if not found:
        raise SourceError(
            f"{tables[0].boxes}: missing; put annotations/ of PhysioNet, or {COMPETITION} of Kaggle, there"
        )
    return found


def _inputs(path: Path) -> dict[str, Path]:
    tables = _find_tables(path)
    files = {f"boxes of {table.split}": table.boxes for table in tables}
    return files | {f"labels of {table.split}": table.labels for table in tables if table.labels is not None}


@source(
    name="vindr-cxr",
    title="VinDr-CXR and VinBigData, boxes by several readers",
    needs=f"a folder with annotations/ of PhysioNet, or with {COMPETITION} of Kaggle, and the images as PNG or JPEG "
    "files; where these are smaller than the DICOM files, also a table of the original sizes (--sizes).",
    tree="""
    annotations/                   or train.csv of Kaggle
      annotations_train.csv
      annotations_test.csv
      image_labels_train.csv
      image_labels_test.csv
    train/                         converted to PNG, or given with --images
      000434271f63a053c4128a0ba6352c7f.png
    test/
    """,
    licence="PhysioNet Credentialed Health Data Licence 1.5.0; VinBigData: terms of the competition",
    truth=("boxes of several readers", "labels"),
    url="https://physionet.org/content/vindr-cxr/1.0.0/",
    citation="Nguyen HQ, Lam K, Le LT, et al. VinDr-CXR: An open dataset of chest X-rays with radiologist's "
    "annotations. Scientific Data 2022;9:429.",
    inputs=_inputs,
    defects=DEFECTS,
    unit="images",
)
def read_vindr_cxr(
    path: Path,
    *,
    sizes: Annotated[
        Path | None,
        Meta(
            description="CSV file of original sizes: image_id, width, height (or dim1, dim0; or Columns, Rows)."
        ),
    ] = None,
    missing_images: MissingImages = "skip",
    images: ConvertedImages = None,
) -> Stream:
    """Read one study an image."""
    root, known = images or path, {} if sizes is None else _read_sizes(sizes)
    for table in _find_tables(path):
        folders = find_folders(root, (f"{table.split}/", "images/", ""))
        place = _ImagePlace(root, folders, missing_images)
        boxes = group_rows(read_rows(table.boxes, ("image_id", "class_name", *_CORNERS)), "image_id")
        labels: Mapping[str, Sequence[Row]] = {}
        if table.labels is not None:
            labels = group_rows(read_rows(table.labels, ("image_id", NO_FINDING)), "image_id")
        for name, own in boxes.items():
            rows = (own, labels.get(name, ()))
            size = known.get(name)
            yield partial(
                make_or_skip,
                _make_study,
                own[0].place,
                name,
                place,
                table,
                rows,
                size,
            )
        for name, rest in labels.items():
            if name not in boxes:
                reason = f"has labels but no row in {table.boxes.name}"
                yield Skipped(
                    place=rest[0].place, field="image_id", reason=reason, kind="not joined", study=name
                )


def _make_study(
    place: _ImagePlace,
    table: _Table,
    rows: tuple[Sequence[Row], Sequence[Row]],
    size: tuple[int, int] | None,
) -> Item:
    boxes, labels = rows
    name = boxes[0].required("image_id")
    draft = StudyDraft(name, patient=name, source="vindr-cxr", number=boxes[0].number, file=boxes[0].file)
    frame = add_converted_image(
        draft, place.root, name, place.folders, size=size, missing=place.missing_images
    )
    draft.facts = {"split": table.split}
    key = frame.image.key
    drawn = [(_reader(row), row.required("class_name")) for row in boxes]
    readers = sorted({reader for reader, _ in drawn} | {_reader(row) for row in labels})
    stated = dict.fromkeys((*_read_labels(labels), *drawn))
    state_votes(draft, (_make_vote(key, reader, label) for reader, label in stated), {key: readers})
    for row, (reader, label) in zip(boxes, drawn, strict=True):
        draft.defects.read_row(row)
        if label != NO_FINDING:
            x1, y1, x2, y2 = row.numbers_or_nan(_CORNERS)
            draft.add_box(label, key, frame.scale_box((x1, y1, x2 - x1, y2 - y1)), annotator=reader)
    listed = (*table.drawn, *(_ONE_WORD.get(label, label) for label in _list_columns(labels)))
    return draft.finish(assessed=assess_labels(listed, readers=readers if len(readers) > 1 else ()))


def _list_columns(rows: Sequence[Row]) -> list[str]:
    """Labels about which the table of labels says something of an image; none where the table does not name it."""
    stated = {label for row in rows for label, value in row.values.items() if value.strip()}
    return sorted(stated - {*_NO_LABEL, NO_FINDING})


def _make_vote(key: str, reader: str, label: str) -> Vote:
    if label == NO_FINDING:
        return Vote(key, reader, label, "absent", words=ABNORMALITY)
    return Vote(key, reader, label, words=_ONE_WORD.get(label, ""))


def _read_labels(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Reader and label of every statement in a table of one column a label."""
    for row in rows:
        for label in row.values:
            if label not in _NO_LABEL and row.choice(label, _STATED):
                yield _reader(row), label


def _reader(row: Row) -> str:
    return row.values.get("rad_id", "").strip() or row.values.get("rad_ID", "").strip() or CONSENSUS


def _read_sizes(path: Path) -> dict[str, tuple[int, int]]:
    sizes: dict[str, tuple[int, int]] = {}
    for row in read_rows(path, ("image_id",)):
        columns = next((pair for pair in _SIZES if set(pair) <= row.values.keys()), None)
        if columns is None:
            raise SourceError(
                f"{row.place}: expected the columns width and height, dim1 and dim0, or Columns and Rows"
            )
        try:
            width, height = (row.integer(column) for column in columns)
            sizes[row.required("image_id")] = (width, height)
        except RecordError as error:
            raise SourceError(f"{row.place}: {error}") from error
    return sizes
