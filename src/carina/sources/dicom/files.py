"""Finds the files of a folder, of a DICOMDIR or of a zip archive, and reads them with a bound on their size.

Nothing outside of the folder or the archive is read, and nothing is unpacked to disk.
"""

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from carina.sources._record import SourceError
from carina.sources.dicom.attributes import DicomObject, MoreNeededError, ObjectError, Tag, parse_object
from carina.studies.pixels import MAX_BYTES

DIRECTORY_CLASS: Final = "1.2.840.10008.1.3.10"
"""SOP class of a DICOMDIR."""
_BEGINNING: Final = 1 << 16
"""Bytes in which the attributes of most objects end."""
_MOST_MEMBERS: Final = 2_000_000
_LARGEST_RATIO: Final = 200
"""Unpacked bytes for each packed byte; the pixels of a radiograph pack to a tenth at best."""
_RATIO_FROM: Final = 1 << 20
"""Unpacked bytes below which the ratio does not matter."""
_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OSError,
)
"""Errors of zipfile on damaged, encrypted and unknown archives."""


@dataclass(frozen=True, kw_only=True)
class FileAt:
    """A file of the source: a path, or a member of an archive."""

    number: int
    """From 1, in the order of names."""
    name: str
    """Relative to the folder or archive. It may hold the name of a patient: it is not written anywhere."""
    path: Path
    size: int
    member: str | None = None
    fault: tuple[str, str] | None = None
    """Kind and reason, where the file is known to be unusable."""

    @property
    def place(self) -> str:
        """What the file is called in what is written."""
        return f"object {self.number}"


def list_files(path: Path) -> list[FileAt]:
    """All files of a source, in the order of their names.

    Raises:
        SourceError: There is no such folder or file, or it is neither a DICOMDIR nor an archive nor an object.
    """
    if path.is_dir():
        found = list(_walk(path))
    elif not path.is_file():
        raise SourceError(
            f"{path}: no such file or folder; expected a folder, a DICOMDIR or a zip archive of DICOM files"
        )
    elif zipfile.is_zipfile(path):
        found = list(_list_members(path))
    else:
        found = list(_list_directory_file(path))
    found.sort(key=lambda file: file.name)
    return [_numbered(file, number) for number, file in enumerate(found, start=1)]


def _numbered(file: FileAt, number: int) -> FileAt:
    return FileAt(
        number=number, name=file.name, path=file.path, size=file.size, member=file.member, fault=file.fault
    )


def _walk(root: Path) -> Iterator[FileAt]:
    resolved = root.resolve()
    for folder, names, files in os.walk(root):
        names.sort()
        for name in files:
            path = Path(folder) / name
            yield _look_at(path, path.relative_to(root).as_posix(), resolved)


def _look_at(path: Path, name: str, root: Path) -> FileAt:
    """A file below a folder, unless it leads out of it or is not a file."""
    fault, size = None, 0
    try:
        if not Path(os.path.realpath(path)).is_relative_to(root):
            fault = ("outside", "the file is a link that leads out of the folder")
        elif not path.is_file():
            fault = ("not DICOM", "it is not a regular file")
        else:
            size = path.stat().st_size
    except (OSError, ValueError):
        fault = ("missing", "the file cannot be read")
    return FileAt(number=0, name=name, path=path, size=size, fault=fault)


def _list_members(path: Path) -> Iterator[FileAt]:
    try:
        members = _open_archive(path).infolist()
    except _ZIP_ERRORS as error:
        raise SourceError(f"{path}: the archive cannot be read: {error}") from error
    if len(members) > _MOST_MEMBERS:
        raise SourceError(f"{path}: holds {len(members):,} files, more than the limit of {_MOST_MEMBERS:,}")
    for member in members:
        if member.is_dir():
            continue
        parts = PurePosixPath(member.filename).parts
        fault = None
        if not parts or parts[0] == "/" or ".." in parts or "\\" in member.filename or ":" in parts[0]:
            fault = ("outside", "its name in the archive leads out of the archive")
        elif member.file_size > max(_RATIO_FROM, _LARGEST_RATIO * member.compress_size):
            fault = ("too large", f"it unpacks to more than {_LARGEST_RATIO} times its size")
        yield FileAt(
            number=0,
            name=member.filename,
            path=path,
            size=member.file_size,
            member=member.filename,
            fault=fault,
        )


