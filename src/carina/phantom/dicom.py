"""Phantom studies as a hospital would keep them: DX objects with full headers, and their truth as segmentations.

Names, ids and institutions are invented. They are there so that the way from a hospital's archive to a benchmark can be
shown, and so that a test sees whether any of them gets through.
"""

import datetime
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.phantom.dicom_objects import Elements, Items, Value, encode_object
from carina.sources.dicom.attributes import Tag
from carina.sources.dicom.header import SEGMENTATION
from carina.sources.dicom.segmentation import ANATOMY, CODES
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.resume import lock_directory
from carina.studies import Device, Finding, Image, Studies, Study, open_studies
from carina.studies.region import Region

DX: Final = "1.2.840.10008.5.1.4.1.1.1.1"
_VIEWS: Final = {"PA": ("PA", "272479007"), "AP": ("AP", "399348003"), "lateral": ("LL", "399173006")}
"""View position, and code of the view in SNOMED CT."""
_CODE_OF: Final = {name: code for code, name in CODES.items()}
_FAMILIES: Final = (
    "Abara",
    "Brandt",
    "Costa",
    "Dvorak",
    "Eriksen",
    "Fontaine",
    "Gruber",
    "Haddad",
    "Ito",
    "Jansen",
)
_GIVEN: Final = ("Alex", "Robin", "Sam", "Kim", "Jo", "Chris", "Nika", "Toni")


@dataclass(frozen=True)
class DicomFolder:
    """What was written."""

    path: Path
    studies: int
    images: int
    segmentations: int


def write_dicom(
    studies: Studies | Location, out: Location, *, progress: Progress = no_progress
) -> DicomFolder:
    """Write phantom studies as DICOM files, with invented identifiers: OUT/PATIENT/STUDY/FILE.dcm.

    Findings, devices, lungs and heart become the segments of one segmentation object a study.

    Args:
        studies: A phantom study set, or its directory.
        out: Directory to write to; missing or empty.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        Counts of what was written.

    Raises:
        CarinaError: `out` holds something, or the studies are not phantoms.

    Example:
        >>> write_dicom("studies", "archive").studies
        40
    """
    opened = studies if isinstance(studies, Studies) else open_studies(as_path(studies))
    directory = as_path(out)
    if directory.exists() and any(directory.iterdir()):
        raise CarinaError(f"{directory}: is not empty: choose another directory for the DICOM files")
    images = masks = 0
    with lock_directory(directory), progress("Studies", len(opened)) as advance:
        for study in opened:
            if study.source != "phantom":
                raise CarinaError(
                    f"study {study.id!r}: is of the source {study.source}; only phantoms are written"
                )
            for name, content in _encode_study(opened, study):
                write_bytes(directory / study.patient / study.id / name, content)
                images, masks = images + name.startswith("IM"), masks + name.startswith("SEG")
            advance(1)
    return DicomFolder(directory, len(opened), images, masks)


def _encode_study(studies: Studies, study: Study) -> Iterator[tuple[str, bytes]]:
    """The files of a study, by name."""
    for number, image in enumerate(study.images, start=1):
        pixels = np.asarray(studies.pixels(image))
        yield f"IM{number:06d}.dcm", encode_object(_make_image(study, image, pixels, number))
    frames = list(_list_frames(study))
    if frames:
        yield "SEG000001.dcm", encode_object(_make_segmentation(study, frames))


def make_uid(*names: str) -> str:
    """A UID of the arc for hashes, always the same for the same names."""
    digest = hashlib.sha256("\0".join(("carina phantom", *names)).encode()).digest()
    return f"2.25.{int.from_bytes(digest[:15], 'big')}"


def _text(form: str, value: str) -> tuple[str, Value]:
    return form, value


def _code(value: str, meaning: str, scheme: str = "SCT") -> tuple[str, Value]:
    item: Elements = {
        Tag.CODE_VALUE: ("SH", value),
        0x00080102: ("SH", scheme),
        0x00080104: ("LO", meaning[:64]),
    }
    return "SQ", Items((item,))


