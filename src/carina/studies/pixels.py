"""Reads image files as grey values, writes them, and prepares them for display: PNG, JPEG and TIFF, 8 or 16 bits.

Colour becomes luminance (ITU-R 601), so a grey image stored as colour keeps its values. A palette is looked up.
Transparency is ignored, since it means nothing in a radiograph; so is an orientation tag, since regions are drawn on
the stored pixels. White-is-zero TIFF is inverted so that 0 is black. DICOM is not read here.
"""

import hashlib
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import (
    BITSPERSAMPLE,
    PHOTOMETRIC_INTERPRETATION,
    SAMPLESPERPIXEL,
    TiffImageFile,
)

from carina.store.errors import ImageError
from carina.store.files import write_bytes
from carina.studies.rle import MAX_SIDE

Pixels = NDArray[np.uint8] | NDArray[np.uint16]

MAX_PIXELS: Final = 100_000_000
"""Five times the largest chest radiographs in use; an image with more pixels is an attack or a mistake."""
MAX_BYTES: Final = 500_000_000
"""Above an uncompressed 16-bit image of `MAX_PIXELS`."""
MAX_DECODED_BYTES: Final = 300_000_000
"""Bytes of all channels of a decoded image: `MAX_PIXELS` of 8-bit colour or of 16-bit grey, or 37 million pixels of
16-bit colour with transparency. Decoding takes about three times as much memory."""

_LUMINANCE: Final = np.array([0.114, 0.587, 0.299])
"""ITU-R 601, in OpenCV's order: blue, green, red."""

_KINDS: Final[tuple[tuple[str, tuple[bytes, ...], type[ImageFile.ImageFile]], ...]] = (
    ("PNG", (b"\x89PNG\r\n\x1a\n",), PngImageFile),
    ("JPEG", (b"\xff\xd8\xff",), JpegImageFile),
    ("TIFF", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), TiffImageFile),
)
_PNG_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Channels by colour type of a PNG."""
_BAND: Final = 256
_DICOM_MAGIC: Final = slice(128, 132)
_DECODE_ERRORS: Final = (
    OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, AttributeError, OverflowError,
    MemoryError, struct.error, zlib.error,
)  # fmt: skip
"""Errors of Pillow's decoders on damaged files."""


class Header(NamedTuple):
    """What the header of an image file states."""

    width: int
    height: int
    bits: int
    """Bits of a stored value: 8 for anything up to 8, else as the file states, at most 16."""


def read_header(path: Path) -> Header:
    """Read the size and depth of an image, without decoding it.

    Args:
        path: PNG, JPEG or TIFF with one page.

    Returns:
        Size and depth.

    Raises:
        ImageError: The file is missing, damaged, too large to decode, or of an unknown format.

    Example:
        >>> _ = write_png(Path("grey.png"), np.full((2, 3), 900, np.uint16))
        >>> read_header(Path("grey.png"))
        Header(width=3, height=2, bits=16)
    """
    with _open_image(path, max_pixels=MAX_PIXELS) as image:
        return _header(path, image)


def read_pixels(path: Path, *, max_pixels: int = MAX_PIXELS) -> Pixels:
    """Read the grey values of an image file.

    Args:
        path: PNG, JPEG or TIFF with one page.
        max_pixels: Number of pixels above which the image is refused from its header, before anything is decoded.

    Returns:
        Grey values of shape (height, width), uint8 or uint16.

    Raises:
        ImageError: The file is missing, damaged, too large, or of an unknown format.

    Example:
        >>> _ = write_png(Path("grey.png"), np.array([[0, 900]], np.uint16))
        >>> read_pixels(Path("grey.png")).tolist()
        [[0, 900]]
    """
    with _decode_image(path, max_pixels=max_pixels) as (image, header):
        return _grey(path, image, header)


def read_reduced_pixels(path: Path, smallest: int) -> Pixels:
    """Read the grey values of an image, reduced where the format decodes a smaller image faster.

    Args:
        path: PNG, JPEG or TIFF with one page.
        smallest: Width and height that the result has at least, where the image has them. A JPEG is decoded at a half,
            a quarter or an eighth of its size; other formats at full size.

    Returns:
        Grey values of shape (height, width), uint8 or uint16.

    Raises:
        ImageError: The file is missing, damaged, too large, or of an unknown format.

    Example:
        >>> _ = write_png(Path("grey.png"), np.zeros((300, 200), np.uint8))
        >>> read_reduced_pixels(Path("grey.png"), 64).shape
        (300, 200)
    """
    with _open_image(path, max_pixels=MAX_PIXELS) as image:
        header = _header(path, image)
        if isinstance(image, JpegImageFile):
            image.draft("L", (smallest, smallest))
            image.load()
            return _grey(path, image, header)
    return read_pixels(path)