def _open_archive(path: Path) -> zipfile.ZipFile:
    about = path.stat()
    return _open_once(path, about.st_mtime_ns, about.st_size, os.getpid())


@lru_cache(maxsize=1)
def _open_once(path: Path, _modified: int, _size: int, _process: int) -> zipfile.ZipFile:
    """Opened once in each process, since finding a member takes reading the whole directory of the archive."""
    return zipfile.ZipFile(path)


def _list_directory_file(path: Path) -> Iterator[FileAt]:
    """The files that a DICOMDIR lists; a single object is a list of one."""
    single = _look_at(path, path.name, path.resolve().parent)
    try:
        found = read_object(single)
    except ObjectError as error:
        raise SourceError(
            f"{path}: {error.reason}; expected a folder, a DICOMDIR, a zip archive or a DICOM object"
        ) from None
    if found.media_class != DIRECTORY_CLASS:
        yield single
        return
    root = path.resolve().parent
    listing = _Listing(root)
    for record in found.attributes.items(Tag.DIRECTORY_RECORDS):
        parts = record.texts(Tag.REFERENCED_FILE)
        if parts != [""]:
            yield _look_at_listed(listing, parts)


class _Listing:
    """Finds files below a folder by their names, in upper or lower case.

    A DICOMDIR has names in upper case, and many systems show the files of a CD in lower case.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: dict[Path, dict[str, list[str]]] = {}

    def find(self, parts: list[str]) -> Path | None:
        """The file; None where there is none, or there are several."""
        path = self.root
        for part in parts:
            name = part if os.path.lexists(path / part) else self._find_in_any_case(path, part)
            if name is None:
                return None
            path /= name
        return path

    def _find_in_any_case(self, folder: Path, name: str) -> str | None:
        if folder not in self._names:
            names: dict[str, list[str]] = {}
            if Path(os.path.realpath(folder)).is_relative_to(self.root) and folder.is_dir():
                for found in folder.iterdir():
                    names.setdefault(found.name.upper(), []).append(found.name)
            self._names[folder] = names
        alike = self._names[folder].get(name.upper(), [])
        return alike[0] if len(alike) == 1 else None


def _look_at_listed(listing: _Listing, parts: list[str]) -> FileAt:
    root = listing.root
    name = "/".join(parts)
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        fault = ("outside", "its name in the DICOMDIR leads out of the folder")
        return FileAt(number=0, name=name, path=root, size=0, fault=fault)
    path = listing.find(parts)
    if path is None:
        fault = ("missing", "the DICOMDIR lists the file, but it is not there")
        return FileAt(number=0, name=name, path=root.joinpath(*parts), size=0, fault=fault)
    return _look_at(path, name, root)


def read_object(file: FileAt, *, with_pixels: bool = True) -> DicomObject:
    """Read an object.

    Args:
        file: The file.
        with_pixels: Whether its pixel data are wanted; without them, only the beginning of the file is read where the
            attributes end in it.

    Raises:
        ObjectError: The file cannot be used.
    """
    if file.fault is not None:
        raise ObjectError(*file.fault)
    if file.size > MAX_BYTES:
        raise ObjectError("too large", f"the file has more than {MAX_BYTES:,} bytes")
    if not with_pixels:
        beginning = _read_bytes(file, _BEGINNING)
        try:
            return parse_object(
                beginning, is_whole=len(beginning) < _BEGINNING, with_pixels=False, max_bytes=MAX_BYTES
            )
        except MoreNeededError:
            pass
    content = _read_bytes(file, MAX_BYTES)
    return parse_object(content, is_whole=True, with_pixels=with_pixels, max_bytes=MAX_BYTES)


def _read_bytes(file: FileAt, most: int) -> bytes:
    most = min(most, file.size)  # Python would take memory for the largest number of bytes
    try:
        if file.member is None:
            with file.path.open("rb") as opened:
                return opened.read(most)
        with _open_archive(file.path).open(file.member) as opened:
            return opened.read(most)
    except _ZIP_ERRORS:
        raise ObjectError("missing", "the file cannot be read or unpacked") from None
