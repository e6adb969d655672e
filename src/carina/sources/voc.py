"""Pascal VOC: an XML file an image, with boxes by the numbers of their first and last pixels, counted from 1."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal, NamedTuple
from xml.etree.ElementTree import Element

from msgspec import Meta

from carina.sources._defects import RecordPlace
from carina.sources._image_sets import (
    DEFECTS,
    IMAGE_ENDINGS,
    SWAPPED,
    Categories,
    ImageFolder,
    ImageSetDraft,
    LookedFor,
    PatientPattern,
    assess,
    checksum_files,
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
from carina.sources._record import RecordError, SourceError, describe
from carina.sources._source import Item, Stream, source
from carina.sources._study_draft import make_or_skip
from carina.sources._xml import read_xml

Corners = Literal["pixels", "points"]
_ANNOTATOR: Final = "voc"
_SIDES: Final = ("xmin", "ymin", "xmax", "ymax")
_KNOWN: Final = frozenset(("name", "bndbox"))


class _Settings(NamedTuple):
    """What is the same for all studies."""

    root: Path
    images: Path
    folders: tuple[str, ...]
    categories: Mapping[str, str | None]
    looked_for: LookedFor
    labels: tuple[str, ...]
    patient: re.Pattern[str] | None
    corners: Corners


@source(
    name="voc",
    title="Boxes in Pascal VOC's XML files",
    needs="a folder with Annotations/*.xml and JPEGImages/ or images/, or XML files beside their images; or the images "
    "in --images.",
    tree="""
    Annotations/
      0001.xml
    JPEGImages/    or images/, or beside the XML files, or --images
      0001.jpg
    """,
    licence="That of the data set",
    truth=("boxes",),
    url="http://host.robots.ox.ac.uk/pascal/VOC/",
    inputs=lambda path: {"annotations": checksum_files(path, list_files(path, (".xml",)))},
    defects=DEFECTS,
    measure=lambda path: len(list_files(path, (".xml",))),
    unit="images",
)
def read_voc(
    path: Path,
    *,
    images: ImageFolder = None,
    corners: Annotated[
        Corners,
        Meta(
            description="What the numbers of a box are: first and last pixel, counted from 1, as Pascal VOC has it; or "
            "points between pixels, counted from 0, as some tools write them."
        ),
    ] = "pixels",
    categories: Categories = None,
    looked_for: LookedFor = "unknown",
    patient_pattern: PatientPattern = None,
) -> Stream:
    """Read one study an XML file."""
    files = list_files(path, (".xml",))
    if not files:
        raise SourceError(f"{path}: no XML file; put them in {path / 'Annotations'}")
    settings = _Settings(
        path,
        images or path,
        ("",) if images is not None else ("JPEGImages", "images", ""),
        read_categories(categories),
        looked_for,
        _list_labels(path, files) if looked_for == "listed" else (),
        compile_patient_pattern(patient_pattern),
        corners,
    )
    ids = name_studies(files)
    for file in files:
        yield partial(make_or_skip, _make_study, str(path / file), ids[file], file, ids[file], settings)


def _list_labels(path: Path, files: list[str]) -> tuple[str, ...]:
    found: set[str] = set()
    for file in files:
        try:
            root = read_xml(find_file(path, file))
        except RecordError:
            continue  # reported when the study is read
        found.update(_text(item, "name") for item in root.iter("object"))
    return tuple(sorted(found - {""}))


def _make_study(file: str, study: str, settings: _Settings) -> Item:
    root = read_xml(find_file(settings.root, file))
    if root.tag != "annotation":
        raise RecordError("", f"the root is {describe(root.tag)}, expected annotation", kind="xml")
    key = _find_image(root, file, settings)
    draft = ImageSetDraft(
        study,
        patient=find_patient(settings.patient, key),
        source="voc",
        number=0,
        file=str(settings.root / file),
        categories=settings.categories,
    )
    draft.add_image(settings.images, key, "unknown", size=_size(root))
    draft.facts["split"] = find_split(file)
    for place, item in enumerate(root.findall("object"), start=1):
        draft.defects.place = RecordPlace(draft.file, place)
        _add_object(draft, key, item, place, settings.corners)
    return draft.finish(assessed=assess(settings.looked_for, settings.labels, settings.categories))


def _find_image(root: Element, file: str, settings: _Settings) -> str:
    """Path of the image: in one of the folders, or beside the XML file, with the stated name or that of the file."""
    stated = PurePosixPath(_text(root, "filename").replace("\\", "/")).name
    stem = PurePosixPath(file).stem
    names = [stated] if PurePosixPath(stated).suffix else []
    names += [f"{stated or stem}{ending}" for ending in IMAGE_ENDINGS]
    folders = [*settings.folders, PurePosixPath(file).parent.as_posix()]
    keys = [(PurePosixPath(folder) / name).as_posix() for name in names for folder in folders]
    return next((key for key in keys if has_file(settings.images, key)), keys[0])


def _size(root: Element) -> tuple[int, int] | None:
    """The stated size; None where there is none. Tools write 0 where they do not know it."""
    size = root.find("size")
    if size is None:
        return None
    numbers = [_text(size, name) for name in ("width", "height")]
    if numbers in (["", ""], ["0", "0"]):
        return None
    if not all(re.fullmatch(r"[1-9][0-9]{0,5}", number) for number in numbers):
        raise RecordError(
            "size", f"is {describe(numbers)}, expected width and height as whole numbers", kind="size"
        )
    return int(numbers[0]), int(numbers[1])


def _add_object(draft: ImageSetDraft, key: str, item: Element, place: int, corners: Corners) -> None:
    label = _text(item, "name")
    if not label:
        raise RecordError(f"object {place}: name", "is empty", kind="label")
    draft.leave_out(f"object.{child.tag}" for child in item if child.tag not in _KNOWN and _says_more(child))
    box = item.find("bndbox")
    if box is None:
        draft.state_category(label)
        return
    try:
        left, top, right, bottom = (float(_text(box, side)) for side in _SIDES)
    except ValueError:
        draft.lose_region(label)
        return
    if not all(map(is_number, (left, top, right, bottom))):
        draft.lose_region(label)
        return
    if right < left or bottom < top:
        draft.lose_region(label, SWAPPED)
        return
    first = 1 if corners == "pixels" else 0
    draft.draw_box(label, key, ((left - first, top - first), (right, bottom)), annotator=_ANNOTATOR)


def _says_more(child: Element) -> bool:
    """Whether a field says more than that nothing is known, such as <pose>Unspecified</pose>."""
    return bool(len(child)) or (child.text or "").strip().lower() not in ("", "0", "unspecified")


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
