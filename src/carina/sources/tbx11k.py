"""TBX11K: boxes of tuberculosis on images of 512 x 512 pixels, as COCO files or in the simplified form of Kaggle.

Every image is healthy, sick without tuberculosis, or shows tuberculosis: active, healed ("obsolete", "latent"), or not
told which. The test images are published without annotations and are not read.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._json import decode_as
from carina.sources._labels import assess_labels
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Item, Stream, source
from carina.sources._study_draft import DEFECTS, REPEATS, SECOND_RECORD, StudyDraft, make_or_skip
from carina.sources._tables import Row, group_rows, read_rows
from carina.sources._values import read_split
from carina.studies.vocabulary import ABNORMALITY, Split

FILES: Final[Mapping[Split, str]] = {"train": "TBX11K_train.json", "val": "TBX11K_val.json"}
TABLE: Final = "data.csv"
SIDE: Final = 512
ACTIVE, HEALED, ANY = "ActiveTuberculosis", "ObsoletePulmonaryTuberculosis", "PulmonaryTuberculosis"
_KINDS: Final = {"active_tb": ACTIVE, "latent_tb": HEALED}
"""Kinds of tuberculosis of the simplified form, as the COCO files call them."""
_HEALTHY: Final = ("health", "healthy")
_SICK: Final = ("sick", "sick_but_no_tb", "sick_but_non-tb")
_TUBERCULOSIS: Final = "tb"
_LONGEST_BOX: Final = 200
"""Characters of a box as text."""


class _Box(NamedTuple):
    label: str
    words: str
    corner: tuple[float, float, float, float]


class _Entry(NamedTuple):
    """One image, in either form."""

    file: str
    """Path of the image."""
    table: str
    number: int
    split: Split | None
    kind: str
    boxes: tuple[_Box, ...]


def _find_files(path: Path) -> dict[Split, Path]:
    folder = path / "annotations" / "json"
    return {split: folder / name for split, name in FILES.items() if (folder / name).is_file()}


def _inputs(path: Path) -> dict[str, Path]:
    return {"table": path / TABLE, **{str(split): file for split, file in _find_files(path).items()}}


@source(
    name="tbx11k",
    title="TBX11K: boxes of tuberculosis",
    needs=f"a folder with annotations/json/{FILES['train']} and {FILES['val']} and the images in imgs/, or with "
    f"{TABLE} and images/ of the simplified form; the annotations alone with --missing-images keep.",
    tree="""
    annotations/json/           or data.csv of the simplified form
      TBX11K_train.json
      TBX11K_val.json
    imgs/                       or images/
      health/h0001.png
      sick/s0001.png
      tb/tb0005.png
    """,
    licence="Terms of the project page (academic use)",
    truth=("boxes", "labels"),
    url="https://mmcheng.net/tb/",
    citation="Liu Y, Wu YH, Ban Y, Wang H, Cheng MM. Rethinking Computer-Aided Tuberculosis Diagnosis. CVPR 2020.",
    inputs=_inputs,
    defects={**DEFECTS, **REPEATS},
    second_id=SECOND_RECORD,
    unit="images",
)
def read_tbx11k(path: Path, *, missing_images: MissingImages = "skip", images: ImageFolder = None) -> Stream:
    """Read one study an image."""
    root, files = images or path, _find_files(path)
    for split, file in files.items():
        for entry in _read_coco(file, split):
            place, name = f"{file}: image {entry.number}", _study_id(entry.file)
            yield partial(make_or_skip, _make_study, place, name, root, entry, missing_images)
    if not files:
        if not (path / TABLE).is_file():
            where = path / "annotations" / "json" / FILES["train"]
            raise SourceError(
                f"{where}: missing; put the COCO files there, or {TABLE} of the simplified form in {path}"
            )
        for name, rows in group_rows(read_rows(path / TABLE, ("fname", "target", "bbox")), "fname").items():
            yield partial(
                make_or_skip, _read_table, rows[0].place, _study_id(name), root, rows, missing_images
            )


def _make_study(root: Path, entry: _Entry, missing: MissingImages) -> Item:
    draft = StudyDraft(
        _study_id(entry.file),
        patient=_study_id(entry.file),
        source="tbx11k",
        number=entry.number,
        file=entry.table,
    )
    key = (
        find_image(root, (f"{folder}{entry.file}" for folder in ("imgs/", "images/", "")))
        or f"imgs/{entry.file}"
    )
    draft.add_image(root, key, "unknown", size=(SIDE, SIDE), missing=missing)
    draft.facts = {"split": entry.split}
    if entry.kind in _HEALTHY:
        draft.state_normal(entry.kind)
    elif entry.kind in _SICK:
        draft.state(entry.kind, words=ABNORMALITY)
    elif entry.kind == _TUBERCULOSIS:
        draft.state(entry.kind, words=ANY)
    for label, words, corner in entry.boxes:
        draft.state(label, words=words)
        draft.add_box(words, key, corner, annotator="radiologists")
    # Where nobody tells the kind of a tuberculosis, neither kind is absent.
    is_kind_unknown = any(words == ANY for _, words, _ in entry.boxes) or (
        entry.kind == _TUBERCULOSIS and not entry.boxes
    )
    return draft.finish(assessed=assess_labels((ANY,) if is_kind_unknown else (ACTIVE, HEALED, ANY)))


def _study_id(name: str) -> str:
    return name.rsplit("/", 1)[-1].rsplit(".", 1)[0]


# ---- COCO files -----------------------------------------------------------------------------------------------------


class _Image(msgspec.Struct):
    id: int
    file_name: str


class _Category(msgspec.Struct):
    id: int
    name: str


class _Annotation(msgspec.Struct):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]


class _Export(msgspec.Struct):
    images: list[_Image]
    categories: list[_Category]
    annotations: list[_Annotation]


def _read_coco(path: Path, split: Split) -> Iterator[_Entry]:
    try:
        export = decode_as(path.read_bytes(), _Export)
    except RecordError as error:
        raise SourceError(f"{path}: {error}") from error
    names = {one.id: one.name for one in export.categories}
    boxes: dict[int, list[_Box]] = {}
    for one in export.annotations:
        label = names.get(one.category_id, f"category {one.category_id}")
        boxes.setdefault(one.image_id, []).append(_Box(label, label, one.bbox))
    for number, image in enumerate(export.images, start=1):
        kind = image.file_name.split("/", 1)[0] if "/" in image.file_name else ""
        yield _Entry(image.file_name, str(path), number, split, kind, tuple(boxes.get(image.id, ())))


# ---- the simplified form --------------------------------------------------------------------------------------------


def _read_table(root: Path, rows: Sequence[Row], missing: MissingImages) -> Item:
    first = rows[0]
    has_target = first.choice("target", {"tb": True, "no_tb": False})
    boxes = []
    for row in rows:
        if text := row.text("bbox"):
            kind = row.values.get("tb_type", "").strip() or _TUBERCULOSIS
            boxes.append(_Box(kind, _KINDS.get(kind, ANY), _read_box(text)))
    kind = _TUBERCULOSIS if has_target else first.values.get("image_type", "").strip()
    split = read_split(first.values.get("source", ""))
    return _make_study(
        root, _Entry(first.required("fname"), first.file, first.number, split, kind, tuple(boxes)), missing
    )


def _read_box(text: str) -> tuple[float, float, float, float]:
    """A box that is written as a dictionary of Python."""
    try:
        found: Any = ast.literal_eval(text) if len(text) <= _LONGEST_BOX else None
        x, y, width, height = (float(found[side]) for side in ("xmin", "ymin", "width", "height"))
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError, OverflowError):
        reason = f"is {describe(text)}, expected {{'xmin': ..., 'ymin': ..., 'width': ..., 'height': ...}}"
        raise RecordError("bbox", reason, kind="box") from None
    return x, y, width, height
