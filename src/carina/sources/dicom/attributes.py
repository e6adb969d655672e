"""Reads the attributes of a DICOM object that Carina uses, and no others.

`Tag` is the allow-list: the value of any other attribute is stepped over by its length and never decoded, at the top
level as in sequences. So a name in a comment or in a private attribute cannot reach anything that Carina writes.

Only files in the format of PS3.10 are read, with their preamble. Pixel data are found here and decoded elsewhere.
"""

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class Tag(IntEnum):
    """Every attribute that is read, by the keyword of PS3.6."""

    MEDIA_STORAGE_CLASS = 0x00020002
    TRANSFER_SYNTAX = 0x00020010
    DIRECTORY_RECORDS = 0x00041220
    REFERENCED_FILE = 0x00041500
    SOP_CLASS = 0x00080016
    SOP_INSTANCE = 0x00080018
    STUDY_DATE = 0x00080020
    ACQUISITION_DATE = 0x00080022
    CONTENT_DATE = 0x00080023
    STUDY_TIME = 0x00080030
    MODALITY = 0x00080060
    PRESENTATION_INTENT = 0x00080068
    CODE_VALUE = 0x00080100
    REFERENCED_SERIES = 0x00081115
    REFERENCED_INSTANCES = 0x0008114A
    REFERENCED_SOP_INSTANCE = 0x00081155
    SOURCE_IMAGES = 0x00082112
    ANATOMIC_REGION = 0x00082218
    DERIVATION_IMAGES = 0x00089124
    PATIENT_ID = 0x00100020
    PATIENT_ID_ISSUER = 0x00100021
    BIRTH_DATE = 0x00100030
    SEX = 0x00100040
    AGE = 0x00101010
    BODY_PART = 0x00180015
    IMAGER_PIXEL_SPACING = 0x00181164
    VIEW_POSITION = 0x00185101
    STUDY_INSTANCE = 0x0020000D
    SERIES_NUMBER = 0x00200011
    INSTANCE_NUMBER = 0x00200013
    PATIENT_ORIENTATION = 0x00200020
    SAMPLES_PER_PIXEL = 0x00280002
    PHOTOMETRIC = 0x00280004
    FRAMES = 0x00280008
    ROWS = 0x00280010
    COLUMNS = 0x00280011
    PIXEL_SPACING = 0x00280030
    BITS_ALLOCATED = 0x00280100
    BITS_STORED = 0x00280101
    HIGH_BIT = 0x00280102
    PIXEL_REPRESENTATION = 0x00280103
    PIXEL_PADDING = 0x00280120
    BURNED_IN = 0x00280301
    WINDOW_CENTRE = 0x00281050
    WINDOW_WIDTH = 0x00281051
    RESCALE_INTERCEPT = 0x00281052
    RESCALE_SLOPE = 0x00281053
    VOI_FUNCTION = 0x00281056
    MODALITY_LUT = 0x00283000
    LUT_DESCRIPTOR = 0x00283002
    LUT_DATA = 0x00283006
    VOI_LUT = 0x00283010
    VIEW_CODE = 0x00540220
    SEGMENTATION_TYPE = 0x00620001
    SEGMENTS = 0x00620002
    SEGMENT_NUMBER = 0x00620004
    SEGMENT_LABEL = 0x00620005
    SEGMENT_ALGORITHM = 0x00620008
    SEGMENT_IDENTIFICATION = 0x0062000A
    REFERENCED_SEGMENT = 0x0062000B
    MAXIMUM_FRACTION = 0x0062000E
    SEGMENT_PROPERTY = 0x0062000F
    PRESENTATION_LUT_SHAPE = 0x20500020
    SHARED_GROUPS = 0x52009229
    FRAME_GROUPS = 0x52009230
    PIXEL_DATA = 0x7FE00010


