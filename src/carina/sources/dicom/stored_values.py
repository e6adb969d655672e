"""Decodes the pixel data of one image to the values that are stored in it.

Native data, RLE, JPEG (8 bits) and JPEG 2000 are decoded with what Carina installs anyway. The other compressions need
pydicom with its decoders (`pip install pydicom 'pylibjpeg[all]'`); without it, such objects are skipped and counted.
"""

import importlib
import importlib.util
import io
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.JpegImagePlugin import JpegImageFile

from carina.sources.dicom.attributes import (
    BIG_ENDIAN,
    DEFLATED,
    EXPLICIT,
    IMPLICIT,
    Attributes,
    DicomObject,
    ObjectError,
    Tag,
    damaged,
)
from carina.studies.pixels import MAX_PIXELS

NATIVE: Final = frozenset((IMPLICIT, EXPLICIT, DEFLATED, BIG_ENDIAN))
RLE: Final = "1.2.840.10008.1.2.5"
JPEG_BASELINE: Final = "1.2.840.10008.1.2.4.50"
JPEG_2000_LOSSLESS: Final = "1.2.840.10008.1.2.4.90"
JPEG_2000: Final = "1.2.840.10008.1.2.4.91"
NEED_PYDICOM: Final = {
    "1.2.840.10008.1.2.4.51": "JPEG extended",
    "1.2.840.10008.1.2.4.57": "JPEG lossless",
    "1.2.840.10008.1.2.4.70": "JPEG lossless, first-order prediction",
    "1.2.840.10008.1.2.4.80": "JPEG-LS lossless",
    "1.2.840.10008.1.2.4.81": "JPEG-LS near-lossless",
}
"""Transfer syntaxes that nothing in Carina's own installation decodes."""
_ITEM: Final = 0xFFFEE000
_SEQUENCE_END: Final = 0xFFFEE0DD
_DECODER_ERRORS: Final = (
    OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, AttributeError, OverflowError, MemoryError,
    RuntimeError, NotImplementedError, struct.error,
)  # fmt: skip
"""Errors of the decoders on damaged data."""

Integers = NDArray[np.integer[Any]]


class PixelForm(NamedTuple):
    """How the values of an image are stored."""

    rows: int
    columns: int
    allocated: int
    stored: int
    high_bit: int
    is_signed: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of an allocated value, in the byte order of this machine."""
        return np.dtype(f"{'i' if self.is_signed else 'u'}{self.allocated // 8}")

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest value of the stored bits."""
        half = 1 << (self.stored - 1)
        return (-half, half - 1) if self.is_signed else (0, 2 * half - 1)


def read_form(attributes: Attributes) -> PixelForm:
    """How the values of a grey image with one frame are stored.

    Raises:
        ObjectError: It is not such an image, or too large.
    """
    if attributes.word(Tag.SAMPLES_PER_PIXEL) not in (1, None):
        raise ObjectError("colour", "the image is in colour")
    if attributes.raw(Tag.FRAMES) and attributes.whole(Tag.FRAMES) != 1:
        raise ObjectError("frames", "the object holds several frames, expected one image")
    rows, columns = attributes.word(Tag.ROWS), attributes.word(Tag.COLUMNS)
    allocated, stored = attributes.word(Tag.BITS_ALLOCATED), attributes.word(Tag.BITS_STORED)
    if not rows or not columns:
        raise damaged("it states no number of rows and columns")
    if rows * columns > MAX_PIXELS:
        raise ObjectError("too large", f"the image has more than {MAX_PIXELS:,} pixels")
    if allocated not in (8, 16):
        raise ObjectError("pixels", "its values do not take 8 or 16 bits")
    stored = allocated if stored is None else stored
    high_bit = attributes.word(Tag.HIGH_BIT)
    high_bit = stored - 1 if high_bit is None else high_bit
    if not 1 <= stored <= allocated or not stored - 1 <= high_bit < allocated:
        raise damaged("its numbers of bits contradict each other")
    return PixelForm(
        rows, columns, allocated, stored, high_bit, attributes.word(Tag.PIXEL_REPRESENTATION) == 1
    )


