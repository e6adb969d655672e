"""Facts of a study as a reader wants to see them: short words, units, no field names."""

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from carina.studies.model import Finding, Image, Location, Measure, Quality, Study

SEXES: Final = {"F": "female", "M": "male", "O": "other"}
_TAKEN: Final = ("index", "contact-sheet")
"""File names of the contact sheet."""


def number(value: float) -> str:
    """Three significant digits, never in powers of ten: 0.57, 4.1, 1234."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def measure(item: Measure) -> str:
    unit = "" if item.unit in ("", "1") else f" {item.unit}"
    return f"{item.name} {number(item.value)}{unit}"


def measures(items: Iterable[Measure]) -> str:
    return "; ".join(measure(item) for item in items)


def location(place: Location | None) -> str:
    """Side, then zones and parts without repeating the side in each."""
    if place is None:
        return ""
    # A zone already says its side ("left lower zone"), so the side alone is said only where nothing finer is.
    finer = [*place.zones, *place.parts, *([place.site] if place.site else [])]
    says_side = place.side in ("right", "left") and any(str(place.side) in item.split() for item in finer)
    return ", ".join([*([place.side] if place.side and not says_side else []), *finer])


def conspicuity(finding: Finding) -> str:
    """One number per annotation that has one, in the order of the annotations."""
    return ", ".join(
        number(annotation.conspicuity)
        for annotation in finding.annotations
        if annotation.conspicuity is not None
    )


def sentence_numbers(evidence: Iterable[int]) -> tuple[int, ...]:
    """As printed: from 1."""
    return tuple(index + 1 for index in evidence)


def view(image: Image) -> str:
    return "view unknown" if image.view == "unknown" else image.view


def rotation(quality: Quality) -> str:
    if quality.rotation is None:
        return ""
    turned = "none" if quality.rotation == "none" else f"to the {quality.rotation}"
    degrees = "" if quality.rotation_degrees is None else f" ({number(quality.rotation_degrees)}°)"
    return turned + degrees


def inspiration(quality: Quality) -> str:
    ribs = "" if quality.posterior_ribs is None else f"{quality.posterior_ribs} posterior ribs"
    return ", ".join(part for part in (quality.inspiration or "", ribs) if part)


def cut_off(quality: Quality) -> str:
    if quality.cut_off is None:
        return ""
    return ", ".join(quality.cut_off) or "nothing"


def patient(study: Study) -> str:
    """ "63 years, female", as far as it is known."""
    age = "" if study.age is None else f"{study.age} years"
    return ", ".join(part for part in (age, SEXES[study.sex] if study.sex else "") if part)


def joined(parts: Sequence[str]) -> str:
    """Parts of one line, apart from those that say nothing."""
    return " · ".join(part for part in parts if part)


def page_name(study_id: str) -> str:
    """A study's file name without ending: its id where that is safe, else a safe form of it and a hash."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", study_id) and study_id not in _TAKEN:
        return study_id
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", study_id)[:60].strip("_-")
    return f"{safe or 'study'}-{sha256(study_id.encode()).hexdigest()[:10]}"
