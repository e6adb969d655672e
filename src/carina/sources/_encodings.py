"""The encoding of text files as others write them: UTF-8, UTF-16 with a byte order mark, else Windows-1252.

A file is of one encoding, decided by all of its bytes, so that every row is read in the same way whoever reads it, and
two ids that differ in the file differ when they are read.
"""

import codecs
import errno
import gzip
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

from carina.sources._record import SourceError, describe

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "cp1252"]
WINDOWS: Final[Encoding] = "cp1252"
"""What spreadsheets write in Western Europe and America where it is not UTF-8."""
_MARKS: Final[tuple[tuple[bytes, Encoding], ...]] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BLOCK: Final = 1 << 20
_UNDEFINED_AS_CONTROLS: Final = "carina-undefined-as-controls"


def _read_undefined_byte(error: UnicodeError) -> tuple[str, int]:
    """The five bytes that Windows-1252 leaves undefined, as control characters: no two bytes become one character."""
    if not isinstance(error, UnicodeDecodeError) or error.encoding not in ("charmap", WINDOWS):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(_UNDEFINED_AS_CONTROLS, _read_undefined_byte)


def find_encoding(path: Path) -> Encoding:
    """The encoding of a text file, plain or compressed with gzip.

    Raises:
        OSError: The file cannot be opened, or is no regular file: a pipe would be waited for without end.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return _find_encoding(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=256)
def _find_encoding(path: Path, size: int, changed: int) -> Encoding:  # noqa: ARG001 - a changed file is read again
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_inside_character = False
    with open_bytes(path) as file:
        try:
            block = file.read(_BLOCK)
            marked = find_mark(block)
            if marked is not None and marked != "utf-8":
                return marked
            while block:
                if is_inside_character or not block.isascii():
                    decoder.decode(block)
                    is_inside_character = bool(decoder.getstate()[0])
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return WINDOWS
        except (EOFError, OSError, zlib.error):
            pass  # a damaged file; whoever reads its rows gets there, too
    return "utf-8"


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, plain or compressed with gzip."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield cast(BinaryIO, file)


def open_text(file: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """The text of a file from its first byte on, without a byte order mark, with its own line ends."""
    known = {"utf-8": "utf-8-sig", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}
    errors = _UNDEFINED_AS_CONTROLS if encoding == WINDOWS else "strict"
    if encoding == WINDOWS and not file.read(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
        file.seek(0)  # some programs add rows of another encoding to a file that is marked as UTF-8
    return io.TextIOWrapper(file, encoding=known.get(encoding, encoding), errors=errors, newline="")


def find_mark(content: bytes) -> Encoding | None:
    """The encoding that the byte order mark at the beginning of a file states."""
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None)


def decode(content: bytes, encoding: Encoding) -> str:
    """The text of some lines of a file."""
    return content.decode(encoding, _UNDEFINED_AS_CONTROLS if encoding == WINDOWS else "strict")


def decode_file(content: bytes) -> str:
    """The text of a small file, of the encoding that its bytes show; UTF-16 that is damaged is read as Windows-1252."""
    marked = find_mark(content)
    encodings: tuple[Encoding, ...] = (marked or "utf-8", WINDOWS)
    for encoding in encodings:
        try:
            return decode(content, encoding).removeprefix("\ufeff")
        except UnicodeDecodeError:
            continue
    raise AssertionError("every byte has a meaning in Windows-1252")


def check_encoding(name: str) -> str:
    """The name of an encoding that a user states.

    Raises:
        SourceError: Python knows no such encoding of text.
    """
    try:
        "".encode(name)
    except (LookupError, ValueError, TypeError):
        raise SourceError(
            f"encoding {describe(name)}: not known; expected one such as utf-8, cp1252, cp1250 or utf-16"
        ) from None
    return name


def describe_encoding(path: Path) -> str | None:
    """A notice for a file that is neither UTF-8 nor marked; None for all others, and where there is no such file."""
    try:
        is_guessed = find_encoding(path) == WINDOWS
    except OSError:
        return None
    return f"{path.name}: not UTF-8, and read as Windows-1252 (cp1252)" if is_guessed else None
