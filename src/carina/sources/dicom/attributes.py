"""Reads the attributes of a DICOM object that Carina uses, and no others, with pydicom.

`Tag` is the allow-list. pydicom steps over the value of any other attribute of an object; of the items of a sequence,
`Attributes` gives out what is on the list. So a name in a comment or in a private attribute cannot reach anything that
Carina writes. Values are taken as they are stored, since pydicom's conversion refuses, or quotes in a warning, values
that are not as the standard asks for.

What pydicom does not have are bounds: on what a deflated object unpacks to, on the number of attributes, and on the
size of a sequence. They are here. Only files in the format of PS3.10 are read, with their preamble.
"""

import importlib
import importlib.util
import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator, MutableSequence, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Final

from carina.sources._record import SourceError
from carina.store.errors import install


class Tag(IntEnum):
    """Every attribute that is read. Names, ids and addresses are read to look for them in the text of a report."""

    DIRECTORY_RECORDS = 0x00041220
    REFERENCED_FILE = 0x00041500
    SOP_CLASS = 0x00080016
    SOP_INSTANCE = 0x00080018
    STUDY_DATE = 0x00080020
    ACQUISITION_DATE = 0x00080022
    CONTENT_DATE = 0x00080023
    STUDY_TIME = 0x00080030
    ACCESSION_NUMBER = 0x00080050
    MODALITY = 0x00080060
    PRESENTATION_INTENT = 0x00080068
    INSTITUTION = 0x00080080
    INSTITUTION_ADDRESS = 0x00080081
    REFERRING_PHYSICIAN = 0x00080090
    CODE_VALUE = 0x00080100
    CODING_SCHEME = 0x00080102
    CODE_MEANING = 0x00080104
    STATION = 0x00081010
    PERFORMING_PHYSICIAN = 0x00081050
    READING_PHYSICIAN = 0x00081060
    OPERATORS = 0x00081070
    REFERENCED_SERIES = 0x00081115
    REFERENCED_INSTANCES = 0x0008114A
    REFERENCED_SOP_INSTANCE = 0x00081155
    REFERENCED_SOPS = 0x00081199
    SOURCE_IMAGES = 0x00082112
    ANATOMIC_REGION = 0x00082218
    DERIVATION_IMAGES = 0x00089124
    PATIENT_NAME = 0x00100010
    PATIENT_ID = 0x00100020
    PATIENT_ID_ISSUER = 0x00100021
    BIRTH_DATE = 0x00100030
    SEX = 0x00100040
    OTHER_IDS = 0x00101000
    OTHER_NAMES = 0x00101001
    BIRTH_NAME = 0x00101005
    AGE = 0x00101010
    PATIENT_ADDRESS = 0x00101040
    MOTHERS_BIRTH_NAME = 0x00101060
    PATIENT_PHONE = 0x00102154
    BODY_PART = 0x00180015
    IMAGER_PIXEL_SPACING = 0x00181164
    VIEW_POSITION = 0x00185101
    STUDY_INSTANCE = 0x0020000D
    STUDY_ID = 0x00200010
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
    REQUESTING_PHYSICIAN = 0x00321032
    RELATIONSHIP = 0x0040A010
    VALUE_TYPE = 0x0040A040
    CONCEPT_NAME = 0x0040A043
    VERIFYING_OBSERVERS = 0x0040A073
    VERIFYING_NAME = 0x0040A075
    PERSON_NAME = 0x0040A123
    UID_VALUE = 0x0040A124
    TEXT_VALUE = 0x0040A160
    CONCEPT_CODE = 0x0040A168
    CONTENT = 0x0040A730
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
    TRACKING_UID = 0x00620021
    GRAPHIC_DATA = 0x00700022
    GRAPHIC_TYPE = 0x00700023
    PRESENTATION_LUT_SHAPE = 0x20500020
    SHARED_GROUPS = 0x52009229
    FRAME_GROUPS = 0x52009230
    PIXEL_DATA = 0x7FE00010


_TOP_LEVEL: Final = [int(tag) for tag in Tag]
_PREAMBLE: Final = 132
_UNDEFINED: Final = 0xFFFFFFFF
"""A length that is not stated."""
_MOST_READS: Final = 1_000_000
"""Parts that an object may be read in: two for an attribute. pydicom keeps about 300 bytes of memory for each."""
_LONGEST_TEXT: Final = 1_000_000
"""Bytes of a text that is decoded: a hundred times the longest reports."""
_TEXT_FORMS: Final = frozenset(("AE", "CS", "IS", "LO", "LT", "PN", "SH", "ST", "UC", "UI", "UT"))
_LONGEST_SEQUENCE: Final = 8_000_000
"""Bytes of a sequence on the allow-list; that of a segmentation has about 300 bytes a frame."""

