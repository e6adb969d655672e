"""Decodes the pixel data of one image to the values that are stored in it, with the decoders of pydicom.

Before a decoder is called, the size that the object states and the size that its compressed image states are compared
and bounded here: decoders take memory for whatever a compressed image states.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carina.sources.dicom.attributes import (
    Attributes,
    DicomObject,
    ObjectError,
    Tag,
    damaged,
    import_pydicom,
    reword_errors,
)
from carina.sources.dicom.isolated_decoder import decode_isolated
from carina.studies.pixels import MAX_PIXELS

RLE: Final = "1.2.840.10008.1.2.5"
JPEG_EXTENDED: Final = "1.2.840.10008.1.2.4.51"
_ISOLATED: Final = "gdcm"
NATIVE: Final = frozenset(
    ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2")
)
_JPEG: Final = ("1.2.840.10008.1.2.4.5", "1.2.840.10008.1.2.4.7", "1.2.840.10008.1.2.4.8")
"""How the UIDs of JPEG and JPEG-LS begin."""
_JPEG_2000: Final = ("1.2.840.10008.1.2.4.9", "1.2.840.10008.1.2.4.20")
_FRAME_MARKERS: Final = frozenset({*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC})
"""Second bytes of the JPEG markers that state a size: SOF, and that of JPEG-LS."""
_DECODERS: Final = {
    RLE: "pylibjpeg",  # the first choice of pydicom is written in Python, and slow
    "1.2.840.10008.1.2.4.50": "pillow",
    JPEG_EXTENDED: "pillow",
    "1.2.840.10008.1.2.4.57": _ISOLATED,
    "1.2.840.10008.1.2.4.70": _ISOLATED,
    "1.2.840.10008.1.2.4.80": "pyjpegls",
    "1.2.840.10008.1.2.4.81": "pyjpegls",
    "1.2.840.10008.1.2.4.90": "pylibjpeg",
    "1.2.840.10008.1.2.4.91": "pylibjpeg",
    "1.2.840.10008.1.2.4.201": "pylibjpeg",
    "1.2.840.10008.1.2.4.202": "pylibjpeg",
    "1.2.840.10008.1.2.4.203": "pylibjpeg",
}
"""Which of pydicom's decoders is called. By itself pydicom prefers gdcm, which may end the process on damaged data; it
is called for JPEG lossless alone, which no other decodes, and in a process of its own."""
_EXTENDED_DECODER: Final = (
    "its pixels are compressed as JPEG extended with 12 bits, for which the extra dicom brings no decoder; one is in "
    "the package pylibjpeg-libjpeg, under the GPL"
)

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
    is_signed = attributes.word(Tag.PIXEL_REPRESENTATION) == 1
    return PixelForm(rows, columns, allocated, stored, high_bit, is_signed)


def decode_stored_values(found: DicomObject) -> tuple[Integers, PixelForm]:
    """The stored values of an image, of shape (rows, columns), and their form.

    Unused bits, in which an overlay may lie, are cleared, and the sign is extended where values are signed.

    Raises:
        ObjectError: The values cannot be decoded.
    """
    form = read_form(found.attributes)
    shift = form.high_bit + 1 - form.stored
    # pydicom takes the lowest bits for those in use. Old objects keep their values in the highest ones.
    values = decode_frames(found, form._replace(stored=form.high_bit + 1), 1)[0]
    if shift:
        values = values >> shift
    # A JPEG 2000 or JPEG-LS image may have more bits than the object states.
    low, high = form.limits
    if found.syntax.startswith((*_JPEG, *_JPEG_2000)):
        values = np.clip(values, low, high)
    return _in_native_order(values).astype(form.dtype, copy=False), form


def _in_native_order(values: Integers) -> Integers:
    """The same values in the byte order of this machine.

    In place: with one more array of this size, a process may give its memory back and ask for it again with each image,
    which takes longer than all else.
    """
    if values.dtype.isnative:
        return values
    own = values if values.flags.writeable else values.copy()
    return own.byteswap(inplace=True).view(values.dtype.newbyteorder("="))


def decode_frames(found: DicomObject, form: PixelForm, frames: int) -> Integers:
    """All frames of an object, of shape (frames, rows, columns).

    Args:
        found: The object.
        form: How its values are stored; the caller has bounded the size of all frames.
        frames: Number of frames that the object states.

    Raises:
        ObjectError: The values cannot be decoded.
    """
    data = found.pixel_data
    if data is None:
        raise ObjectError("pixels", "the object holds no pixel data")
    options = {
        "rows": form.rows,
        "columns": form.columns,
        "samples_per_pixel": 1,
        "photometric_interpretation": "MONOCHROME2",
        "bits_allocated": form.allocated,
        "bits_stored": form.stored,
        "pixel_representation": int(form.is_signed),
        "number_of_frames": frames,
        "pixel_keyword": "PixelData",
        "pixel_vr": "OW" if found.has_words else "OB",
        "allow_excess_frames": False,
    }
    with reword_errors("its pixel data cannot be decoded"):
        decoder = _find_decoder(found.syntax)
        plugin = _DECODERS.get(found.syntax, "")
        if found.syntax not in NATIVE:
            bits = _check_compressed(found.syntax, data, form, frames)
            if found.syntax == JPEG_EXTENDED and bits > 8:
                plugin = "pylibjpeg"
        if plugin == _ISOLATED:
            decoded = decode_isolated({**options, "syntax": found.syntax}, data)
            values: Integers = np.frombuffer(decoded, form.dtype)
        else:
            values = np.asarray(decoder.as_array(data, **options, decoding_plugin=plugin)[0])
    if values.size != frames * form.rows * form.columns:
        raise damaged("its pixel data do not have the size that it states")
    return values.reshape(frames, form.rows, form.columns)


def _find_decoder(syntax: str) -> Any:  # noqa: ANN401 - a class of pydicom
    try:
        decoder = import_pydicom("pydicom.pixels").get_decoder(syntax)
    except NotImplementedError:
        raise ObjectError("compression", "its pixels are in a transfer syntax that has no decoder") from None
    if not decoder.is_available:
        raise ObjectError("compression", "its pixels are in a transfer syntax whose decoder is not installed")
    return decoder


# ---- the size of compressed images -----------------------------------------------------------------------------------


def _check_compressed(syntax: str, data: bytes, form: PixelForm, frames: int) -> int:
    """Refuse compressed images that state another size than the object; returns the bits of a value in JPEG.

    Raises:
        ObjectError: One does, or it states none.
    """
    generate_frames = import_pydicom("pydicom.encaps").generate_frames
    number = bits = 0
    for frame in generate_frames(data, number_of_frames=frames):
        number += 1
        if number > frames:
            raise damaged("it holds more compressed images than it states")
        if syntax.startswith(_JPEG):
            bits, *size = _read_jpeg_size(frame)
            if syntax == JPEG_EXTENDED and bits > 8 and not _has_extended_decoder():
                raise ObjectError("compression", _EXTENDED_DECODER)
        elif syntax.startswith(_JPEG_2000):
            size = _read_jpeg_2000_size(frame)
        elif syntax == RLE:
            continue  # has no size of its own: decoders stop at that of the object
        else:
            raise ObjectError("compression", "its pixels are in a transfer syntax that Carina does not know")
        if size != [form.rows, form.columns, 1]:
            raise damaged("its compressed image has another size than the object states")
    if number != frames:
        raise damaged("it holds fewer compressed images than it states")
    return bits


def _has_extended_decoder() -> bool:
    return import_pydicom("pydicom.pixels.decoders.pylibjpeg").is_available(JPEG_EXTENDED) is True


def _read_jpeg_size(frame: bytes) -> Sequence[int]:
    """Bits, rows, columns and components of a JPEG or JPEG-LS image."""
    at = frame.find(b"\xff\xd8") + 2
    while 2 <= at <= len(frame) - 10:
        if frame[at] != 0xFF:
            break
        marker = frame[at + 1]
        if marker in _FRAME_MARKERS:
            return struct.unpack_from(">BHHB", frame, at + 4)
        if marker == 0xFF:  # a filling byte
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without content
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", frame, at + 2)[0]
    raise damaged("its compressed image states no size")


def _read_jpeg_2000_size(frame: bytes) -> list[int]:
    """Rows, columns and components of a JPEG 2000 image, which may be one tile or many."""
    at = _find_codestream(frame)
    if frame[at : at + 4] != b"\xff\x4f\xff\x51" or at + 42 > len(frame):
        raise damaged("its compressed image states no size")
    right, bottom, left, top = struct.unpack_from(">4I", frame, at + 8)
    (components,) = struct.unpack_from(">H", frame, at + 40)
    return [bottom - top, right - left, components]


def _find_codestream(frame: bytes) -> int:
    """Where a JPEG 2000 image begins: at once, as the standard asks for, or in a box of a JP2 file."""
    at = 0
    while frame[:12].startswith(b"\0\0\0\x0cjP") and at + 8 <= len(frame):
        (length,) = struct.unpack_from(">I", frame, at)
        if frame[at + 4 : at + 8] == b"jp2c":
            return at + 8
        if length < 8:
            break
        at += length
    return at
