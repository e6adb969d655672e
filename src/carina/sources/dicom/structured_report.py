"""Findings and text of structured reports (DICOM SR).

Findings are taken where they are coded: an item of the type CODE whose name is "Finding", as in measurement groups of
TID 1500, or "Single Image Finding", as in reports of computer-aided detection (CAD); with its presence, its place and
its closed outlines on images, where these are coded, too. Text is dropped unless it is
asked for; then it is given out by section, for `carina.sources.dicom.text_check` to look at.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from carina.sources.dicom.attributes import Attributes, Tag, damaged
from carina.sources.dicom.concepts import Code, Concept, find_code, read_code
from carina.sources.dicom.finding_site import is_heading_of_place, read_location, states_place
from carina.studies.model import Location
from carina.studies.vocabulary import SECTIONS, Certainty, Section

_CAD_REPORTS: Final = frozenset(("1.2.840.10008.5.1.4.1.1.88.65",))  # Chest CAD SR
REPORTS: Final = _CAD_REPORTS | frozenset(
    (
        "1.2.840.10008.5.1.4.1.1.88.11",  # Basic Text SR
        "1.2.840.10008.5.1.4.1.1.88.22",  # Enhanced SR
        "1.2.840.10008.5.1.4.1.1.88.33",  # Comprehensive SR
        "1.2.840.10008.5.1.4.1.1.88.34",  # Comprehensive 3D SR
    )
)
UNKNOWN_FINDING: Final = "unknown coded finding"
UNKNOWN_OUTLINE: Final = "unknown kind of outline"
DROPPED_TEXT: Final = "report text dropped"
UNKNOWN_PRESENCE: Final = "finding of unknown presence"
UNKNOWN_SITE: Final = "unknown place of a finding"
DENIED_IN_PART: Final = "denial of a part of a finding"
NOT_PRESENTED: Final = "finding that is not to be presented"
FINDING_NAMES: Final = frozenset(
    (
        Code("DCM", "121071"),
        Code("SCT", "404684003"),
        Code("SRT", "R-005AE"),
        Code("DCM", "111059"),  # single image finding
    )
)
_NOT_FOR_PRESENTATION: Final = (Code("DCM", "111056"), Code("DCM", "111152"))
"""Rendering intent of a mark that a CAD program has found and does not want to be seen."""
_DEGREES: Final = frozenset(
    (
        Code("SCT", "246112005"), Code("SRT", "G-C197"),  # severity
        Code("SCT", "263502005"),  # clinical course
        Code("SCT", "116676008"), Code("SRT", "G-C00E"),  # associated morphology
    )
)  # fmt: skip
_DEGREE_MEANINGS: Final = frozenset(
    ("severity", "grade", "degree", "acuity", "clinical course", "chronicity", "size")
)
"""Of what is denied in a degree or a form, another one may be there."""
_NO_LIMITS: Final = frozenset(
    (
        Code("DCM", "121049"), Code("DCM", "121046"),  # language and country of the content
        Code("DCM", "121058"),  # procedure reported
        Code("SCT", "370129005"), Code("SRT", "G-C036"),  # measurement method
    )
)  # fmt: skip
"""Names of modifiers that say nothing of what a finding is."""
TRACKING_NAMES: Final = frozenset((Code("DCM", "112040"),))
_OBSERVER_TYPE: Final = Code("DCM", "121005")
_DEVICE: Final = Code("DCM", "121007")
PRESENCE_NAMES: Final = frozenset(
    (
        Code("SCT", "705057003"),  # presence
        Code("SCT", "408729009"),  # finding context
        Code("SCT", "246103008"),  # certainty
        Code("DCM", "121052"),  # presence of property
        Code("DCM", "111012"),  # certainty of finding
    )
)
"""Names of items that say whether a finding is present."""
_PRESENCE_MEANINGS: Final = frozenset(
    ("presence", "presence of finding", "certainty", "certainty of finding", "finding context", "finding present",
     "present", "presence of property", "negation")
)  # fmt: skip
"""Meanings under which codes of a hospital's own name such an item: what it says is not known."""
_PRESENCE: Final[dict[Certainty, dict[str, tuple[str, ...]]]] = {
    "present": {
        # present; clinical finding present; known, definitely and confirmed present; yes; positive; detected
        "SCT": ("52101004", "373573001", "410515003", "410591008", "410605003", "373066001", "10828004", "260373001"),
        "SRT": ("G-A203", "R-0038D", "G-A200"),
        "DCM": ("121053",),
    },
    "absent": {
        # absent, by three codes; known absent; definitely not present; no; negative; not detected
        "SCT": ("2667000", "272519000", "373572006", "410516002", "410594000", "373067005", "260385009", "260415000"),
        "SRT": ("R-4089B", "G-A46B", "R-00339", "R-40759"),
        "DCM": ("121054",),
    },
    "uncertain": {
        # equivocal; known possible; probably and probably not present; suspected; possible; possible and probable
        # diagnosis; undetermined; indeterminate; uncertain; inconclusive
        "SCT": ("42425007", "410590009", "410592001", "410593006", "415684004", "371930009", "60022001", "2931005",
                "373068000", "82334004", "64957009", "419984006"),
        "SRT": ("G-A466", "G-A47B", "R-0038A", "G-A385", "G-A648"),
        "DCM": ("121059",),
    },
}  # fmt: skip
"""Values of such items by scheme: CID 230, 240, 250 and 3770 of PS3.16, and finding contexts of SNOMED CT."""
_CERTAINTIES: Final[dict[Code, Certainty]] = {
    Code(scheme, value): certainty
    for certainty, schemes in _PRESENCE.items()
    for scheme, values in schemes.items()
    for value in values
}
_SECTIONS: Final[dict[str, Section]] = {
    "121060": "indication", "121109": "indication", "18785-6": "indication", "11329-0": "indication",
    "18834-2": "comparison",
    "55111-9": "technique", "121064": "technique",
    "121070": "findings", "121071": "findings", "59776-5": "findings", "18782-3": "findings",
    "121072": "impression", "121073": "impression", "121076": "impression", "121077": "impression",
    "19005-8": "impression",
    "121074": "recommendation", "121075": "recommendation", "18783-1": "recommendation",
}  # fmt: skip
"""Headings and their texts: PS3.16, CID 7001 and 7002, in codes of DICOM and LOINC."""
_DEEPEST: Final = 20
_MOST_ITEMS: Final = 20_000


