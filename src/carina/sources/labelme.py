"""LabelMe: a folder of JSON files, one an image, with polygons, rectangles and circles."""

import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np

from carina.sources._defects import RecordPlace
from carina.sources._image_sets import (
    DEFECTS,
    Categories,
    ImageFolder,
    ImageSetDraft,
    LookedFor,
    PatientPattern,
    assess,
    checksum_files,
    clean_key,
    compile_patient_pattern,
    find_file,
    find_patient,
    find_split,
    has_file,
    is_number,
    list_files,
    name_studies,
    read_categories,
)
from carina.sources._json import MAX_RECORD, decode
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Item, Stream, source
from carina.sources._study_draft import make_or_skip
from carina.store.documents import read_file
from carina.studies.region import Region

_ANNOTATOR: Final = "labelme"
_KNOWN: Final = frozenset(
    ("version", "flags", "shapes", "imagePath", "imageData", "imageHeight", "imageWidth")
)
_KNOWN_IN_SHAPE: Final = frozenset(("label", "points", "shape_type", "flags", "mask"))
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class _Settings(NamedTuple):
    """What is the same for all studies."""

    root: Path
    images: Path | None
    categories: Mapping[str, str | None]
    looked_for: LookedFor
    labels: tuple[str, ...]
    patient: re.Pattern[str] | None


@source(
    name="labelme",
    title="Polygons, rectangles and circles drawn with LabelMe",
    needs="a folder of LabelMe's JSON files, each beside its image or with the path to it; or the images in --images.",
    tree="""
    0001.json
    0001.png    or --images with the folder of the images
    """,
    licence="That of the data set",
    truth=("polygons", "boxes"),
    url="https://github.com/wkentaro/labelme",
    inputs=lambda path: {"annotations": checksum_files(path, list_files(path, (".json",)))},
    defects={
        **DEFECTS,
        "shape": "a point, line or other shape without an area is left out; its label is kept",
    },
    measure=lambda path: len(list_files(path, (".json",))),
    unit="images",
)
def read_labelme(
    path: Path,
    *,
    images: ImageFolder = None,
    categories: Categories = None,
    looked_for: LookedFor = "unknown",
    patient_pattern: PatientPattern = None,
) -> Stream:
    """Read one study a JSON file. The image that is stored in the file itself is not used."""
    files = list_files(path, (".json",))
    if not files:
        raise SourceError(f"{path}: no JSON file; put LabelMe's files there")
    names = read_categories(categories)
    labels = _list_labels(path, files) if looked_for == "listed" else ()
    settings = _Settings(path, images, names, looked_for, labels, compile_patient_pattern(patient_pattern))
    ids = name_studies(files)
    for file in files:
        yield partial(make_or_skip, _make_study, str(path / file), ids[file], file, ids[file], settings)


def _make_study(file: str, study: str, settings: _Settings) -> Item:
    content = _read_json(find_file(settings.root, file))
    key = _find_image(content, file, settings)
    draft = ImageSetDraft(
        study,
        patient=find_patient(settings.patient, key),
        source="labelme",
        number=0,
        file=str(settings.root / file),
        categories=settings.categories,
    )
    draft.add_image(settings.images or settings.root, key, "unknown", size=_size(content))
    draft.facts["split"] = find_split(key)
    draft.leave_out(name for name in content if name not in _KNOWN)
    shapes = content.get("shapes")
    if not isinstance(shapes, list):
        raise RecordError("shapes", f"is {describe(shapes)}, expected a list", kind="json")
    for number, shape in enumerate(shapes, start=1):
        draft.defects.place = RecordPlace(f"{draft.file}: shapes", number)
        _add_shape(draft, key, shape, f"shapes: record {number}")
    draft.defects.place = RecordPlace(draft.file)
    for label in _true_flags(content):
        draft.state_category(label)
    return draft.finish(assessed=assess(settings.looked_for, settings.labels, settings.categories))


def _read_json(path: Path) -> dict[str, Any]:
    content = read_file(path, error=_FileError, max_bytes=MAX_RECORD)
    found = decode(content.removeprefix(_BYTE_ORDER_MARK))
    if not isinstance(found, dict):
        raise RecordError("", f"is {describe(found)}, expected an object", kind="json")
    return found


