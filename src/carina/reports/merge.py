"""Merge observations into findings and devices: one record for what several sentences state.

Rules, in this order:

1. Present and uncertain observations come first. An observation joins the record of the same name whose side and
   zones are compatible with its own (equal, overlapping, or not stated), else it is a record of its own.
2. Present outweighs uncertain, because a report that states a finding plainly has settled it. Only an impression may
   lower present to uncertain, and only where it states more attributes (side, zones, site, severity) than before.
3. A denial of several findings at once ("the lungs are clear") never overrules a finding that is named. A denial by
   name does so only in the impression, and only where it states at least as many attributes as an uncertain finding, or
   more than a present one. Otherwise the finding stays, and the denial is not evidence of it.
4. A resolved finding is a record of its own beside a present one, because it speaks of the past.
5. A recommendation adds evidence to a record and never makes a new one.
6. What is denied without a place is absent as a whole, whatever places other sentences deny it at. What is denied only
   on a side or at a place keeps that place (`carina.studies.assessment.drop_partial_denials`).
7. What is denied with a limit alone ("no acute fracture") is absent with that appearance, and never overrules what
   another sentence names.
"""

from dataclasses import dataclass, field

from carina.reports.observations import Observation
from carina.studies.model import Device, Finding, Location
from carina.studies.vocabulary import Certainty, Side, Trend


@dataclass(slots=True)
class MergedRecord:
    """A finding or device under construction."""

    name: str
    certainty: Certainty
    side: Side | None = None
    zones: list[str] = field(default_factory=list)
    members: list[Observation] = field(default_factory=list)
    detail: int = 0
    """Largest number of attributes that a member states."""
    in_impression: bool = False
    trend: Trend | None = None

    def take(self, seen: Observation) -> None:
        self.members.append(seen)
        self.detail = max(self.detail, seen.detail)
        self.in_impression |= seen.section == "impression"
        self.trend = self.trend or seen.trend
        if seen.reference:
            return
        if seen.side and self.side is None:
            self.side = seen.side
        elif seen.side and self.side != seen.side:
            self.side = "bilateral"
        self.zones += [zone for zone in seen.zones if zone not in self.zones]


def merge_observations(observations: list[Observation]) -> list[MergedRecord]:
    """Merge observations of one kind; records are in the order of their first statement."""
    records: dict[str, list[MergedRecord]] = {}
    for seen in observations:
        if seen.certainty != "absent" and not seen.reference:
            _add_present(records.setdefault(seen.name, []), seen)
    for seen in observations:
        if seen.certainty == "absent" and not seen.reference:
            _add_absent(records.setdefault(seen.name, []), seen)
    for seen in observations:
        if seen.reference:
            _add_reference(records.get(seen.name, []), seen)
    found = [record for each in records.values() for record in each]
    return sorted(found, key=lambda record: min((m.sentence, m.mention) for m in record.members))


def _add_present(records: list[MergedRecord], seen: Observation) -> None:
    record = _find_record(records, seen)
    if record is None:
        record = MergedRecord(seen.name, seen.certainty)
        records.append(record)
    elif seen.certainty != record.certainty:
        lowers = (
            seen.certainty == "uncertain"
            and seen.section == "impression"
            and not record.in_impression
            and seen.detail > record.detail
        )
        record.certainty = "uncertain" if lowers else "present"
    record.take(seen)


def _add_absent(records: list[MergedRecord], seen: Observation) -> None:
    there = [record for record in records if record.certainty != "absent"]
    gone = [record for record in records if record.certainty == "absent"]
    rival = _find_record(there, seen)
    if seen.trend != "resolved" and rival is not None:
        if seen.general or seen.limits or not _overrules(seen, rival):
            return
        rival.certainty = "absent"
        rival.take(seen)
        return
    if seen.general and there:
        return
    record = _find_record(gone, seen)
    if record is None:
        record = MergedRecord(seen.name, "absent")
        records.append(record)
    record.take(seen)


def _overrules(seen: Observation, rival: MergedRecord) -> bool:
    if seen.section != "impression" or rival.in_impression:
        return False
    return seen.detail >= rival.detail if rival.certainty == "uncertain" else seen.detail > rival.detail


def _add_reference(records: list[MergedRecord], seen: Observation) -> None:
    there = [record for record in records if record.certainty != "absent"]
    record = _find_record(there, seen) or (there[0] if len(there) == 1 else None)
    if record is not None:
        record.take(seen)


def _find_record(records: list[MergedRecord], seen: Observation) -> MergedRecord | None:
    fits = [record for record in records if _is_compatible(record, seen)]
    # The same side before an unsaid one, so that "the left effusion" joins the left one.
    return max(fits, key=lambda record: (record.side == seen.side, bool(record.side)), default=None)


def _is_compatible(record: MergedRecord, seen: Observation) -> bool:
    sides = {record.side, seen.side} - {None, "bilateral"}
    if len(sides) > 1:
        return False
    return not (record.zones and seen.zones) or bool(set(record.zones) & set(seen.zones))


def make_finding(record: MergedRecord, identity: str) -> Finding:
    """The record as a finding; severity, appearance and trend as first stated."""
    members = [member for member in record.members if not member.reference]
    site = next((member.site for member in members if member.site), None)
    location = Location(side=record.side, zones=tuple(record.zones), site=site)
    whole = _is_denied_everywhere(record)
    if whole:
        location = Location()
    described = members if record.certainty != "absent" else []  # What is absent has no grade and no looks.
    looks = [look for member in described for look in member.looks]
    if not whole:
        looks += [limit for member in members for limit in member.limits]
    return Finding(
        id=identity,
        name=record.name,
        certainty=record.certainty,
        location=None if location == Location() else location,
        severity=next((member.severity for member in described if member.severity), None),
        distribution=next((member.distribution for member in described if member.distribution), None),
        trend=record.trend,
        appearance=tuple(dict.fromkeys(looks)),
        evidence=_list_evidence(record),
    )


def _is_denied_everywhere(record: MergedRecord) -> bool:
    """Whether the record is absent, and one of its sentences names no place and no limit."""
    denials = [member for member in record.members if member.certainty == "absent"]
    return record.certainty == "absent" and any(
        not (one.side or one.zones or one.limits or (one.site and one.kind == "finding")) for one in denials
    )


def make_device(record: MergedRecord, identity: str) -> Device:
    members = [member for member in record.members if not member.reference]
    return Device(
        id=identity,
        name=record.name,
        certainty=record.certainty,
        side=None if _is_denied_everywhere(record) else record.side,
        position=next((member.position for member in members if member.position), None),
        site=next((member.site for member in members if member.site), None),
        trend=record.trend,
        evidence=_list_evidence(record),
    )


def _list_evidence(record: MergedRecord) -> tuple[int, ...]:
    return tuple(sorted({member.sentence for member in record.members}))
