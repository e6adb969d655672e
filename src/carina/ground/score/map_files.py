"""Maps that others made, in files: `.npy`, `.npz`, PNG and TIFF; one map a file, nothing in it is run."""

import lzma
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL.TiffImagePlugin import TiffImageFile

from carina.errors import CarinaError
from carina.models.frame import Frame, Map
from carina.studies import read_header, read_pixels
from carina.studies.pixels import MAX_BYTES, MAX_PIXELS

SUFFIXES: Final = (".npy", ".npz", ".png", ".tif", ".tiff")
GEOMETRIES: Final = "whole, letterbox:LONGEST, letterbox:LONGEST:SIDE or crop:SHORTEST:SIDE"
_LONGEST_HEADER: Final = 4096
_VERSIONS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_BAD_HEADER: Final = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
"""What Python raises of a header that is no table of its own literals."""
_DAMAGED_ZIP: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    MemoryError,  # of a compression whose header asks for more than there is
)


class MapFile(NamedTuple):
    """What a file tells."""

    values: Map
    size: tuple[int, int] | None = None
    """The image's height and width."""
    probability: float | None = None
    """Of the finding, as the model has it."""


def read_map(path: Path) -> MapFile:
    """A map, and what else its file tells; pictures run from 0 to 1."""
    try:
        return _read(path)
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error


def _read(path: Path) -> MapFile:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise CarinaError(f"{path}: {size:,} bytes, more than the limit of {MAX_BYTES:,}")
    match path.suffix.lower():
        case ".npy":
            with path.open("rb") as file:
                return MapFile(_checked(path, _array(path, file)))
        case ".npz":
            return _zipped(path)
        case ".tif" | ".tiff" if (values := _float_tiff(path)) is not None:
            return MapFile(_checked(path, values))
        case ".png" | ".tif" | ".tiff":
            highest = 2 ** read_header(path).bits - 1
            return MapFile(_checked(path, read_pixels(path) / np.float32(highest)))
    raise CarinaError(f"{path}: of an unknown kind; maps are {', '.join(SUFFIXES)}")


def geometry(text: str | None, size: tuple[int, int], shape: tuple[int, ...], path: Path) -> Frame:
    """The frame of a map of some shape over an image of (height, width), as it is declared.

    Without a declaration the map must have the image's size, and lies on it pixel by pixel. A map over a square that
    the image was fitted into must be square too.
    """
    height, width = size
    if text is None and shape != size:
        raise CarinaError(
            f"{path}: a map of {shape[0]} x {shape[1]} for an image of {height} x {width} (height x width); say how it "
            f"lies on it: {GEOMETRIES}"
        )
    frame = declared(text, size, longer=max(shape))
    if text not in (None, "whole") and shape[0] != shape[1]:
        raise CarinaError(
            f"{path}: a map of {shape[0]} x {shape[1]}, where geometry {text!r} has one of a square; expected as many "
            "rows as columns"
        )
    return frame


def declared(text: str | None, size: tuple[int, int], *, longer: int) -> Frame:
    """The frame of an image of (height, width); `longer` is the longer side of a map over the whole image."""
    height, width = size
    match (text or "whole").split(":"):
        case ["whole"]:
            return Frame.stretched(height, width, side=longer)
        case ["letterbox", longest]:
            return Frame.letterboxed(height, width, longest=_length(text, longest))
        case ["letterbox", longest, side]:
            return Frame.letterboxed(height, width, longest=_length(text, longest), side=_length(text, side))
        case ["crop", shortest, side]:
            return Frame.cropped(height, width, shortest=_length(text, shortest), side=_length(text, side))
    raise CarinaError(f"geometry {text!r}: expected {GEOMETRIES}")


def _length(text: str | None, number: str) -> int:
    if not number.isdecimal() or not 0 < int(number) <= 1 << 16:
        raise CarinaError(f"geometry {text!r}: expected lengths in pixels, not {number!r}")
    return int(number)


