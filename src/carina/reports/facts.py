"""Records: what a report states, and the entities that two texts are compared by."""

from collections.abc import Iterator
from typing import Literal

from carina.studies.model import Device, Finding, Recommendation, Record, Relation, Report
from carina.studies.vocabulary import Certainty, Distribution, Severity, Side, Trend

Position = Literal["adequate", "malpositioned"]
Attribute = tuple[str, str]
"""Kind and value of an attribute: ("side", "left"), ("location", "left lower zone"), ("trend", "new")."""
EntityKind = Literal[
    "finding", "device", "recommendation", "relation", "comparison", "view", "quality", "measurement"
]


class Entity(Record, frozen=True, kw_only=True):
    """One thing that a text states, in the form in which texts are compared.

    A relation is named by its ends and its kind ("pneumonia causes pleural effusion"), a recommendation by its action
    ("chest CT"), a statement about image quality by its criterion ("rotation"), with the state in `value`.
    """

    kind: EntityKind
    name: str
    certainty: Certainty = "present"
    side: Side | None = None
    zones: tuple[str, ...] = ()
    """Lung zones, such as "left lower zone"."""
    severity: Severity | None = None
    distribution: Distribution | None = None
    appearance: tuple[str, ...] = ()
    """Words for how a finding looks, such as "patchy"."""
    trend: Trend | None = None
    """Change against a prior study."""
    position: Position | None = None
    """Of a device."""
    value: str | float | None = None
    """State of a criterion of image quality, or number of a measurement."""
    unit: str | None = None
    """Unit of a measurement: "mm", "cm" or "%"."""
    compared: bool = False
    """Whether a sentence that states it speaks of a prior study or of a change."""

    @property
    def attributes(self) -> frozenset[Attribute]:
        """Attributes that are stated of a finding or device."""
        single = ("side", "severity", "distribution", "trend", "position")
        found = {(kind, value) for kind in single if (value := getattr(self, kind)) is not None}
        found.update(("location", zone) for zone in self.zones)
        found.update(("appearance", look) for look in self.appearance)
        return frozenset(found)

    def __str__(self) -> str:
        words: list[str] = [self.certainty] if self.certainty != "present" else []
        words += [word for word in (self.trend, self.severity, self.side) if word]
        words.append(self.name)
        if self.zones:
            words.append(f"in the {', '.join(self.zones)}")
        words += [f"{value}" for value in (self.position, self.value, self.unit) if value is not None]
        return " ".join(words)


class Comparison(Record, frozen=True, kw_only=True):
    """Whether a report speaks of a prior study, and the sentences that do."""

    prior: Literal["named", "none"]
    """`none` where the report says that there is no prior study to compare with."""
    evidence: tuple[int, ...]
    """Indices of the sentences."""


class ReportFacts(Record, frozen=True, kw_only=True):
    """What a report states: each fact lists its sentences as evidence, and each sentence lists its facts."""

    report: Report
    """Sections, and sentences with their `states`."""
    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    comparison: Comparison | None = None
    """None where the report says nothing about prior studies."""

    @property
    def things(self) -> tuple[Finding | Device, ...]:
        """Findings, then devices."""
        return (*self.findings, *self.devices)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """Findings, devices, relations, recommendations and the comparison, as entities."""
        return tuple(self._entities())

    @property
    def compares(self) -> bool:
        """Whether the report speaks of a prior study or of a change."""
        if self.comparison is not None and self.comparison.prior == "named":
            return True
        return any(thing.trend is not None for thing in self.things)

    def _entities(self) -> Iterator[Entity]:
        named = self.comparison is not None and self.comparison.prior == "named"
        comparing = frozenset(self.comparison.evidence) if self.comparison and named else frozenset[int]()
        for finding in self.findings:
            location = finding.location
            yield Entity(
                kind="finding",
                name=finding.name,
                certainty=finding.certainty,
                side=location.side if location else None,
                zones=location.zones if location else (),
                severity=finding.severity,
                distribution=finding.distribution,
                appearance=finding.appearance,
                trend=finding.trend,
                compared=finding.trend is not None or not comparing.isdisjoint(finding.evidence),
            )
        for device in self.devices:
            yield Entity(
                kind="device",
                name=device.name,
                certainty=device.certainty,
                side=device.side,
                trend=device.trend,
                position=device.position,
                compared=device.trend is not None or not comparing.isdisjoint(device.evidence),
            )
        names = {thing.id: thing.name for thing in self.things}
        for link in self.relations:
            yield Entity(
                kind="relation", name=relation_name(names[link.subject], link.kind, names[link.object])
            )
        for advice in self.recommendations:
            yield Entity(kind="recommendation", name=advice.action)
        if named:
            yield Entity(kind="comparison", name="prior study", compared=True)


def relation_name(subject: str, kind: str, other: str) -> str:
    """Name a relation as an entity.

    Args:
        subject: Name of the finding or device that the relation starts from.
        kind: Kind of the relation, such as "causes".
        other: Name of the finding or device at the other end.

    Returns:
        The name. "accompanies" has no direction, so its ends stand in alphabetical order.

    Example:
        >>> relation_name("pneumonia", "causes", "edema"), relation_name("pneumonia", "accompanies", "edema")
        ('pneumonia causes edema', 'edema accompanies pneumonia')
    """
    one, two = sorted((subject, other)) if kind == "accompanies" else (subject, other)
    return f"{one} {kind} {two}"
