"""Write sentences about findings, a findings section, and an impression."""

from collections.abc import Sequence
from typing import Final

from carina.runs.builtin.reader.attributes import measure_coverage
from carina.runs.builtin.reader.boxes import keep_main_pieces
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.signs import measure_margin
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
"""Share of the lungs (for cardiomegaly, of the chest width) from which a finding is moderate and severe. Set on
phantoms of seed 11, as all numbers of the reader."""
_GRADES_OTHERS: Final = (0.19, 0.49)
"""The same for all other findings."""
_DIFFUSE_ZONES: Final = 3
_LEAST_CHANGE: Final = 0.3
"""Least change of the sign of a finding, in units of its cut-off."""


def grade_severity(reading: Reading, finding: str) -> str:
    """Grade a finding as mild, moderate or severe."""
    if finding == "cardiomegaly":
        size = reading.signs.heart
    else:
        size = measure_coverage(
            keep_main_pieces(reading.estimate_lesion(finding).mask), reading.appearance.lungs
        )
    moderate, severe = _GRADES.get(finding, _GRADES_OTHERS)
    return "severe" if size >= severe else "moderate" if size >= moderate else "mild"


def locate_finding(reading: Reading, finding: str) -> Location:
    """Side and zones of a finding; empty for cardiomegaly."""
    if finding == "cardiomegaly" or reading.is_blank:
        return Location()
    thorax = reading.thorax
    return locate(
        keep_main_pieces(reading.estimate_lesion(finding).mask), thorax.parts, thorax.right, thorax.left
    )


def classify_distribution(reading: Reading, finding: str) -> str:
    """Classify a finding as focal, multifocal or diffuse."""
    place = locate_finding(reading, finding)
    if finding == "edema" or (place.side == "bilateral" and len(place.zones) > _DIFFUSE_ZONES):
        return "diffuse"
    return "multifocal" if place.side == "bilateral" else "focal"


def classify_change(now: Reading, before: Reading, finding: str) -> str:
    """Classify the change of a finding as new, resolved, worse, improved or unchanged."""
    is_present, was_present = now.has_finding(finding), before.has_finding(finding)
    if is_present != was_present:
        return "new" if is_present else "resolved"
    change = measure_margin(now.signs, finding) - measure_margin(before.signs, finding)
    return "unchanged" if abs(change) < _LEAST_CHANGE else "worse" if change > 0 else "improved"


def describe_location(reading: Reading, finding: str) -> str:
    """Location of a finding, such as "in the right mid and lower zones and the left mid zone"; may be empty."""
    found = locate_finding(reading, finding).zones
    phrases = []
    for side in ("right", "left"):
        levels = [zone.split()[1] for zone in found if zone.startswith(side)]
        if levels:
            phrases.append(f"the {side} {_join_words(levels)} zone{'s' if len(levels) > 1 else ''}")
    return f"in {_join_words(phrases)}" if phrases else ""


def name_finding(finding: str, *, article: bool = False) -> str:
    """The name of a finding within a sentence."""
    name = _NAMES.get(finding, finding)
    return f"a {name}" if article and finding in _COUNTED else name


def describe_finding(reading: Reading, finding: str) -> str:
    """A finding with its severity and location."""
    words = [grade_severity(reading, finding)]
    words.append(name_finding(finding))
    where = describe_location(reading, finding)
    phrase = " ".join([*words, where]) if where else " ".join(words)
    return f"a {phrase}" if finding in _COUNTED else phrase


def list_findings(findings: Sequence[str]) -> str:
    """Findings as an enumeration."""
    return _join_words([name_finding(finding, article=True) for finding in findings])


def write_impression(reading: Reading) -> str:
    """Impression section of a report."""
    if not reading.findings:
        return NORMAL
    return " ".join(f"{_capitalise(describe_finding(reading, finding))}." for finding in reading.findings)


def write_findings_section(reading: Reading) -> str:
    """Findings section of a report, with important negative findings."""
    sentences = [f"There is {describe_finding(reading, finding)}." for finding in reading.findings]
    if "cardiomegaly" not in reading.findings:
        sentences.append("The heart is normal in size.")
    missing = [
        name for name in ("consolidation", "pleural effusion", "pneumothorax") if name not in reading.findings
    ]
    if missing:
        sentences.append(f"No {' or '.join(missing)} is seen.")
    return " ".join(sentences)


def _join_words(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