_SEQUENCES: Final = frozenset(
    (
        Tag.DIRECTORY_RECORDS, Tag.REFERENCED_SERIES, Tag.REFERENCED_INSTANCES, Tag.SOURCE_IMAGES, Tag.ANATOMIC_REGION,
        Tag.DERIVATION_IMAGES, Tag.MODALITY_LUT, Tag.VOI_LUT, Tag.VIEW_CODE, Tag.SEGMENTS, Tag.SEGMENT_IDENTIFICATION,
        Tag.SEGMENT_PROPERTY, Tag.SHARED_GROUPS, Tag.FRAME_GROUPS,
    )
)  # fmt: skip
_WANTED: Final = frozenset(int(tag) for tag in Tag)
_LONG_FORMS: Final = frozenset(
    (b"OB", b"OD", b"OF", b"OL", b"OV", b"OW", b"SQ", b"SV", b"UC", b"UN", b"UR", b"UT", b"UV")
)
"""Value representations whose length takes four bytes."""
_ITEM: Final = 0xFFFEE000
_ITEM_END: Final = 0xFFFEE00D
_SEQUENCE_END: Final = 0xFFFEE0DD
_UNDEFINED: Final = 0xFFFFFFFF
_FLOAT_PIXELS: Final = (0x7FE00008, 0x7FE00009)
_PREAMBLE: Final = 132
_DEEPEST: Final = 32
"""Sequences within sequences; the standard uses fewer than ten."""
_LARGEST_VALUE: Final = 4_000_000
"""Bytes of a value on the allow-list, of which a look-up table of 65,536 entries is the longest."""

IMPLICIT: Final = "1.2.840.10008.1.2"
EXPLICIT: Final = "1.2.840.10008.1.2.1"
DEFLATED: Final = "1.2.840.10008.1.2.1.99"
BIG_ENDIAN: Final = "1.2.840.10008.1.2.2"