def decode_stored_values(found: DicomObject) -> tuple[Integers, PixelForm]:
    """The stored values of an image, of shape (rows, columns), and their form.

    Unused bits are cleared, and the sign is extended where values are signed.

    Raises:
        ObjectError: The values cannot be decoded.
    """
    form = read_form(found.attributes)
    if found.pixels is None:
        raise ObjectError("pixels", "the object holds no pixel data")
    if found.syntax in NATIVE:
        values = _read_native(found, form)
    elif found.syntax == RLE:
        values = decode_rle(join_fragments(found), form)
    elif found.syntax == JPEG_BASELINE:
        values = _decode_jpeg(join_fragments(found), form)
    elif found.syntax in (JPEG_2000, JPEG_2000_LOSSLESS):
        values = _decode_jpeg_2000(join_fragments(found), form)
        return values.reshape(form.rows, form.columns), form
    elif found.syntax in NEED_PYDICOM:
        values = _decode_with_pydicom(found, form)
    else:
        raise ObjectError("compression", "its pixels are in a transfer syntax that Carina does not know")
    return _correct_bits(values, form).reshape(form.rows, form.columns), form


def _correct_bits(values: Integers, form: PixelForm) -> Integers:
    """Move the stored bits to the lowest ones, clear the others, and extend the sign."""
    shift = form.high_bit + 1 - form.stored
    if form.stored == form.allocated:
        return values
    if form.is_signed:
        left = form.allocated - 1 - form.high_bit
        return ((values << left) >> (left + shift)).astype(values.dtype)
    mask = values.dtype.type(2**form.stored - 1)
    return (values >> shift if shift else values) & mask


def _read_native(found: DicomObject, form: PixelForm) -> Integers:
    assert found.pixels is not None  # noqa: S101 - the caller has checked it
    start, length, is_words = found.pixels
    number = form.rows * form.columns
    is_swapped = form.allocated == 8 and is_words and found.attributes.order == ">"
    if length is None:
        raise damaged("its pixel data have no length")
    size = number * form.allocated // 8 + (number % 2 if is_swapped else 0)
    if min(length, len(found.content) - start) < size:
        raise damaged("its pixel data are cut short")
    if is_swapped:
        pairs = np.frombuffer(found.content, form.dtype, size, start).reshape(-1, 2)
        return pairs[:, ::-1].ravel()[:number]
    stored = np.dtype(f"{found.attributes.order}{form.dtype.str[1:]}")
    values = np.frombuffer(found.content, stored, number, start)
    return values.astype(form.dtype, copy=False)


# ---- compressed data -------------------------------------------------------------------------------------------------


def join_fragments(found: DicomObject) -> bytes:
    """The compressed data of an object with one frame: all fragments after the table of offsets."""
    assert found.pixels is not None  # noqa: S101 - the caller has checked it
    if found.pixels.length is not None:
        raise damaged("its compressed pixel data are not in fragments")
    fragments = list(_iterate_fragments(found.content, found.pixels.start))
    if len(fragments) < 2:
        raise damaged("it holds no compressed image")
    return b"".join(fragments[1:])


def _iterate_fragments(content: bytes, at: int) -> Iterator[bytes]:
    while at + 8 <= len(content):
        group, element, length = struct.unpack_from("<HHI", content, at)
        at += 8
        if group << 16 | element == _SEQUENCE_END:
            return
        if group << 16 | element != _ITEM or at + length > len(content):
            break
        yield content[at : at + length]
        at += length
    raise damaged("its compressed pixel data are cut short")


def decode_rle(packed: bytes, form: PixelForm) -> Integers:
    """Decode the run lengths of PS3.5 Annex G: one segment a byte of a value, the highest byte first."""
    samples, number = form.allocated // 8, form.rows * form.columns
    if len(packed) < 64:
        raise damaged("its RLE header is cut short")
    segments, *offsets = struct.unpack_from("<16I", packed)
    if segments != samples:
        raise damaged("its RLE data do not have a segment for each byte of a value")
    limits = [*offsets[:segments], len(packed)]
    if sorted(limits) != limits or limits[0] < 64:
        raise damaged("its RLE segments do not follow each other")
    planes = [_unpack_bits(packed, start, end, number) for start, end in pairwise(limits)]
    values = np.zeros(number, f"u{samples}")
    for plane in planes:
        values = (values << np.uint8(8) if samples > 1 else values) | plane
    return values.view(form.dtype)


