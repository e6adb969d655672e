"""Phantom studies as a hospital would keep them: DX objects with full headers, and their truth as segmentations.

Names, ids and institutions are invented. They are there so that the way from a hospital's archive to a benchmark can be
shown, and so that a test sees whether any of them gets through.
"""

import datetime
import hashlib
import importlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from carina.sources.dicom.attributes import check_extra, import_pydicom
from carina.sources.dicom.concepts import ANATOMY, CODES
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.resume import lock_directory
from carina.studies import Device, Finding, Image, Studies, Study, open_studies
from carina.studies.region import Region

DX: Final = "1.2.840.10008.5.1.4.1.1.1.1"
_EXPLICIT: Final = "1.2.840.10008.1.2.1"
_IMPLEMENTATION: Final = "2.25.302645861935672198274350127640821563911"
"""UID by which files tell that Carina wrote them."""
_MAKER: Final = "Carina Phantom Works"
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

    Findings, devices, lungs and heart become the segments of one segmentation object an image. pydicom and highdicom
    write the files.

    Args:
        studies: A phantom study set, or its directory.
        out: Directory to write to; missing or empty.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        Counts of what was written.

    Raises:
        CarinaError: `out` holds something, the studies are not phantoms, or the extra `dicom` is not installed.

    Example:
        >>> write_dicom("studies", "archive").studies
        40
    """
    check_extra()
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
    drawn = list(_list_drawn(study))
    for number, image in enumerate(study.images, start=1):
        made = _make_image(study, image, np.asarray(studies.pixels(image)), number)
        yield f"IM{number:06d}.dcm", _encode(made)
        segments = [found for found in drawn if image.key in found.regions]
        if segments:
            yield f"SEG{number:06d}.dcm", _encode(_make_segmentation(made, image, segments, number))


def make_uid(*names: str) -> str:
    """A UID of the arc for hashes, always the same for the same names."""
    digest = hashlib.sha256("\0".join(("carina phantom", *names)).encode()).digest()
    return f"2.25.{int.from_bytes(digest[:15], 'big')}"


def _encode(dataset: Any) -> bytes:  # noqa: ANN401 - a data set of pydicom
    """The content of a DICOM file."""
    dataset.file_meta.ImplementationClassUID = _IMPLEMENTATION
    dataset.file_meta.ImplementationVersionName = "CARINA"
    file = io.BytesIO()
    import_pydicom().dcmwrite(file, dataset, enforce_file_format=True)
    return file.getvalue()


def _make_patient(study: Study) -> dict[str, Any]:
    """Patient and study by DICOM keyword, as an information system fills them in."""
    draw = int.from_bytes(hashlib.sha256(study.patient.encode()).digest()[:8], "big")
    date = study.date or datetime.date(2020, 1, 1)
    birth = datetime.date(date.year - (study.age or 50), 1 + draw % 12, 1 + draw % 28)
    if (birth.month, birth.day) > (date.month, date.day):
        birth = birth.replace(year=birth.year - 1)
    name = f"{_FAMILIES[draw % len(_FAMILIES)]}^{_GIVEN[draw // 16 % len(_GIVEN)]}"
    day = f"{date:%Y%m%d}"
    time = f"{7 + draw // 7 % 12:02d}{draw // 11 % 60:02d}00"
    return {
        "SpecificCharacterSet": "ISO_IR 192",
        "StudyDate": day,
        "SeriesDate": day,
        "AcquisitionDate": day,
        "ContentDate": day,
        "StudyTime": time,
        "ContentTime": time,
        "AccessionNumber": f"ACC{draw % 10**8:08d}",
        "Manufacturer": _MAKER,
        "InstitutionName": "Invented General Hospital",
        "InstitutionAddress": "1 Nowhere Street",
        "ReferringPhysicianName": "Referrer^Rita",
        "StationName": "XR-ROOM-2",
        "StudyDescription": "XR CHEST",
        "PerformingPhysicianName": "Physician^Pat",
        "OperatorsName": "Operator^Olli",
        "ManufacturerModelName": "Phantom DR 1",
        "PatientName": name,
        "PatientID": f"PHANTOM-{draw % 10**9:09d}",
        "IssuerOfPatientID": "INVENTED",
        "PatientBirthDate": f"{birth:%Y%m%d}",
        "PatientSex": study.sex or "",
        "PatientAge": "" if study.age is None else f"{study.age:03d}Y",
        "PatientAddress": "2 Nowhere Street",
        "PatientTelephoneNumbers": "555-0100",
        "PatientComments": f"Call {name} before the examination",
        "StudyInstanceUID": make_uid(study.id),
        "StudyID": f"ST{draw % 10**6}",
    }


def _make_image(study: Study, image: Image, pixels: NDArray[np.generic], number: int) -> Any:  # noqa: ANN401 - a data set of pydicom
    """A DX object."""
    position, code = _VIEWS.get(image.view, ("", ""))
    bytes_a_value = pixels.dtype.itemsize
    made = _make_dataset(
        {
            **_make_patient(study),
            "ImageType": ["ORIGINAL", "PRIMARY"],
            "SOPClassUID": DX,
            "SOPInstanceUID": make_uid(image.key),
            "Modality": "DX",
            "PresentationIntentType": "FOR PRESENTATION",
            "SeriesDescription": f"Chest {image.view}",
            "AnatomicRegionSequence": [_make_code("51185008", "Chest")],
            "BodyPartExamined": "CHEST",
            "KVP": "120",
            "DeviceSerialNumber": "SN-0001",
            "ImagerPixelSpacing": [f"{length:g}" for length in image.spacing_mm or ()],
            "ViewPosition": position,
            "SeriesInstanceUID": make_uid(study.id, "series", str(number)),
            "SeriesNumber": str(number),
            "InstanceNumber": "1",
            "PatientOrientation": ["A", "F"] if image.view == "lateral" else ["L", "F"],
            "ImageLaterality": "U",
            "SamplesPerPixel": 1,
            "PhotometricInterpretation": "MONOCHROME1" if image.monochrome1 else "MONOCHROME2",
            "Rows": image.height,
            "Columns": image.width,
            "BitsAllocated": 8 * bytes_a_value,
            "BitsStored": image.bits,
            "HighBit": image.bits - 1,
            "PixelRepresentation": 0,
            "BurnedInAnnotation": "NO",
            "WindowCenter": str(2**image.bits // 2),
            "WindowWidth": str(2**image.bits),
            "RescaleIntercept": "0",
            "RescaleSlope": "1",
            "RescaleType": "US",
            "LossyImageCompression": "00",
            "PresentationLUTShape": "INVERSE" if image.monochrome1 else "IDENTITY",
        }
    )
    if code:
        made.ViewCodeSequence = [_make_code(code, image.view)]
    data = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    made.add_new("PixelData", "OW" if bytes_a_value == 2 else "OB", data + b"\0" * (len(data) % 2))
    made.file_meta = import_pydicom("pydicom.dataset").FileMetaDataset()
    made.file_meta.TransferSyntaxUID = _EXPLICIT
    return made


def _make_dataset(values: dict[str, Any]) -> Any:  # noqa: ANN401 - a data set of pydicom
    dataset = import_pydicom("pydicom.dataset").Dataset()
    for keyword, value in values.items():
        setattr(dataset, keyword, value)
    return dataset


def _make_code(value: str, meaning: str) -> Any:  # noqa: ANN401 - a data set of pydicom
    return _make_dataset({"CodeValue": value, "CodingSchemeDesignator": "SCT", "CodeMeaning": meaning[:64]})


# ---- segmentations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Drawn:
    """What becomes a segment: a finding, a device or a structure, and its region on each image."""

    uid: str
    """By which the same finding is recognised on several images."""
    name: str
    regions: dict[str, Region]


def _list_drawn(study: Study) -> Iterator[_Drawn]:
    """The present findings and devices with a region, and the structures that have a segment."""
    things: list[Finding | Device] = [*study.findings, *study.devices]
    for found in things:
        if found.certainty == "present" and found.annotations:
            regions = {drawn.image: drawn.region for drawn in found.annotations}
            yield _Drawn(make_uid(study.id, found.id), found.name, regions)
    for name in ANATOMY:
        regions = {part.image: part.region for part in study.anatomy if part.name == name}
        if regions:
            yield _Drawn(make_uid(study.id, name), name, regions)


def _make_segmentation(source: Any, image: Image, drawn: list[_Drawn], number: int) -> Any:  # noqa: ANN401 - data sets of pydicom
    """A segmentation of one image, as highdicom makes it, without the time of its making."""
    seg = importlib.import_module("highdicom.seg")
    masks = np.stack([found.regions[image.key].to_mask() for found in drawn], axis=-1)
    made = seg.Segmentation(
        source_images=[source],
        pixel_array=masks[np.newaxis].astype(np.uint8),
        segmentation_type=seg.SegmentationTypeValues.BINARY,
        segment_descriptions=[_describe_segment(seg, at, found) for at, found in enumerate(drawn, start=1)],
        series_instance_uid=make_uid(image.key, "series of segmentations"),
        series_number=900 + number,
        sop_instance_uid=make_uid(image.key, "segmentation"),
        instance_number=1,
        manufacturer=_MAKER,
        manufacturer_model_name="Phantom reader",
        software_versions="1",
        device_serial_number="SN-0002",
        omit_empty_frames=False,
    )
    del made.ContributingEquipmentSequence
    made.SeriesDescription = "Reading by Physician^Pat"
    made.InstanceCreationDate = made.ContentDate = source.ContentDate
    made.InstanceCreationTime = made.ContentTime = source.ContentTime
    for item in (*made.DimensionOrganizationSequence, *made.DimensionIndexSequence):
        item.DimensionOrganizationUID = make_uid(image.key, "dimensions")
    return made


def _describe_segment(seg: Any, number: int, found: _Drawn) -> Any:  # noqa: ANN401 - a module and a class of highdicom
    code = import_pydicom("pydicom.sr.coding").Code
    category = ("123037004", "Anatomical structure") if found.name in ANATOMY else ("49755003", "Morphology")
    known = _CODE_OF.get(found.name)
    return seg.SegmentDescription(
        segment_number=number,
        segment_label=found.name,
        segmented_property_category=code(category[0], "SCT", category[1]),
        segmented_property_type=code(known or "phantom", "SCT" if known else "99CARINA", found.name[:64]),
        algorithm_type=seg.SegmentAlgorithmTypeValues.MANUAL,
        tracking_uid=found.uid,
        tracking_id=found.name,
    )
