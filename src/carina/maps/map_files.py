"""Read localisation maps from `.npy`, `.npz`, PNG and TIFF files: one map a file. No code in a file is run."""

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

from carina.models.frame import Frame, Map
from carina.store.documents import check_regular
from carina.store.errors import CarinaError
from carina.studies import read_header, read_pixels
from carina.studies.pixels import MAX_BYTES, MAX_PIXELS, has_several_pages

SUFFIXES: Final = (".npy", ".npz", ".png", ".tif", ".tiff")
GEOMETRIES: Final = "whole, letterbox:LONGEST, letterbox:LONGEST:SIDE or crop:SHORTEST:SIDE"
_MAX_HEADER_BYTES: Final = 4096
_MAX_SIDE: Final = 20_000
"""Rows or columns of a map; longer ones would take gigabytes to lay over an image."""
_HEADER_READERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_BAD_HEADER: Final = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
"""Exceptions that numpy raises for a damaged header."""
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
    MemoryError,  # a compression whose header asks for more memory than available
)
"""Exceptions that a damaged zip file can raise."""


class MapFile(NamedTuple):
    """Content of a map file."""

    values: Map
    size: tuple[int, int] | None = None
    """Height and width of the image; None where the file does not hold them."""
    probability: float | None = None
    """Probability of the finding; None where the file does not hold it."""


def read_map(path: Path) -> MapFile:
    """Read a map file; values of PNG and TIFF images of 8 or 16 bits are scaled to 0 to 1.

    Raises:
        CarinaError: The file cannot be read, is damaged or too large, or does not hold one map.
    """
    try:
        return _read_file(path)
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error


def _read_file(path: Path) -> MapFile:
    check_regular(path, max_bytes=MAX_BYTES)
    match path.suffix.lower():
        case ".npy":
            with path.open("rb") as file:
                return MapFile(_to_map(path, _read_array(path, file)))
        case ".npz":
            return _read_npz(path)
        case ".tif" | ".tiff" if (values := _read_float_tiff(path)) is not None:
            return MapFile(_to_map(path, values))
        case ".png" | ".tif" | ".tiff":
            highest = 2 ** read_header(path).bits - 1
            return MapFile(_to_map(path, read_pixels(path) / np.float32(highest)))
    raise CarinaError(f"{path}: unknown type of file, expected {', '.join(SUFFIXES)}")


def frame_of_map(geometry: str | None, size: tuple[int, int], shape: tuple[int, ...], path: Path) -> Frame:
    """The frame of a map of a given shape over an image of (height, width).

    Without a geometry the map must have the size of the image and lies on it pixel by pixel. With a letterbox or a crop
    the map must be square.
    """
    height, width = size
    if geometry is None and shape != size:
        raise CarinaError(
            f"{path}: expected a map of the size of its image, {height} x {width} (height x width), found "
            f"{shape[0]} x {shape[1]}; say how the map lies on the image (--geometry): {GEOMETRIES}"
        )
    frame = frame_of_image(geometry, size, map_side=max(shape))
    if geometry not in (None, "whole") and shape[0] != shape[1]:
        raise CarinaError(
            f"{path}: expected as many rows as columns with geometry {geometry!r}, found {shape[0]} x {shape[1]}"
        )
    return frame


def frame_of_image(geometry: str | None, size: tuple[int, int], *, map_side: int) -> Frame:
    """The frame of an image of (height, width) under a geometry.

    Args:
        geometry: One of `GEOMETRIES`; None for "whole".
        size: Height and width of the image.
        map_side: Longer side of the map, used for a map over the whole image.

    Raises:
        CarinaError: The geometry is unknown.
    """
    height, width = size
    match (geometry or "whole").split(":"):
        case ["whole"]:
            return Frame.stretched(height, width, side=map_side)
        case ["letterbox", longest]:
            return Frame.letterboxed(height, width, longest=_parse_length(geometry, longest))
        case ["letterbox", longest, side]:
            return Frame.letterboxed(
                height, width, longest=_parse_length(geometry, longest), side=_parse_length(geometry, side)
            )
        case ["crop", shortest, side]:
            return Frame.cropped(
                height, width, shortest=_parse_length(geometry, shortest), side=_parse_length(geometry, side)
            )
    raise CarinaError(f"geometry {geometry!r}: expected {GEOMETRIES}")


def _parse_length(geometry: str | None, number: str) -> int:
    if not number.isdecimal() or not 0 < int(number) <= 1 << 16:
        raise CarinaError(f"geometry {geometry!r}: expected lengths in pixels, found {number!r}")
    return int(number)


