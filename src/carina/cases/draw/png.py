"""Images to PNG bytes: lossless, the same bytes every time, and fast where images share most of their rows.

The views of a case differ in a mask or a few points, and compressing takes ten times as long as drawing. So an image is
written in bands of rows, each filtered and deflated by itself, and an encoder that has deflated a band before does not
deflate it again. Bands cost 1% of the bytes. What an encoder remembers never changes what it writes. On the seven views
of a case this takes a third of the time of OpenCV at its fastest setting, with smaller files (`benchmarks/render.py`).
Only files that are written here are checked here (`is_complete`); other files are read by `carina.studies`.
"""

import struct
import threading
import zlib
from collections import OrderedDict
from typing import IO, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw.image import Gray, Rgb, Size

BAND: Final = 16
"""Rows in a band: a larger band is deflated again for one changed pixel, a smaller band compresses worse."""
_REMEMBERED_BYTES: Final = 64_000_000
"""Size of the bands to remember: all views of a case at 1024 x 1024 take a third of it."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_END: Final = b"\0\0\0\0IEND\xaeB`\x82"
_ZLIB_HEADER: Final = b"\x78\x01"
_LAST_BLOCK: Final = b"\x03\x00"
"""An empty final block of deflate."""
_SUB, _AVERAGE = 1, 3
_ADLER_BASE: Final = 65_521
_GREY, _COLOUR = 0, 2


class _Band(NamedTuple):
    """Rows of an image, deflated."""

    rows: bytes
    deflated: bytes
    adler: int
    length: int


class PngEncoder:
    """Encodes images one after another and remembers their bands. Threads may share it."""

    def __init__(self) -> None:
        self._bands: OrderedDict[tuple[int, ...], _Band] = OrderedDict()
        self._remembered = 0
        self._lock = threading.Lock()

    def encode(self, image: Gray | Rgb) -> bytes:
        """The bytes of `encode_png`, faster where bands were encoded before."""
        pixels = _grey_if_grey(image)
        height, width = pixels.shape[:2]
        deflated, adler = [_ZLIB_HEADER], 1
        for top in range(0, height, BAND):
            band = self._band(pixels[top : top + BAND])
            deflated.append(band.deflated)
            adler = _joined_adler(adler, band.adler, band.length)
        deflated += [_LAST_BLOCK, struct.pack(">I", adler)]
        header = _header(Size(width=width, height=height), _GREY if pixels.ndim == 2 else _COLOUR)
        return b"".join([_SIGNATURE, header, *_chunk(b"IDAT", b"".join(deflated)), _END])

    def _band(self, rows_of_image: Gray | Rgb) -> _Band:
        rows = rows_of_image.tobytes()
        key = (*rows_of_image.shape, zlib.crc32(rows))
        with self._lock:
            known = self._bands.get(key)
            if known is not None and known.rows == rows:
                self._bands.move_to_end(key)
                return known
        new = _deflate_band(rows_of_image, rows)
        with self._lock:
            replaced = self._bands.pop(key, None)
            self._remembered += len(rows) - (len(replaced.rows) if replaced else 0)
            self._bands[key] = new
            while self._remembered > _REMEMBERED_BYTES:
                self._remembered -= len(self._bands.popitem(last=False)[1].rows)
        return new


class PngRows:
    """Writes an RGB image from top to bottom, so that a tall image never has to be in memory as a whole."""

    def __init__(self, file: IO[bytes], size: Size) -> None:
        self._file = file
        self._size = size
        self._rows = 0
        self._deflate = zlib.compressobj(4)
        file.write(_SIGNATURE + _header(size, _COLOUR))

    def write(self, rows: Rgb) -> None:
        """Add rows below those that were written before; they must have the width of the image."""
        height, width = rows.shape[:2]
        if width != self._size.width or self._rows + height > self._size.height:
            raise ValueError(f"rows of {width} x {height} do not fit into an image of {self._size}")
        self._rows += height
        for top in range(0, height, BAND):
            self._write_chunk(self._deflate.compress(_filter_rows(rows[top : top + BAND]).data))

    def close(self) -> None:
        """Complete the file, which stays open."""
        if self._rows != self._size.height:
            raise ValueError(f"{self._rows} rows were written to an image of {self._size}")
        self._write_chunk(self._deflate.flush())
        self._file.write(_END)

    def _write_chunk(self, content: bytes) -> None:
        if content:
            self._file.write(b"".join(_chunk(b"IDAT", content)))


def encode_png(image: Gray | Rgb) -> bytes:
    """A PNG of 8 bits a channel: grey where the image is grey, else RGB; decoding gives the same pixels."""
    return PngEncoder().encode(image)


def is_complete(content: bytes) -> bool:
    """Whether these are all bytes of a PNG, with the checksums that it states."""
    if not content.startswith(_SIGNATURE) or not content.endswith(_END):
        return False
    at = len(_SIGNATURE)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        end = at + 12 + length
        if end > len(content) or zlib.crc32(memoryview(content)[at + 4 : end - 4]) != int.from_bytes(
            content[end - 4 : end]
        ):
            return False
        at = end
    return at == len(content)


def _grey_if_grey(image: Gray | Rgb) -> Gray | Rgb:
    if image.ndim == 2:
        return image
    # Most images in colour have some among these few pixels, which saves looking at all of them.
    few = image[::BAND, ::BAND]
    if (few[..., 0] != few[..., 1]).any() or (few[..., 0] != few[..., 2]).any():
        return image
    red, green, blue = cv2.split(np.ascontiguousarray(image))
    return np.asarray(red, np.uint8) if np.array_equal(red, green) and np.array_equal(red, blue) else image


def _deflate_band(band: Gray | Rgb, rows: bytes) -> _Band:
    filtered = _filter_rows(band)
    # Differences within a grey radiograph are noise, in which a search for repetitions longer than a run takes time
    # and gains nothing; in colour the channels repeat each other.
    strategy = zlib.Z_RLE if band.ndim == 2 else zlib.Z_DEFAULT_STRATEGY
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15, 8, strategy)
    # A full flush ends the band at a whole byte, without references to the bands before.
    deflated = deflate.compress(filtered.data) + deflate.flush(zlib.Z_FULL_FLUSH)
    return _Band(rows, deflated, zlib.adler32(filtered.data), filtered.size)


def _filter_rows(band: Gray | Rgb) -> NDArray[np.uint8]:
    """Rows as PNG has them before compression: each pixel less the mean of its left and upper neighbour.

    The first row is less its left neighbour alone, so that a band does not depend on the one above. Bytes wrap round.
    """
    step = 1 if band.ndim == 2 else 3
    rows = band.reshape(len(band), -1)
    filtered = np.empty((len(rows), rows.shape[1] + 1), np.uint8)
    filtered[0, 0] = _SUB
    filtered[0, 1 : 1 + step] = rows[0, :step]
    np.subtract(rows[0, step:], rows[0, :-step], out=filtered[0, 1 + step :])
    above, left = rows[:-1], rows[1:, :-step]
    filtered[1:, 0] = _AVERAGE
    np.subtract(rows[1:, :step], above[:, :step] >> 1, out=filtered[1:, 1 : 1 + step])
    # (a + b) // 2 without leaving 8 bits.
    mean = (left & above[:, step:]) + ((left ^ above[:, step:]) >> 1)
    np.subtract(rows[1:, step:], mean, out=filtered[1:, 1 + step :])
    return filtered


def _joined_adler(first: int, second: int, length: int) -> int:
    """The Adler-32 of two concatenated texts, from theirs and the length of the second."""
    low = (first & 0xFFFF) + (second & 0xFFFF) - 1
    high = (first >> 16) + (second >> 16) + length * ((first & 0xFFFF) - 1)
    return (high % _ADLER_BASE) << 16 | low % _ADLER_BASE


def _header(size: Size, colour_type: int) -> bytes:
    return b"".join(
        _chunk(b"IHDR", struct.pack(">IIBBBBB", size.width, size.height, 8, colour_type, 0, 0, 0))
    )


def _chunk(kind: bytes, content: bytes) -> tuple[bytes, ...]:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)), kind, content, struct.pack(">I", checksum)
