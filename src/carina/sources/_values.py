"""Values as data sets write them: splits, views, ages, sexes, certainties, ids."""

import re
from typing import Final

from carina.sources._record import RecordError, describe
from carina.studies.vocabulary import Certainty, Sex, Split, View

SPLITS: Final[dict[str, Split]] = {
    "train": "train", "training": "train",
    "val": "val", "valid": "val", "validate": "val", "validation": "val", "dev": "val",
    "test": "test", "testing": "test",
}  # fmt: skip
"""Splits by how data sets write them, in small letters."""
_VIEWS: Final[dict[str, View]] = {
    "PA": "PA", "POSTERO-ANTERIOR": "PA", "POSTEROANTERIOR": "PA", "POSTERO ANTERIOR": "PA",
    "AP": "AP", "ANTERO-POSTERIOR": "AP", "ANTEROPOSTERIOR": "AP", "ANTERO POSTERIOR": "AP",
    "AP SUPINE": "AP", "AP ERECT": "AP", "AP HORIZONTAL": "AP", "AP AXIAL": "AP",
    "LATERAL": "lateral", "L": "lateral", "LL": "lateral", "RL": "lateral", "LEFT LATERAL": "lateral",
    "RIGHT LATERAL": "lateral", "XTABLE LATERAL": "lateral",
}  # fmt: skip
"""Views by how data sets write them, in capitals with spaces for underscores; every other word is "unknown"."""
_SEXES: Final[dict[str, Sex]] = {"F": "F", "FEMALE": "F", "M": "M", "MALE": "M", "O": "O", "OTHER": "O"}
_CERTAINTIES: Final[dict[float, Certainty]] = {1.0: "present", 0.0: "absent", -1.0: "uncertain"}
_AGE: Final = re.compile(r"(\d{1,3})(?:\.\d*)?\s*([YMWD]?)", re.IGNORECASE)


def read_split(text: str) -> Split | None:
    """The split; None where there is none.

    Raises:
        RecordError: The word is none for a split.
    """
    word = text.strip().lower()
    if word and word not in SPLITS:
        raise RecordError("split", f"is {describe(text)}, expected train, val or test", kind="split")
    return SPLITS.get(word)


def read_view(text: str) -> View:
    """The view; "unknown" for a word that names none of ours, such as an oblique one."""
    return _VIEWS.get(" ".join(text.upper().replace("_", " ").split()), "unknown")


def read_sex(text: str) -> Sex | None:
    """The sex; None where the text names none."""
    return _SEXES.get(text.strip().upper())


def read_age(text: str) -> int | None:
    """Whole years of an age such as 58, 058Y, 18M or 002D; None where the text is none.

    Data sets write impossible ages too (NIH has 414): above 120 years the age is unknown.
    """
    match = _AGE.fullmatch(text.strip())
    if match is None:
        return None
    years = int(match[1]) // {"M": 12, "W": 52, "D": 365}.get(match[2].upper(), 1)
    return years if years <= 120 else None


def read_certainty(value: float | None, field: str) -> Certainty | None:
    """The meaning of 1, 0 and -1 in a table of labels; None where the label is not mentioned."""
    if value is None:
        return None
    if value not in _CERTAINTIES:
        raise RecordError(field, f"is {value:g}, expected 1, 0, -1 or nothing", kind="label")
    return _CERTAINTIES[value]
