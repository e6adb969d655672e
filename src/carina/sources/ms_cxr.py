"""MS-CXR 1.0 and 1.1: phrases of reports with the boxes that radiologists drew for them, on images of MIMIC-CXR-JPG.

Rows of one image with the same phrase, whatever its capitals, are one finding with several boxes. Release 1.1 has a
split of its own, which is not that of MIMIC: an image of its test split may be one of MIMIC's training images. Joined
to MIMIC-CXR-JPG, the split of MS-CXR counts for every study of a patient whom it names, so that no patient is in two
splits; other patients keep that of MIMIC, and differences are counted.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carina.sources._added import ADDED_DEFECTS, AddedFinding, Addition, add_to_study, unwrap, wrap
from carina.sources._defects import DefectCounts, RecordPlace
from carina.sources._draft_images import ImageFolder, MissingImages
from carina.sources._joining import Join, PatientSplit
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, RowPlace, index_rows, read_row
from carina.sources._values import read_split
from carina.store.errors import RegionError
from carina.studies.model import Annotation, Image
from carina.studies.region import Region

NAME: Final = "MS_CXR_Local_Alignment_v*"
ANNOTATOR: Final = "radiologists of MS-CXR"
_PATH: Final = re.compile(r"(?:.*/)?(?:files/)?(p\d\d/(p\d+)/(s\d+)/([^/]+))\.(?:jpg|dcm)")
_COLUMNS: Final = (
    "dicom_id",
    "category_name",
    "label_text",
    "x",
    "y",
    "w",
    "h",
    "image_width",
    "image_height",
)


class _Phrase(NamedTuple):
    """One box, in either form of the file."""

    dicom_id: str
    path: str
    """As the file writes it; release 1.0 has none in its CSV file."""
    category: str
    text: str
    box: tuple[float, float, float, float]
    width: int
    height: int
    split: str
    number: int
    """Of the row, or of the annotation in a JSON file."""


class _CocoImage(msgspec.Struct):
    id: int
    file_name: str = ""
    path: str = ""
    split: str | None = None


class _CocoAnnotation(msgspec.Struct):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    label_text: str
    width: int
    height: int


class _CocoCategory(msgspec.Struct):
    id: int
    name: str


class _Coco(msgspec.Struct):
    images: list[_CocoImage]
    annotations: list[_CocoAnnotation]
    categories: list[_CocoCategory]


def _find_file(path: Path) -> Path:
    if path.is_file():
        return path
    found = sorted(
        (*path.glob(f"{NAME}.csv"), *path.glob(f"{NAME}.json")),
        key=lambda file: (file.stem, file.suffix == ".csv"),
    )
    if not found:
        raise SourceError(
            f"{path / NAME}.csv: missing; put MS_CXR_Local_Alignment_v1.1.0.csv or its .json there"
        )
    return found[-1]


def _inputs(path: Path) -> Inputs:
    return {"file": _find_file(path)}


def _index(path: Path) -> Iterator[tuple[str, RowPlace] | str]:
    for phrase, place in _read_phrases(_find_file(path)):
        if isinstance(phrase, _Phrase):
            yield phrase.dicom_id, place
        else:
            yield phrase.kind


def _list_splits(path: Path) -> Iterator[PatientSplit]:
    for phrase, _ in _read_phrases(_find_file(path)):
        if not isinstance(phrase, _Phrase):
            continue
        match, split = _PATH.fullmatch(phrase.path), read_split(phrase.split)
        if match is not None and split is not None:
            yield PatientSplit(match[2], split, phrase.number)


def _make_addition(path: Path, places: Sequence[RowPlace], image: Image) -> Addition:
    file = _find_file(path)
    return describe_image([_read_phrase(file, place) for place in places], image, file)


@source(
    name="ms-cxr",
    title="MS-CXR: phrases of reports with boxes, on MIMIC-CXR-JPG",
    needs="a folder with MS_CXR_Local_Alignment_v1.1.0.csv (or .json, or release 1.0.0), or that file; the folder of "
    "MIMIC-CXR-JPG by --images, or the file alone with --missing-images keep.",
    tree="""
    MS_CXR_Local_Alignment_v1.1.0.csv    or .json, or v1.0.0
    files/                               or --images with the folder of MIMIC-CXR-JPG
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("phrases", "boxes"),
    url="https://physionet.org/content/ms-cxr/1.1.0/",
    citation="Boecking B, Usuyama N, Bannur S, et al. Making the Most of Text Semantics to Improve Biomedical "
    "Vision-Language Processing. ECCV 2022.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        **ADDED_DEFECTS,
        "patient": "the file does not name the patient: the image counts as one of its own",
        "size": "the image is not of the size that MS-CXR states: its boxes are left out",
    },
    unit="studies",
    join=Join(key="dicom_id", index=_index, make=_make_addition, splits=_list_splits),
)
def read_ms_cxr(path: Path, *, missing_images: MissingImages = "skip", images: ImageFolder = None) -> Stream:
    """Read one study of MIMIC a study, with the images that have phrases."""
    file = _find_file(path)
    groups: dict[str, list[RowPlace]] = {}
    for phrase, place in _read_phrases(file):
        if isinstance(phrase, _Phrase):
            match = _PATH.fullmatch(phrase.path)
            groups.setdefault(match[3] if match else phrase.dicom_id, []).append(place)
        else:
            yield phrase
    root = images or (path if path.is_dir() else path.parent)
    for study, places in groups.items():
        yield partial(
            make_or_skip, _make_study, f"{file}: {study}", study, root, file, study, places, missing_images
        )