DEFLATED: Final = "1.2.840.10008.1.2.1.99"
EXPLICIT: Final = "1.2.840.10008.1.2.1"


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


@cache
def import_pydicom(module: str = "pydicom") -> Any:  # noqa: ANN401 - a module of an optional package
    """Import pydicom, or a module of it, where it is first needed.

    Raises:
        SourceError: The extra `dicom` is not installed.
    """
    check_extra()
    return importlib.import_module(module)


def check_extra() -> None:
    """Check that the extra `dicom` is installed.

    Raises:
        SourceError: It is not.
    """
    missing = [name for name in ("pydicom", "highdicom") if importlib.util.find_spec(name) is None]
    if missing:
        raise SourceError(f"DICOM files need {' and '.join(missing)}: {install('dicom')}")


@contextmanager
def reword_errors(what: str) -> Iterator[None]:
    """Call pydicom and its decoders. Their warnings and errors may quote the object: they are dropped or reworded.

    Raises:
        ObjectError: Something went wrong, whatever it was: on damaged objects, pydicom raises nearly every error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (ObjectError, MoreNeededError, SourceError):
            raise
        except Exception:
            raise damaged(what) from None


@dataclass(frozen=True)
class Attributes:
    """Attributes of one level, by tag. What is missing or cannot be read is empty or None."""

    dataset: Any
    """A data set of pydicom, or None for a level without attributes."""

    def _element(self, tag: Tag) -> Any:  # noqa: ANN401 - an element of pydicom
        if self.dataset is None or tag not in self.dataset:
            return None
        try:
            return self.dataset.get_item(tag)
        except Exception:  # pydicom's, of an element whose length does not fit
            raise damaged("an attribute cannot be read") from None

    def stored(self, tag: Tag) -> bytes:
        """The bytes of a value, as they are stored; none for a sequence.

        Raises:
            ObjectError: The file ends within the value.
        """
        element = self._element(tag)
        value = getattr(element, "value", None)
        if not isinstance(value, bytes):
            return b""
        length = getattr(element, "length", 0)
        if len(value) < length != _UNDEFINED:
            raise damaged("it is cut short")
        return value

    def raw(self, tag: Tag) -> bytes:
        """The bytes of a value, without padding."""
        return self.stored(tag).strip(b" \0")

    def texts(self, tag: Tag) -> list[str]:
        """All values of a text."""
        parts = self.raw(tag).decode("latin-1").split("\\")
        return [part.strip(" \0") for part in parts]

    def text(self, tag: Tag) -> str:
        """The first value of a text."""
        return self.texts(tag)[0]

    def decoded(self, tag: Tag) -> str:
        """A text in the character set of the object, with all of its values; empty where it cannot be read."""
        if not 0 < len(self.stored(tag)) <= _LONGEST_TEXT:  # of a sequence, nothing is stored at this level
            return ""
        with suppress(ObjectError), reword_errors("a text cannot be read"):
            pydicom = import_pydicom("pydicom.dataelem")
            element = pydicom.convert_raw_data_element(
                self._element(tag), encoding=self.dataset.original_character_set
            )
            if element.VR in _TEXT_FORMS:
                several = isinstance(element.value, MutableSequence)
                return " ".join(map(str, element.value)) if several else str(element.value)
        return ""

    def numbers(self, tag: Tag) -> list[float] | None:
        """All values of a decimal string; None where one is not a finite number."""
        try:
            found = [float(text) for text in self.texts(tag)]
        except ValueError:
            return None
        return found if all(map(math.isfinite, found)) else None

    def number(self, tag: Tag) -> float | None:
        """The first value of a decimal string, whatever the others are; None where it is not a finite number."""
        try:
            found = float(self.text(tag))
        except ValueError:
            return None
        return found if math.isfinite(found) else None

    def whole(self, tag: Tag) -> int | None:
        """A whole number of an integer string."""
        try:
            return int(self.text(tag))
        except ValueError:
            return None

    @property
    def order(self) -> str:
        """Byte order as `struct` writes it."""
        return ">" if self.dataset is not None and self.dataset.original_encoding[1] is False else "<"

    def words(self, tag: Tag) -> list[int]:
        """Unsigned binary numbers of 16 bits."""
        value = self.stored(tag)
        return [] if len(value) % 2 else list(struct.unpack(f"{self.order}{len(value) // 2}H", value))

    def word(self, tag: Tag) -> int | None:
        """The first unsigned binary number of 16 bits."""
        return next(iter(self.words(tag)), None)

    def items(self, tag: Tag) -> "Sequence[Attributes]":
        """The items of a sequence."""
        element = self._element(tag)
        if element is None or (element.VR or "SQ") not in ("SQ", "UN"):
            return ()
        if isinstance(element.value, bytes) and len(element.value) > _LONGEST_SEQUENCE:
            raise damaged("a sequence is too long")
        with reword_errors("a sequence cannot be read"):
            value = self.dataset[tag].value
            is_sequence = isinstance(value, import_pydicom("pydicom.sequence").Sequence)
            return [Attributes(item) for item in value] if is_sequence else ()

    def first(self, *tags: Tag) -> "Attributes":
        """The first item of a sequence, and of a sequence in it; without attributes where there is none."""
        found = self
        for tag in tags:
            found = next(iter(found.items(tag)), Attributes(None))
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there are no attributes at all."""
        return not self.dataset


