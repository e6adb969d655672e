"""What a scene graph says about one image, in the form that silver and gold share, and what becomes of it in a study.

A finding of Chest ImaGenome has no region of its own: it is an attribute of a structure, whose box is that of the
structure. So the box becomes anatomy, and the structure becomes the location of the finding. What is denied of
structures of one side is not absent: a sentence about one side says nothing of the other, and one about the mediastinum
says nothing of the lungs.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from carina.sources._added import CERTAINTY_BY_TREND, AddedFinding, Addition
from carina.sources._labels import name_of
from carina.sources._locations import locate
from carina.store.errors import RegionError
from carina.studies.model import Anatomy, Image
from carina.studies.region import Region
from carina.studies.terms import find_term
from carina.studies.vocabulary import SIDES, ZONES, Certainty, Severity, Trend

CATEGORIES: Final = ("anatomicalfinding", "disease", "tubesandlines", "device")
"""Categories of attributes that name a finding or a device."""
TRENDS: Final[dict[str, Trend]] = {"no change": "unchanged", "improved": "improved", "worsened": "worse"}
DEFECTS: Final = {
    "size": "the size of an image is unknown, since its file is missing: its boxes are left out",
    "structure": "a structure that is there twice is used once",
    "attribute": "an attribute that is not written as category|yes or no|name is left out",
    "no prior": "a comparison with an image of an unknown study, or of the same study, is left out",
    "second prior": "a comparison with another prior study than the first one is left out",
    "one side": "a finding that is denied only of structures of one side, of some zones, or of structures where it "
    "would not be, is not absent: it is left out",
    "stated and denied": "a finding that is stated and denied of the same structures, by one label or by several of "
    "its name, is left out",
    "second trend": "several trends of a finding, of several structures or sentences: all are left out",
}


class Box(NamedTuple):
    """A structure: left, top, right and bottom in pixels of the original image."""

    name: str
    corners: Sequence[float | None]


class Attribute(NamedTuple):
    """A finding or device of a structure; `is_present` is False where a sentence says that there is none."""

    structure: str
    category: str
    label: str
    is_present: bool
    severity: Severity | None = None


class Comparison(NamedTuple):
    """A trend of findings against another image."""

    labels: tuple[str, ...]
    trend: Trend
    previous: str
    """Id of the other image."""


@dataclass
class Graph:
    """A scene graph of one image."""

    boxes: list[Box] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    defects: Counter[str] = field(default_factory=Counter)
    unmapped: dict[str, None] = field(default_factory=dict)
    """Parts of the graph that have no place in a study."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Fields of the study that the graph states."""

    def add_attribute(self, structure: str, text: str, severity: Severity | None = None) -> None:
        """Add an attribute that is written as `category|yes|name`."""
        parts = [part.strip() for part in text.split("|")]
        if len(parts) != 3 or parts[1] not in ("yes", "no") or not all(parts):
            self.defects["attribute"] += 1
        elif parts[0] in CATEGORIES:
            self.attributes.append(Attribute(structure, parts[0], parts[2], parts[1] == "yes", severity))
        else:
            self.unmapped[f"attributes: {parts[0]}"] = None


def describe_image(
    graph: Graph, image: Image, previous_studies: dict[str, str | None], *, annotator: str, automatic: bool
) -> Addition:
    """What a graph adds to the study of its image.

    Args:
        graph: The graph.
        image: The image.
        previous_studies: Studies of the images that the graph compares with; None for those that are unknown.
        annotator: Who drew the boxes.
        automatic: Whether programs made the graph.
    """
    defects = Counter(graph.defects)
    anatomy = tuple(_draw_boxes(graph.boxes, image, defects, annotator=annotator, automatic=automatic))
    prior, trends = _find_trends(graph.comparisons, previous_studies, defects)
    by_name: dict[str, list[Attribute]] = {}
    for attribute in graph.attributes:
        by_name.setdefault(name_of(attribute.label), []).append(attribute)
    findings = [
        _describe_finding(by_name.get(name, []), trends.get(name), defects, automatic=automatic)
        for name in dict.fromkeys([*by_name, *trends])
    ]
    found = tuple(finding for finding in findings if finding is not None)
    return Addition(findings=found, anatomy=anatomy, prior=prior, defects=defects)


def _draw_boxes(
    boxes: Iterable[Box], image: Image, defects: Counter[str], *, annotator: str, automatic: bool
) -> Iterable[Anatomy]:
    seen: set[str] = set()
    for name, corners in boxes:
        ours = name_of(name)
        if not image.width or ours in seen:
            defects["structure" if image.width else "size"] += 1
            continue
        region = _make_region(corners, image)
        if region.is_empty:
            defects["region"] += 1
            continue
        seen.add(ours)
        yield Anatomy(
            name=ours, image=image.key, region=region, annotator=annotator, automatic=automatic, drawn="box"
        )