def read_colour(path: Path, *, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Read an image that was rendered elsewhere.

    Args:
        path: PNG, JPEG or TIFF with one page, of 8 bits.
        max_pixels: Number of pixels above which the image is refused from its header, before anything is decoded.

    Returns:
        RGB of shape (height, width, 3).

    Raises:
        ImageError: The file is missing, damaged, too large, of an unknown format, or has more than 8 bits.

    Example:
        >>> _ = write_png(Path("grey.png"), np.full((2, 3), 90, np.uint8))
        >>> read_colour(Path("grey.png")).shape
        (2, 3, 3)
    """
    with _decode_image(path, max_pixels=max_pixels) as (image, header):
        if header.bits > 8:
            raise ImageError(f"{path}: holds {header.bits} bits a value, expected a rendered image of 8 bits")
        return np.asarray(image.convert("RGB"))


class Greyscale(Protocol):
    """What a record says of the stored values of an image: `carina.studies.Image`, `carina.cases.CaseImage`."""

    @property
    def bits(self) -> int: ...
    @property
    def monochrome1(self) -> bool: ...
    @property
    def rescale(self) -> tuple[float, float] | None: ...
    @property
    def window(self) -> tuple[float, float] | None: ...


def display_image(pixels: Pixels, image: Greyscale) -> NDArray[np.uint8]:
    """Convert the stored values of an image for display, with what the image's record says of them.

    Args:
        pixels: Stored values.
        image: The image's record: bits, MONOCHROME1, rescaling and window.

    Returns:
        Grey values of 8 bits, as `to_display` makes them.

    Example:
        >>> from carina import open_studies
        >>> image = next(iter(open_studies("studies"))).images[0]
        >>> display_image(np.array([[0, 255]], np.uint8), image).tolist()
        [[0, 255]]
    """
    return to_display(
        pixels, bits=image.bits, monochrome1=image.monochrome1, rescale=image.rescale, window=image.window
    )


def to_display(
    pixels: Pixels,
    *,
    bits: int,
    monochrome1: bool = False,
    rescale: tuple[float, float] | None = None,
    window: tuple[float, float] | None = None,
) -> NDArray[np.uint8]:
    """Stored grey values as 8-bit values for display, with 0 black.

    Args:
        pixels: Unsigned stored values, of any shape.
        bits: Number of bits in use; a higher value is taken for the highest of these bits.
        monochrome1: Whether a high value is dark; the result is then inverted.
        rescale: Slope and intercept, applied first: `slope * stored + intercept`.
        window: Centre and width of the range to display, in rescaled values, by the function LINEAR of DICOM
            (PS3.3, C.11.2.1.2.1). Without it, the whole range of the bits is scaled linearly.

    Returns:
        Values from 0 to 255 in the shape of `pixels`.

    Example:
        >>> stored = np.array([[0, 1024, 4095]], np.uint16)
        >>> to_display(stored, bits=12).tolist()
        [[0, 64, 255]]
        >>> to_display(stored, bits=12, window=(1024, 1024)).tolist()
        [[0, 128, 255]]
    """
    highest = 2**bits - 1
    stored = np.minimum(np.arange(np.iinfo(pixels.dtype).max + 1), highest)
    if window is not None:
        shown = _window(_rescale(stored, rescale), *window)
    elif rescale is not None and rescale[0] < 0:
        shown = (highest - stored) * (255 / highest)
    else:
        shown = stored * (255 / highest)
    rounded = np.rint(shown)
    table = (255 - rounded if monochrome1 else rounded).astype(np.uint8)
    return np.take(table, pixels)


def _rescale(stored: NDArray[np.int64], rescale: tuple[float, float] | None) -> NDArray[np.float64]:
    slope, intercept = rescale or (1.0, 0.0)
    return slope * stored.astype(np.float64) + intercept


def _window(values: NDArray[np.float64], centre: float, width: float) -> NDArray[np.float64]:
    """The function LINEAR: 0 up to `centre - 0.5 - (width - 1) / 2`, 255 above `centre - 0.5 + (width - 1) / 2`."""
    middle, half = centre - 0.5, (width - 1) / 2
    if half <= 0:
        return np.where(values > middle, 255.0, 0.0)
    return np.clip(((values - middle) / (width - 1) + 0.5) * 255, 0, 255)


def write_png(path: Path, pixels: Pixels) -> str:
    """Write a grey PNG, whole or not at all.

    Args:
        path: File to write.
        pixels: Grey values of shape (height, width), uint8 or uint16.

    Returns:
        SHA-256 of the file's bytes.

    Raises:
        ImageError: The values are of another type or shape, or there are none.

    Example:
        >>> len(write_png(Path("grey.png"), np.zeros((4, 4), np.uint8)))
        64
    """
    encoded = encode_png(pixels, place=str(path))
    write_bytes(path, encoded)
    return hashlib.sha256(encoded).hexdigest()


def encode_png(pixels: Pixels, *, place: str = "image") -> bytes:
    """The content of a grey PNG file, as `write_png` writes it.

    Args:
        pixels: Grey values of shape (height, width), uint8 or uint16.
        place: What the image is called in a message.

    Raises:
        ImageError: The values are of another type or shape, or there are none.

    Example:
        >>> encode_png(np.zeros((4, 4), np.uint8))[1:4]
        b'PNG'
    """
    if pixels.ndim != 2 or pixels.dtype not in (np.uint8, np.uint16) or pixels.size == 0:
        raise ImageError(
            f"{place}: a grey PNG holds 2-D uint8 or uint16, not {pixels.dtype} of shape {pixels.shape}"
        )
    # The cheapest settings for radiographs: higher levels take 2-5 times as long to save 3% of the bytes.
    settings = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB]
    return cv2.imencode(".png", np.ascontiguousarray(pixels), settings)[1].tobytes()


def decode_png(content: bytes, *, place: str = "image") -> Pixels:
    """The grey values of a PNG file that `encode_png` made; others are read from files, by `read_pixels`.

    Args:
        content: What `encode_png` returned.
        place: What the image is called in a message.

    Raises:
        ImageError: It is no grey PNG.

    Example:
        >>> decode_png(encode_png(np.array([[0, 900]], np.uint16))).tolist()
        [[0, 900]]
    """
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED) if content else None
    if pixels is None or pixels.ndim != 2 or pixels.dtype not in (np.uint8, np.uint16):
        raise ImageError(f"{place}: not a grey PNG")
    if pixels.dtype == np.uint8:
        return pixels.astype(np.uint8, copy=False)
    return pixels.astype(np.uint16, copy=False)


@contextmanager
def _open_image(path: Path, *, max_pixels: int) -> Iterator[ImageFile.ImageFile]:
    """An image with its header read; decoding errors inside the block become an `ImageError`."""
    reader = _find_reader(path)
    try:
        # Straight to the format's reader: Image.open would try others, and warns by a process-wide limit.
        with reader(path) as image:
            _check_decoded_size(path, image, max_pixels)
            yield image
    except _DECODE_ERRORS as error:
        raise ImageError(f"{path}: damaged or cut short: {error}") from error


def _check_decoded_size(path: Path, image: ImageFile.ImageFile, max_pixels: int) -> None:
    """Raise where the header states more pixels or bytes than are decoded here."""
    pixels = image.width * image.height
    if max(image.size) > MAX_SIDE:
        raise ImageError(
            f"{path}: {image.width} x {image.height} pixels, expected sides of up to {MAX_SIDE:,} pixels"
        )
    if pixels > max_pixels:
        raise ImageError(
            f"{path}: {image.width} x {image.height} pixels, more than the limit of {max_pixels:,}"
        )
    channels, bits = _sample_layout(path, image)
    decoded = pixels * channels * (2 if bits > 8 else 1)
    if decoded > MAX_DECODED_BYTES:
        raise ImageError(
            f"{path}: {image.width} x {image.height} pixels of {channels} channels and {bits} bits, {decoded:,} bytes, "
            f"more than the limit of {MAX_DECODED_BYTES:,}"
        )


@contextmanager
def _decode_image(path: Path, *, max_pixels: int) -> Iterator[tuple[ImageFile.ImageFile, Header]]:
    """A decoded image, and its header."""
    with _open_image(path, max_pixels=max_pixels) as image:
        header = _header(path, image)
        if isinstance(image, PngImageFile):
            _check_chunks(path)  # Pillow ignores the checksums of pixel data
        image.load()
        image.info.pop("transparency", None)  # Pillow would warn that a conversion drops it
        yield image, header


def _find_reader(path: Path) -> type[ImageFile.ImageFile]:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait for ever
            raise ImageError(f"{path}: not a regular file")
        with path.open("rb") as file:
            start = file.read(_DICOM_MAGIC.stop)
        size = about.st_size
    except FileNotFoundError:
        raise ImageError(f"{path}: no such image file") from None
    except OSError as error:
        raise ImageError(f"{path}: cannot be read: {error.strerror}") from error
    if size == 0:
        raise ImageError(f"{path}: the file is empty")
    if size > MAX_BYTES:
        raise ImageError(f"{path}: {size:,} bytes, more than the limit of {MAX_BYTES:,}")
    for _, magics, reader in _KINDS:
        if start.startswith(magics):
            return reader
    if start[_DICOM_MAGIC] == b"DICM":
        raise ImageError(
            f"{path}: a DICOM file, which must be imported into a study set before its pixels are read"
        )
    raise ImageError(f"{path}: unknown image format, expected {', '.join(name for name, _, _ in _KINDS)}")


def _header(path: Path, image: ImageFile.ImageFile) -> Header:
    if has_several_pages(image):
        raise ImageError(f"{path}: holds several pages, expected one")
    _, bits = _sample_layout(path, image)
    if bits > 16 or image.mode in ("I", "F"):
        raise ImageError(
            f"{path}: holds values of mode {image.mode}, {bits} bits; expected unsigned, up to 16 bits"
        )
    return Header(image.width, image.height, max(bits, 8))


def _check_chunks(path: Path) -> None:
    """Raise unless every chunk of a PNG is whole and has its checksum, up to the end mark."""
    content = path.read_bytes()
    at = 8
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        end = at + 12 + length
        if end > len(content):
            break
        (stated,) = struct.unpack_from(">I", content, end - 4)
        if zlib.crc32(content[at + 4 : end - 4]) != stated:
            raise ImageError(f"{path}: damaged: the checksum of a chunk is wrong")
        if content[at + 4 : at + 8] == b"IEND":
            return
        at = end
    raise ImageError(f"{path}: damaged or cut short: the end mark is missing")


def has_several_pages(image: ImageFile.ImageFile) -> bool:
    """Whether an opened image holds more than one page or frame. Pillow's `n_frames` would read the headers of all."""
    if isinstance(image, TiffImageFile):
        return bool(image.tag_v2.next)
    return int(getattr(image, "n_frames", 1)) != 1


def _sample_layout(path: Path, image: ImageFile.ImageFile) -> tuple[int, int]:
    """Number of channels, and of bits of a value."""
    if isinstance(image, TiffImageFile):
        bits = image.tag_v2.get(BITSPERSAMPLE, (1,))
        return int(image.tag_v2.get(SAMPLESPERPIXEL, 1)), int(max(bits))
    if isinstance(image, PngImageFile):
        with path.open("rb") as file:
            header = file.read(26)  # IHDR; Pillow shows 16-bit colour as 8
        return _PNG_CHANNELS.get(header[25], 4), header[24]
    return len(image.getbands()), 8


def _grey(path: Path, image: ImageFile.ImageFile, header: Header) -> Pixels:
    if header.bits == 8:
        return np.asarray(image.convert("L"))
    if image.mode.startswith("I;16"):
        values = np.asarray(image).astype(np.uint16)
        if isinstance(image, TiffImageFile) and image.tag_v2.get(PHOTOMETRIC_INTERPRETATION) == 0:
            # Pillow turns white-is-zero round at 8 bits only.
            values = np.uint16(2**header.bits - 1) - values
        return values
    return _grey_of_deep_colour(path)


def _grey_of_deep_colour(path: Path) -> NDArray[np.uint16]:
    """16-bit colour, of which Pillow keeps 8 bits. Pillow has decoded it once, so the file is whole."""
    decoded = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_UNCHANGED)
    if decoded is None or decoded.dtype != np.uint16:
        raise ImageError(f"{path}: 16-bit colour in a form that cannot be read")
    if decoded.ndim == 2:
        return decoded.astype(np.uint16)
    grey = np.empty(decoded.shape[:2], np.uint16)
    for row in range(0, len(grey), _BAND):  # in bands, since the sums take four times the memory of the image
        band = slice(row, row + _BAND)
        grey[band] = np.rint(decoded[band, :, :3] @ _LUMINANCE)
    return grey
