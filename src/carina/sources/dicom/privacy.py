"""Keyed names instead of identifiers, and shifted dates.

An id becomes the beginning of HMAC-SHA-256 over it, with a key that lies outside of everything that is shared. The same
key gives the same names, so that later imports join; without the key nobody can tell whether a name belongs to an id,
not even by trying all ids.
"""

import datetime
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from carina.sources._record import SourceError

METHODS: Final = {
    "113100": "Basic Application Confidentiality Profile",
    "113103": "Clean Graphics Option",
    "113104": "Clean Structured Content Option",
    "113105": "Clean Descriptors Option",
    "113107": "Retain Longitudinal Temporal Information With Modified Dates Option",
    "113108": "Retain Patient Characteristics Option",
}
"""Codes of PS3.16, CID 7050, for what an import does."""
METHOD_OF_CLEAN_PIXELS: Final = {"113101": "Clean Pixel Data Option"}
"""Where text was looked for in all images, whatever their headers say."""
METHODS_WITH_IDENTIFIERS: Final = {
    "113106": "Retain Longitudinal Temporal Information With Full Dates Option",
    "113110": "Retain UIDs Option",
}
"""Codes of what is kept with `keep_identifiers`; ids of patients are kept, too, so that no profile is met."""
NOT_WITH_REPORT_TEXT: Final = frozenset(("113100", "113104", "113105"))
"""Methods that are not claimed where text of reports is kept: the basic profile, and that structured content and
descriptors are clean. The text was searched for names and dates, which is no proof that there are none."""
OLDEST: Final = 90
"""Ages from this on are one class."""
_DAYS_IN_YEAR: Final = 365.25
LONGEST_SHIFT: Final = 3650
"""Days by which dates are moved back, at most."""
_KEY_BYTES: Final = 32
_NAME_LENGTH: Final = 20
"""Hexadecimal digits of a name: 80 bits, so that two of a billion ids get the same name with probability 1e-6."""


@dataclass(frozen=True)
class Pseudonyms:
    """Names and dates under one key."""

    key: bytes

    @property
    def key_id(self) -> str:
        """A name of the key, by which two study sets can be told to have the same one."""
        return self.digest("key", b"")[:16]

    def digest(self, kind: str, value: bytes) -> str:
        """The keyed hash of a value, in hexadecimal digits; values of different kinds have nothing in common."""
        return hmac.new(self.key, kind.encode() + b"\0" + value, hashlib.sha256).hexdigest()

    def name(self, kind: str, value: bytes) -> str:
        """The name that stands for an id."""
        return self.digest(kind, value)[:_NAME_LENGTH]

    def shift(self, patient: bytes, date: datetime.date) -> datetime.date | None:
        """A date of a patient, moved back by the patient's own number of days; None before the calendar begins."""
        days = 1 + int(self.digest("date", patient)[:16], 16) % LONGEST_SHIFT
        try:
            return date - datetime.timedelta(days=days)
        except OverflowError:
            return None


def default_key_file() -> Path:
    """Where the key lies if the user names no file: in the user's own folder of settings."""
    from typer import get_app_dir  # noqa: PLC0415 - takes long to import, and is not needed where a file is named

    return Path(get_app_dir("carina")) / "dicom.key"


def load_key(path: Path, out: Path | None) -> Pseudonyms:
    """Read the key, or create it with rights for the owner alone.

    Args:
        path: The key file.
        out: The directory that is written and may be shared: the key must not lie in it. None where that was checked.

    Raises:
        SourceError: The key lies in `out`, others may read it, or it is not a key.
    """
    if out is not None and path.resolve().is_relative_to(out.resolve()):
        raise SourceError(
            f"{path}: the key lies in {out}, which may be shared: keep it elsewhere (--key-file)"
        )
    with suppress(FileExistsError):
        _create_key(path)
    try:
        about = path.stat()
        text = path.read_bytes()[:1000].decode("ascii", "replace").strip()
    except OSError as error:
        raise SourceError(f"{path}: the key cannot be read: {error.strerror}") from error
    if os.name == "posix" and about.st_mode & 0o077:
        raise SourceError(f"{path}: others than the owner may use the key: run chmod 600 on it")
    if not re.fullmatch(r"([0-9a-f]{2}){32,}", text):
        raise SourceError(
            f"{path}: not a key, expected {2 * _KEY_BYTES} or more hexadecimal digits; name a file that does not "
            "exist to have a key made"
        )
    return Pseudonyms(bytes.fromhex(text))


def _create_key(path: Path) -> None:
    """Create a key file; raises FileExistsError where there is one."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, f"{secrets.token_hex(_KEY_BYTES)}\n")
    except FileExistsError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: the key cannot be created: {error.strerror}") from error


def write_private(path: Path, text: str) -> None:
    """Create a file that only its owner may read; raises FileExistsError where there is one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
        if os.name == "posix":
            os.fchmod(file.fileno(), 0o600)
        file.write(text)


def replace_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all, in place of an earlier one."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_private(part, text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True)
class DatedAge:
    """What a study tells of the patient's age."""

    date: datetime.date | None
    years: tuple[int, ...]
    """Ages that its objects state, or that follow from the date of birth; they may differ."""


def may_be_old(studies: Iterable[DatedAge]) -> bool:
    """Whether a patient was, or may have been, 90 or over in any study.

    Studies keep their distance in time, so that an exact age in one gives the age in all others. A study that states no
    age is judged by what follows from the age in others: 85 years and 6 years later may be 91.

    Example:
        >>> day = datetime.date
        >>> may_be_old([DatedAge(day(2015, 3, 1), (85,)), DatedAge(day(2018, 3, 1), ())])
        False
        >>> may_be_old([DatedAge(day(2015, 3, 1), (85,)), DatedAge(day(2021, 3, 1), ())])
        True
    """
    given = list(studies)
    if any(years >= OLDEST for study in given for years in study.years):
        return True
    silent = [study.date for study in given if study.date is not None and not study.years]
    if not silent:
        return False
    last = max(silent)
    return any(
        years + 1 + (last - study.date).days / _DAYS_IN_YEAR > OLDEST
        for study in given
        if study.date is not None
        for years in study.years
    )


def choose_ages(studies: Iterable[DatedAge]) -> list[int | None]:
    """The age that is recorded for each study of a patient.

    A patient who may be 90 or over in any study has no exact age in any. Their class, 90, is recorded where all studies
    whose age is known are in it. Where one is not, none has an age, since the study in which the class begins would
    tell the year of birth.

    Example:
        >>> day = datetime.date
        >>> choose_ages([DatedAge(day(2015, 3, 1), (61,)), DatedAge(day(2018, 3, 1), ())])
        [61, None]
        >>> choose_ages([DatedAge(day(2015, 3, 1), (91,)), DatedAge(day(2018, 3, 1), (94,))])
        [90, 90]
        >>> choose_ages([DatedAge(day(2015, 3, 1), (89,)), DatedAge(day(2018, 3, 1), (92,))])
        [None, None]
    """
    given = list(studies)
    stated = [next(iter(study.years), None) for study in given]
    if not may_be_old(given):
        return stated
    is_class = all(max(study.years) >= OLDEST for study in given if study.years)
    return [OLDEST if is_class and years is not None else None for years in stated]