@dataclass(frozen=True)
class DicomObject:
    """The attributes of an object, and its pixel data if they were read."""

    syntax: str
    """UID of the transfer syntax."""
    media_class: str
    """UID of the SOP class, as the file states it before the object begins."""
    attributes: Attributes

    @property
    def pixel_data(self) -> bytes | None:
        """The pixel data as they are stored; None where there are none, or none that consist of whole numbers."""
        return self.attributes.stored(Tag.PIXEL_DATA) or None

    @property
    def has_words(self) -> bool:
        """Whether the pixel data are stated to be words of 16 bits (OW), whose bytes the byte order concerns."""
        return getattr(self.attributes.dataset.get_item(Tag.PIXEL_DATA), "VR", None) == "OW"


class _BoundedFile(io.BytesIO):
    """A file in memory that may be read in a limited number of parts, so that no object takes all memory."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > _MOST_READS:
            raise damaged("it has too many attributes")
        return super().read(size)


def parse_object(content: bytes, *, is_whole: bool, with_pixels: bool, max_bytes: int) -> DicomObject:
    """Read the attributes of an object.

    Args:
        content: The file, or its beginning.
        is_whole: Whether `content` is the whole file.
        with_pixels: Whether the pixel data are wanted.
        max_bytes: Largest number of bytes that a deflated object may take.

    Raises:
        ObjectError: It is not a DICOM object, or damaged.
        MoreNeededError: `content` ends before the pixel data.
    """
    if content[_PREAMBLE - 4 : _PREAMBLE] != b"DICM":
        raise ObjectError("not DICOM", "the file is not a DICOM object in the format of PS3.10")
    try:
        return _parse(content, is_whole=is_whole, with_pixels=with_pixels, max_bytes=max_bytes)
    except ObjectError:
        if is_whole:
            raise
        raise MoreNeededError from None


def _parse(content: bytes, *, is_whole: bool, with_pixels: bool, max_bytes: int) -> DicomObject:
    pydicom = import_pydicom()
    with reword_errors("it cannot be read"):
        file = _BoundedFile(content)
        syntax, media_class = _read_meta(file)
        if not syntax:
            raise damaged("it states no transfer syntax")
        if syntax == DEFLATED:
            if not is_whole:
                raise MoreNeededError
            file = _BoundedFile(_inflate(content, file.tell(), max_bytes))
        file.seek(0)
        found = pydicom.dcmread(file, stop_before_pixels=not with_pixels, specific_tags=_TOP_LEVEL)
    if not is_whole and file.tell() >= len(content):
        raise MoreNeededError
    if not found:
        raise damaged("it has no attributes, or is cut short")
    return DicomObject(syntax, media_class, Attributes(found))


def _read_meta(file: io.BytesIO) -> tuple[str, str]:
    """Transfer syntax and SOP class of the file; leaves `file` where the object begins."""
    read_dataset = import_pydicom("pydicom.filereader").read_dataset
    file.seek(_PREAMBLE)
    meta = read_dataset(
        file,
        is_implicit_VR=False,
        is_little_endian=True,
        stop_when=lambda tag, _form, _length: tag >> 16 != 2,
    )
    texts = [meta.get_item(tag).value if tag in meta else b"" for tag in (0x00020010, 0x00020002)]
    syntax, media_class = ((text or b"").strip(b" \0").decode("latin-1") for text in texts)
    return syntax, media_class


def _inflate(content: bytes, start: int, max_bytes: int) -> bytes:
    """A deflated object as it would be without: pydicom would unpack it whatever its size."""
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        body = machine.decompress(content[start:], max_bytes)
    except zlib.error:
        raise damaged("its deflated part cannot be unpacked") from None
    if machine.unconsumed_tail:
        raise ObjectError("too large", f"the object unpacks to more than {max_bytes:,} bytes")
    plain = EXPLICIT.ljust(len(DEFLATED), "\0").encode()
    return content[:start].replace(DEFLATED.encode(), plain) + body
