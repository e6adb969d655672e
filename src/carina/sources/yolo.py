"""YOLO: a text file an image, with boxes or polygons as shares of its width and height, and class names in YAML."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from carina.sources._defects import RecordPlace
from carina.sources._encodings import decode_file
from carina.sources._frames import Frame, box_corners
from carina.sources._image_sets import (
    DEFECTS,
    IMAGE_ENDINGS,
    Categories,
    ImageSetDraft,
    LookedFor,
    PatientPattern,
    assess,
    checksum_files,
    compile_patient_pattern,
    find_file,
    find_patient,
    find_split,
    is_number,
    list_files,
    name_studies,
    read_categories,
)
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.store.documents import read_file, read_yaml
from carina.store.errors import CarinaError
from carina.studies.model import Assessed

NAME_FILES: Final = (
    "data.yaml",
    "data.yml",
    "dataset.yaml",
    "classes.txt",
    "labels/classes.txt",
    "obj.names",
)
"""Files with the names of the classes, the first that is there."""
_ANNOTATOR: Final = "yolo"
_UNIT: Final = Frame.parse("unit")
_MAX_LABEL_BYTES: Final = 20_000_000


class _Settings(NamedTuple):
    """What is the same for all studies."""

    root: Path
    labels: Mapping[int, str]
    categories: Mapping[str, str | None]
    assessed: Assessed
    patient: re.Pattern[str] | None


def _inputs(path: Path) -> Inputs:
    return {"names": _find_names(path), "labels": checksum_files(path, list_files(path, (".txt",)))}


@source(
    name="yolo",
    title="Boxes and polygons in YOLO's text files",
    needs="a folder with images/ and labels/ (also below train/, val/ and test/), or text files beside their images, "
    "and the class names in data.yaml or classes.txt.",
    tree="""
    data.yaml    or classes.txt
    images/
      train/
        0001.png
    labels/
      train/
        0001.txt
    """,
    licence="That of the data set",
    truth=("boxes", "polygons"),
    url="https://docs.ultralytics.com/datasets/detect/",
    inputs=_inputs,
    defects={**DEFECTS, "unlabelled": "an image without a text file has no regions"},
    unit="images",
)
def read_yolo(
    path: Path,
    *,
    categories: Categories = None,
    looked_for: LookedFor = "unknown",
    patient_pattern: PatientPattern = None,
) -> Stream:
    """Read one study an image; folders called train, val or test give its split."""
    labels = read_class_names(_find_names(path))
    images = list_files(path, IMAGE_ENDINGS)
    names = read_categories(categories)
    settings = _Settings(
        path,
        labels,
        names,
        assess(looked_for, labels.values(), names),
        compile_patient_pattern(patient_pattern),
    )
    ids = name_studies(images)
    unused = {file for file in list_files(path, (".txt",)) if _is_label_file(file)}
    taken: set[str] = set()
    for key in images:
        file = label_file(key)
        if file in taken:
            reason = f"{file} belongs to another image of the same name"
            yield Skipped(place=str(path / key), field="image", reason=reason, kind="image", study=ids[key])
            continue
        taken.add(file)
        unused.discard(file)
        yield partial(_read_study, key, file, ids[key], settings)
    for file in sorted(unused):
        yield Skipped(
            place=str(path / file), field="image", reason="there is no image for it", kind="not joined"
        )


def _find_names(path: Path) -> Path:
    for name in NAME_FILES:
        if (path / name).is_file():
            return path / name
    raise SourceError(
        f"{path / NAME_FILES[0]}: missing; put the names of the classes there, or in classes.txt"
    )


def read_class_names(path: Path) -> dict[int, str]:
    """Names of classes by number: `names` of a YAML file, a list or a map, or one name a line.

    Raises:
        SourceError: The file holds no such names.
    """
    try:
        if path.suffix not in (".yaml", ".yml"):
            content = read_file(path, error=SourceError, max_bytes=_MAX_LABEL_BYTES)
            found: object = decode_file(content).rstrip().splitlines()
        else:
            described = read_yaml(path)
            found = described.get("names") if isinstance(described, dict) else None
    except SourceError:
        raise
    except CarinaError as error:
        raise SourceError(str(error)) from error
    pairs = list(
        found.items() if isinstance(found, dict) else enumerate(found if isinstance(found, list) else ())
    )
    if not pairs:
        raise SourceError(f"{path}: names: expected a list of class names, or a map from numbers to names")
    names: dict[int, str] = {}
    for number, name in pairs:
        if (
            isinstance(number, bool)
            or not isinstance(number, int)
            or not isinstance(name, str)
            or not name.strip()
        ):
            raise SourceError(
                f"{path}: names: {describe(number)}: {describe(name)}, expected a number and a name"
            )
        names[number] = name.strip()
    return names


def label_file(key: str) -> str:
    """Path of the text file of an image: in the folder `labels` beside the last folder `images`, or beside it.

    Example:
        >>> label_file("images/train/a.png"), label_file("a.png")
        ('labels/train/a.txt', 'a.txt')
    """
    parts = list(PurePosixPath(key).with_suffix(".txt").parts)
    places = [place for place, part in enumerate(parts[:-1]) if part == "images"]
    if places:
        parts[places[-1]] = "labels"
    return "/".join(parts)


def _is_label_file(file: str) -> bool:
    """Whether a text file can be one of labels: names of classes, and lists of images, are not."""
    name = PurePosixPath(file).name
    return name not in ("classes.txt", "train.txt", "val.txt", "test.txt") and not name.lower().startswith(
        "readme"
    )


def _read_study(key: str, file: str, study: str, settings: _Settings) -> list[Item]:
    try:
        return [_make_study(key, file, study, settings)]
    except RecordError as error:
        place = str(settings.root / (key if error.field == "image" else file))
        return [Skipped.from_error(error, place, study=study)]


def _make_study(key: str, file: str, study: str, settings: _Settings) -> Item:
    draft = ImageSetDraft(
        study,
        patient=find_patient(settings.patient, key),
        source="yolo",
        number=0,
        file=str(settings.root / file),
        categories=settings.categories,
    )
    draft.add_image(settings.root, key, "unknown")
    draft.facts["split"] = find_split(key)
    for line, text in enumerate(_read_lines(settings.root, file, draft), start=1):
        draft.defects.place = RecordPlace(draft.file, line)
        if text.strip():
            _add_line(draft, key, text.split(), f"line {line}", settings.labels)
    return draft.finish(assessed=settings.assessed)


def _read_lines(root: Path, file: str, draft: ImageSetDraft) -> list[str]:
    path = find_file(root, file)
    if not path.exists():
        draft.defects["unlabelled"] += 1
        return []
    try:
        content = read_file(path, max_bytes=_MAX_LABEL_BYTES)
    except CarinaError as error:
        raise RecordError("labels", str(error), kind="file") from error
    return decode_file(content).splitlines()


def _add_line(
    draft: ImageSetDraft, key: str, fields: Sequence[str], place: str, labels: Mapping[int, str]
) -> None:
    """One region: class x y w h, the centre and size of a box, or class x1 y1 x2 y2 x3 y3 ..., a polygon."""
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        raise RecordError(place, f"{describe(' '.join(fields))}: expected numbers", kind="line") from None
    if numbers[0] not in labels:
        raise RecordError(place, f"class {fields[0]} has no name", kind="category")
    if len(numbers) != 5 and (len(numbers) < 7 or len(numbers) % 2 == 0):
        reason = f"{len(numbers)} numbers, expected 5 for a box or an odd number from 7 on for a polygon"
        raise RecordError(place, reason, kind="line")
    image, label = draft.image(key), labels[int(numbers[0])]
    if not all(map(is_number, numbers)):
        draft.lose_region(label)
    elif len(numbers) == 5:
        corners = _UNIT.to_pixels(box_corners(numbers[1:], "centre"), width=image.width, height=image.height)
        draft.draw_box(label, key, corners.tolist(), annotator=_ANNOTATOR)
    else:
        ring = _UNIT.to_pixels(numbers[1:], width=image.width, height=image.height)
        draft.draw_polygons(label, key, [ring], annotator=_ANNOTATOR)
