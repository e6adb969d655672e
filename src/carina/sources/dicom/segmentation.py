"""Masks from DICOM segmentation objects, joined to the images that their frames refer to.

Segments whose label and code name nothing that Carina knows are left out and counted. highdicom writes segmentations in
the tests and for the phantom; to read them, it asks for attributes that segmentations of other programs lack.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from numpy.typing import NDArray

from carina.sources.dicom.attributes import Attributes, DicomObject, ObjectError, Tag, damaged
from carina.sources.dicom.concepts import Concept, find_code, find_label
from carina.sources.dicom.stored_values import PixelForm, decode_frames
from carina.studies.pixels import MAX_DECODED_BYTES, MAX_PIXELS
from carina.studies.region import Region

SEGMENTATIONS: Final = frozenset(("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"))
"""SOP classes of segmentations: of masks, and of label maps."""
UNKNOWN_SEGMENT: Final = "unknown segment"
_BITS: Final = {"BINARY": (1, 8), "FRACTIONAL": (8,), "LABELMAP": (8, 16)}
"""Bits of a value by segmentation type. Programs that compress masks write a byte for each bit."""

Mask = Any
"""An array of bool of shape (rows, columns)."""
Integers = NDArray[Any]


class Segment(NamedTuple):
    """What a segment shows."""

    concept: Concept
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
    frames = _read_frames(found)
    groups = _frame_groups(attributes)
    if len(groups) != len(frames):
        raise damaged("it does not describe each of its frames")
    is_label_map = attributes.text(Tag.SEGMENTATION_TYPE) == "LABELMAP"
    joined: dict[tuple[int, bytes], Mask] = {}
    listed = _listed_images(attributes)
    shared = attributes.first(Tag.SHARED_GROUPS)
    for group, values in zip(groups, frames, strict=True):
        stated = _segment_number(group) or _segment_number(shared)
        images = _source_images(group) or _source_images(shared) or (listed if len(listed) == 1 else [])
        numbers = [number for number in segments if number] if is_label_map else [stated]
        for number in numbers:
            if number is None or number not in segments or len(images) != 1:
                raise damaged("one of its frames does not refer to one segment and one image")
            key = number, images[0]
            mask = values == number if is_label_map else values
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
        concept = find_label(item.text(Tag.SEGMENT_LABEL)) or find_code(item.first(Tag.SEGMENT_PROPERTY))
        yield number, None if concept is None else Segment(concept, _algorithm(item))


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


def _read_frames(found: DicomObject) -> Integers:
    """The frames of a segmentation: masks from single bits or from fractions of at least half of the largest, or the
    numbers of segments in a label map."""
    attributes = found.attributes
    rows, columns = attributes.word(Tag.ROWS) or 0, attributes.word(Tag.COLUMNS) or 0
    frames = attributes.whole(Tag.FRAMES) or 0
    bits = attributes.word(Tag.BITS_ALLOCATED) or 0
    size = frames * rows * columns * max(1, bits // 8)
    if not 0 < rows * columns <= MAX_PIXELS or not 0 < size <= MAX_DECODED_BYTES:
        raise ObjectError("too large", "the segmentation states no size that can be decoded")
    kind = attributes.text(Tag.SEGMENTATION_TYPE)
    if bits not in _BITS.get(kind, ()):
        raise damaged("the bits of the segmentation do not fit its type")
    values = decode_frames(found, PixelForm(rows, columns, bits, bits, bits - 1, is_signed=False), frames)
    if kind == "LABELMAP":
        return values
    least = 1 if kind == "BINARY" else (attributes.word(Tag.MAXIMUM_FRACTION) or 255) / 2
    return values >= least
