"""Facts of a study as short texts with units, and the file names of pages."""

from collections.abc import Iterable, Sequence
from typing import Final

from carina.store.names import safe_name
from carina.studies.model import Assessed, Finding, Image, Location, Measure, Quality, Study
from carina.studies.vocabulary import Scope

SEXES: Final = {"F": "female", "M": "male", "O": "other"}
_MOST_LISTED: Final = 30
"""Names of a closed list that a page gives."""
_RESERVED_NAMES: Final = ("index", "contact-sheet")
"""File names of pages that no study or case may have."""


def format_number(value: float) -> str:
    """Three significant digits, never in powers of ten: 0.57, 4.1, 1234."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def join_names(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def format_measure(item: Measure) -> str:
    """Name, value and unit: "volume 930 mL"."""
    unit = "" if item.unit in ("", "1") else f" {item.unit}"
    return f"{item.name} {format_number(item.value)}{unit}"


def format_measures(items: Iterable[Measure]) -> str:
    """Several measures in one text."""
    return "; ".join(format_measure(item) for item in items)


def describe_location(place: Location | None) -> str:
    """Side, then zones and parts without repeating the side in each."""
    if place is None:
        return ""
    # A zone already names its side ("left lower zone"), so the side stands alone only where nothing finer is known.
    finer = [*place.zones, *place.parts, *([place.site] if place.site else [])]
    names_side = place.side in ("right", "left") and any(str(place.side) in item.split() for item in finer)
    return ", ".join([*([place.side] if place.side and not names_side else []), *finer])


def format_conspicuity(finding: Finding) -> str:
    """One number per annotation that has one, in the order of the annotations."""
    return ", ".join(
        format_number(annotation.conspicuity)
        for annotation in finding.annotations
        if annotation.conspicuity is not None
    )


def sentence_numbers(evidence: Iterable[int]) -> tuple[int, ...]:
    """Indices of sentences as they are printed, from 1."""
    return tuple(index + 1 for index in evidence)


def view_name(image: Image) -> str:
    """ "PA", "AP", "lateral", or "view unknown"."""
    return "view unknown" if image.view == "unknown" else image.view


def describe_rotation(quality: Quality) -> str:
    """ "none (1°)", "to the left (8°)", or nothing where it is unknown."""
    if quality.rotation is None:
        return ""
    direction = "none" if quality.rotation == "none" else f"to the {quality.rotation}"
    degrees = "" if quality.rotation_degrees is None else f" ({format_number(quality.rotation_degrees)}°)"
    return direction + degrees


def describe_inspiration(quality: Quality) -> str:
    """ "adequate, 9 posterior ribs", as far as it is known."""
    ribs = "" if quality.posterior_ribs is None else f"{quality.posterior_ribs} posterior ribs"
    return ", ".join(part for part in (quality.inspiration or "", ribs) if part)


def describe_cut_off(quality: Quality) -> str:
    """Anatomy that the image cuts off; "nothing", or an empty text where it is unknown."""
    if quality.cut_off is None:
        return ""
    return ", ".join(quality.cut_off) or "nothing"


def describe_patient(study: Study) -> str:
    """ "63 years, female", as far as it is known."""
    age = "" if study.age is None else f"{study.age} years"
    return ", ".join(part for part in (age, SEXES[study.sex] if study.sex else "") if part)


def describe_assessed(assessed: Assessed) -> str:
    """What was looked for in a study, as one sentence; what was not looked for may be there."""
    scopes = (assessed.findings, assessed.devices)
    if scopes[0] == scopes[1]:
        clauses = [_describe_scope(scopes[0], ("finding", "device"), assessed.listed)]
    else:
        clauses = [
            _describe_scope(scope, (kind,), assessed.listed)
            for scope, kind in zip(scopes, ("finding", "device"), strict=True)
        ]
    if assessed.text:
        clauses.append("what the report states is recorded")
    sentence = "; ".join(clauses)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _describe_scope(scope: Scope, kinds: Sequence[str], listed: Sequence[str]) -> str:
    if scope == "every":
        return f"{' and '.join(f'every {kind}' for kind in kinds)} was looked for"
    plural = " and ".join(f"{kind}s" for kind in kinds)
    if scope == "unknown":
        return f"it is not known which {plural} were looked for"
    more = len(listed) - _MOST_LISTED
    names = [*listed[:_MOST_LISTED], *([f"{more} others"] if more > 0 else [])]
    return (
        f"only {plural} of a closed list were looked for ({join_names(names) if names else 'an empty list'})"
    )


def join_parts(parts: Sequence[str]) -> str:
    """The parts of one line that are not empty, with dots between them."""
    return " · ".join(part for part in parts if part)


def page_name(record_id: str) -> str:
    """File name, without ending, of the page of a study or case: its id where that is safe, else a safe form of it.

    A safe form ends in a hash of the id, so that two ids never share a page.
    """
    return safe_name(record_id, reserved=_RESERVED_NAMES, otherwise="study")