def _make_study(root: Path, file: Path, study: str, places: list[RowPlace], missing: MissingImages) -> Item:
    by_image: dict[str, list[_Phrase]] = {}
    for place in places:
        phrase = _read_phrase(file, place)
        by_image.setdefault(phrase.dicom_id, []).append(phrase)
    match = _PATH.fullmatch(next(iter(by_image.values()))[0].path)
    draft = StudyDraft(
        study, patient=match[2] if match else study, source="ms-cxr", number=places[0].number, file=str(file)
    )
    draft.defects["patient"] += match is None
    splits = (read_split(phrase.split) for phrases in by_image.values() for phrase in phrases)
    draft.facts = {"split": next((split for split in splits if split is not None), None)}
    for dicom_id, phrases in by_image.items():
        inner = _PATH.fullmatch(phrases[0].path)
        key = f"files/{inner[1]}.jpg" if inner else f"{dicom_id}.jpg"
        draft.add_image(root, key, "unknown", size=(phrases[0].width, phrases[0].height), missing=missing)
    item = draft.finish()
    made, defects = unwrap(item)
    for image, phrases in zip(made.images, by_image.values(), strict=True):
        made = add_to_study(made, describe_image(phrases, image, file), defects)
    return wrap(item, made, defects, RecordPlace(str(file), places[0].number))


def describe_image(phrases: Sequence[_Phrase], image: Image, file: Path) -> Addition:
    """The findings of one image: one for each phrase and category, with all its boxes."""
    defects = DefectCounts()
    groups: dict[tuple[str, str], list[_Phrase]] = {}
    for phrase in phrases:
        groups.setdefault((phrase.category, " ".join(phrase.text.lower().split())), []).append(phrase)
    findings = []
    for (category, _), own in groups.items():
        drawn = []
        for phrase in own:
            defects.place = RecordPlace(str(file), phrase.number)
            if (phrase.width, phrase.height) != (image.width, image.height):
                defects["size"] += 1
                continue
            try:
                region = Region.from_box(*phrase.box, height=image.height, width=image.width)
            except RegionError:
                region = Region.empty(image.height, image.width)
            if region.is_empty:
                defects["region"] += 1
                continue
            drawn.append(Annotation(image=image.key, region=region, drawn="box", annotator=ANNOTATOR))
        place = RecordPlace(str(file), own[0].number)
        findings.append(
            AddedFinding(label=category, phrase=own[0].text, annotations=tuple(drawn), place=place)
        )
    return Addition(
        findings=tuple(findings), place=RecordPlace(str(file), phrases[0].number), defects=defects
    )


# ---- the two forms --------------------------------------------------------------------------------------------------


def _read_phrases(file: Path) -> Iterator[tuple[_Phrase | Skipped, RowPlace]]:
    if file.suffix == ".json":
        for number, phrase in enumerate(_read_json(file), start=1):
            yield phrase, RowPlace(number, 0, 0)
        return
    for row, place in index_rows(file, _COLUMNS):
        try:
            yield _parse_row(row), place
        except RecordError as error:
            skipped = Skipped.from_error(error, row.place)
            yield skipped, place


def _read_phrase(file: Path, place: RowPlace) -> _Phrase:
    if file.suffix == ".json":
        phrase = _read_json(file)[place.number - 1]
        assert isinstance(phrase, _Phrase)  # noqa: S101 - the index holds no others
        return phrase
    return _parse_row(read_row(file, place))


def _parse_row(row: Row) -> _Phrase:
    x, y, w, h = (row.number_of(column) for column in ("x", "y", "w", "h"))
    split = row.values.get("split", "").strip()
    read_split(split)
    return _Phrase(
        dicom_id=row.required("dicom_id"),
        path=row.values.get("path", "").strip(),
        category=row.required("category_name"),
        text=row.required("label_text"),
        box=(x, y, w, h),
        width=row.integer("image_width"),
        height=row.integer("image_height"),
        split=split,
        number=row.number,
    )


@lru_cache(maxsize=2)
def _read_json(file: Path) -> tuple[_Phrase | Skipped, ...]:
    """The annotations of the COCO form; sizes and phrases stand on the annotation, not on the image."""
    try:
        coco = msgspec.json.decode(file.read_bytes(), type=_Coco)
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{file}: {printable(str(error), longest=200)}") from error
    images = {image.id: image for image in coco.images}
    categories = {category.id: category.name for category in coco.categories}
    found: list[_Phrase | Skipped] = []
    for number, one in enumerate(coco.annotations, start=1):
        image, category = images.get(one.image_id), categories.get(one.category_id)
        if image is None or category is None or not one.label_text.strip():
            field = "image_id" if image is None else "category_id" if category is None else "label_text"
            place = f"{file}: annotation {number}"
            found.append(Skipped(place=place, field=field, reason="names nothing in the file", kind="json"))
            continue
        path = image.path or image.file_name
        dicom_id = Path(image.file_name or path).stem
        found.append(
            _Phrase(
                dicom_id,
                path,
                category,
                one.label_text.strip(),
                one.bbox,
                one.width,
                one.height,
                image.split or "",
                number,
            )
        )
    return tuple(found)