def _read_npz(path: Path) -> MapFile:
    """The array named `map`, or the only array; `dims` holds the image's width and height, `prob` the probability."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(name).stem: name for name in archive.namelist() if name.endswith(".npy")}
            name = "map" if "map" in members else next(iter(members), "") if len(members) == 1 else ""
            if not name:
                raise CarinaError(f"{path}: expected one array, or one named 'map', found {sorted(members)}")
            with archive.open(members[name]) as file:
                values = _to_map(path, _read_array(path, file))
            others = {}
            for other in ("dims", "prob"):
                if other in members and other != name:
                    with archive.open(members[other]) as file:
                        others[other] = _read_array(path, file)
    except _DAMAGED_ZIP as error:
        raise CarinaError(f"{path}: not a .npz file, or damaged: {error}") from error
    return MapFile(values, _parse_dims(path, others.get("dims")), _parse_prob(path, others.get("prob")))


def _parse_dims(path: Path, dims: NDArray[Any] | None) -> tuple[int, int] | None:
    if dims is None:
        return None
    if dims.shape != (2,) or dims.dtype.kind not in "iu" or (dims < 1).any():
        raise CarinaError(f"{path}: 'dims' should be the width and height of the image in pixels")
    return int(dims[1]), int(dims[0])


def _parse_prob(path: Path, prob: NDArray[Any] | None) -> float | None:
    if prob is None:
        return None
    if prob.size != 1 or not 0 <= prob.item() <= 1:
        raise CarinaError(f"{path}: 'prob' should be the probability of the finding, a number from 0 to 1")
    return float(prob.item())


def _read_array(path: Path, file: IO[bytes]) -> NDArray[Any]:
    """An array in numpy's format; its size and type are checked before the numbers are read."""
    try:
        # Python and numpy warn about odd headers; the array is checked below in any case.
        with warnings.catch_warnings(action="ignore"):
            read_header_of = _HEADER_READERS[np.lib.format.read_magic(file)]
            shape, fortran, dtype = read_header_of(file, max_header_size=_MAX_HEADER_BYTES)
    except (*_BAD_HEADER, KeyError, tokenize.TokenError) as error:
        raise CarinaError(f"{path}: not an array in numpy's format: {error}") from error
    if not all(type(length) is int and length >= 0 for length in shape):
        raise CarinaError(f"{path}: not an array in numpy's format: its shape is {shape}")
    if dtype.hasobject or dtype.kind not in "fiub":
        raise CarinaError(
            f"{path}: expected an array of numbers, found {dtype}; see `carina convert-pickles`"
        )
    number = math.prod(shape)
    if number > MAX_PIXELS:
        raise CarinaError(f"{path}: {number:,} numbers, more than the limit of {MAX_PIXELS:,}")
    if number * dtype.itemsize > MAX_BYTES:
        raise CarinaError(
            f"{path}: {number:,} numbers of {dtype}, more than the limit of {MAX_BYTES:,} bytes"
        )
    content = file.read(number * dtype.itemsize)
    if len(content) != number * dtype.itemsize:
        raise CarinaError(f"{path}: truncated: {len(content):,} of {number * dtype.itemsize:,} bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def _read_float_tiff(path: Path) -> NDArray[Any] | None:
    """A TIFF of floating-point values; None for one of integers, which `read_pixels` reads."""
    try:
        # Pillow warns where it guesses a damaged header; such a file is refused.
        with warnings.catch_warnings(action="error"), TiffImageFile(path) as image:
            if image.mode != "F":
                return None
            if has_several_pages(image):
                raise CarinaError(f"{path}: expected one map, found several pages")
            if image.width * image.height > MAX_PIXELS:
                raise CarinaError(f"{path}: {image.width} x {image.height} pixels, more than {MAX_PIXELS:,}")
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, TypeError, EOFError, KeyError, Warning) as error:
        raise CarinaError(f"{path}: not a TIFF file, or damaged: {error}") from error


def _to_map(path: Path, values: NDArray[Any]) -> Map:
    """Rows and columns as float32; leading axes of length 1, such as a batch axis, are dropped."""
    flat = values.reshape(values.shape[-2:]) if values.ndim > 2 and set(values.shape[:-2]) == {1} else values
    if flat.ndim != 2 or not flat.size:
        raise CarinaError(f"{path}: expected rows and columns, found an array of shape {values.shape}")
    if max(flat.shape) > _MAX_SIDE:
        rows, columns = flat.shape
        raise CarinaError(
            f"{path}: {rows:,} rows and {columns:,} columns, more than the limit of {_MAX_SIDE:,}"
        )
    with np.errstate(over="ignore"):
        checked = flat.astype(np.float32)
    if np.isinf(checked).any():
        raise CarinaError(
            f"{path}: expected finite numbers in the range of float32, found infinity or larger ones"
        )
    return checked