class _FileError(RecordError):
    """A file that cannot be read: one record less, not the end of the import."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason, kind="file")


def _list_labels(path: Path, files: list[str]) -> tuple[str, ...]:
    """All labels of the set: the closed list where the annotators looked for what they have names for."""
    found: set[str] = set()
    for file in files:
        try:
            content = _read_json(find_file(path, file))
        except RecordError:
            continue  # reported when the study is read
        shapes = content.get("shapes")
        for shape in shapes if isinstance(shapes, list) else ():
            if isinstance(shape, dict) and isinstance(shape.get("label"), str) and shape["label"].strip():
                found.add(shape["label"].strip())
        flags = content.get("flags")
        if isinstance(flags, dict):
            found.update(name.strip() for name in flags if name.strip())
    return tuple(sorted(found))


def _find_image(content: Mapping[str, Any], file: str, settings: _Settings) -> str:
    """Path of the image: as the file states it; in a folder of images, also by its name alone."""
    stated = content.get("imagePath")
    if not isinstance(stated, str):
        raise RecordError("imagePath", f"is {describe(stated)}, expected text", kind="image")
    if settings.images is None:
        return clean_key(stated, PurePosixPath(file).parent.as_posix())
    name = PurePosixPath(stated.replace("\\", "/")).name
    beside = PurePosixPath(file).parent / name
    found = (key for key in (beside.as_posix(), name) if has_file(settings.images, key))
    return clean_key(next(found, name))


def _size(content: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = content.get("imageWidth"), content.get("imageHeight")
    if width is None and height is None:
        return None
    if not (isinstance(width, int) and isinstance(height, int)) or min(width, height) < 1:
        stated = f"{describe(width)} x {describe(height)}"
        raise RecordError("imageWidth", f"the size is {stated}, expected two whole numbers", kind="size")
    return width, height


def _true_flags(content: Mapping[str, Any]) -> list[str]:
    """Labels of the whole image. A flag that is not set is no statement: it is how every flag begins."""
    flags = content.get("flags")
    if flags is None:
        return []
    if not isinstance(flags, dict):
        raise RecordError("flags", f"is {describe(flags)}, expected an object", kind="json")
    return [name for name, value in flags.items() if value is True]


def _add_shape(draft: ImageSetDraft, key: str, shape: Any, field: str) -> None:  # noqa: ANN401 - JSON
    if not isinstance(shape, dict) or not isinstance(shape.get("label"), str):
        raise RecordError(field, "expected an object with a label", kind="json")
    label = shape["label"].strip()
    if not label:
        raise RecordError(f"{field}.label", "is empty", kind="label")
    draft.leave_out(
        f"shapes.{name}"
        for name, value in shape.items()
        if name not in _KNOWN_IN_SHAPE and value not in (None, "")
    )
    points: list[list[float]] = shape.get("points") or []
    if not points or not _are_points(points):
        draft.lose_region(label)
        return
    match shape.get("shape_type", "polygon"):
        case "polygon" | None:
            draft.draw_polygons(label, key, [points], annotator=_ANNOTATOR)
        case "rectangle" if len(points) >= 2:
            across, down = ([point[axis] for point in points] for axis in (0, 1))
            corners = ((min(across), min(down)), (max(across), max(down)))
            draft.draw_box(label, key, corners, annotator=_ANNOTATOR)
        case "circle" if len(points) == 2:
            image = draft.image(key)
            make = partial(make_circle, points[0], points[1], width=image.width, height=image.height)
            draft.draw_region(label, key, make, annotator=_ANNOTATOR, drawn="polygon")
        case "rectangle" | "circle":
            draft.lose_region(label)
        case _:
            draft.state_category(label)
            draft.defects["shape"] += 1


def _are_points(points: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(points, list) and all(
        isinstance(point, list) and len(point) == 2 and all(map(is_number, point)) for point in points
    )


def make_circle(centre: list[float], edge: list[float], *, width: int, height: int) -> Region:
    """The pixels whose centre lies within a circle, given by its centre and a point on it."""
    (x, y), radius = centre, math.dist(centre, edge)
    across = (np.arange(width) + 0.5 - x) ** 2
    down = (np.arange(height) + 0.5 - y) ** 2
    return Region.from_mask(down[:, None] + across[None, :] <= radius**2)
