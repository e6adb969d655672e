"""Members of a zip file, or of the folder that it was unpacked into; a worker opens a file once."""

import os
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from carina.sources._record import RecordError, SourceError, printable
from carina.store.documents import check_regular
from carina.studies.image_files import inside


class Archive(NamedTuple):
    """A zip file or a folder; only its path is kept, so that it can be sent to workers."""

    path: Path

    def names(self) -> list[str]:
        """Names of all files, in order; links in a folder are not followed.

        Raises:
            SourceError: The file is not a zip file, or cannot be read.
        """
        if self.path.is_dir():
            found = (
                file.relative_to(self.path).as_posix() for file in self.path.rglob("*") if file.is_file()
            )
            return sorted(found)
        return sorted(name for name in self._open().namelist() if not name.endswith("/"))

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """The content of a file.

        Raises:
            RecordError: It is not there (kind "not joined"), cannot be read, or is larger than `max_bytes`.
        """
        try:
            content = self._read(name, max_bytes + 1)
        except (KeyError, FileNotFoundError):
            raise RecordError("file", f"{self.path.name} has no member {name}", kind="not joined") from None
        except (OSError, ValueError, EOFError, zlib.error, RuntimeError, NotImplementedError) as error:
            reason = f"{name} cannot be read: {printable(str(error))}"
            raise RecordError("file", reason, kind="file") from error
        if len(content) > max_bytes:
            raise RecordError("file", f"{name} has more than {max_bytes:,} bytes", kind="size")
        return content

    def _read(self, name: str, size: int) -> bytes:
        if self.path.is_dir():
            with inside(self.path.resolve(), name).open("rb") as file:
                return file.read(size)
        try:
            with self._open().open(name) as member:
                return member.read(size)
        except zipfile.BadZipFile as error:
            raise OSError(str(error)) from error

    def _open(self) -> zipfile.ZipFile:
        try:
            state = self.path.stat()
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error.strerror}") from error
        return _open_zip(self.path, (os.getpid(), state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=8)
def _open_zip(path: Path, _state: tuple[int, int, int]) -> zipfile.ZipFile:
    """An open zip file, for as long as it does not change.

    Each process has its own, since processes would move the position of a shared one.
    """
    try:
        check_regular(path, error=SourceError, max_bytes=None)
        return zipfile.ZipFile(path)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise SourceError(f"{path}: cannot be read: not a zip file: {printable(str(error))}") from error
