"""Masks from DICOM segmentation objects, joined to the images that their frames refer to.

The label of a segment is free text, so that it passes only where it is the name of a finding, a device or a structure
that Carina knows; a code passes where it stands in the table here. Other segments are left out and counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from carina.sources.dicom.attributes import Attributes, DicomObject, ObjectError, Tag, damaged
from carina.sources.dicom.stored_values import PixelForm, decode_frames
from carina.studies.pixels import MAX_DECODED_BYTES, MAX_PIXELS
from carina.studies.region import Region
from carina.studies.vocabulary import DEVICES, FINDINGS, SHORT_NAMES

UNKNOWN_SEGMENT: Final = "unknown segment"
Kind = Literal["finding", "device", "anatomy"]

ANATOMY: Final = ("right lung", "left lung", "heart", "mediastinum", "trachea", "aorta", "spine")
"""Structures whose names pass."""
CODES: Final = {
    "46621007": "atelectasis",
    "8186001": "cardiomegaly",
    "95436008": "consolidation",
    "19242006": "edema",
    "33737001": "fracture",
    "309529002": "mass",
    "427359005": "nodule",
    "60046008": "pleural effusion",
    "233604007": "pneumonia",
    "36118008": "pneumothorax",
    "3341006": "right lung",
    "44029006": "left lung",
    "80891009": "heart",
}
"""Concepts of SNOMED CT by Carina's name."""


class Segment(NamedTuple):
    """What a segment shows."""

    kind: Kind
    name: str
    algorithm: Literal["manual", "semiautomatic", "automatic", "unknown"]


@dataclass(frozen=True)
class SegmentMask:
    """One segment on one image."""

    segment: Segment
    number: int
    image: bytes
    """SOP instance UID of the image."""
    region: Region
    tracking: bytes
    """UID by which the same finding is recognised in other objects; empty where there is none."""


def find_referenced_images(attributes: Attributes) -> list[bytes]:
    """SOP instance UIDs of all images that a segmentation refers to."""
    found = [uid for group in _frame_groups(attributes) for uid in _source_images(group)]
    found += _listed_images(attributes)
    return list(dict.fromkeys(found))


def read_masks(found: DicomObject) -> Iterator[SegmentMask | str]:
    """The masks of a segmentation, and the defect "unknown segment" for every segment that is left out.

    Raises:
        ObjectError: The segmentation cannot be read.
    """
    attributes = found.attributes
    segments = dict(_read_segments(attributes))
    yield from (UNKNOWN_SEGMENT for segment in segments.values() if segment is None)
    masks = _read_frames(found)
    groups = _frame_groups(attributes)
    if len(groups) != len(masks):
        raise damaged("it does not describe each of its frames")
    joined: dict[tuple[int, bytes], np.ndarray[tuple[int, int], np.dtype[np.bool_]]] = {}
    listed = _listed_images(attributes)
    shared = attributes.first(Tag.SHARED_GROUPS)
    for group, mask in zip(groups, masks, strict=True):
        number = _segment_number(group) or _segment_number(shared)
        images = _source_images(group) or _source_images(shared) or (listed if len(listed) == 1 else [])
        if number is None or number not in segments or len(images) != 1:
            raise damaged("one of its frames does not refer to one segment and one image")
        key = number, images[0]
        joined[key] = joined[key] | mask if key in joined else mask
    tracking = {
        item.word(Tag.SEGMENT_NUMBER): item.raw(Tag.TRACKING_UID) for item in attributes.items(Tag.SEGMENTS)
    }
    for (number, image), mask in sorted(joined.items(), key=lambda entry: entry[0][0]):
        segment = segments[number]
        if segment is not None and mask.any():
            yield SegmentMask(segment, number, image, Region.from_mask(mask), tracking[number])


def _frame_groups(attributes: Attributes) -> Sequence[Attributes]:
    return attributes.items(Tag.FRAME_GROUPS)


def _segment_number(group: Attributes) -> int | None:
    return group.first(Tag.SEGMENT_IDENTIFICATION).word(Tag.REFERENCED_SEGMENT)


def _source_images(group: Attributes) -> list[bytes]:
    uids = [
        source.raw(Tag.REFERENCED_SOP_INSTANCE)
        for derivation in group.items(Tag.DERIVATION_IMAGES)
        for source in derivation.items(Tag.SOURCE_IMAGES)
    ]
    return [uid for uid in uids if uid]


def _listed_images(attributes: Attributes) -> list[bytes]:
    uids = [
        instance.raw(Tag.REFERENCED_SOP_INSTANCE)
        for series in attributes.items(Tag.REFERENCED_SERIES)
        for instance in series.items(Tag.REFERENCED_INSTANCES)
    ]
    return [uid for uid in uids if uid]


def _read_segments(attributes: Attributes) -> Iterator[tuple[int, Segment | None]]:
    for item in attributes.items(Tag.SEGMENTS):
        number = item.word(Tag.SEGMENT_NUMBER)
        if number is None:
            raise damaged("a segment has no number")
        code = item.first(Tag.SEGMENT_PROPERTY).text(Tag.CODE_VALUE)
        name = _known_name(item.text(Tag.SEGMENT_LABEL)) or CODES.get(code)
        yield number, None if name is None else Segment(_kind_of(name), name, _algorithm(item))


def _algorithm(item: Attributes) -> Literal["manual", "semiautomatic", "automatic", "unknown"]:
    match item.text(Tag.SEGMENT_ALGORITHM):
        case "MANUAL":
            return "manual"
        case "SEMIAUTOMATIC":
            return "semiautomatic"
        case "AUTOMATIC":
            return "automatic"
        case _:
            return "unknown"


def _known_name(label: str) -> str | None:
    """The label where it is a name that Carina knows."""
    words = " ".join(label.lower().replace("_", " ").split())
    words = SHORT_NAMES.get(words, words)
    return next((name for name in (*FINDINGS, *DEVICES, *ANATOMY) if name == words), None)


def _kind_of(name: str) -> Kind:
    return "anatomy" if name in ANATOMY else "device" if name in DEVICES else "finding"


def _read_frames(found: DicomObject) -> "Sequence[np.ndarray[tuple[int, int], np.dtype[np.bool_]]]":
    """The frames of a segmentation: single bits, or fractions of at least half of the largest."""
    attributes = found.attributes
    rows, columns = attributes.word(Tag.ROWS) or 0, attributes.word(Tag.COLUMNS) or 0
    frames = attributes.whole(Tag.FRAMES) or 0
    if (
        not rows * columns
        or rows * columns > MAX_PIXELS
        or not 0 < frames * rows * columns <= MAX_DECODED_BYTES
    ):
        raise ObjectError("too large", "the segmentation states no size that can be decoded")
    bits = attributes.word(Tag.BITS_ALLOCATED) or 0
    is_binary = attributes.text(Tag.SEGMENTATION_TYPE) == "BINARY"
    # A compressed segmentation cannot hold single bits: then a byte with 0 or 1 stands for each.
    if bits not in ((1, 8) if is_binary else (8,)):
        raise damaged("the bits of the segmentation do not fit its type")
    form = PixelForm(rows, columns, bits, bits, bits - 1, is_signed=False)
    values = decode_frames(found, form, frames)
    least = 1 if is_binary else (attributes.word(Tag.MAXIMUM_FRACTION) or 255) / 2
    return list(values >= least)
