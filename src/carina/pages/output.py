"""The directory of pages: one writer at a time, no set, and no page of somebody else under the same name."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from carina.store.errors import CarinaError
from carina.store.layout import lock_output

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
            if page.exists() and not (page.is_file() and _END_OF_TITLE in page.read_bytes()):
                raise CarinaError(
                    f"{page}: was not written by Carina and would be overwritten: move it away or choose another "
                    f"directory for {title}"
                )
        yield
