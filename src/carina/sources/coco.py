"""COCO instances: boxes, polygons and run-length masks of any detection or segmentation set in COCO's layout."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from carina.sources._defects import RecordPlace
from carina.sources._frames import box_corners
from carina.sources._image_sets import (
    DEFECTS,
    Categories,
    ImageFolder,
    ImageSetDraft,
    LookedFor,
    PatientPattern,
    assess,
    clean_key,
    compile_patient_pattern,
    find_patient,
    find_split,
    gather,
    is_number,
    name_studies,
    read_categories,
)
from carina.sources._json import decode, read_entries
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Item, Skipped, Stream, source
from carina.studies.model import Assessed
from carina.studies.region import Region

_KNOWN: Final = frozenset(("id", "image_id", "category_id", "bbox", "segmentation", "area", "iscrowd"))
"""Fields of an annotation that are read, or follow from those that are."""
_ANNOTATOR: Final = "coco"


class _CocoImage(NamedTuple):
    """An entry of `images`."""

    key: str
    size: tuple[int, int] | None
    number: int


class _Layout(NamedTuple):
    """What the first pass over a file finds out."""

    images: Mapping[str, _CocoImage]
    """By id, as text."""
    categories: Mapping[str, str]
    """Names by id, as text."""
    annotations: Mapping[str, int]
    """Number of annotations by image."""
    faults: tuple[Skipped, ...]


class _Settings(NamedTuple):
    """What is the same for all studies."""

    root: Path
    labels: Mapping[str, str]
    categories: Mapping[str, str | None]
    assessed: Assessed
    patient: re.Pattern[str] | None


@source(
    name="coco",
    title="Boxes, polygons and masks in COCO's layout of instances",
    needs="a JSON file with images, annotations and categories; image files below --images, or beside the file.",
    tree="""
    annotations.json
    images/     or beside the JSON file, or --images with their folder
      0001.png
    """,
    licence="That of the data set",
    truth=("boxes", "masks"),
    url="https://cocodataset.org/#format-data",
    defects={**DEFECTS, "crowd": "a region of several objects that are not told apart is used as one region"},
    unit="images",
)
def read_coco(
    path: Path,
    *,
    images: ImageFolder = None,
    categories: Categories = None,
    looked_for: LookedFor = "unknown",
    patient_pattern: PatientPattern = None,
) -> Stream:
    """Read one study an image; annotations may stand in any order."""
    if path.is_dir():
        raise SourceError(f"{path}: is a folder; name the JSON file of instances in it")
    layout = _read_layout(path)
    names = read_categories(categories)
    settings = _Settings(
        images or path.parent,
        layout.categories,
        names,
        assess(looked_for, layout.categories.values(), names),
        compile_patient_pattern(patient_pattern),
    )
    ids = name_studies(image.key for image in layout.images.values())
    yield from layout.faults
    for name, image in layout.images.items():
        if not layout.annotations.get(name):
            yield partial(_read_study, path, ids[image.key], image, [], settings)
    for name, found in gather(_read_annotations(path, layout), layout.annotations):
        image = layout.images[name]
        yield partial(_read_study, path, ids[image.key], image, found, settings)


# ---- the first pass -------------------------------------------------------------------------------------------------


def _read_layout(path: Path) -> _Layout:
    images: dict[str, _CocoImage] = {}
    categories: dict[str, str] = {}
    counts: Counter[str] = Counter()
    faults: list[Skipped] = []
    found: set[str] = set()
    keys: set[str] = set()
    numbers: Counter[str] = Counter()
    for entry in read_entries(path, "named arrays"):
        found.add(entry.name)
        numbers[entry.name] += 1
        place = _describe_place(RecordPlace(f"{path}: {entry.name}", numbers[entry.name]))
        try:
            if entry.name == "images":
                _add_image(images, keys, decode(entry.content), numbers[entry.name])
            elif entry.name == "categories":
                _add_category(categories, decode(entry.content))
            elif entry.name == "annotations":
                counts[_reference(decode(entry.content), "image_id")] += 1
        except RecordError as error:
            if entry.name == "categories":
                raise SourceError(f"{place}: {error}") from error
            faults.append(Skipped.from_error(error, place))
    if "images" not in found:
        raise SourceError(f"{path}: no images: expected COCO's object of images, annotations and categories")
    for name in [name for name in counts if name not in images]:
        reason = (
            f"{counts.pop(name)} annotations of image {name}, which is not among the images or cannot be used"
        )
        faults.append(
            Skipped(place=str(path), field="image_id", reason=reason, kind="not joined", study=name)
        )
    return _Layout(images, categories, counts, tuple(faults))


def _add_image(images: dict[str, _CocoImage], keys: set[str], entry: Any, number: int) -> None:  # noqa: ANN401 - JSON
    name = _reference(entry, "id")
    if name in images:
        raise RecordError("id", f"{name} is given twice", kind="id")
    file = entry.get("file_name")
    if not isinstance(file, str):
        raise RecordError("file_name", f"is {describe(file)}, expected text", kind="image")
    key = clean_key(file)
    if key in keys:
        raise RecordError("file_name", f"{describe(file)} is given twice", kind="image")
    images[name] = _CocoImage(key, _size(entry), number)
    keys.add(key)


def _size(entry: Mapping[str, Any]) -> tuple[int, int] | None:
    values: list[Any] = [entry.get("width"), entry.get("height")]
    if values == [None, None]:
        return None
    if not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values):
        raise RecordError(
            "width", f"is {describe(values)} with the height, expected two whole numbers", kind="size"
        )
    return int(values[0]), int(values[1])


def _add_category(categories: dict[str, str], entry: Any) -> None:  # noqa: ANN401 - JSON
    name = _reference(entry, "id")
    text = entry.get("name")
    if not isinstance(text, str) or not text.strip():
        raise RecordError("name", f"is {describe(text)}, expected a name", kind="category")
    if name in categories:
        raise RecordError("id", f"{name} is given twice", kind="id")
    categories[name] = text.strip()


def _reference(entry: Any, field: str) -> str:  # noqa: ANN401 - JSON
    """An id, which may be a number or a text."""
    if not isinstance(entry, dict):
        raise RecordError("", f"is {describe(entry)}, expected an object", kind="json")
    value = entry.get(field)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise RecordError(field, f"is {describe(value)}, expected a number or a text", kind="id")
    return str(value)


# ---- the second pass ------------------------------------------------------------------------------------------------


def _read_annotations(path: Path, layout: _Layout) -> Iterator[tuple[str, tuple[int, bytes]]]:
    """Annotations of known images, each with its number and text."""
    number = 0
    for entry in read_entries(path, "named arrays"):
        if entry.name != "annotations":
            continue
        number += 1
        try:
            name = _reference(decode(entry.content), "image_id")
        except RecordError:
            continue  # reported by the first pass
        if name in layout.images:
            yield name, (number, entry.content)


def _read_study(
    path: Path, study: str, image: _CocoImage, found: list[tuple[int, bytes]], settings: _Settings
) -> list[Item]:
    place = RecordPlace(f"{path}: images", image.number)
    try:
        draft = ImageSetDraft(
            study,
            patient=find_patient(settings.patient, image.key),
            source="coco",
            number=place.number,
            file=place.file,
            categories=settings.categories,
        )
        draft.add_image(settings.root, image.key, "unknown", size=image.size)
        draft.facts["split"] = find_split(image.key)
        ids: set[str] = set()
        for number, content in found:
            draft.defects.place = place = RecordPlace(f"{path}: annotations", number)
            _add_annotation(draft, image.key, decode(content), ids, settings.labels)
        return [draft.finish(assessed=settings.assessed)]
    except RecordError as error:
        return [Skipped.from_error(error, _describe_place(place), study=study)]


def _describe_place(place: RecordPlace) -> str:
    """Where an entry of a list stands, with the numbers that `defects.csv` has."""
    return f"{place.file}: record {place.number}"


def _add_annotation(
    draft: ImageSetDraft, key: str, entry: dict[str, Any], ids: set[str], labels: Mapping[str, str]
) -> None:
    category = _reference(entry, "category_id")
    if category not in labels:
        raise RecordError("category_id", f"is {category}, which is not among the categories", kind="category")
    if entry.get("id") is not None:
        name = _reference(entry, "id")
        if name in ids:
            raise RecordError("id", f"{name} is given twice for one image", kind="id")
        ids.add(name)
    draft.leave_out(f"annotations.{field}" for field in entry if field not in _KNOWN)
    if entry.get("iscrowd") in (1, True):
        draft.defects["crowd"] += 1
    label, shape = labels[category], entry.get("segmentation")
    if isinstance(shape, dict):
        draft.draw_region(label, key, partial(Region.from_coco, shape), annotator=_ANNOTATOR)
    elif isinstance(shape, list) and shape:
        _draw_polygons(draft, label, key, shape)
    elif entry.get("bbox") not in (None, []):
        _draw_box(draft, label, key, entry["bbox"])
    else:
        draft.state_category(label)


def _draw_polygons(draft: ImageSetDraft, label: str, key: str, shape: list[Any]) -> None:
    """COCO's polygons: flat lists x1, y1, x2, y2, ..."""
    for ring in shape:
        if not (isinstance(ring, list) and len(ring) % 2 == 0 and all(map(is_number, ring))):
            draft.lose_region(label)
            return
    rings = [list(zip(ring[::2], ring[1::2], strict=True)) for ring in shape]
    draft.draw_polygons(label, key, rings, annotator=_ANNOTATOR)


def _draw_box(draft: ImageSetDraft, label: str, key: str, box: Any) -> None:  # noqa: ANN401 - JSON
    if not (isinstance(box, list) and len(box) == 4 and all(map(is_number, box))):
        draft.lose_region(label)
    else:
        draft.draw_box(label, key, box_corners(box, "xywh"), annotator=_ANNOTATOR)
