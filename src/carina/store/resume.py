"""Resumable writing of a directory: claim it, lock it, keep what an interrupted command finished, close it when whole.

Every command that writes a directory goes through this module, in one of three ways:

- `lock_directory`: one writer at a time; the caller decides what may be continued (runs, pages, reports, scores);
- `claim_directory`: written in place, marked as unfinished until it is closed (sets, `carina.store.writing`);
- `partial_directory`: written under a hidden name, which becomes the final one when the directory is whole (exports).

An unfinished directory holds the marker file `.unfinished` with the fingerprint of what is being written. Only a
command with the same fingerprint continues it. A command that succeeds removes what killed commands left behind; nobody
removes a file that Carina did not write.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from carina.store.documents import check_regular
from carina.store.errors import CarinaError
from carina.store.files import NOT_WRITABLE, is_temporary, lock_file, remove_temporary_files, write_bytes

LOCK: Final = ".carina.lock"
"""Lies in a directory while a command writes there; left behind by a killed process, it means nothing."""
UNFINISHED: Final = ".unfinished"
"""Marker file of an unfinished directory: the fingerprint of what is being written."""
_MAX_MARKER_BYTES: Final = 10_000
"""Size of a marker file, of which a fingerprint takes 64 bytes."""
WAYS_OUT: Final = "choose another directory or remove this one"


@contextmanager
def lock_directory(
    directory: Path,
    error: type[CarinaError] = CarinaError,
    *,
    folders: Sequence[str] = (),
    is_shared: bool = False,
) -> Iterator[None]:
    """Create a directory where it is missing, and keep every other writer out of it until the block ends.

    When the block succeeds, temporary files that killed commands left in the directory are removed. When it fails, a
    directory that was created for it and is still empty is removed.

    Args:
        directory: Created where it is missing.
        error: Class of the errors to raise.
        folders: Folders of the directory in which temporary files are looked for, too.
        is_shared: Whether the directory may hold other things, so that only `folders` must not lead out of it. The
            files that are written beside them have the names that `carina.store.loose_files` claims.

    Raises:
        CarinaError: Of the class `error`: another process is writing there, the path is a file, the directory cannot
            be created or, when the block writes to it, not be written to, or a link in it leads out of it.
    """
    created = _make_directory(directory, error)
    busy = error(f"{directory}: another process is writing here")
    try:
        with _explain_unwritable(directory, error), lock_file(directory / LOCK, busy):
            inner = [directory / name for name in folders]
            refuse_links(directory, inner if is_shared else directory.iterdir(), error)
            yield
            for folder in (directory, *inner):
                remove_temporary_files(folder, is_recursive=False)
    except BaseException:
        with suppress(OSError):
            for path in created:
                path.rmdir()
        raise


def refuse_links(directory: Path, paths: Iterable[Path], error: type[CarinaError]) -> None:
    """Refuse links through which a command would write outside of its directory; the directory itself may be one.

    Args:
        directory: The directory to write to.
        paths: Files and folders in it.
        error: Class of the error to raise.
    """
    root = directory.resolve()
    for path in sorted(paths):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise error(
                f"{path}: is a link that leads out of {directory}, where nothing may be written: remove the link or "
                "choose another directory"
            )


def _make_directory(directory: Path, error: type[CarinaError]) -> list[Path]:
    """Create a directory; returns the directories that were missing, the innermost first."""
    try:
        missing = [path for path in (directory, *directory.parents) if not os.path.lexists(path)]
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
        raise error(f"{file}: is a file, expected a directory") from None
    except OSError as problem:
        raise error(
            f"{directory}: cannot be created: {problem.strerror}; choose another directory"
        ) from problem
    return missing


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
        if not check():
            if read_marker(directory) not in {None, fingerprint}:
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


def read_marker(directory: Path) -> str | None:
    """The fingerprint of what an unfinished directory is being made into; None for a directory without the marker.

    Raises:
        CarinaError: The marker is not a regular file, or too large for one.
    """
    path = directory / UNFINISHED
    try:
        check_regular(path, max_bytes=_MAX_MARKER_BYTES)
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def remove_notes(directory: Path, names: Iterable[str]) -> None:
    """Remove notes that a command kept in a directory for the case that it is interrupted: files or folders by name."""
    for path in (directory / name for name in names):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def partial_directory(
    out: Path,
    fingerprint: str,
    check: Callable[[], bool],
    *,
    error: type[CarinaError],
    notes: Sequence[str] = (),
) -> Iterator[Path | None]:
    """A hidden directory beside `out` to write to, which becomes `out` when the block succeeds.

    What an interrupted command with the same fingerprint wrote there is kept; what one with another fingerprint wrote
    there is removed.

    Args:
        out: The directory to make; missing or empty, or complete.
        fingerprint: Of what is going to be written.
        check: Called with the lock held; raises where `out` holds something else, and returns whether it is complete
            already. Then the block gets None and has nothing to write.
        error: Class of the errors to raise.
        notes: Names of files and folders that the command needs only until the directory is whole.

    Raises:
        CarinaError: Of the class `error`: another command writes to `out`, or files that Carina did not write lie in
            the hidden directory.
    """
    target = out.resolve()
    _make_directory(target.parent, error)
    busy = error(f"{out}: another command exports to it at this moment")
    lock = target.with_name(f".{target.name}.lock")
    with _explain_unwritable(target.parent, error), lock_file(lock, busy):
        if check():
            yield None
            if (
                read_marker(target) is not None
            ):  # of a command that was killed after it had renamed the directory
                _finish_partial(target, notes)
            return
        if not is_empty(target):
            raise error(f"{out}: holds something else already: choose another directory, or remove it")
        partial = target.with_name(f".{target.name}.partial")
        _empty_partial(partial, fingerprint, error)
        remove_temporary_files(partial)
        yield partial
        if target.is_dir():
            (target / LOCK).unlink(missing_ok=True)
            remove_temporary_files(target, is_recursive=False)
            target.rmdir()
        # Renamed together with its marker: without it, nobody could tell that the hidden directory is Carina's own.
        # Its notes go with it, too: of half-removed notes a repeated command would make half an export.
        partial.replace(target)
        _finish_partial(target, notes)


def _finish_partial(target: Path, notes: Sequence[str]) -> None:
    remove_notes(target, notes)
    mark_finished(target)


def _empty_partial(partial: Path, fingerprint: str, error: type[CarinaError]) -> None:
    """Create the hidden directory of an export, or remove what an export with another fingerprint wrote there."""
    refuse_links(partial.parent, [partial], error)
    _make_directory(partial, error)
    refuse_links(partial, partial.iterdir(), error)
    marker = read_marker(partial)
    if marker is None and contents(partial):
        raise error(
            f"{partial}: holds files that Carina did not write, where the export would be written: "
            "move this directory away or choose another one for the export"
        )
    if marker != fingerprint:
        # The marker goes last: until then, it states that all of this is Carina's own.
        remove_notes(partial, [path.name for path in partial.iterdir() if path.name != UNFINISHED])
        mark_unfinished(partial, fingerprint)


def contents(directory: Path) -> list[Path]:
    """What lies in a directory, without what killed commands left: their locks and temporary files."""
    return [path for path in directory.iterdir() if path.name != LOCK and not is_temporary(path)]


def is_empty(path: Path) -> bool:
    """Whether a path is missing, or a directory that holds nothing."""
    return not path.exists() or (path.is_dir() and not contents(path))