def _make_patient(study: Study) -> dict[int, tuple[str, Value]]:
    """Patient and study, as an information system fills them in."""
    draw = int.from_bytes(hashlib.sha256(study.patient.encode()).digest()[:8], "big")
    date = study.date or datetime.date(2020, 1, 1)
    birth = datetime.date(date.year - (study.age or 50), 1 + draw % 12, 1 + draw % 28)
    if (birth.month, birth.day) > (date.month, date.day):
        birth = birth.replace(year=birth.year - 1)
    name = f"{_FAMILIES[draw % len(_FAMILIES)]}^{_GIVEN[draw // 16 % len(_GIVEN)]}"
    day = f"{date:%Y%m%d}"
    time = f"{7 + draw // 7 % 12:02d}{draw // 11 % 60:02d}00"
    return {
        0x00080005: _text("CS", "ISO_IR 192"),
        Tag.STUDY_DATE: _text("DA", day),
        0x00080021: _text("DA", day),
        Tag.ACQUISITION_DATE: _text("DA", day),
        Tag.CONTENT_DATE: _text("DA", day),
        Tag.STUDY_TIME: _text("TM", time),
        0x00080050: _text("SH", f"ACC{draw % 10**8:08d}"),
        0x00080070: _text("LO", "Carina Phantom Works"),
        0x00080080: _text("LO", "Invented General Hospital"),
        0x00080081: _text("ST", "1 Nowhere Street"),
        0x00080090: _text("PN", "Referrer^Rita"),
        0x00081010: _text("SH", "XR-ROOM-2"),
        0x00081030: _text("LO", "XR CHEST"),
        0x00081050: _text("PN", "Physician^Pat"),
        0x00081070: _text("PN", "Operator^Olli"),
        0x00081090: _text("LO", "Phantom DR 1"),
        0x00100010: _text("PN", name),
        Tag.PATIENT_ID: _text("LO", f"PHANTOM-{draw % 10**9:09d}"),
        Tag.PATIENT_ID_ISSUER: _text("LO", "INVENTED"),
        Tag.BIRTH_DATE: _text("DA", f"{birth:%Y%m%d}"),
        Tag.SEX: _text("CS", study.sex or ""),
        Tag.AGE: _text("AS", "" if study.age is None else f"{study.age:03d}Y"),
        0x00101040: _text("LO", "2 Nowhere Street"),
        0x00102154: _text("SH", "555-0100"),
        0x00104000: _text("LT", f"Call {name} before the examination"),
        Tag.STUDY_INSTANCE: _text("UI", make_uid(study.id)),
        0x00200010: _text("SH", f"ST{draw % 10**6}"),
    }


