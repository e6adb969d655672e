"""Loose files in a directory that may hold other files too: none of somebody else is overwritten.

Pages, reports and scores are files beside each other, in a directory that the user may use for other things. A command
states their names before it writes the first one, in a list that stays in the directory. A file that has such a name
already is overwritten only where it is in the list of an earlier call.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.files import write_bytes

NAMES: Final = ".carina.files"
"""The list of names of all files that Carina has written to the directory."""


@contextmanager
def claim_files(
    directory: Path, title: str, names: Iterable[str], is_own: Callable[[str], bool]
) -> Iterator[None]:
    """Make sure that files may be written, and keep their names on disk until the block has written them.

    Args:
        directory: Locked by the caller.
        title: What is written, for messages: "the report".
        names: Paths of all files that the block may write, relative to the directory.
        is_own: Called with the name of a file that is there already, in a directory without a list: whether an earlier
            version of Carina wrote it.

    Raises:
        CarinaError: A file of such a name was not written by Carina.

    Example:
        >>> with claim_files(Path("pages"), "the pages", ["notes.csv"], lambda _name: False):
        ...     write_bytes(Path("pages/notes.csv"), b"id")
    """
    wanted = frozenset(names)
    claimed = check_files(directory, title, wanted, is_own)
    _write_names(directory, claimed | wanted)
    try:
        yield
    except BaseException:
        if not _existing(directory, claimed | wanted):
            with suppress(OSError):
                (directory / NAMES).unlink(missing_ok=True)
        raise
    _write_names(directory, _existing(directory, claimed | wanted))


def check_files(
    directory: Path, title: str, names: Iterable[str], is_own: Callable[[str], bool]
) -> frozenset[str]:
    """Make sure that files may be written, before the work that leads to them; takes the arguments of `claim_files`.

    Returns:
        Names of all files that Carina has written to the directory.
    """
    claimed = _read_names(directory)
    for name in sorted(names):
        path = directory / name
        is_known = name in claimed or (not claimed and is_own(name))
        if os.path.lexists(path) and not (is_plain_file(path) and is_known):
            raise CarinaError(explain_foreign(path, title))
    return claimed


def is_plain_file(path: Path) -> bool:
    """Whether a path is a regular file itself: no link, directory, pipe or device."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def explain_foreign(path: Path, title: str) -> str:
    """The sentence about a file that is in the way."""
    return (
        f"{path}: was not written by Carina and would be overwritten: move it away or choose another directory for "
        f"{title}"
    )


def _existing(directory: Path, names: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in names if os.path.lexists(directory / name))


def _read_names(directory: Path) -> frozenset[str]:
    path = directory / NAMES
    if not os.path.lexists(path):
        return frozenset()
    try:
        return read_json(path, frozenset[str])
    except CarinaError as error:
        raise CarinaError(f"{error}; remove this file, or choose another directory") from error


def _write_names(directory: Path, names: frozenset[str]) -> None:
    if names:
        write_bytes(directory / NAMES, msgspec.json.encode(sorted(names)))
    else:
        (directory / NAMES).unlink(missing_ok=True)
