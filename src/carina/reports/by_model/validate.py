"""Turn a model's reply into records: names of the lexicon, sentences that support them, counts of what was dropped."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from carina.reports.by_model.evidence import AttributeCheck, Evidence, Kind, find_key, find_name
from carina.reports.by_model.reply import (
    ModelReply,
    ReplyDevice,
    ReplyFinding,
    ReplyRecommendation,
    ReplyRelation,
)
from carina.studies.model import Device, Finding, Location, Recommendation, Relation, Statement

_T = TypeVar("_T", Finding, Device)


@dataclass
class ValidatedFacts:
    """Facts of a reply that the report supports, and what each sentence states."""

    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    states: dict[int, list[Statement]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)


def validate_reply(reply: ModelReply, evidence: Evidence) -> ValidatedFacts:
    """Keep the facts that the report supports, with ids f1, d1, ... in the order in which the report states them."""
    return _Validator(reply, evidence).result


class _Validator:
    def __init__(self, reply: ModelReply, evidence: Evidence) -> None:
        self._evidence = evidence
        self.result = ValidatedFacts()
        if reply.malformed:
            self.result.dropped["malformed"] += reply.malformed
        self._ids: dict[str, str] = {}
        """The model's ids to ours."""
        self._names: dict[str, tuple[Kind, str]] = {}
        findings = [found for found in map(self._check_finding, reply.findings) if found is not None]
        devices = [found for found in map(self._check_device, reply.devices) if found is not None]
        self.result.findings = self._number_facts("f", "finding", findings)
        self.result.devices = self._number_facts("d", "device", devices)
        self._check_relation(reply.relations)
        self._check_recommendation(reply.recommendations)

    # ---- findings and devices -------------------------------------------------------------------------------------

    def _check_finding(self, stated: ReplyFinding) -> Finding | None:
        named = self._find_support("finding", stated.name, stated.sentences)
        if named is None:
            return None
        name, evidence = named
        kept = AttributeCheck(self._evidence, evidence, self.result.dropped)
        location = Location(
            side=kept.side(stated.side), zones=kept.zones(stated.zones), site=kept.site(stated.site)
        )
        return Finding(
            id=stated.id,
            name=name,
            certainty=stated.certainty,
            location=None if location == Location() else location,
            severity=kept.word("severity", stated.severity),
            distribution=kept.word("distribution", stated.distribution),
            trend=kept.trend(stated.trend),
            appearance=kept.looks(stated.appearance),
            evidence=evidence,
        )

    def _check_device(self, stated: ReplyDevice) -> Device | None:
        named = self._find_support("device", stated.name, stated.sentences)
        if named is None:
            return None
        name, evidence = named
        kept = AttributeCheck(self._evidence, evidence, self.result.dropped)
        return Device(
            id=stated.id,
            name=name,
            certainty=stated.certainty,
            side=kept.side(stated.side),
            position=kept.position(stated.position),
            site=kept.site(stated.site),
            trend=kept.trend(stated.trend),
            evidence=evidence,
        )

    def _find_support(
        self, kind: Kind, word: str, numbers: tuple[int, ...]
    ) -> tuple[str, tuple[int, ...]] | None:
        """The name in the lexicon, and those of the cited sentences that mention it."""
        name = find_name(kind, word)
        if name is None:
            self._drop("unknown name")
            return None
        if not self._evidence.has(numbers):
            self._drop("no such sentence")
            return None
        evidence = tuple(sorted({n for n in numbers if self._evidence.names(n, kind, name)}))
        if not evidence:
            self._drop("unsupported")
            return None
        return name, evidence

    def _number_facts(self, letter: str, kind: Kind, found: list[_T]) -> tuple[_T, ...]:
        """Give ids; facts stated twice become one, and a denial gives way to a statement that the thing is present."""
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
            self._note_states(kind, numbered[-1])
        return tuple(numbered)

    def _note_states(self, kind: Kind, record: Finding | Device) -> None:
        """Note what each of its sentences says of it: only what the sentence has words for."""
        place = record.location if isinstance(record, Finding) else Location(side=record.side)
        place = place or Location()
        severity = record.severity if isinstance(record, Finding) else None
        for n in record.evidence:
            zones = self._evidence.zones(n)
            statement = Statement(
                kind=kind,
                about=record.id,
                certainty=record.certainty,
                side=place.side if place.side in self._evidence.sides(n) else None,
                zones=tuple(zone for zone in place.zones if zone in zones),
                severity=severity if severity and self._evidence.says(n, "severity", severity) else None,
                trend=record.trend if record.trend and self._evidence.trend(n, record.trend) else None,
            )
            self.result.states.setdefault(n, []).append(statement)

    # ---- relations and recommendations ----------------------------------------------------------------------------

    def _check_relation(self, stated: Iterable[ReplyRelation]) -> None:
        found: dict[tuple[str, str, str], Relation] = {}
        for each in stated:
            ends = (self._ids.get(each.subject), self._ids.get(each.object))
            if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
                self._drop("unknown id")
            elif not self._evidence.has(each.sentences):
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

    def _check_recommendation(self, stated: Iterable[ReplyRecommendation]) -> None:
        found: dict[str, Recommendation] = {}
        for each in stated:
            action = find_key("action", each.action)
            if action is None:
                self._drop("unknown name")
            elif not self._evidence.has(each.sentences):
                self._drop("no such sentence")
            elif not any(self._evidence.says(n, "action", action) for n in each.sentences):
                self._drop("unsupported")
            else:
                about = tuple(
                    dict.fromkeys(self._ids[theirs] for theirs in each.about if theirs in self._ids)
                )
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
        return self._evidence.names(number, kind, name)

    def _note(self, kind: str, about: str, evidence: tuple[int, ...]) -> None:
        for n in evidence:
            self.result.states.setdefault(n, []).append(Statement(kind=kind, about=about))  # type: ignore[arg-type]

    def _drop(self, reason: str) -> None:
        self.result.dropped[reason] += 1


def _is_denial(record: Finding | Device) -> bool:
    """Whether it says that something is absent; "resolved" speaks of the past and is no denial."""
    return record.certainty == "absent" and record.trend != "resolved"


def _may_be_same(one: Finding | Device, other: Finding | Device) -> bool:
    sides = {_stated_side(one), _stated_side(other)} - {None, "bilateral"}
    return one.name == other.name and len(sides) < 2


def _stated_side(record: Finding | Device) -> str | None:
    place = record.location if isinstance(record, Finding) else record
    return place.side if place else None
