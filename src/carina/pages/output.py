"""The directory of pages: one writer at a time, no set, and no file of somebody else under the same name."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from carina.store.errors import CarinaError
from carina.store.layout import lock_output
from carina.store.loose_files import check_files, claim_files, explain_foreign, is_plain_file

_END_OF_TITLE: Final = "· Carina</title>".encode()
"""In every page that `carina.pages.frame` renders."""


@contextmanager
def lock_pages(
    directory: Path, title: str, names: Iterable[str], *, folders: Sequence[str] = ()
) -> Iterator[None]:
    """Lock a directory for pages.

    Args:
        directory: Created where it is missing.
        title: What is written, for messages: "the report".
        names: Names of the pages that may be there already, of an earlier call.
        folders: Folders of the directory that are written to.

    Raises:
        CarinaError: The directory is a file or a set, another process writes there, or a page of this name is there
            that Carina did not write.
    """
    with lock_output(directory, title, folders=folders):
        for page in (directory / name for name in names):
            if os.path.lexists(page) and not is_page(page):
                raise CarinaError(explain_foreign(page, title))
        yield


def claim_pages(directory: Path, title: str, files: Mapping[str, str]) -> AbstractContextManager[None]:
    """Claim all files that are written to a locked directory of pages.

    Args:
        directory: Locked by `lock_pages`.
        title: What is written, for messages: "the report".
        files: For each file the page that is written after it.

    Raises:
        CarinaError: A file is in the way that Carina did not write.
    """
    return claim_files(directory, title, files, _recognise(directory, files))


def check_pages(directory: Path, title: str, files: Mapping[str, str]) -> None:
    """Make sure that files may be written, before the work that leads to them; takes the arguments of `claim_pages`.

    Raises:
        CarinaError: A file is in the way that Carina did not write.
    """
    check_files(directory, title, files, _recognise(directory, files))


def _recognise(directory: Path, files: Mapping[str, str]) -> Callable[[str], bool]:
    """From the name of a file to whether its page is one of Carina, in directories of earlier versions."""
    is_known = cache(lambda page: is_page(directory / page))
    return lambda name: is_known(files[name])


def is_page(path: Path) -> bool:
    """Whether a file is a page that Carina wrote."""
    return is_plain_file(path) and _END_OF_TITLE in path.read_bytes()
