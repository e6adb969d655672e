"""The picture files of a bundle: where a record's path leads, and what lies there."""

import hashlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, NamedTuple

from carina.errors import ImageError
from carina.percept.bundle import layout
from carina.percept.bundle.faults import RecordError
from carina.studies import image_files
from carina.studies.pixels import read_colour, read_header

_LONGEST_NAME: Final = 200
"""Bytes; file systems take 255, and temporary names are longer than names."""


class Picture(NamedTuple):
    """A picture of the bundle, by key relative to the bundle's directory."""

    key: str
    width: int
    height: int
    sha256: str


Probe = Callable[[str], Picture]
"""Reads what a case must know of the picture with this key; `ImageError` where it cannot be read."""


def probe(bundle: Path, key: str) -> Picture:
    """Size and checksum of a picture that decodes from its first to its last byte."""
    try:
        path = image_files.inside(bundle.resolve(), key)
    except ValueError as error:
        raise ImageError(f"{bundle / key}: {error}") from error
    header = read_header(path)
    read_colour(path)  # refuses what is too large from the header
    return Picture(key, header.width, header.height, hashlib.sha256(path.read_bytes()).hexdigest())


def folder(key_id: str) -> PurePosixPath:
    """The folder of a record's pictures, relative to the bundle."""
    if (
        not key_id.strip()
        or key_id in (".", "..")
        or any(sign in key_id for sign in "/\\")
        or not key_id.isprintable()
        or len(key_id.encode("utf-8", "replace")) > _LONGEST_NAME
    ):
        raise RecordError("path", "", f"the key_id {key_id[:60]!r} cannot be the name of a folder")
    return PurePosixPath(layout.PICTURES, key_id)


def inside(start: PurePosixPath, relative: str, field: str) -> str:
    """The key of the file that a relative path leads to, which must lie below its start."""
    path = PurePosixPath(relative)
    windows = PureWindowsPath(relative)
    if (
        path.is_absolute()
        or windows.drive
        or windows.root
        or ".." in path.parts
        or "\\" in relative
        or not path.parts
        or not relative.isprintable()
    ):
        raise RecordError("path", field, f"{relative[:80]!r} does not lead to a file below {start}")
    return str(start / path)
