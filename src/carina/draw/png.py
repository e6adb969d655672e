"""Pictures to PNG bytes: lossless, the same bytes every time, and quickly where pictures share most of their rows.

The views of a case differ in a mask or a few points, and compressing takes ten times as long as drawing. So a
picture is written in bands of rows, each filtered and deflated by itself, and an encoder that has met a band before
does not deflate it again. Bands cost 1% of the bytes. What was met before never changes what is written.
Only what is written here is read here (`is_whole`); files of others are read by `carina.studies`.
"""

import struct
import threading
import zlib
from collections import OrderedDict
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.draw.image import Gray, Rgb

BAND: Final = 16
"""Rows a band: more would be deflated again for one changed pixel, fewer compress worse."""
_KEPT_BYTES: Final = 64_000_000
"""Of bands to remember: all views of a case at 1024 x 1024 take a third of it."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_END: Final = b"\0\0\0\0IEND\xaeB`\x82"
_ZLIB_HEADER: Final = b"\x78\x01"
_LAST_BLOCK: Final = b"\x03\x00"
"""An empty final block of deflate."""
_SUB, _AVERAGE = 1, 3
_ADLER_BASE: Final = 65_521


class _Piece(NamedTuple):
    """A band, and what became of it."""

    rows: bytes
    deflated: bytes
    adler: int
    length: int


class PngEncoder:
    """Encodes pictures one after another, remembering bands. Threads may share it."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[tuple[int, ...], _Piece] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def encode(self, picture: Gray | Rgb) -> bytes:
        """The bytes of `encode_png`, sooner where bands were met before."""
        pixels = _grey_if_grey(picture)
        height, width = pixels.shape[:2]
        colour_type = 0 if pixels.ndim == 2 else 2
        deflated, adler = [_ZLIB_HEADER], 1
        for top in range(0, height, BAND):
            piece = self._piece(pixels[top : top + BAND])
            deflated.append(piece.deflated)
            adler = _joined_adler(adler, piece.adler, piece.length)
        deflated += [_LAST_BLOCK, struct.pack(">I", adler)]
        header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
        return b"".join([_SIGNATURE, *_chunk(b"IHDR", header), *_chunk(b"IDAT", b"".join(deflated)), _END])

    def _piece(self, band: Gray | Rgb) -> _Piece:
        rows = band.tobytes()
        key = (*band.shape, zlib.crc32(rows))
        with self._lock:
            known = self._pieces.get(key)
            if known is not None and known.rows == rows:
                self._pieces.move_to_end(key)
                return known
        made = _deflated(band, rows)
        with self._lock:
            before = self._pieces.pop(key, None)
            self._kept += len(rows) - (len(before.rows) if before else 0)
            self._pieces[key] = made
            while self._kept > _KEPT_BYTES:
                self._kept -= len(self._pieces.popitem(last=False)[1].rows)
        return made


def encode_png(picture: Gray | Rgb) -> bytes:
    """A PNG of 8 bits a channel: grey where the picture is, else RGB; decoding gives the same pixels."""
    return PngEncoder().encode(picture)


def is_whole(content: bytes) -> bool:
    """Whether these are all bytes of a PNG, with the checksums that they state."""
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


def _grey_if_grey(picture: Gray | Rgb) -> Gray | Rgb:
    if picture.ndim == 2:
        return picture
    # Most coloured pictures show it in a few pixels, which spares looking at all of them.
    few = picture[::BAND, ::BAND]
    if (few[..., 0] != few[..., 1]).any() or (few[..., 0] != few[..., 2]).any():
        return picture
    red, green, blue = cv2.split(np.ascontiguousarray(picture))
    return np.asarray(red, np.uint8) if np.array_equal(red, green) and np.array_equal(red, blue) else picture


def _deflated(band: Gray | Rgb, rows: bytes) -> _Piece:
    filtered = _filtered(band)
    # Differences within a grey radiograph are noise, in which looking for repetitions longer than a run takes time
    # and gains nothing; in colour the channels repeat each other.
    strategy = zlib.Z_RLE if band.ndim == 2 else zlib.Z_DEFAULT_STRATEGY
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15, 8, strategy)
    # A full flush ends the band at a whole byte, with nothing in it that refers to what went before.
    deflated = deflate.compress(filtered.data) + deflate.flush(zlib.Z_FULL_FLUSH)
    return _Piece(rows, deflated, zlib.adler32(filtered.data), filtered.size)


def _filtered(band: Gray | Rgb) -> NDArray[np.uint8]:
    """Rows as PNG has them before compression: each pixel less the mean of its left and upper neighbour.

    The first row is less its left neighbour alone, so that a band knows nothing of the one above. Bytes wrap round.
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
    """The Adler-32 of two texts on end, from theirs and the length of the second."""
    low = (first & 0xFFFF) + (second & 0xFFFF) - 1
    high = (first >> 16) + (second >> 16) + length * ((first & 0xFFFF) - 1)
    return (high % _ADLER_BASE) << 16 | low % _ADLER_BASE


def _chunk(kind: bytes, content: bytes) -> tuple[bytes, ...]:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)), kind, content, struct.pack(">I", checksum)