def _unpack_bits(packed: bytes, at: int, end: int, number: int) -> NDArray[np.uint8]:
    """One segment of `number` bytes."""
    parts: list[bytes] = []
    total = 0
    while at < end and total < number:
        code = packed[at]
        if code < 128:
            part = packed[at + 1 : min(at + code + 2, end)]
            at += code + 2
        elif code > 128:
            part = packed[at + 1 : at + 2] * (257 - code)
            at += 2
        else:
            at += 1
            continue
        parts.append(part)
        total += len(part)
    if total < number:
        raise damaged("its RLE data are cut short")
    return np.frombuffer(b"".join(parts), np.uint8, number)


def _decode_jpeg(packed: bytes, form: PixelForm) -> Integers:
    if form.allocated != 8:
        raise damaged("it states more than 8 bits for JPEG baseline")
    return _decode_with_pillow(JpegImageFile, packed, form, "L")[0]


def _decode_jpeg_2000(packed: bytes, form: PixelForm) -> Integers:
    """Pillow moves values of fewer bits up to 8 or 16 bits, and signed ones above zero: both are undone."""
    at = packed.find(b"\xff\x4f\xff\x51")
    if at < 0 or at + 43 > len(packed):
        raise damaged("its JPEG 2000 data have no header")
    depth, components = packed[at + 42], struct.unpack_from(">H", packed, at + 40)[0]
    precision, is_signed = (depth & 0x7F) + 1, bool(depth & 0x80)
    if components != 1 or precision > 16:
        raise ObjectError("pixels", "its JPEG 2000 data are not grey values of up to 16 bits")
    values, bits = _decode_with_pillow(Jpeg2KImageFile, packed, form, "L" if precision <= 8 else "I;16")
    moved = values.astype(np.int32) >> (bits - precision)
    if is_signed:
        moved -= 1 << (precision - 1)
    elif form.is_signed:  # the codestream does not say what the object says
        moved = np.where(moved >= 1 << (precision - 1), moved - (1 << precision), moved)
    # The codestream may have more bits than the object states.
    clipped: Integers = np.clip(moved, *form.limits).astype(form.dtype)
    return clipped


def _decode_with_pillow(reader: Any, packed: bytes, form: PixelForm, mode: str) -> tuple[Integers, int]:  # noqa: ANN401 - a class of Pillow's
    """The decoded values, and the bits of their type."""
    try:
        with reader(io.BytesIO(packed)) as image:
            if image.size != (form.columns, form.rows):
                raise damaged("its compressed image has another size than the object states")
            if image.mode != mode:
                raise ObjectError(
                    "pixels", "its compressed image does not hold the grey values that it states"
                )
            image.load()
            values = np.array(image)
    except _DECODER_ERRORS:
        raise damaged("its compressed image cannot be decoded") from None
    return values, 8 * values.dtype.itemsize


def has_pydicom() -> bool:
    """Whether pydicom is installed, whose decoders are used where Carina has none."""
    return importlib.util.find_spec("pydicom") is not None


def _decode_with_pydicom(found: DicomObject, form: PixelForm) -> Integers:
    """One image by the decoders of pydicom; only its pixel data and their form are given to it."""
    name = NEED_PYDICOM[found.syntax]
    missing = ObjectError(
        "compression",
        f"its pixels are compressed as {name}, which needs pydicom and its decoders: "
        "pip install pydicom 'pylibjpeg[all]'",
    )
    if not has_pydicom():
        raise missing
    decoders = importlib.import_module("pydicom.pixels")
    frames = importlib.import_module("pydicom.encaps")
    decoder = decoders.get_decoder(found.syntax)
    if not decoder.is_available:
        raise missing
    try:
        values, _ = decoder.as_array(
            frames.encapsulate([join_fragments(found)]),
            index=0,
            rows=form.rows,
            columns=form.columns,
            samples_per_pixel=1,
            photometric_interpretation=found.attributes.text(Tag.PHOTOMETRIC),
            bits_allocated=form.allocated,
            bits_stored=form.stored,
            pixel_representation=int(form.is_signed),
            number_of_frames=1,
            pixel_keyword="PixelData",
        )
    except _DECODER_ERRORS:
        raise damaged("its compressed image cannot be decoded") from None
    decoded: Integers = np.asarray(values)
    if decoded.shape != (form.rows, form.columns):
        raise damaged("its compressed image has another size than the object states")
    return decoded.astype(form.dtype)
