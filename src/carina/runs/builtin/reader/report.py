"""Sentences about what was found: findings one by one, a findings section, an impression."""

from collections.abc import Sequence
from typing import Final

from carina.runs.builtin.reader.attributes import covered
from carina.runs.builtin.reader.boxes import main_pieces
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.signs import margin
from carina.studies.lungs import locate
from carina.studies.model import Location

NORMAL: Final = "No acute cardiopulmonary abnormality."
_NAMES: Final = {"edema": "pulmonary edema"}
_COUNTED: Final = frozenset(
    {"pleural effusion", "lung opacity", "nodule", "mass", "pneumothorax", "fracture"}
)
_GRADES: Final = {
    "atelectasis": (0.03, 0.28),
    "cardiomegaly": (0.53, 0.58),
    "edema": (0.50, 0.64),
    "lung opacity": (0.25, 0.35),
    "pleural effusion": (0.07, 0.41),
}
"""Share of the lungs, or of the chest's width for the heart, from which on a finding is moderate and severe: set on
phantoms of seed 11, as all numbers of the reader."""
_AIRSPACE: Final = (0.19, 0.49)
"""Of all others."""
_MANY: Final = 3
_CHANGED: Final = 0.3
"""Cut-offs by which the sign of a finding changes if it does."""


def grade(reading: Reading, finding: str) -> str:
    """Mild, moderate or severe."""
    if finding == "cardiomegaly":
        size = reading.signs.heart
    else:
        size = covered(main_pieces(reading.lesion(finding).mask), reading.look.lungs)
    moderate, severe = _GRADES.get(finding, _AIRSPACE)
    return "severe" if size >= severe else "moderate" if size >= moderate else "mild"


def located(reading: Reading, finding: str) -> Location:
    """Side and zones of a finding; neither for the heart."""
    if finding == "cardiomegaly" or reading.blank:
        return Location()
    thorax = reading.thorax
    return locate(main_pieces(reading.lesion(finding).mask), thorax.parts, thorax.right, thorax.left)


def spread(reading: Reading, finding: str) -> str:
    """Focal, multifocal or diffuse."""
    place = located(reading, finding)
    if finding == "edema" or (place.side == "bilateral" and len(place.zones) > _MANY):
        return "diffuse"
    return "multifocal" if place.side == "bilateral" else "focal"


def course(now: Reading, before: Reading, finding: str) -> str:
    """New, resolved, worse, improved or unchanged."""
    there, was = now.shows(finding), before.shows(finding)
    if there != was:
        return "new" if there else "resolved"
    change = margin(now.signs, finding) - margin(before.signs, finding)
    return "unchanged" if abs(change) < _CHANGED else "worse" if change > 0 else "improved"


def place(reading: Reading, finding: str) -> str:
    """Where a finding lies: "in the right mid and lower zones and the left mid zone", or nothing."""
    found = located(reading, finding).zones
    told = []
    for side in ("right", "left"):
        levels = [zone.split()[1] for zone in found if zone.startswith(side)]
        if levels:
            told.append(f"the {side} {_listed(levels)} zone{'s' if len(levels) > 1 else ''}")
    return f"in {_listed(told)}" if told else ""


def named(finding: str, *, article: bool = False) -> str:
    """A finding as a sentence calls it."""
    name = _NAMES.get(finding, finding)
    return f"a {name}" if article and finding in _COUNTED else name


def described(reading: Reading, finding: str) -> str:
    """A finding with grade and place."""
    words = [grade(reading, finding)]
    words.append(named(finding))
    where = place(reading, finding)
    told = " ".join([*words, where]) if where else " ".join(words)
    return f"a {told}" if finding in _COUNTED else told


def listed(findings: Sequence[str]) -> str:
    """Findings in a row."""
    return _listed([named(finding, article=True) for finding in findings])


def impression(reading: Reading) -> str:
    """What matters, in a few words."""
    if not reading.findings:
        return NORMAL
    return " ".join(f"{_capital(described(reading, finding))}." for finding in reading.findings)


def section(reading: Reading) -> str:
    """What is there and what is not."""
    told = [f"There is {described(reading, finding)}." for finding in reading.findings]
    if "cardiomegaly" not in reading.findings:
        told.append("The heart is normal in size.")
    missing = [
        name for name in ("consolidation", "pleural effusion", "pneumothorax") if name not in reading.findings
    ]
    if missing:
        told.append(f"No {' or '.join(missing)} is seen.")
    return " ".join(told)


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