@dataclass(frozen=True)
class Outline:
    """A closed line on an image."""

    image: bytes
    """SOP instance UID of the image."""
    points: tuple[tuple[float, float], ...]
    """Columns and rows, from the upper left corner of the image."""


@dataclass(frozen=True)
class CodedFinding:
    """A finding that a report states by a code."""

    concept: Concept
    certainty: Certainty | None
    """None where the report says by a code that is not known whether, or where, the finding is present or absent, or
    denies it in a degree or form alone: nothing is stated."""
    location: Location | None
    tracking: bytes
    """UID by which the same finding is recognised in other objects; empty where there is none."""
    outlines: tuple[Outline, ...]


def read_findings(attributes: Attributes) -> Iterator[CodedFinding | str]:
    """The coded findings of a report, and a defect for every one that is left out or states nothing.

    Raises:
        ObjectError: The report is damaged.
    """
    for container, outer in _containers_with_outer(attributes):
        children = container.items(Tag.CONTENT)
        findings = [child for child in children if _is_code(child, FINDING_NAMES)]
        for finding in findings:
            concept = find_code(finding.first(Tag.CONCEPT_CODE))
            if concept is None or concept.kind == "anatomy":
                yield UNKNOWN_FINDING
                continue
            # What stands beside a finding belongs to it only where it is the only one.
            about = [*finding.items(Tag.CONTENT), *(children if len(findings) == 1 else ())]
            if any((_name_of(child), _value_of(child)) == _NOT_FOR_PRESENTATION for child in about):
                yield NOT_PRESENTED
                continue
            outlines: list[Outline] = []
            for child in about:
                if child.text(Tag.VALUE_TYPE) == "SCOORD":
                    outline = _read_outline(child)
                    if outline is None:
                        yield UNKNOWN_OUTLINE
                    else:
                        outlines.append(outline)
            certainty = _read_presence(about)
            if certainty is None:
                yield UNKNOWN_PRESENCE
            location, is_exact = read_location(about, concept.name)
            # Of several findings in a group, nobody knows which one a place beside them belongs to.
            is_exact = is_exact and not (len(findings) > 1 and states_place(children))
            # What stands around a group says of the whole group where it is, but not how that goes with its own places.
            is_exact = is_exact and not any(states_place(one.items(Tag.CONTENT)) for one in outer)
            is_exact = is_exact and not any(
                is_heading_of_place(one, concept.name) for one in (*outer, container)
            )
            if not is_exact:
                yield UNKNOWN_SITE
                # Absent at a place that is not known is not absent as a whole.
                certainty = None if certainty == "absent" else certainty
            elif certainty == "absent" and any(map(_is_limit, about)):
                yield DENIED_IN_PART
                certainty = None
            yield CodedFinding(concept, certainty, location, _read_tracking(about), tuple(outlines))


def read_texts(attributes: Attributes) -> dict[Section, str]:
    """The text of a report by section, in the order of sections.

    Raises:
        ObjectError: The report is damaged.
    """
    texts: dict[Section, list[str]] = {section: [] for section in SECTIONS}
    for container in _containers(attributes):
        heading = _SECTIONS.get(_name_of(container).value)
        for child in container.items(Tag.CONTENT):
            section = _SECTIONS.get(_name_of(child).value) or heading
            if child.text(Tag.VALUE_TYPE) == "TEXT" and section is not None:
                texts[section].append(child.decoded(Tag.TEXT_VALUE).strip())
    return {section: "\n".join(parts) for section, parts in texts.items() if any(parts)}


