"""From what a model told to records: names of the lexicon, sentences that bear it out, and a count of all the rest."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from carina.studies.model import Device, Finding, Location, Recommendation, Relation, Statement
from carina.trek.reports_by_model.attributes import Attributes
from carina.trek.reports_by_model.support import Kind, Support, key_of, name_of
from carina.trek.reports_by_model.told import Told, ToldDevice, ToldFinding, ToldRecommendation, ToldRelation

_T = TypeVar("_T", Finding, Device)


@dataclass
class Checked:
    """What is left of an answer, and what each sentence states."""

    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    states: dict[int, list[Statement]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)


def checked(told: Told, support: Support) -> Checked:
    """Records with ids of their own, in the order in which the report states them."""
    return _Check(told, support).result


class _Check:
    def __init__(self, told: Told, support: Support) -> None:
        self._support = support
        self.result = Checked()
        if told.malformed:
            self.result.dropped["malformed"] += told.malformed
        self._ids: dict[str, str] = {}
        """The model's ids to ours."""
        self._names: dict[str, tuple[Kind, str]] = {}
        findings = [found for found in map(self._finding, told.findings) if found is not None]
        devices = [found for found in map(self._device, told.devices) if found is not None]
        self.result.findings = self._numbered("f", "finding", findings)
        self.result.devices = self._numbered("d", "device", devices)
        self._relate(told.relations)
        self._recommend(told.recommendations)

    # ---- findings and devices -------------------------------------------------------------------------------------

    def _finding(self, told: ToldFinding) -> Finding | None:
        named = self._borne_out("finding", told.name, told.sentences)
        if named is None:
            return None
        name, evidence = named
        kept = Attributes(self._support, evidence, self.result.dropped)
        location = Location(
            side=kept.side(told.side), zones=kept.zones(told.zones), site=kept.site(told.site)
        )
        return Finding(
            id=told.id,
            name=name,
            certainty=told.certainty,
            location=None if location == Location() else location,
            severity=kept.said("severity", told.severity),
            distribution=kept.said("distribution", told.distribution),
            trend=kept.trend(told.trend),
            appearance=kept.looks(told.appearance),
            evidence=evidence,
        )

    def _device(self, told: ToldDevice) -> Device | None:
        named = self._borne_out("device", told.name, told.sentences)
        if named is None:
            return None
        name, evidence = named
        kept = Attributes(self._support, evidence, self.result.dropped)
        return Device(
            id=told.id,
            name=name,
            certainty=told.certainty,
            side=kept.side(told.side),
            position=kept.judged("position", told.position),
            site=kept.site(told.site),
            trend=kept.trend(told.trend),
            evidence=evidence,
        )

    def _borne_out(
        self, kind: Kind, told: str, numbers: tuple[int, ...]
    ) -> tuple[str, tuple[int, ...]] | None:
        """The name, and those of the cited sentences that speak of it."""
        name = name_of(kind, told)
        if name is None:
            self._drop("unknown name")
            return None
        if not self._support.has(numbers):
            self._drop("no such sentence")
            return None
        evidence = tuple(sorted({n for n in numbers if self._support.names(n, kind, name)}))
        if not evidence:
            self._drop("unsupported")
            return None
        return name, evidence

    def _numbered(self, letter: str, kind: Kind, found: list[_T]) -> tuple[_T, ...]:
        """With ids as the rules give them; what is told twice is one, and a denial gives way to what it denies."""
        there = [each for each in found if each.certainty != "absent"]
        groups: dict[_T, list[_T]] = {}
        for each in sorted(found, key=lambda one: one.evidence[0]):
            if _is_denial(each) and any(_may_be_same(each, other) for other in there):
                self._drop("contradicted")
            else:
                groups.setdefault(msgspec.structs.replace(each, id="", evidence=()), []).append(each)
        numbered: list[_T] = []
        for number, (record, members) in enumerate(groups.items(), start=1):
            ours = f"{letter}{number}"
            evidence = tuple(sorted({n for member in members for n in member.evidence}))
            self._ids.update({member.id: ours for member in members})
            self._names[ours] = (kind, record.name)
            numbered.append(msgspec.structs.replace(record, id=ours, evidence=evidence))
            self._state(kind, numbered[-1])
        return tuple(numbered)

    def _state(self, kind: Kind, record: Finding | Device) -> None:
        """What each of its sentences says of it: only the words that stand there."""
        place = record.location if isinstance(record, Finding) else Location(side=record.side)
        place = place or Location()
        severity = record.severity if isinstance(record, Finding) else None
        for n in record.evidence:
            zones = self._support.zones(n)
            statement = Statement(
                kind=kind,
                about=record.id,
                certainty=record.certainty,
                side=place.side if place.side in self._support.sides(n) else None,
                zones=tuple(zone for zone in place.zones if zone in zones),
                severity=severity if severity and self._support.says(n, "severity", severity) else None,
                trend=record.trend if record.trend and self._support.trend(n, record.trend) else None,
            )
            self.result.states.setdefault(n, []).append(statement)

    # ---- what is said of several ----------------------------------------------------------------------------------

    def _relate(self, told: Iterable[ToldRelation]) -> None:
        found: dict[tuple[str, str, str], Relation] = {}
        for each in told:
            ends = (self._ids.get(each.subject), self._ids.get(each.object))
            if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
                self._drop("unknown id")
            elif not self._support.has(each.sentences):
                self._drop("no such sentence")
            elif not all(any(self._names_id(n, end) for n in each.sentences) for end in ends if end):
                self._drop("unsupported")
            else:
                evidence = tuple(sorted(set(each.sentences)))
                key = (ends[0], each.kind, ends[1])
                found.setdefault(
                    key,
                    Relation(
                        id=f"x{len(found) + 1}",
                        subject=ends[0],
                        kind=each.kind,
                        object=ends[1],
                        evidence=evidence,
                    ),
                )
        self.result.relations = tuple(found.values())
        for relation in found.values():
            self._note("relation", relation.id, relation.evidence)

    def _recommend(self, told: Iterable[ToldRecommendation]) -> None:
        found: dict[str, Recommendation] = {}
        for each in told:
            action = key_of("action", each.action)
            if action is None:
                self._drop("unknown name")
            elif not self._support.has(each.sentences):
                self._drop("no such sentence")
            elif not any(self._support.says(n, "action", action) for n in each.sentences):
                self._drop("unsupported")
            else:
                about = tuple(dict.fromkeys(self._ids[told] for told in each.about if told in self._ids))
                before = found.get(action)
                found[action] = Recommendation(
                    id=before.id if before else f"r{len(found) + 1}",
                    action=action,
                    about=tuple(dict.fromkeys((*(before.about if before else ()), *about))),
                    evidence=tuple(sorted({*(before.evidence if before else ()), *each.sentences})),
                )
        self.result.recommendations = tuple(found.values())
        for recommendation in found.values():
            self._note("recommendation", recommendation.id, recommendation.evidence)

    def _names_id(self, number: int, ours: str) -> bool:
        kind, name = self._names[ours]
        return self._support.names(number, kind, name)

    def _note(self, kind: str, about: str, evidence: tuple[int, ...]) -> None:
        for n in evidence:
            self.result.states.setdefault(n, []).append(Statement(kind=kind, about=about))  # type: ignore[arg-type]

    def _drop(self, reason: str) -> None:
        self.result.dropped[reason] += 1


def _is_denial(record: Finding | Device) -> bool:
    """Whether it says that something is not there; what has resolved speaks of the past."""
    return record.certainty == "absent" and record.trend != "resolved"


def _may_be_same(one: Finding | Device, other: Finding | Device) -> bool:
    sides = {_side(one), _side(other)} - {None, "bilateral"}
    return one.name == other.name and len(sides) < 2


def _side(record: Finding | Device) -> str | None:
    place = record.location if isinstance(record, Finding) else record
    return place.side if place else None
