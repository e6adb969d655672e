"""Reading small files that a user gives: JSON, YAML and CSV, with one sentence for whatever is wrong with them.

Every file that is read whole comes through `read_file`. It opens only regular files of a sensible size: a pipe would
wait for ever, a device would never end, and a file of many gigabytes would not fit in memory.
"""

import csv
import io
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from carina.store.errors import CarinaError

T = TypeVar("T")

MAX_BYTES: Final = 500_000_000
"""Largest file that is read whole: several times the largest published file of annotations."""
MAX_YAML_BYTES: Final = 1_000_000
"""Largest YAML file: several hundred times a list of all limits or prices."""
MAX_YAML_DEPTH: Final = 20
"""Levels of a YAML file, of which limits and prices have three. The time of the parser grows with their square."""
_LONGEST_CELL: Final = 131_072
"""Characters in a cell of a CSV file: the default of the module csv."""
DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for content that is not JSON, not of the expected type, not UTF-8, or nested too deeply."""


def read_file(
    path: Path,
    *,
    error: type[CarinaError] = CarinaError,
    missing: str = "no such file",
    max_bytes: int = MAX_BYTES,
) -> bytes:
    """Read a whole file that a user gave.

    Args:
        path: The file.
        error: Class of the errors to raise.
        missing: What the error says of a file that does not exist.
        max_bytes: Size from which the file is refused, before anything is read.

    Returns:
        The bytes of the file.

    Raises:
        CarinaError: Of the class `error`: the file is missing, too large, not a regular file, or cannot be read.

    Example:
        >>> read_file(Path("no/such.json"))
        Traceback (most recent call last):
        carina.store.errors.CarinaError: no/such.json: no such file
    """
    try:
        check_regular(path, error=error, max_bytes=max_bytes)
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{path}: {missing}") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from problem


def check_regular(
    path: Path, *, error: type[CarinaError] = CarinaError, max_bytes: int | None = MAX_BYTES
) -> None:
    """Check that a path is a regular file of a sensible size (any size for None), without opening it.

    Raises:
        CarinaError: Of the class `error`: it is a directory, a pipe or a device, or larger than `max_bytes`.
        OSError: It is missing or cannot be looked up.
    """
    about = path.stat()
    if stat.S_ISDIR(about.st_mode):
        raise error(f"{path}: is a directory, expected a file")
    if not stat.S_ISREG(about.st_mode):
        raise error(f"{path}: is not a regular file")
    if max_bytes is not None and about.st_size > max_bytes:
        raise error(f"{path}: {about.st_size:,} bytes, more than the limit of {max_bytes:,}")


def read_stored_path(text: str, *, where: str, error: type[CarinaError] = CarinaError) -> Path:
    """The path that a file of Carina states.

    Args:
        text: The stated path.
        where: File and field that state it, for messages: "bench/bench.json: image_root".
        error: Class of the errors to raise.

    Returns:
        The path, relative to whatever the field says.

    Raises:
        CarinaError: Of the class `error`: no file can have this path.

    Example:
        >>> read_stored_path("../studies", where="bench/bench.json: image_root").name
        'studies'
    """
    if "\0" in text:
        raise error(f"{where}: expected a path, found {text!r}: a path cannot hold a NUL character")
    return Path(text)


def read_json(
    path: Path,
    kind: type[T],
    *,
    what: str = "",
    error: type[CarinaError] = CarinaError,
    missing: str = "no such file",
) -> T:
    """Read a JSON file as a record.

    Args:
        path: The file.
        kind: Type of the document.
        what: What the file should be, for messages: "the scoring of maps".
        error: Class of the errors to raise.
        missing: What the error says of a file that does not exist.

    Returns:
        The record.

    Raises:
        CarinaError: Of the class `error`: the file cannot be read, or is not such a document.
    """
    return decode_json(read_file(path, error=error, missing=missing), kind, path=path, what=what, error=error)


def decode_json(
    content: bytes, kind: type[T], *, path: Path, what: str = "", error: type[CarinaError] = CarinaError
) -> T:
    """As `read_json`, from bytes that were read from `path`."""
    try:
        return msgspec.json.decode(content, type=kind)
    except DECODE_ERRORS as problem:
        expected = f"not {what}: " if what else ""
        raise error(f"{path}: {expected}{explain_decode_error(problem)}") from problem


def explain_decode_error(problem: Exception) -> str:
    """One of `DECODE_ERRORS` in words."""
    if isinstance(problem, UnicodeDecodeError):
        return f"not UTF-8 text ({problem.reason} at byte {problem.start})"
    if isinstance(problem, RecursionError):
        return "nested too deeply"
    return str(problem)


def read_yaml(path: Path) -> Any:  # noqa: ANN401 - what the file holds
    """Read a YAML file of plain values.

    Args:
        path: The file.

    Returns:
        Its content; None for an empty file.

    Raises:
        CarinaError: The file cannot be read, is not YAML, or holds a number that is not finite.
    """
    import yaml  # noqa: PLC0415 - few commands read YAML

    from carina.store.yaml_loader import PlainLoader  # noqa: PLC0415 - imports yaml

    content = read_file(path, max_bytes=MAX_YAML_BYTES)
    try:
        text = content.decode()
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):  # nine lines of them can stand for gigabytes
                raise CarinaError(f"{path}: holds an alias (*name); write the values out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_YAML_DEPTH:
                raise CarinaError(f"{path}: nested too deeply, more than {MAX_YAML_DEPTH} levels")
        value = yaml.load(text, PlainLoader)  # noqa: S506 - a safe loader
    except UnicodeDecodeError as problem:
        raise CarinaError(f"{path}: not YAML: {explain_decode_error(problem)}") from problem
    # PyYAML does not expect the values of some tags, such as `!!bool maybe`.
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as problem:
        said = "nested too deeply" if isinstance(problem, RecursionError) else " ".join(str(problem).split())
        raise CarinaError(f"{path}: not YAML: {said}") from problem
    require_finite(value, str(path))
    return value


def read_csv(path: Path, *, error: type[CarinaError] = CarinaError) -> list[dict[str, str]]:
    """Read a CSV file with a heading.

    Args:
        path: The file, in UTF-8, with or without a byte order mark.
        error: Class of the errors to raise.

    Returns:
        One mapping a row, by heading; a cell that a row lacks is empty.

    Raises:
        CarinaError: Of the class `error`: the file cannot be read, or is not CSV.
    """
    content = read_file(path, error=error)
    try:
        # A row that is too long has the key None, which says nothing.
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), restval="")
        rows = [{name: cell for name, cell in row.items() if name is not None} for row in reader]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise error(f"{path}: not a CSV file: {problem}") from problem
    # The limit of the module csv holds for the whole process, and others may have raised it.
    if any(len(cell) > _LONGEST_CELL for row in rows for cell in row.values()):
        raise error(f"{path}: not a CSV file: a cell has more than {_LONGEST_CELL:,} characters")
    return rows


def require_finite(value: object, where: str) -> None:
    """Check that no number in a value of lists and mappings is NaN or infinite.

    Every comparison with NaN is false, so that a limit of NaN would never be exceeded.

    Raises:
        CarinaError: One is; the message begins with `where` and the keys that lead to the number.

    Example:
        >>> require_finite({"gate": {"share": float("nan")}}, "limits.yaml")
        Traceback (most recent call last):
        carina.store.errors.CarinaError: limits.yaml: gate.share: expected a finite number, found nan
    """
    found = _find_non_finite(value, ())
    if found is not None:
        place, number = found
        named = f"{'.'.join(place)}: " if place else ""
        raise CarinaError(f"{where}: {named}expected a finite number, found {number}")


def _find_non_finite(value: object, place: tuple[str, ...]) -> tuple[tuple[str, ...], float] | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else (place, value)
    inner = (
        value.items()
        if isinstance(value, Mapping)
        else enumerate(value)
        if isinstance(value, list | tuple)
        else ()
    )
    for key, each in inner:
        found = _find_non_finite(each, (*place, str(key)))
        if found is not None:
            return found
    return None