def _make_region(corners: Sequence[float | None], image: Image) -> Region:
    left, top, right, bottom = (math.nan if corner is None else corner for corner in corners)
    try:
        return Region.from_box(left, top, right - left, bottom - top, height=image.height, width=image.width)
    except RegionError:
        return Region.empty(image.height, image.width)


class _NamedTrend(NamedTuple):
    """A trend of a finding, and the label that it is stated of."""

    label: str
    trend: Trend


def _find_trends(
    comparisons: Iterable[Comparison], studies: dict[str, str | None], defects: Counter[str]
) -> tuple[str | None, dict[str, _NamedTrend]]:
    """The prior study, and the trend by name."""
    prior: str | None = None
    found: dict[str, dict[Trend, _NamedTrend]] = {}
    for comparison in comparisons:
        study = studies.get(comparison.previous)
        if study is None:
            defects["no prior"] += 1
            continue
        prior = prior or study
        if study != prior:
            defects["second prior"] += 1
            continue
        for label in comparison.labels:
            own = found.setdefault(name_of(label), {})
            own.setdefault(comparison.trend, _NamedTrend(label, comparison.trend))
    defects["second trend"] += sum(len(own) > 1 for own in found.values())
    return prior, {name: next(iter(own.values())) for name, own in found.items() if len(own) == 1}


def _describe_finding(
    attributes: Sequence[Attribute], trend: _NamedTrend | None, defects: Counter[str], *, automatic: bool
) -> AddedFinding | None:
    """What attributes of one name and their trend say; None where that is nothing, which is counted.

    A finding that is present in some structure is present, where nothing denies it there.
    """
    denied = [attribute.structure for attribute in attributes if not attribute.is_present]
    stated = [attribute for attribute in attributes if attribute.is_present]
    present = [attribute for attribute in stated if attribute.structure not in denied]
    if stated and not present:
        defects["stated and denied"] += 1
        return None
    certainty: Certainty | None = "present"
    if not present:
        is_absent = bool(denied) and _is_whole(name_of(attributes[0].label), denied)
        defects["one side"] += bool(denied) and not is_absent
        if trend is None and not is_absent:
            return None
        certainty = "absent" if is_absent or trend is None else CERTAINTY_BY_TREND[trend.trend]
    severities = {attribute.severity for attribute in present if attribute.severity is not None}
    labels = [attribute.label for attribute in (*present, *attributes)]
    return AddedFinding(
        label=labels[0] if trend is None or labels else trend.label,
        certainty=certainty,
        trend=None if trend is None else trend.trend,
        severity=next(iter(severities)) if len(severities) == 1 else None,
        location=locate(attribute.structure for attribute in present),
        automatic=automatic,
    )


def _is_whole(name: str, structures: Sequence[str]) -> bool:
    """Whether a finding that is denied of these structures is absent: of both lungs, or of where it would be.

    What is denied of the mediastinum or of both hila says nothing of the lungs.
    """
    names = set(map(name_of, structures))
    if any(home <= names for home in (_LUNGS, frozenset(ZONES), *_HOMES.get(name, ()))):
        return True
    if find_term(name, "device") is not None:
        location = locate(structures)
        return location is None or location.side not in SIDES
    return locate(structures) is None


_LUNGS: Final = frozenset(f"{side} lung" for side in SIDES)


def _of_both(structure: str) -> frozenset[str]:
    return frozenset(f"{side} {structure}" for side in SIDES)


_HEART: Final = (frozenset({"heart"}),)
_MEDIASTINUM: Final = (frozenset({"mediastinum"}), frozenset({"upper mediastinum"}))
_AORTA: Final = (frozenset({"aortic arch"}), frozenset({"descending aorta"}), frozenset({"mediastinum"}))
_SPINE: Final = (frozenset({"spine"}),)
_ANGLES: Final = (_of_both("costophrenic angle"),)
_DIAPHRAGM: Final = (_of_both("hemidiaphragm"),)
_HOMES: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "cardiomegaly": _HEART,
    "mediastinal widening": _MEDIASTINUM,
    "superior mediastinal widening": _MEDIASTINUM,
    "mediastinal shift": _MEDIASTINUM,
    "enlarged cardiomediastinum": (*_MEDIASTINUM, *_HEART),
    "pneumomediastinum": _MEDIASTINUM,
    "aortic tortuosity": _AORTA,
    "aortic calcification": _AORTA,
    "hilar enlargement": (_of_both("hilum"),),
    "pleural effusion": _ANGLES,
    "blunted costophrenic angle": _ANGLES,
    "elevated hemidiaphragm": _DIAPHRAGM,
    "pneumoperitoneum": (*_DIAPHRAGM, frozenset({"abdomen"})),
    "clavicle fracture": (_of_both("clavicle"),),
    "vertebral fracture": _SPINE,
    "vertebral degenerative change": _SPINE,
    "scoliosis": _SPINE,
}
"""Structures where a finding would be, if it were there: a finding that is denied of all structures of one set is
absent. What is not named here is denied of both lungs, or nothing is known."""
