"""Object-CXR: foreign objects in the lung fields, outlined by radiologists as rectangles, ellipses or polygons.

Support devices were not annotated: nothing is known of them.
"""

import math
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from carina.sources._draft_images import ImageFolder, find_image
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, read_rows
from carina.studies.model import Image
from carina.studies.region import Region
from carina.studies.vocabulary import Split

FILES: Final[dict[str, Split]] = {"train.csv": "train", "dev.csv": "val", "test.csv": "test"}
LABEL: Final = "foreign object"
ANNOTATOR: Final = "radiologist"
RECTANGLE, ELLIPSE, POLYGON = "0", "1", "2"
_NAMES: Final = ("image_name", "image_path")
"""Columns of the image, as different copies of the tables call it."""


def _find_files(path: Path) -> dict[str, Path]:
    found = {name: path / name for name in FILES if (path / name).is_file()}
    if not found:
        raise SourceError(
            f"{path / 'train.csv'}: missing; put train.csv, dev.csv or test.csv of Object-CXR there"
        )
    return found


@source(
    name="object-cxr",
    title="Object-CXR: foreign objects on chest X-rays",
    needs="a folder with train.csv, dev.csv or test.csv, and the JPEG files in train/, dev/ and test/.",
    tree="""
    train.csv
    dev.csv
    train/
      00001.jpg
    dev/
    """,
    licence="None stated by the organisers; terms of the challenge: research",
    truth=("boxes", "polygons"),
    url="https://github.com/hlk-1135/object-CXR",
    citation="JF Healthcare. Object-CXR: Automatic detection of foreign objects on chest X-rays. MIDL 2020.",
    inputs=_find_files,
    defects=DEFECTS,
    unit="images",
)
def read_object_cxr(path: Path, *, images: ImageFolder = None) -> Stream:
    """Read one study an image."""
    seen: set[str] = set()
    for name, file in _find_files(path).items():
        for row in read_rows(file, ("annotation",)):
            column = next((column for column in _NAMES if column in row.values), None)
            if column is None:
                raise SourceError(f"{file}: no column {' or '.join(_NAMES)}")
            image = row.values[column].strip()
            if image in seen:
                yield Skipped(
                    place=row.place, field=column, reason="is there twice", kind="duplicate", study=image
                )
                continue
            seen.add(image)
            yield partial(
                make_or_skip, _make_study, row.place, image, images or path, row, column, FILES[name]
            )


def _make_study(root: Path, row: Row, column: str, split: Split) -> Item:
    # Some copies of the tables have the path on the machine of the organisers.
    file = row.required(column).rsplit("/", 1)[-1]
    name = file.rsplit(".", 1)[0]
    draft = StudyDraft(name, patient=name, source="object-cxr", number=row.number, file=row.file)
    folder = "dev" if split == "val" else split
    key = find_image(root, (f"{folder}/{file}", f"images/{file}", file)) or f"{folder}/{file}"
    image = draft.add_image(root, key, "unknown")
    draft.facts = {"split": split}
    for shape in row.text("annotation").split(";"):
        if shape.strip():
            _add_shape(draft, image, shape)
    return draft.finish(assessed=assess_labels((LABEL,)))


def _add_shape(draft: StudyDraft, image: Image, text: str) -> None:
    kind, *words = text.split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    is_plain = kind in (RECTANGLE, ELLIPSE) and len(numbers) == 4
    if not is_plain and not (kind == POLYGON and len(numbers) >= 6 and len(numbers) % 2 == 0):
        reason = f"is {describe(text)}, expected 0 or 1 and four numbers, or 2 and the points of a polygon"
        raise RecordError("annotation", reason, kind="shape")
    if kind == POLYGON:
        ring = np.array(numbers).reshape(-1, 2)
        draft.add_polygons(LABEL, image.key, [ring], annotator=ANNOTATOR)
        return
    x1, y1, x2, y2 = numbers
    if kind == RECTANGLE:
        draft.add_box(LABEL, image.key, (x1, y1, x2 - x1, y2 - y1), annotator=ANNOTATOR)
    else:
        region = _fill_ellipse(image, x1, y1, x2, y2)
        draft.add_region(LABEL, image.key, region, annotator=ANNOTATOR, drawn="polygon")


def _fill_ellipse(image: Image, x1: float, y1: float, x2: float, y2: float) -> Region:
    """Pixels whose centre lies in the ellipse that fills a box; none where there is no such ellipse."""
    if not all(map(math.isfinite, (x1, y1, x2, y2))) or x2 <= x1 or y2 <= y1:
        return Region.empty(image.height, image.width)
    across = (2 * (np.arange(image.width) + 0.5) - x1 - x2) / (x2 - x1)
    down = (2 * (np.arange(image.height) + 0.5) - y1 - y2) / (y2 - y1)
    return Region.from_mask(np.asarray(across**2 + (down**2)[:, None] <= 1))
