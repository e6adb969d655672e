"""SIIM-ACR Pneumothorax Segmentation: one mask of the pneumothorax an image, in as many rows as it has parts.

The runs of a mask go down the columns of an image of 1024 x 1024 pixels, with starts relative to the run before.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from carina.sources._converted import ConvertedImages, add_converted_image
from carina.sources._draft_images import MissingImages
from carina.sources._labels import assess_labels
from carina.sources._record import SourceError
from carina.sources._source import Item, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.store.errors import RegionError
from carina.studies.region import Region

TABLES: Final = ("train-rle.csv", "stage_2_train.csv")
FINDING: Final = "Pneumothorax"
NONE: Final = "-1"
SIDE: Final = 1024
_IMAGE, _RUNS = "ImageId", "EncodedPixels"


def _find_table(path: Path) -> Path:
    for name in TABLES:
        if (path / name).is_file():
            return path / name
    raise SourceError(
        f"{path / TABLES[0]}: missing; put {TABLES[0]} (or {TABLES[1]}) of the competition there"
    )


@source(
    name="siim",
    title="SIIM-ACR Pneumothorax Segmentation",
    needs=f"a folder with {TABLES[0]} (or {TABLES[1]}) and the images as PNG or JPEG files; the table alone with "
    "--missing-images keep.",
    tree="""
    train-rle.csv           or stage_2_train.csv
    dicom-images-train/     converted to PNG, or given with --images
      1.2.276.0.7230010.3.1.4.8323329.1000.1517875165.878027.png
    """,
    licence="Terms of the competition: research and education, no redistribution",
    truth=("masks",),
    url="https://www.kaggle.com/c/siim-acr-pneumothorax-segmentation",
    citation="Society for Imaging Informatics in Medicine, American College of Radiology. SIIM-ACR Pneumothorax "
    "Segmentation. Kaggle, 2019.",
    inputs=lambda path: {"masks": _find_table(path)},
    defects=DEFECTS,
    unit="images",
)
def read_siim(
    path: Path, *, missing_images: MissingImages = "skip", images: ConvertedImages = None
) -> Stream:
    """Read one study an image."""
    for name, rows in group_rows(read_rows(_find_table(path), (_IMAGE, _RUNS)), _IMAGE).items():
        yield partial(make_or_skip, _make_study, rows[0].place, name, images or path, rows, missing_images)


def _make_study(root: Path, rows: Sequence[Row], missing: MissingImages) -> Item:
    name = rows[0].required(_IMAGE)
    draft = StudyDraft(name, patient=name, source="siim", number=rows[0].number, file=rows[0].file)
    folders = ("", "images/", "dicom-images-train/")
    image = add_converted_image(draft, root, name, folders, size=(SIDE, SIDE), missing=missing).image
    drawn = [(row, text) for row in rows if (text := row.required(_RUNS)) != NONE]
    if not drawn:
        draft.state(FINDING, "absent")
        return draft.finish(assessed=assess_labels((FINDING,)))
    draft.state(FINDING)
    draft.defects["conflict"] += len(rows) - len(drawn)
    parts: list[Region] = []
    for row, text in drawn:
        draft.defects.read_row(row)
        try:
            parts.append(Region.from_siim(text, height=SIDE, width=SIDE))
        except RegionError:
            draft.defects["region"] += 1
    if parts:
        whole = parts[0].union(*parts[1:])
        if (image.height, image.width) != (SIDE, SIDE):
            whole = whole.resize(image.height, image.width)
        draft.add_region(FINDING, image.key, whole, annotator="radiologist")
    return draft.finish(assessed=assess_labels((FINDING,)))
