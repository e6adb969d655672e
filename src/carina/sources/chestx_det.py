"""ChestX-Det and ChestX-Det10: what three radiologists outlined on images of NIH ChestX-ray14.

Every instance has a label, a box, and in ChestX-Det a polygon; the polygon is kept, or the box where there is none.
Whatever is on the list of labels was looked for. The authors gave the images new numbers, so that patients are
unknown: each image is its own patient.
"""

from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._json import Entry, decode_as, read_entries
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Item, Stream, source
from carina.sources._study_draft import DEFECTS, REPEATS, SECOND_RECORD, StudyDraft, make_or_skip
from carina.studies.vocabulary import Split

LABELS: Final = (
    "Atelectasis", "Calcification", "Cardiomegaly", "Consolidation", "Diffuse Nodule", "Effusion", "Emphysema",
    "Fibrosis", "Fracture", "Mass", "Nodule", "Pleural Thickening", "Pneumothorax",
)  # fmt: skip
LABELS_OF_TEN: Final = (
    "Atelectasis", "Calcification", "Consolidation", "Effusion", "Emphysema", "Fibrosis", "Fracture", "Mass",
    "Nodule", "Pneumothorax",
)  # fmt: skip
SIDE: Final = 1024
"""Width and height of every image, and the frame of all coordinates."""
ANNOTATOR: Final = "three radiologists"


class _File(NamedTuple):
    name: str
    split: Split
    labels: tuple[str, ...]


FILES: Final = (
    _File("ChestX_Det_train.json", "train", LABELS),
    _File("ChestX_Det_test.json", "test", LABELS),
    _File("train.json", "train", LABELS_OF_TEN),
    _File("test.json", "test", LABELS_OF_TEN),
)


class _Record(msgspec.Struct):
    """One image; the three lists run in parallel."""

    file_name: str
    syms: list[str]
    boxes: list[tuple[float, float, float, float]]
    polygons: list[list[tuple[float, float]]] | None = None


def _find_files(path: Path) -> tuple[_File, ...]:
    for pair in (FILES[:2], FILES[2:]):
        if found := tuple(file for file in pair if (path / file.name).is_file()):
            return found
    raise SourceError(f"{path / FILES[0].name}: missing; put {FILES[0].name} and {FILES[1].name} there")


def _inputs(path: Path) -> dict[str, Path]:
    return {file.split: path / file.name for file in _find_files(path)}


@source(
    name="chestx-det",
    title="ChestX-Det: polygons and boxes on NIH images",
    needs="a folder with ChestX_Det_train.json and ChestX_Det_test.json (or train.json and test.json of ChestX-Det10) "
    "and the images in train_data/ and test_data/; the JSON files alone with --missing-images keep.",
    tree="""
    ChestX_Det_train.json    or train.json of ChestX-Det10
    ChestX_Det_test.json     or test.json of ChestX-Det10
    train_data/
      36199.png
    test_data/
    """,
    licence="Annotations: Apache-2.0; images: terms of NIH ChestX-ray14 (acknowledge the NIH Clinical Center)",
    truth=("polygons", "boxes"),
    url="https://github.com/Deepwise-AILab/ChestX-Det-Dataset",
    citation="Lian J, Liu J, Zhang S, et al. A Structure-Aware Relation Network for Thoracic Diseases Detection and "
    "Segmentation. IEEE Transactions on Medical Imaging 2021.",
    inputs=_inputs,
    defects={**DEFECTS, **REPEATS},
    second_id=SECOND_RECORD,
    unit="images",
)
def read_chestx_det(
    path: Path, *, missing_images: MissingImages = "skip", images: ImageFolder = None
) -> Stream:
    """Read one study an image."""
    root = images or path
    for file in _find_files(path):
        for entry in read_entries(path / file.name):
            place = f"{path / file.name}: record {entry.number}"
            yield partial(make_or_skip, _make_study, place, "", root, file, path, entry, missing_images)


def _make_study(root: Path, file: _File, folder: Path, entry: Entry, missing: MissingImages) -> Item:
    record = decode_as(entry.content, _Record)
    polygons = record.polygons if record.polygons is not None else [[]] * len(record.syms)
    for field, values in (("boxes", record.boxes), ("polygons", polygons)):
        if len(values) != len(record.syms):
            raise RecordError(field, f"has {len(values)} entries for {len(record.syms)} labels", kind="json")
    name = record.file_name.rsplit(".", 1)[0]
    draft = StudyDraft(
        name, patient=name, source="chestx-det", number=entry.number, file=str(folder / file.name)
    )
    folders = (f"{file.split}_data/", f"{file.split}/", "images/", "")
    key = find_image(root, (f"{folder}{record.file_name}" for folder in folders))
    key = key or f"{folders[0]}{record.file_name}"
    draft.add_image(root, key, "unknown", size=(SIDE, SIDE), missing=missing)
    draft.facts = {"split": file.split}
    for label, (x1, y1, x2, y2), polygon in zip(record.syms, record.boxes, polygons, strict=True):
        if len(set(polygon)) >= 3:
            draft.add_polygons(label, key, [polygon], annotator=ANNOTATOR)
        else:
            draft.add_box(label, key, (x1, y1, x2 - x1, y2 - y1), annotator=ANNOTATOR)
    return draft.finish(assessed=assess_labels(file.labels))
