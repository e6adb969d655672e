"""MIMIC-ILS: lesions of images of MIMIC-CXR-JPG with masks and the instructions that ask for them, made by programs.

Masks and statements were made by programs from images and reports: they are marked as automatic and are never expert
truth. A mask of the whole lesion (type `global`) stands for the lesion; where there is none, the masks of its parts do.
The masks are squares of 512 pixels. Whether the images were stretched to that square or padded is not documented, so
that the masks of an image that is not a square need an option. Joined to another set, they are left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from carina.sources._added import ADDED_DEFECTS, AddedFinding, Addition, add_to_study, unwrap, wrap
from carina.sources._defects import RecordPlace
from carina.sources._draft_images import ImageFolder, MissingImages, find_image
from carina.sources._frames import fit_square
from carina.sources._joining import Join, PatientSplit
from carina.sources._json import decode_as, read_entries
from carina.sources._locations import locate
from carina.sources._mimic_images import read_mimic_id
from carina.sources._record import RecordError, SourceError, printable
from carina.sources._source import Inputs, Item, Skipped, Stream, source
from carina.sources._study_draft import DEFECTS, StudyDraft, make_or_skip
from carina.sources._tables import RowPlace
from carina.sources._values import read_split
from carina.store.errors import CarinaError, RegionError
from carina.studies.model import Annotation, Assessed, Image, Report, ReportSection
from carina.studies.pixels import read_pixels
from carina.studies.region import Region
from carina.studies.vocabulary import SECTIONS, Split

FILE: Final = "mimic_ils_instruction_answer.json"
ANNOTATOR: Final = "MIMIC-ILS, by program"
WHOLE: Final = "global"
"""The type of pairs that are about a lesion as a whole."""
_WHITE: Final = 127
"""Masks are 0 and 255."""
MaskFrame = Literal["same", "stretched", "padded"]


class _InstructionPair(msgspec.Struct):
    target: str
    type: str
    instruction: str = ""
    location: list[str] | str | None = None
    reported_location: list[str] | str | None = None
    """Another name of `location`."""
    seg_mask_path: str | None = None


class _Pairs(msgspec.Struct):
    positive_pairs: list[_InstructionPair] = []
    negative_pairs: list[_InstructionPair] = []


class _Names(msgspec.Struct):
    subject_id: str | int
    dicom_id: str


class _Record(_Names):
    instruction_answer_pairs: _Pairs
    image_path: str | None = None
    section_name: str | None = None
    section_content: str | None = None


class _Folders(NamedTuple):
    """Where files are, and how masks fit images."""

    masks: Path
    images: Path
    missing: MissingImages
    frame: MaskFrame
    file: str
    """The file of the studies."""


def _find_file(path: Path) -> Path:
    file = path if path.is_file() else path / FILE
    if not file.is_file():
        raise SourceError(f"{file}: missing; put {FILE} and the folder lesion_mask/ of MIMIC-ILS there")
    return file


def _inputs(path: Path) -> Inputs:
    return {"file": _find_file(path)}


def _index(path: Path) -> Iterator[tuple[str, RowPlace] | str]:
    file = _find_file(path)
    if file.suffix == ".gz":
        raise SourceError(f"{file}: single records of a compressed file cannot be read; unpack it to join it")
    for entry in read_entries(file, "grouped records"):
        try:
            name = decode_as(entry.content, _Names).dicom_id
        except RecordError as error:
            yield error.kind
            continue
        place = RowPlace(entry.number, entry.start, entry.start + len(entry.content))
        yield name.removesuffix(".dcm").removesuffix(".jpg"), place


def _list_splits(path: Path) -> Iterator[PatientSplit]:
    for entry in read_entries(_find_file(path), "grouped records"):
        with suppress(RecordError):
            patient = read_mimic_id(decode_as(entry.content, _Names).subject_id, "subject_id")
            split = read_split(entry.name.rpartition("/")[0])
            if split is not None:
                yield PatientSplit(f"p{patient}", split, entry.number)


def _make_addition(path: Path, places: Sequence[RowPlace], image: Image) -> Addition:
    """What the record of an image adds to it; of several, the first counts."""
    file, place = _find_file(path), places[0]
    with file.open("rb") as stored:
        stored.seek(place.start)
        record = decode_as(stored.read(place.end - place.start), _Record)
    folders = _Folders(file.parent, file.parent, "skip", "same", str(file))
    addition = _describe(record.instruction_answer_pairs, image, folders)
    return replace(addition, place=RecordPlace(str(file), place.number))


@source(
    name="mimic-ils",
    title="MIMIC-ILS: automatic masks with instructions",
    needs=f"a folder with {FILE} and the masks in lesion_mask/; the folder of the images by --images: MIMIC-CXR-JPG, "
    "or a folder of <dicom_id>.png.",
    tree=f"""
    {FILE}
    lesion_mask/
      s50000001/
        s50000001_opacity_0.png
    files/    or --images with the folder of MIMIC-CXR-JPG
    """,
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    truth=("automatic lesion masks", "automatic labels", "instructions"),
    url="https://physionet.org/content/mimic-cxr-ext-ils/",
    citation="Choi G, Yoon H, Shin H, et al. Instruction-Guided Lesion Segmentation for Chest X-rays with "
    "Automatically Generated Large-Scale Dataset. arXiv:2511.15186, 2025.",
    inputs=_inputs,
    defects={
        **DEFECTS,
        **ADDED_DEFECTS,
        "part": "a mask of a part of a lesion is not used where there is a mask of the whole",
        "no mask": "a lesion whose mask is not named or cannot be read is used without it",
        "frame": "a mask that is not in proportion to its image is left out: state --mask-frame",
    },
    unit="studies",
    join=Join(key="dicom_id", index=_index, make=_make_addition, splits=_list_splits),
)
def read_mimic_ils(
    path: Path,
    *,
    mask_frame: Annotated[
        MaskFrame,
        Meta(
            description="How masks fit images of other proportions: stretched, where the image was stretched to the "
            "mask's square; padded, where it was padded to a square; same leaves such masks out."
        ),
    ] = "same",
    missing_images: MissingImages = "skip",
    images: ImageFolder = None,
) -> Stream:
    """Read one study a study of the file, with its one image."""
    file = _find_file(path)
    folders = _Folders(file.parent, images or file.parent, missing_images, mask_frame, str(file))
    for entry in read_entries(file, "grouped records"):
        group, _, study = entry.name.rpartition("/")
        place = f"{file}: {printable(entry.name)}"
        try:
            split = read_split(group)
            name = f"s{read_mimic_id(study, 'study_id')}"
        except RecordError as error:
            yield Skipped.from_error(error, place, study=study)
            continue
        make = partial(_make_study, folders, name, split, entry.number, entry.content)
        yield partial(make_or_skip, make, place, name)


def _make_study(folders: _Folders, study: str, split: Split | None, number: int, content: bytes) -> Item:
    record = decode_as(content, _Record)
    draft = StudyDraft(
        study,
        patient=f"p{read_mimic_id(record.subject_id, 'subject_id')}",
        source="mimic-ils",
        number=number,
        file=folders.file,
    )
    image = _add_image(draft, folders, record)
    draft.facts = {"split": split, "report": _make_report(record)}
    if any(pair.type != WHOLE for pair in record.instruction_answer_pairs.negative_pairs):
        # That a lesion is not in one place does not say that it is absent.
        draft.unmapped = ("negative_pairs of a location",)
    item = draft.finish(assessed=Assessed(text=True))
    made, defects = unwrap(item)
    made = add_to_study(made, _describe(record.instruction_answer_pairs, image, folders), defects)
    return wrap(item, made, defects, RecordPlace(folders.file, number))


def _add_image(draft: StudyDraft, folders: _Folders, record: _Record) -> Image:
    """The image: by its path, in the tree of MIMIC-CXR-JPG, or in a folder by its id alone."""
    name = record.dicom_id.removesuffix(".dcm").removesuffix(".jpg")
    stated = (record.image_path or "").removeprefix("./")
    usual = f"files/{draft.patient[:3]}/{draft.patient}/{draft.id}/{name}.jpg"
    stated_keys = (stated, f"files/{stated}") if stated else ()
    keys = (usual, *stated_keys, f"{name}.png", f"{name}.jpg")
    return draft.find_image(folders.images, keys, "unknown", folders.missing)


def _make_report(record: _Record) -> Report | None:
    """The section of the report that the lesions were taken from."""
    text = (record.section_content or "").strip()
    section = next((name for name in SECTIONS if name == (record.section_name or "").strip().lower()), None)
    return Report(sections=(ReportSection(name=section, text=text),)) if section and text else None


# ---- lesions --------------------------------------------------------------------------------------------------------


def _describe(pairs: _Pairs, image: Image, folders: _Folders) -> Addition:
    """Present lesions with their masks, and absent ones."""
    defects: Counter[str] = Counter()
    by_target: dict[str, list[_InstructionPair]] = {}
    for pair in pairs.positive_pairs:
        by_target.setdefault(pair.target.strip() or "lesion", []).append(pair)
    findings = [
        AddedFinding(
            label=target,
            location=locate(dict.fromkeys(place for pair in own for place in _read_places(pair))),
            annotations=tuple(_draw(own, image, folders, defects)),
            automatic=True,
        )
        for target, own in by_target.items()
    ]
    absent = dict.fromkeys(pair.target.strip() for pair in pairs.negative_pairs if pair.type == WHOLE)
    findings += [
        AddedFinding(label=target, certainty="absent", automatic=True)
        for target in absent
        if target and target not in by_target
    ]
    defects["conflict"] += sum(target in by_target for target in absent)
    return Addition(findings=tuple(findings), defects=defects)


def _read_places(pair: _InstructionPair) -> Sequence[str]:
    places = pair.location or pair.reported_location or ()
    return [places] if isinstance(places, str) else places


def _draw(
    pairs: Sequence[_InstructionPair], image: Image, folders: _Folders, defects: Counter[str]
) -> Iterator[Annotation]:
    """The masks of one lesion, each once, with the first instruction that asks for it."""
    masks: dict[str, _InstructionPair] = {}
    for pair in pairs:
        if pair.seg_mask_path:
            masks.setdefault(pair.seg_mask_path, pair)
    whole = {path: pair for path, pair in masks.items() if pair.type == WHOLE}
    defects["no mask"] += not masks
    defects["part"] += len(masks) - len(whole) if whole else 0
    used: Mapping[str, _InstructionPair] = whole or masks
    for path, pair in used.items():
        region = _read_mask(path, image, folders, defects)
        if region is not None:
            yield Annotation(
                image=image.key,
                region=region,
                drawn="mask",
                annotator=ANNOTATOR,
                automatic=True,
                instruction=pair.instruction.strip() or None,
            )


def _read_mask(path: str, image: Image, folders: _Folders, defects: Counter[str]) -> Region | None:
    """A mask in the frame of the image; None where it cannot be used, which is counted."""
    stated = path.removeprefix("./")
    key = find_image(folders.masks, (stated, f"lesion_mask/{stated}"))
    try:
        region = (
            None if key is None else Region.from_mask(np.asarray(read_pixels(folders.masks / key) > _WHITE))
        )
    except (CarinaError, RegionError):
        region = None
    if region is None:
        defects["no mask"] += 1
        return None
    is_same = region.width * image.height == region.height * image.width and image.width > 0
    if not is_same and (folders.frame == "same" or region.width != region.height or not image.width):
        defects["frame"] += 1
        return None
    if is_same or folders.frame == "stretched":
        region = region.resize(image.height, image.width)
    else:
        region = fit_square(region, width=image.width, height=image.height)
    if region.is_empty:
        defects["region"] += 1
        return None
    return region
