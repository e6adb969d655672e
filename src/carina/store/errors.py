"""The errors that a user of Carina is meant to read.

Everything that a user can cause (a bad file, row, field or option) is a `CarinaError`. Its message says where, what is
wrong, and what to do; the command line prints it and exits with 2. Any other exception is a fault of Carina and keeps
its traceback.
"""

from typing import ClassVar


class CarinaError(Exception):
    """Bad input or wrong usage; the message names the file, row, field or option.

    Example:
        >>> import carina
        >>> try:
        ...     carina.open_studies("nowhere")
        ... except CarinaError as error:
        ...     print(error)
        nowhere: no such directory, expected a study set
    """

    exit_code: ClassVar[int] = 2
    """Exit code of the command line."""


class RegionError(CarinaError):
    """A region, or an encoding of one, that contradicts itself or its image."""


class ImageError(CarinaError):
    """An image file that is missing, corrupt, of an unknown format, or too large to decode safely."""


class StudySetError(CarinaError):
    """A study set that is missing, damaged, or written by a newer Carina."""


class BenchmarkError(CarinaError):
    """A benchmark that is missing, damaged, or written by a newer Carina; or a case that cannot be asked."""


class MapsError(CarinaError):
    """Localisation maps that are missing, damaged, or written by a newer Carina."""


def install(extra: str) -> str:
    """The command that installs an extra, for messages: from an index, and from a clone."""
    return f"pip install 'carina[{extra}]', in a clone pip install -e '.[{extra}]'"
