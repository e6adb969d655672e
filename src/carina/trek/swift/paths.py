"""Paths of images: private places of somebody else's machine to keys below an image root."""

import re
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, NamedTuple

from carina.errors import ImageError
from carina.studies.image_files import inside
from carina.studies.pixels import Header, read_header
from carina.trek.swift.faults import RecordError

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""Of a web page or of data; a drive has one letter."""
_GROUP: Final = re.compile(r"p1[0-9]")
_PATIENT: Final = re.compile(r"patient[0-9]+")
_ROOTS: Final = ("files", "train", "valid", "test")
"""Folders with which the trees of public sets begin, where a patient's folder follows."""
_KEPT: Final = 3
"""Names kept of a path that tells nothing of its root: patient, study, file."""


class Located(NamedTuple):
    """An image of a record."""

    key: str
    parts: tuple[str, ...]
    """Of the path as it was given."""
    absolute: bool
    header: Header | None
    """None where the file is not at hand."""


def locate(path: str, field: str, *, patient: str | None, root: Path | None) -> Located:
    """The key of an image: with an image root, the longest end of its path that leads to a file there."""
    if _ADDRESS.match(path):
        raise RecordError(field, f"{path[:40]!r} is an address, expected the path of a file")
    windows = PureWindowsPath(path)
    foreign = bool(windows.drive or "\\" in path)
    parts = tuple(part for part in (windows if foreign else PurePosixPath(path)).parts if part != ".")
    absolute = bool(windows.drive) or path.startswith(("/", "\\"))
    names = parts[1:] if absolute else parts
    if not names or ".." in names or not path.isprintable():
        raise RecordError(field, f"{path[:80]!r} does not lead to a file below a root")
    if root is not None:
        for start in range(len(names)):
            key = "/".join(names[start:])
            header = _header(root, key)
            if header is not None:
                return Located(key, names, absolute, header)
    return Located("/".join(names[_start(names, patient) if absolute else 0 :]), names, absolute, None)


def _header(root: Path, key: str) -> Header | None:
    try:
        path = inside(root, key)
        return read_header(path) if path.is_file() else None
    except (ValueError, ImageError):
        return None


def _start(names: tuple[str, ...], patient: str | None) -> int:
    """Where what is private of a path ends."""
    for place, name in enumerate(names):
        if _GROUP.fullmatch(name) or _PATIENT.fullmatch(name) or name == patient:
            return place - 1 if place and names[place - 1] in _ROOTS else place
    return max(0, len(names) - _KEPT)
