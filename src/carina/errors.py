"""The one family of errors that a user of Carina is meant to read.

Everything a user can cause (a bad file, row, field or option) is a `CarinaError` whose message names the
place and what was expected there; the command line prints it as one sentence and exits with 2. Anything else
that escapes is a fault of ours and keeps its traceback.
"""


class CarinaError(Exception):
    """Bad input or wrong usage, told in a sentence that names the file, row or field."""


class RegionError(CarinaError):
    """A region, or an encoding of one, that cannot be what it says it is."""


class ImageError(CarinaError):
    """An image file that is missing, corrupt, of an unknown kind, or too large to decode safely."""


class StudySetError(CarinaError):
    """A study set on disk that is missing, damaged, or written by a newer Carina."""


class BenchmarkError(CarinaError):
    """A benchmark on disk that is missing, damaged, or written by a newer Carina; or a case that cannot be asked."""


def install(extra: str) -> str:
    """How an extra is installed, for a sentence: from an index, and where the program is run from a clone."""
    return f"pip install 'carina[{extra}]', in a clone pip install -e '.[{extra}]'"


class MapsError(CarinaError):
    """Localisation maps on disk that are missing, damaged, or written by a newer Carina."""