def _make_image(
    study: Study, image: Image, pixels: NDArray[np.generic], number: int
) -> dict[int, tuple[str, Value]]:
    position, code = _VIEWS.get(image.view, ("", ""))
    spacing = "\\".join(f"{length:g}" for length in image.spacing_mm or ())
    lateral = image.view == "lateral"
    wide = pixels.dtype.itemsize == 2
    highest = 2**image.bits
    return {
        **_make_patient(study),
        0x00080008: _text("CS", "ORIGINAL\\PRIMARY"),
        Tag.SOP_CLASS: _text("UI", DX),
        Tag.SOP_INSTANCE: _text("UI", make_uid(image.key)),
        Tag.MODALITY: _text("CS", "DX"),
        Tag.PRESENTATION_INTENT: _text("CS", "FOR PRESENTATION"),
        0x0008103E: _text("LO", f"Chest {image.view}"),
        Tag.ANATOMIC_REGION: _code("51185008", "Chest"),
        Tag.BODY_PART: _text("CS", "CHEST"),
        0x00180060: _text("DS", "120"),
        0x00181000: _text("LO", "SN-0001"),
        Tag.IMAGER_PIXEL_SPACING: _text("DS", spacing),
        Tag.VIEW_POSITION: _text("CS", position),
        0x0020000E: _text("UI", make_uid(study.id, "series", str(number))),
        Tag.SERIES_NUMBER: _text("IS", str(number)),
        Tag.INSTANCE_NUMBER: _text("IS", "1"),
        Tag.PATIENT_ORIENTATION: _text("CS", "A\\F" if lateral else "L\\F"),
        0x00200062: _text("CS", "U"),
        Tag.SAMPLES_PER_PIXEL: ("US", 1),
        Tag.PHOTOMETRIC: _text("CS", "MONOCHROME1" if image.monochrome1 else "MONOCHROME2"),
        Tag.ROWS: ("US", image.height),
        Tag.COLUMNS: ("US", image.width),
        Tag.BITS_ALLOCATED: ("US", 16 if wide else 8),
        Tag.BITS_STORED: ("US", image.bits),
        Tag.HIGH_BIT: ("US", image.bits - 1),
        Tag.PIXEL_REPRESENTATION: ("US", 0),
        Tag.BURNED_IN: _text("CS", "NO"),
        Tag.WINDOW_CENTRE: _text("DS", str(highest // 2)),
        Tag.WINDOW_WIDTH: _text("DS", str(highest)),
        Tag.RESCALE_INTERCEPT: _text("DS", "0"),
        Tag.RESCALE_SLOPE: _text("DS", "1"),
        0x00281054: _text("LO", "US"),
        0x00282110: _text("CS", "00"),
        **({Tag.VIEW_CODE: _code(code, image.view)} if code else {}),
        Tag.PRESENTATION_LUT_SHAPE: _text("CS", "INVERSE" if image.monochrome1 else "IDENTITY"),
        Tag.PIXEL_DATA: ("OW" if wide else "OB", pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()),
    }


# ---- segmentations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    segment: int
    name: str
    image: str
    region: Region


def _list_frames(study: Study) -> Iterator[_Frame]:
    """One frame for every region of a present finding or device, and of the structures that have a segment."""
    number = 0
    things: list[Finding | Device] = [*study.findings, *study.devices]
    for found in things:
        if found.certainty == "present" and found.annotations:
            number += 1
            for drawn in found.annotations:
                yield _Frame(number, found.name, drawn.image, drawn.region)
    names = [name for name in ANATOMY if any(part.name == name for part in study.anatomy)]
    for name in names:
        number += 1
        for part in study.anatomy:
            if part.name == name:
                yield _Frame(number, name, part.image, part.region)


def _make_segmentation(study: Study, frames: list[_Frame]) -> dict[int, tuple[str, Value]]:
    names = {frame.segment: frame.name for frame in frames}
    image = study.images[0]
    bits = np.concatenate([frame.region.to_mask().ravel() for frame in frames])
    return {
        **_make_patient(study),
        0x00080008: _text("CS", "DERIVED\\PRIMARY"),
        Tag.SOP_CLASS: _text("UI", SEGMENTATION),
        Tag.SOP_INSTANCE: _text("UI", make_uid(study.id, "segmentation")),
        Tag.MODALITY: _text("CS", "SEG"),
        0x0008103E: _text("LO", "Reading by Physician^Pat"),
        0x0020000E: _text("UI", make_uid(study.id, "series of segmentations")),
        Tag.SERIES_NUMBER: _text("IS", "900"),
        Tag.INSTANCE_NUMBER: _text("IS", "1"),
        Tag.SAMPLES_PER_PIXEL: ("US", 1),
        Tag.PHOTOMETRIC: _text("CS", "MONOCHROME2"),
        Tag.FRAMES: _text("IS", str(len(frames))),
        Tag.ROWS: ("US", image.height),
        Tag.COLUMNS: ("US", image.width),
        Tag.BITS_ALLOCATED: ("US", 1),
        Tag.BITS_STORED: ("US", 1),
        Tag.HIGH_BIT: ("US", 0),
        Tag.PIXEL_REPRESENTATION: ("US", 0),
        0x00282110: _text("CS", "00"),
        Tag.SEGMENTATION_TYPE: _text("CS", "BINARY"),
        Tag.SEGMENTS: ("SQ", Items(tuple(_make_segment(number, name) for number, name in names.items()))),
        Tag.FRAME_GROUPS: ("SQ", Items(tuple(_make_frame_group(frame) for frame in frames))),
        Tag.PIXEL_DATA: ("OB", np.packbits(bits, bitorder="little").tobytes()),
    }


def _make_segment(number: int, name: str) -> Elements:
    code = _CODE_OF.get(name)
    property_type = _code(code, name) if code else _code("phantom", name, "99CARINA")
    category = (
        _code("123037004", "Anatomical structure") if name in ANATOMY else _code("49755003", "Morphology")
    )
    return {
        0x00620003: category,
        Tag.SEGMENT_NUMBER: ("US", number),
        Tag.SEGMENT_LABEL: _text("LO", name),
        Tag.SEGMENT_ALGORITHM: _text("CS", "MANUAL"),
        Tag.SEGMENT_PROPERTY: property_type,
    }


def _make_frame_group(frame: _Frame) -> Elements:
    source: Elements = {0x00081150: ("UI", DX), Tag.REFERENCED_SOP_INSTANCE: ("UI", make_uid(frame.image))}
    identification: Elements = {Tag.REFERENCED_SEGMENT: ("US", frame.segment)}
    return {
        Tag.DERIVATION_IMAGES: ("SQ", Items(({Tag.SOURCE_IMAGES: ("SQ", Items((source,)))},))),
        Tag.SEGMENT_IDENTIFICATION: ("SQ", Items((identification,))),
    }