def _zipped(path: Path) -> MapFile:
    """The array named `map`, or the only one; `dims` has the image's width and height, `prob` the probability."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = {Path(name).stem: name for name in archive.namelist() if name.endswith(".npy")}
            name = "map" if "map" in held else next(iter(held), "") if len(held) == 1 else ""
            if not name:
                raise CarinaError(f"{path}: expected one array, or one named 'map', not {sorted(held)}")
            with archive.open(held[name]) as file:
                values = _checked(path, _array(path, file))
            beside = {}
            for told in ("dims", "prob"):
                if told in held and told != name:
                    with archive.open(held[told]) as file:
                        beside[told] = _array(path, file)
    except _DAMAGED_ZIP as error:
        raise CarinaError(f"{path}: not a .npz file, or damaged: {error}") from error
    return MapFile(values, _size(path, beside.get("dims")), _probability(path, beside.get("prob")))


def _size(path: Path, dims: NDArray[Any] | None) -> tuple[int, int] | None:
    if dims is None:
        return None
    if dims.shape != (2,) or dims.dtype.kind not in "iu" or (dims < 1).any():
        raise CarinaError(f"{path}: 'dims' should be the image's width and height")
    return int(dims[1]), int(dims[0])


def _probability(path: Path, told: NDArray[Any] | None) -> float | None:
    if told is None:
        return None
    if told.size != 1 or not 0 <= told.item() <= 1:
        raise CarinaError(f"{path}: 'prob' should be the finding's probability, a number from 0 to 1")
    return float(told.item())


def _array(path: Path, file: IO[bytes]) -> NDArray[Any]:
    """An array in numpy's format, its size and kind checked before anything is read."""
    try:
        # Python and numpy warn of what they make up for an odd header, which is refused or read all the same.
        with warnings.catch_warnings(action="ignore"):
            read = _VERSIONS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read(file, max_header_size=_LONGEST_HEADER)
    except (*_BAD_HEADER, KeyError, tokenize.TokenError) as error:
        raise CarinaError(f"{path}: not an array in numpy's format: {error}") from error
    if not all(type(length) is int and length >= 0 for length in shape):
        raise CarinaError(f"{path}: not an array in numpy's format: its shape is {shape}")
    if dtype.hasobject or dtype.kind not in "fiub":
        raise CarinaError(
            f"{path}: an array of {dtype}, expected numbers; see `carina ground convert-pickles`"
        )
    number = math.prod(shape)
    if number > MAX_PIXELS:
        raise CarinaError(f"{path}: {number:,} numbers, more than the limit of {MAX_PIXELS:,}")
    content = file.read(number * dtype.itemsize)
    if len(content) != number * dtype.itemsize:
        raise CarinaError(f"{path}: cut short: {len(content):,} of {number * dtype.itemsize:,} bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def _float_tiff(path: Path) -> NDArray[Any] | None:
    """A TIFF of floating-point values; None for one of whole numbers, which `read_pixels` reads."""
    try:
        # Pillow warns of what it makes up for a damaged header; a map is whole or refused.
        with warnings.catch_warnings(action="error"), TiffImageFile(path) as image:
            if image.mode != "F":
                return None
            if getattr(image, "n_frames", 1) != 1:
                raise CarinaError(f"{path}: holds several pages, expected one map")
            if image.width * image.height > MAX_PIXELS:
                raise CarinaError(f"{path}: {image.width} x {image.height} pixels, more than {MAX_PIXELS:,}")
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, TypeError, EOFError, KeyError, Warning) as error:
        raise CarinaError(f"{path}: not a TIFF file, or damaged: {error}") from error


def _checked(path: Path, values: NDArray[Any]) -> Map:
    """Rows and columns as float32; axes of length 1 before them, as a batch's, are dropped."""
    flat = values.reshape(values.shape[-2:]) if values.ndim > 2 and set(values.shape[:-2]) == {1} else values
    if flat.ndim != 2 or not flat.size:
        raise CarinaError(f"{path}: an array of shape {values.shape}, expected rows and columns")
    with np.errstate(over="ignore"):
        made = flat.astype(np.float32)
    if np.isinf(made).any():
        raise CarinaError(f"{path}: holds infinity, or numbers that float32 does not hold")
    return made