class ObjectError(Exception):
    """An object that cannot be used.

    The words are fixed by Carina: nothing of the object is quoted, since they are written beside the studies.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        """A word by which such objects are counted."""
        self.reason = reason


def damaged(what: str) -> ObjectError:
    """The error for an object that does not follow the standard."""
    return ObjectError("damaged", f"the object is damaged: {what}")


class MoreNeededError(Exception):
    """The attributes reach beyond the bytes that were read: read the whole file."""


Value: TypeAlias = "bytes | list[Attributes]"


@dataclass(frozen=True)
class Attributes:
    """Attributes of one level, by tag. What is missing or cannot be read is empty or None."""

    values: Mapping[int, Value]
    order: str
    """Byte order as `struct` writes it."""

    def raw(self, tag: Tag) -> bytes:
        """The bytes of a value, without padding."""
        value = self.values.get(tag, b"")
        return value.strip(b" \0") if isinstance(value, bytes) else b""

    def texts(self, tag: Tag) -> list[str]:
        """All values of a text."""
        parts = self.raw(tag).decode("latin-1").split("\\")
        return [part.strip(" \0") for part in parts]

    def text(self, tag: Tag) -> str:
        """The first value of a text."""
        return self.texts(tag)[0]

    def numbers(self, tag: Tag) -> list[float] | None:
        """All values of a decimal string; None where one is not a finite number."""
        try:
            found = [float(text) for text in self.texts(tag)]
        except ValueError:
            return None
        return found if all(map(math.isfinite, found)) else None

    def whole(self, tag: Tag) -> int | None:
        """A whole number of an integer string."""
        try:
            return int(self.text(tag))
        except ValueError:
            return None

    def words(self, tag: Tag) -> list[int]:
        """Unsigned binary numbers of 16 bits."""
        value = self.values.get(tag, b"")
        if not isinstance(value, bytes) or len(value) % 2:
            return []
        return list(struct.unpack(f"{self.order}{len(value) // 2}H", value))

    def word(self, tag: Tag) -> int | None:
        """The first unsigned binary number of 16 bits."""
        return next(iter(self.words(tag)), None)

    def items(self, tag: Tag) -> "Sequence[Attributes]":
        """The items of a sequence."""
        value = self.values.get(tag, [])
        return value if isinstance(value, list) else []

    def first(self, *tags: Tag) -> "Attributes":
        """The first item of a sequence, and of a sequence in it; without attributes where there is none."""
        found = self
        for tag in tags:
            found = next(iter(found.items(tag)), Attributes({}, self.order))
        return found


class PixelSpan(NamedTuple):
    """Where the pixel data of an object lie."""

    start: int
    length: int | None
    """None for data in fragments, which end with a mark."""
    is_words: bool
    """Whether they are stated to be words of 16 bits (OW), whose bytes the byte order concerns."""


@dataclass(frozen=True)
class DicomObject:
    """The attributes of an object, and its pixel data."""

    syntax: str
    """UID of the transfer syntax."""
    attributes: Attributes
    pixels: PixelSpan | None
    content: bytes
    """The bytes in which `pixels` lie."""


class _Form(NamedTuple):
    is_explicit: bool
    order: str


class _Element(NamedTuple):
    tag: int
    form: bytes
    start: int
    length: int


def parse_object(content: bytes, *, is_whole: bool, max_bytes: int) -> DicomObject:
    """Read the attributes of an object.

    Args:
        content: The file, or its beginning.
        is_whole: Whether `content` is the whole file.
        max_bytes: Largest number of bytes that a deflated object may take.

    Raises:
        ObjectError: It is not a DICOM object, or damaged.
        MoreNeededError: `content` ends before the pixel data.
    """
    if content[_PREAMBLE - 4 : _PREAMBLE] != b"DICM":
        raise ObjectError("not DICOM", "the file is not a DICOM object in the format of PS3.10")
    meta, start = _Parser(content, _Form(is_explicit=True, order="<"), is_whole).parse_meta()
    syntax = meta.text(Tag.TRANSFER_SYNTAX)
    form = {
        IMPLICIT: _Form(is_explicit=False, order="<"),
        BIG_ENDIAN: _Form(is_explicit=True, order=">"),
    }.get(syntax, _Form(is_explicit=True, order="<"))
    if not syntax:
        raise damaged("it states no transfer syntax")
    if syntax == DEFLATED:
        if not is_whole:
            raise MoreNeededError
        content, start = _inflate(content[start:], max_bytes), 0
    parser = _Parser(content, form, is_whole)
    values = parser.parse_level(start, len(content), depth=0)[0]
    merged = {**{int(tag): value for tag, value in meta.values.items()}, **values}
    return DicomObject(syntax, Attributes(merged, form.order), parser.pixels, content)


def _inflate(packed: bytes, max_bytes: int) -> bytes:
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = machine.decompress(packed, max_bytes)
    except zlib.error:
        raise damaged("its deflated part cannot be unpacked") from None
    if machine.unconsumed_tail:
        raise ObjectError("too large", f"the object unpacks to more than {max_bytes:,} bytes")
    return content


class _Parser:
    """Steps through the elements of an object."""

    def __init__(self, content: bytes, form: _Form, is_whole: bool) -> None:  # noqa: FBT001 - private
        self._content = content
        self._form = form
        self._is_whole = is_whole
        self.pixels: PixelSpan | None = None

    def parse_meta(self) -> tuple[Attributes, int]:
        """The attributes of group 2, and where they end."""
        values: dict[int, Value] = {}
        at = _PREAMBLE
        while at + 4 <= len(self._content) and self._unpack("H", at) == 2:
            element = self._read_element(at, self._form)
            at = self._end_of(element)
            if element.tag in _WANTED:
                values[element.tag] = self._content[element.start : at]
        return Attributes(values, "<"), at

    def parse_level(
        self, at: int, end: int, *, depth: int, form: _Form | None = None, is_item: bool = False
    ) -> tuple[dict[int, Value], int]:
        """The wanted attributes of one level, and where it ends: at `end`, at the mark of an item's end, or at the
        pixel data."""
        form = form or self._form
        if depth > _DEEPEST:
            raise damaged("its sequences are nested too deeply")
        values: dict[int, Value] = {}
        while at < end:
            element = self._read_element(at, form)
            if is_item and element.tag == _ITEM_END:
                return values, element.start
            if depth == 0 and element.tag == Tag.PIXEL_DATA:
                length = None if element.length == _UNDEFINED else element.length
                self.pixels = PixelSpan(element.start, length, element.form == b"OW")
                return values, end
            if depth == 0 and element.tag in _FLOAT_PIXELS:
                raise ObjectError("pixels", "its pixels are floating-point numbers")
            at = self._take_value(element, form, values, depth)
        if is_item:
            raise self._end_of_content()
        if depth == 0 and not self._is_whole:
            raise MoreNeededError
        return values, at

    def _take_value(self, element: _Element, form: _Form, values: dict[int, Value], depth: int) -> int:
        """Keep the value of a wanted element; returns where the element ends."""
        is_wanted = element.tag in _WANTED
        if element.length == _UNDEFINED:
            if element.form == b"UN":
                form = _Form(is_explicit=False, order="<")
            items, end = self._parse_items(element.start, len(self._content), form, depth, keeps=is_wanted)
            if is_wanted and element.tag in _SEQUENCES:
                values[element.tag] = items
            return end
        end = self._end_of(element)
        if is_wanted and element.tag in _SEQUENCES:
            values[element.tag] = self._parse_items(element.start, end, form, depth, keeps=True)[0]
        elif is_wanted:
            if element.length > _LARGEST_VALUE:
                raise damaged("an attribute is too long")
            values[element.tag] = self._content[element.start : end]
        return end

    def _parse_items(
        self, at: int, end: int, form: _Form, depth: int, *, keeps: bool
    ) -> tuple[list[Attributes], int]:
        """The items of a sequence, and where it ends."""
        items: list[Attributes] = []
        while at < end:
            tag, length = self._read_item(at, form.order)
            at += 8
            if tag == _SEQUENCE_END:
                return items, at
            if tag != _ITEM:
                raise damaged("a sequence holds something other than items")
            if length == _UNDEFINED:
                values, at = self.parse_level(at, end, depth=depth + 1, form=form, is_item=True)
            else:
                if at + length > end:
                    raise self._end_of_content()
                values = {}
                if keeps:
                    values = self.parse_level(at, at + length, depth=depth + 1, form=form)[0]
                at += length
            if keeps:
                items.append(Attributes(values, form.order))
        return items, at

    def _read_item(self, at: int, order: str) -> tuple[int, int]:
        if at + 8 > len(self._content):
            raise self._end_of_content()
        group, element, length = struct.unpack_from(f"{order}HHI", self._content, at)
        return group << 16 | element, length

    def _read_element(self, at: int, form: _Form) -> _Element:
        """The tag, value representation and place of an element."""
        if at + 8 > len(self._content):
            raise self._end_of_content()
        group, number = struct.unpack_from(f"{form.order}HH", self._content, at)
        tag = group << 16 | number
        if not form.is_explicit or group == 0xFFFE:
            (length,) = struct.unpack_from(f"{form.order}I", self._content, at + 4)
            return _Element(tag, b"", at + 8, length)
        kind = self._content[at + 4 : at + 6]
        if not (kind.isalpha() and kind.isupper()):
            raise damaged("an attribute has no value representation")
        if kind not in _LONG_FORMS:
            (length,) = struct.unpack_from(f"{form.order}H", self._content, at + 6)
            return _Element(tag, kind, at + 8, length)
        if at + 12 > len(self._content):
            raise self._end_of_content()
        (length,) = struct.unpack_from(f"{form.order}I", self._content, at + 8)
        return _Element(tag, kind, at + 12, length)

    def _end_of(self, element: _Element) -> int:
        end = element.start + element.length
        if end > len(self._content):
            raise self._end_of_content()
        return end

    def _end_of_content(self) -> Exception:
        return damaged("it is cut short") if self._is_whole else MoreNeededError()

    def _unpack(self, kind: str, at: int) -> int:
        return int(struct.unpack_from(f"<{kind}", self._content, at)[0])
