"""Resumable writing of a directory: claim it, lock it, keep what an interrupted command finished, close it when whole.

Every command that writes a directory goes through this module, in one of three ways:

- `lock_directory`: one writer at a time; the caller decides what may be continued (runs);
- `claim_directory`: written in place, marked as unfinished until it is closed (sets, `carina.store.writing`);
- `partial_directory`: written under a hidden name, which becomes the final one when the directory is whole (exports).

An unfinished directory holds the marker file `.unfinished` with the fingerprint of what is being written. Only a
command with the same fingerprint continues it.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from carina.store.errors import CarinaError
from carina.store.files import NOT_WRITABLE, lock_file, remove_temporary_files, write_bytes

LOCK: Final = ".carina.lock"
"""Lies in a directory while a command writes there; left behind by a killed process, it means nothing."""
UNFINISHED: Final = ".unfinished"
"""Marker file of an unfinished directory: the fingerprint of what is being written."""
WAYS_OUT: Final = "choose another directory or remove this one"


@contextmanager
def lock_directory(directory: Path, error: type[CarinaError] = CarinaError) -> Iterator[None]:
    """Create a directory where it is missing, and keep every other writer out of it until the block ends.

    Raises:
        CarinaError: Of the class `error`: another process is writing there, the path is a file, or the directory
            cannot be created or, when the block writes to it, not be written to.
    """
    _make_directory(directory, error)
    busy = error(f"{directory}: another process is writing here")
    with _explain_unwritable(directory, error), lock_file(directory / LOCK, busy):
        yield


def _make_directory(directory: Path, error: type[CarinaError]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
        raise error(f"{file}: is a file, expected a directory") from None
    except OSError as problem:
        raise error(
            f"{directory}: cannot be created: {problem.strerror}; choose another directory"
        ) from problem


@contextmanager
def _explain_unwritable(directory: Path, error: type[CarinaError]) -> Iterator[None]:
    """Raise an error of Carina where the operating system lets the block write nothing below a directory."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in NOT_WRITABLE or not isinstance(problem.filename, str | os.PathLike):
            raise
        if not Path(problem.filename).absolute().is_relative_to(directory.absolute()):
            raise
        raise error(
            f"{Path(problem.filename).parent}: cannot be written: {problem.strerror}; choose another directory"
        ) from problem


@contextmanager
def claim_directory(
    directory: Path, fingerprint: str, check: Callable[[], bool], *, error: type[CarinaError]
) -> Iterator[None]:
    """Lock a directory and mark it as unfinished, so that only a command with the same fingerprint continues it.

    Args:
        directory: Created where it is missing.
        fingerprint: Of what is going to be written.
        check: Called with the lock held; raises where the directory holds something else, and returns whether it is
            complete already. A complete directory is not marked.
        error: Class of the errors to raise.
    """
    with lock_directory(directory, error):
        marker = directory / UNFINISHED
        if not check():
            if marker.exists() and marker.read_bytes() != fingerprint.encode():
                raise error(
                    f"{directory}: holds the beginning of a set made in another way, with other options or another "
                    f"version of Carina: finish it with the options and the version that began it, {WAYS_OUT}"
                )
            mark_unfinished(directory, fingerprint)
        yield


def mark_unfinished(directory: Path, fingerprint: str) -> None:
    """State that a directory is not whole, and what is being written there."""
    write_bytes(directory / UNFINISHED, fingerprint.encode())


def mark_finished(directory: Path) -> None:
    """Take the marker away: the directory is whole, or given up."""
    (directory / UNFINISHED).unlink(missing_ok=True)


@contextmanager
def partial_directory(out: Path, fingerprint: str, error: type[CarinaError]) -> Iterator[Path]:
    """A hidden directory beside `out` to write to, which becomes `out` when the block succeeds.

    What an interrupted command with the same fingerprint wrote there is kept, anything else is removed. `out` must be
    missing or empty.

    Raises:
        CarinaError: Of the class `error`: another command writes to `out`, or has finished it in the meantime.
    """
    target = out.resolve()
    _make_directory(target.parent, error)
    busy = error(f"{out}: another command exports to it at this moment")
    lock = target.with_name(f".{target.name}.lock")
    with _explain_unwritable(target.parent, error), lock_file(lock, busy):
        if not is_empty(target):
            raise error(f"{out}: another command has finished it in the meantime; run the command again")
        partial = target.with_name(f".{target.name}.partial")
        partial.mkdir(exist_ok=True)
        marker = partial / UNFINISHED
        if not (marker.is_file() and marker.read_bytes() == fingerprint.encode()):
            for item in partial.iterdir():
                shutil.rmtree(item) if item.is_dir() else item.unlink()
        remove_temporary_files(partial)
        mark_unfinished(partial, fingerprint)
        yield partial
        mark_finished(partial)
        if target.is_dir():
            (target / LOCK).unlink(missing_ok=True)
            target.rmdir()
        partial.replace(target)


def contents(directory: Path) -> list[Path]:
    """What lies in a directory, without the lock of a command that writes there or was killed there."""
    return [path for path in directory.iterdir() if path.name != LOCK]


def is_empty(path: Path) -> bool:
    """Whether a path is missing, or a directory that holds nothing."""
    return not path.exists() or (path.is_dir() and not contents(path))