def is_by_device(attributes: Attributes) -> bool:
    """Whether a program alone observed what the report states."""
    if attributes.text(Tag.SOP_CLASS) in _CAD_REPORTS:
        return True
    observers = {
        read_code(child.first(Tag.CONCEPT_CODE))
        for container in _containers(attributes)
        for child in container.items(Tag.CONTENT)
        if _is_code(child, frozenset((_OBSERVER_TYPE,)))
    }
    return observers == {_DEVICE}


def has_text(attributes: Attributes) -> bool:
    """Whether a report holds any text."""
    return any(
        child.text(Tag.VALUE_TYPE) == "TEXT"
        for container in _containers(attributes)
        for child in container.items(Tag.CONTENT)
    )


def list_person_names(attributes: Attributes) -> Iterator[str]:
    """Names of persons in the content of a report."""
    for container in _containers(attributes):
        for child in container.items(Tag.CONTENT):
            if child.text(Tag.VALUE_TYPE) == "PNAME":
                yield child.decoded(Tag.PERSON_NAME)
    for observer in attributes.items(Tag.VERIFYING_OBSERVERS):
        yield observer.decoded(Tag.VERIFYING_NAME)


def _containers(attributes: Attributes) -> Iterator[Attributes]:
    """All items that hold items, from the whole report down."""
    for item, _ in _containers_with_outer(attributes):
        yield item


def _containers_with_outer(attributes: Attributes) -> Iterator[tuple[Attributes, tuple[Attributes, ...]]]:
    """All items that hold items, from the whole report down, each with those that hold it."""
    waiting: list[tuple[Attributes, tuple[Attributes, ...]]] = [(attributes, ())]
    seen = 0
    while waiting:
        item, outer = waiting.pop()
        children = item.items(Tag.CONTENT)
        seen += len(children)
        if len(outer) > _DEEPEST or seen > _MOST_ITEMS:
            raise damaged("its content has too many items, or too many levels")
        if children:
            yield item, outer
        waiting += [(child, (*outer, item)) for child in reversed(children)]


def _name_of(item: Attributes) -> Code:
    return read_code(item.first(Tag.CONCEPT_NAME))


def _value_of(item: Attributes) -> Code:
    return read_code(item.first(Tag.CONCEPT_CODE))


def _is_code(item: Attributes, names: frozenset[Code]) -> bool:
    return item.text(Tag.VALUE_TYPE) == "CODE" and _name_of(item) in names


def _read_presence(items: list[Attributes]) -> Certainty | None:
    """What the items around a finding say of its presence: present where none is about that at all.

    None where one says something that is not known, or where two do not say the same.
    """
    stated = {_read_certainty(item) for item in items if _is_presence(item)}
    if not stated:
        return "present"
    return stated.pop() if len(stated) == 1 else None


def _is_presence(item: Attributes) -> bool:
    """Whether an item is about the presence of a finding by its name, whatever the type of its value."""
    meaning = item.first(Tag.CONCEPT_NAME).text(Tag.CODE_MEANING)
    return _name_of(item) in PRESENCE_NAMES or meaning.lower() in _PRESENCE_MEANINGS


def _is_limit(item: Attributes) -> bool:
    """Whether an item says of which degree or form a finding is, so that its denial leaves others open."""
    if item.text(Tag.VALUE_TYPE) != "CODE" or _is_presence(item) or states_place((item,)):
        return False
    name = _name_of(item)
    if name in _DEGREES or item.first(Tag.CONCEPT_NAME).text(Tag.CODE_MEANING).lower() in _DEGREE_MEANINGS:
        return True
    return item.text(Tag.RELATIONSHIP) == "HAS CONCEPT MOD" and name not in _NO_LIMITS


def _read_certainty(item: Attributes) -> Certainty | None:
    is_known = _name_of(item) in PRESENCE_NAMES
    return _CERTAINTIES.get(read_code(item.first(Tag.CONCEPT_CODE))) if is_known else None


def _read_tracking(items: list[Attributes]) -> bytes:
    return next((item.raw(Tag.UID_VALUE) for item in items if _name_of(item) in TRACKING_NAMES), b"")


def _read_outline(item: Attributes) -> Outline | None:
    """A closed line on one image; None for points, circles, open lines, and lines without an image."""
    images = [
        reference.raw(Tag.REFERENCED_SOP_INSTANCE)
        for child in item.items(Tag.CONTENT)
        for reference in child.items(Tag.REFERENCED_SOPS)
    ]
    data = item.stored(Tag.GRAPHIC_DATA)
    if item.text(Tag.GRAPHIC_TYPE) != "POLYLINE" or len(images) != 1 or len(data) % 8 or len(data) < 32:
        return None
    numbers = struct.unpack(f"{item.order}{len(data) // 4}f", data)
    points = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return Outline(images[0], points[:-1]) if points[0] == points[-1] else None
