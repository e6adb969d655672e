"""CheXmask: lungs and heart of the images of other sets, as a program segmented them.

The masks are marked as automatic and are never expert truth. Each has an estimate of its quality (Dice by reverse
classification accuracy), which is kept; those below a floor are left out. Both frames are read: masks of the original
size, and those of images that were padded to a square and reduced to 1024 pixels. The landmarks are not used.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from carina.sources._added import Addition
from carina.sources._defects import DefectCounts, RecordPlace, add_defects
from carina.sources._draft_images import ImageFolder, find_image
from carina.sources._frames import fit_square
from carina.sources._joining import Join
from carina.sources._record import RecordError, SourceError
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import Row, RowPlace, index_rows, read_row
from carina.sources.chexpert import read_image_name
from carina.store.errors import RegionError
from carina.studies.model import Anatomy, Image
from carina.studies.region import Region

ANNOTATOR: Final = "CheXmask"
STRUCTURES: Final = {"Right Lung": "right lung", "Left Lung": "left lung", "Heart": "heart"}
QUALITY: Final = "Dice RCA (Mean)"
_LARGEST: Final = "Dice RCA (Max)"
FLOOR: Final = 0.7
"""The quality below which the authors advise against a mask."""
SIDE: Final = 1024
"""Side of the images in the folder Preprocessed."""
_IDS: Final = ("dicom_id", "image_id", "Image Index", "ImageID", "Path")
_COLUMNS: Final = (QUALITY, *STRUCTURES, "Height", "Width")
_LOW: Final = f"quality below {FLOOR}"


class _Entry(NamedTuple):
    key: str
    place: RowPlace


def _check_file(path: Path) -> Path:
    if not path.exists():
        raise SourceError(
            f"{path}: missing; give one CSV file of CheXmask, such as OriginalResolution/MIMIC-CXR-JPG.csv"
        )
    if not path.is_file():
        raise SourceError(
            f"{path}: give one CSV file of CheXmask, such as OriginalResolution/MIMIC-CXR-JPG.csv"
        )
    return path


def _inputs(path: Path) -> Inputs:
    return {"file": _check_file(path)}


def _index(path: Path) -> Iterator[tuple[str, RowPlace] | str]:
    for row, place in index_rows(_check_file(path), _COLUMNS):
        try:
            key = _read_key(row)
            is_good = _read_quality(row) >= FLOOR
        except RecordError as error:
            yield error.kind
            continue
        yield (key, place) if is_good else _LOW


def _make_addition(path: Path, places: Sequence[RowPlace], image: Image) -> Addition:
    row = read_row(path, places[0])
    anatomy, found = describe_image(row, image)
    defects = DefectCounts(RecordPlace(row.file, row.number))
    add_defects(defects, found)
    for place in places[1:]:
        defects.place = RecordPlace(row.file, place.number)
        defects["duplicate"] += 1
    return Addition(anatomy=anatomy, place=RecordPlace(row.file, row.number), defects=defects)


@source(
    name="chexmask",
    title="CheXmask: automatic masks of lungs and heart",
    needs="one CSV file of CheXmask, such as OriginalResolution/MIMIC-CXR-JPG.csv, and the images of its set by "
    "--images; or another source that it is joined to: --with chexmask=FILE.",
    tree="""
    OriginalResolution/
      MIMIC-CXR-JPG.csv    or CheXpert.csv, ChestX-Ray8.csv, Padchest.csv, VinDr-CXR.csv, CANDID-PTX.csv
    Preprocessed/          the same at 1024 x 1024
    columns: the id of the image (dicom_id, image_id, Image Index, ImageID or Path), Dice RCA (Mean), Right Lung,
    Left Lung, Heart (run lengths: first pixel from 0, number of pixels), Height, Width; such as
      Image Index,Dice RCA (Mean),Right Lung,Left Lung,Heart,Height,Width
      00000013_005.png,0.93,204900 30 205924 34,205400 28 206424 31,310400 60 311424 62,1024,1024
    """,
    licence="PhysioNet: see the licence of your copy; that of the images is that of their own set",
    truth=("automatic anatomy",),
    url="https://physionet.org/content/chexmask-cxr-segmentation-data/",
    citation="Gaggion N, Mosquera C, Mansilla L, et al. CheXmask: a large-scale dataset of anatomical segmentation "
    "masks for multi-center chest x-ray images. Scientific Data 2024;11:511.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        "size": "the masks are neither of the size of the image nor of its reduced form: left out",
        "sides": "the right lung is not to the left of the left lung: the masks of the image are left out",
        "duplicate": "a second row of the image is left out",
    },
    unit="images",
    join=Join(
        key="the id of the image in its own set (dicom_id, image_id, Image Index, ImageID, or the path in CheXpert)",
        index=_index,
        make=_make_addition,
    ),
)
def read_chexmask(
    path: Path,
    *,
    min_quality: Annotated[
        float, Meta(ge=0, le=1, description="Leave out masks whose estimated Dice is below this number.")
    ] = FLOOR,
    images: ImageFolder = None,
) -> Stream:
    """Read one study an image; image files that are not found are described by the size of their masks."""
    root = images or path.parent
    for row, place in index_rows(_check_file(path), _COLUMNS):
        try:
            key, quality = _read_key(row), _read_quality(row)
        except RecordError as error:
            yield Skipped.from_error(error, row.place)
            continue
        if quality < min_quality:
            reason = f"is {quality:g}, below {min_quality:g}"
            yield Skipped(place=row.place, field=QUALITY, reason=reason, kind="quality", study=key)
            continue
        yield partial(make_or_skip, _make_study, row.place, key, path, root, _Entry(key, place))


def _make_study(path: Path, root: Path, entry: _Entry) -> Item:
    row = read_row(path, entry.place)
    name = entry.key.replace("/", "_")
    draft = StudyDraft(name, patient=name, source="chexmask", number=row.number, file=row.file)
    key = find_image(root, (f"{entry.key}{ending}" for ending in (".jpg", ".png", ".dicom", ".dcm")))
    size = (row.integer("Width"), row.integer("Height"))
    if key is None:
        draft.add_image(root, f"{entry.key}.png", "unknown", size=size, missing="keep")
    else:
        draft.add_image(root, key, "unknown")
    anatomy, defects = describe_image(row, draft.images[0])
    add_defects(draft.defects, defects)
    for structure in anatomy:
        draft.add_anatomy(
            structure.name,
            structure.image,
            structure.region,
            annotator=ANNOTATOR,
            automatic=True,
            quality=structure.quality,
        )
    return draft.finish()


def describe_image(row: Row, image: Image) -> tuple[tuple[Anatomy, ...], dict[str, int]]:
    """The masks of a row, in the frame of an image; and defects."""
    height, width = row.integer("Height"), row.integer("Width")
    found: dict[str, Region] = {}
    defects = dict.fromkeys(("size", "sides", "region", "duplicate"), 0)
    if (width, height) != (image.width, image.height) and not (
        (width, height) == (SIDE, SIDE) and image.width
    ):
        return (), defects | {"size": 1}
    for column, name in STRUCTURES.items():
        try:
            region = Region.from_chexmask(row.text(column), height=height, width=width)
            found[name] = _fit(region, image)
        except RegionError:
            defects["region"] += 1
            continue
        if found[name].is_empty:
            defects["region"] += 1
            del found[name]
    centres = [found[side].centroid for side in ("right lung", "left lung") if side in found]
    if len(centres) == 2 and centres[0] and centres[1] and centres[0][0] >= centres[1][0]:
        return (), defects | {"sides": 1}
    quality = _read_quality(row)
    return tuple(
        Anatomy(
            name=name, image=image.key, region=region, annotator=ANNOTATOR, automatic=True, quality=quality
        )
        for name, region in found.items()
    ), defects


def _fit(region: Region, image: Image) -> Region:
    """The region in the frame of the image: where it is of another size, that of the image padded to a square."""
    if (region.width, region.height) == (image.width, image.height):
        return region
    return fit_square(region, width=image.width, height=image.height)


def _read_quality(row: Row) -> float:
    """The mean of the estimates. The file of CANDID-PTX has mean and largest estimate swapped: no mean is larger."""
    quality = row.number_of(QUALITY)
    if not 0 <= quality <= 1:
        raise RecordError(QUALITY, f"is {quality:g}, expected 0 to 1", kind="number")
    with suppress(RecordError):
        largest = row.number_of(_LARGEST)
        return largest if 0 <= largest < quality else quality
    return quality


def _read_key(row: Row) -> str:
    """The key of the image, without the ending of its file."""
    column = next((name for name in _IDS if name in row.values), None)
    if column is None:
        raise SourceError(f"{row.place}: no column of an id, expected one of {', '.join(_IDS)}")
    text = row.required(column)
    if column == "Path":
        return read_image_name(text).path
    return PurePosixPath(text).stem if text.endswith((".png", ".jpg", ".dcm", ".dicom")) else text
