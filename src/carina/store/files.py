"""Writing files so that a reader never sees half of one, naming them by content, and locking them."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from carina.store.errors import CarinaError

NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Numbers of the errors by which the operating system refuses to write to a place."""

_TEMPORARY: Final = re.compile(r"\..+\.[0-9]+\.tmp", re.DOTALL)
"""Names that `replacing` gives to files that are not complete: `.NAME.PID.tmp`."""


_REMEDIES: Final = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        "; free some space and run the same command again, which resumes",
    ),
    **dict.fromkeys(NOT_WRITABLE, "; choose another directory, or change its permissions"),
    errno.ELOOP: "; its links lead in a circle",
    errno.EMFILE: "; raise the limit of open files (ulimit -n)",
}
"""What a user can do, by number of the error."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; fsynced and renamed to `path` when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_temporary(path: Path) -> bool:
    """Whether a path has the name of a temporary file of `replacing`."""
    return _TEMPORARY.fullmatch(path.name) is not None


def explain_os_error(error: OSError) -> str:
    """An error of the operating system in words: which file, what is wrong, what to do."""
    names = (os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes))
    place = "".join(f"{name.encode(errors='backslashreplace').decode()}: " for name in names)
    said = " ".join(str(error.strerror or error).split())
    return f"{place}{said}{_REMEDIES.get(error.errno or 0, '')}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of the operating system that names no file, such as a full disk, name `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def remove_temporary_files(folder: Path, *, is_recursive: bool = True) -> None:
    """Remove the temporary files of `replacing` that killed processes left in a folder, which no process writes now."""
    for leftover in list((folder.rglob if is_recursive else folder.glob)(".*.tmp")):
        if is_temporary(leftover) and not leftover.is_dir():
            leftover.unlink()


@contextmanager
def lock_file(path: Path, busy: CarinaError) -> Iterator[None]:
    """Hold the lock file `path` until the block ends.

    The operating system frees the lock however the process ends. The file is removed at the end of the block; a file
    that a killed process left behind is taken over. A folder that this process cannot write to needs no lock.

    Args:
        path: The lock file; its folder exists.
        busy: Raised where another process, or another block of this one, holds the lock.

    Raises:
        CarinaError: Of the class of `busy`: something that is not a regular file has the name of the lock file.
    """
    with suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            found = "a link" if stat.S_ISLNK(mode) else "not a regular file"
            raise type(busy)(f"{path}: is {found}, where Carina puts its lock file; remove it")
    # Not bound to a thread: an event loop may leave the block in another thread than it entered it.
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise busy from None
    except FileNotFoundError:
        # Another command failed at this moment and took the folder away that it had created.
        raise busy from None
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink()  # while locked: another process that locks the removed file notices and retries
            lock.release()


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file at once, or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
