"""The subject of a conversation: the truth of a study, as words and values that questions need.

It is made once for each study; the modules that make questions read it instead of the study.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

import msgspec

from carina.cases import Evidence, Fact
from carina.reports.places import lower_words
from carina.reports.sections import drop_sentences_with_removed_words, has_removed_words
from carina.reports.unseen import is_seen_elsewhere
from carina.studies.assessment import (
    UNNAMED,
    Kind,
    certainty_of,
    drop_partial_denials,
    names_looked_for,
    scope_of,
)
from carina.studies.lookalikes import is_clearly_absent
from carina.studies.model import Annotation, Device, Finding, Image, Location, Measure, Study
from carina.studies.terms import find_term
from carina.studies.vocabulary import SIDES, ZONES, Certainty, Trend
from carina.trek.companions import COMPANION_WEIGHT, find_companions
from carina.trek.facts import target_row, truth_row
from carina.trek.interned import cite
from carina.trek.language import Language
from carina.trek.structures import Structures

KINDS: Final[tuple[Kind, ...]] = ("finding", "device")
Negative = Literal["stated", "sibling", "sampled"]

_ESTIMATED: Final = frozenset({"cardiothoracic ratio"})
"""Measures that can be taken from an image without a scale."""
_PLEURAL: Final = frozenset({"pleural effusion", "pneumothorax"})
"""Findings of the pleura, which never lie throughout the lungs."""
_BORDERS: Final = {
    f"{side} {level} zone": tuple(f"{side} {border}" for border in borders)
    for side in SIDES
    for level, borders in (
        ("upper", ("upper border",)),
        ("mid", ("upper border", "lower border")),
        ("lower", ("lower border",)),
    )
}
"""Borders between zones, by zone."""
_STEM: Final = 7
"""Letters of a word of appearance that a name may contain: "calcifi" in calcified lymph node and calcification."""
_GRADES: Final = {"mild": 1, "moderate": 2, "severe": 3}


@dataclass(slots=True, eq=False)
class Thing:
    """A finding or device that is present or uncertain."""

    id: str
    kind: Kind
    name: str
    certainty: Certainty
    bare: str
    a: str
    the: str
    values: dict[str, str]
    """Known attributes and their values."""
    looks: tuple[str, ...]
    described: str
    """As a noun phrase with all its attributes."""
    plain: str
    """The same without words of uncertainty."""
    measure: Measure | None
    trend: Trend | None
    evidence: tuple[int, ...]
    annotations: tuple[Annotation, ...]
    place: frozenset[str]
    """Zones that it lies in, or the site."""
    sides: frozenset[str]
    zones: frozenset[str] | None
    """Exactly the zones that it lies in; None where that is not known."""
    alone: bool = True
    """Whether no other thing of the study has its name, so that the name is unambiguous."""
    tip: str | None = None
    """Noun phrase for the tip of a device, which has a location."""
    is_present: bool = field(init=False)
    calling: str = field(init=False)
    """Its name in questions; uncertain things have a name of their own, since they are milder on average."""
    target: Fact = field(init=False)
    """The fact that names it as the target of a question."""
    truth: Fact = field(init=False)
    marks: tuple[Evidence, ...] = field(init=False)
    """The sentences of the current report that state it."""

    def __post_init__(self) -> None:
        self.is_present = self.certainty == "present"
        self.calling = self.name if self.is_present else f"possible {self.name}"
        self.target = target_row(self.kind, self.name)
        self.truth = truth_row(self.id, self.certainty)
        self.marks = cite("current", self.evidence)

    def _place_meaning(self) -> frozenset[str]:
        if self.kind == "device":
            # Of two distances, neither is clearly wrong.
            measured = any(character.isdigit() for site in self.place for character in site)
            return frozenset({"measured"}) if measured else self.place
        # A site may lie in any zone.
        return zones_with_borders(
            self.place if self.zones is not None or self.place <= set(ZONES) else frozenset(ZONES)
        )

    def means(self, attribute: str) -> frozenset[str]:
        """What the value of an attribute covers: two values that have nothing in common cannot both be right."""
        if attribute == "location":
            return self._place_meaning()
        if attribute == "side":
            return self.sides
        return frozenset(self.looks) if attribute == "appearance" else frozenset({self.values[attribute]})


def cite_things(things: Sequence[Thing]) -> tuple[Evidence, ...]:
    """Evidence: the sentences that state any of these things, each once."""
    return tuple(dict.fromkeys([mark for thing in things for mark in thing.marks])) if things else ()


class AbsentThing(msgspec.Struct, eq=False, gc=False):
    """A finding or device that is certainly absent."""

    id: str
    kind: Kind
    name: str
    origin: Negative
    evidence: tuple[int, ...]
    plausibility: float
    """Weight with which it is sampled as a negative."""


@dataclass(slots=True)
class Subject:
    """The truth of a study, prepared for questions."""

    study: Study
    images: tuple[Image, ...]
    """Images that are shown."""
    findings: list[Thing]
    devices: list[Thing]
    absent_findings: list[AbsentThing]
    absent_devices: list[AbsentThing]
    resolved: dict[str, Finding | Device]
    """By name, findings that have resolved since an earlier study."""
    structures: Structures
    anything: Mapping[Kind, Certainty | None]
    """By kind, whether anything of it is present; None where that is not known."""
    looked_for: Mapping[Kind, frozenset[str] | None]
    """By kind, the names that are absent where the study does not record them; None for all names, where the study
    records everything that shows."""
    unknown: Mapping[Kind, int]
    """By kind, how many names of the set are neither recorded nor looked for."""
    disputed: Mapping[Kind, int]
    """By kind, about how many names the records and the report contradict each other."""
    not_shown: Mapping[Kind, int]
    """By kind, of how many names the report speaks only on views or examinations that are not shown, so that nothing is
    known of them."""
    indication: str = ""
    """Why the patient was examined, without sentences of which de-identification has removed a word."""
    is_report_overruled: bool = False
    """Whether something that the report contradicts counts all the same, so that the report is no key."""
    things: list[Thing] = field(init=False)
    by_id: dict[str, Thing] = field(init=False)
    stratum: str = field(init=False)
    """What is known from the projections alone: a patient who cannot stand has more devices."""

    def __post_init__(self) -> None:
        self.things = [*self.findings, *self.devices]
        self.by_id = {thing.id: thing for thing in self.things}
        self.stratum = "+".join([image.view for image in self.images])

    def is_complete(self, *kinds: Kind) -> bool:
        """Whether the study records everything of these kinds that shows, so that there are no others."""
        return all(self.looked_for[kind] is None for kind in kinds)

    @property
    def has_device(self) -> bool:
        """Whether a device is present or uncertain, with or without a name."""
        return bool(self.devices) or self.anything["device"] in ("present", "uncertain")

    def clear_zones(self) -> list[str]:
        """Zones that certainly hold nothing; zones next to an affected one do not count."""
        held = self.held_zones()
        return [] if held is None else list(separate_zones(held))

    def held_zones(self) -> frozenset[str] | None:
        """Zones of the lungs that hold a finding; None where that is not known for every zone.

        Lines and tubes run through many zones, so no zone of a study with devices is certainly clear.
        """
        if self.images[0].view not in ("PA", "AP") or self.devices or not self.is_complete(*KINDS):
            return None
        held: set[str] = set()
        for thing in self.findings:
            if thing.zones is None:
                return None
            held |= thing.zones
        return frozenset(held)


def subject_of(
    study: Study,
    words: Language,
    *,
    known: Sequence[tuple[Kind, str]],
    most_images: int,
    structures: Structures | None = None,
    is_report_overruled: bool = False,
) -> Subject:
    """The subject of a study. `known` lists what its source records anywhere: of these names, those that were looked
    for and that the study does not record are absent.

    Give `structures` where the study was read without its anatomy, and `is_report_overruled` where the study keeps what
    its report contradicts.
    """
    images = select_images(study, most_images)
    study, unseen = _drop_unseen(study, images)
    findings = [_read_finding(one, words) for one in study.findings if _is_named(one, words)]
    devices = [_read_device(one, words) for one in study.devices if _is_named(one, words)]
    things = [*findings, *devices]
    names = [thing.name for thing in things]
    there = frozenset(names)
    if len(there) < len(names):
        for thing in things:
            thing.alone = names.count(thing.name) == 1
    looked_for = {kind: _find_looked_for(study, kind, known, words) for kind in KINDS}
    absent, unknown = _list_absent(study, there, known, words, looked_for)
    recorded: list[Finding | Device] = [*study.findings, *study.devices]
    resolved = {
        words.canonical(gone.name): gone
        for gone in recorded
        if gone.trend == "resolved" and gone.certainty == "absent" and words.canonical(gone.name) not in there
    }
    return Subject(
        study=study,
        images=images,
        findings=findings,
        devices=devices,
        absent_findings=absent["finding"],
        absent_devices=absent["device"],
        resolved=resolved,
        structures=Structures.of(study) if structures is None else structures,
        anything={kind: certainty_of(study, UNNAMED[kind], kind=kind) for kind in KINDS},
        looked_for=looked_for,
        unknown=unknown,
        disputed=_count_kinds(set(study.assessed.disputed) - unseen),
        not_shown=_count_kinds(unseen),
        indication=drop_sentences_with_removed_words(study.indication or ""),
        is_report_overruled=is_report_overruled,
    )


def _drop_unseen(study: Study, images: Sequence[Image]) -> tuple[Study, frozenset[str]]:
    """The study without what its report states only of other views or examinations, present or absent; and the names of
    which nothing is known for it.

    The sentences of the report keep what they state.
    """
    report = study.report
    if report is None:
        return study, frozenset()
    views = frozenset(image.view for image in images)
    elsewhere = {
        number
        for number, sentence in enumerate(report.sentences)
        if sentence.states and is_seen_elsewhere(report.quote(sentence), views=views)
    }
    things: list[Finding | Device] = [*study.findings, *study.devices]
    gone = {
        thing.id
        for thing in things
        if thing.evidence and elsewhere.issuperset(thing.evidence) and not thing.annotations
    }
    if not gone:
        return study, frozenset()
    known = {thing.name for thing in things if thing.id not in gone}
    unseen = frozenset(thing.name for thing in things if thing.id in gone) - known
    dropped = msgspec.structs.replace(
        study,
        findings=tuple(one for one in study.findings if one.id not in gone),
        devices=tuple(one for one in study.devices if one.id not in gone),
        relations=tuple(one for one in study.relations if gone.isdisjoint((one.subject, one.object))),
        recommendations=tuple(
            msgspec.structs.replace(one, about=tuple(about for about in one.about if about not in gone))
            for one in study.recommendations
        ),
        assessed=msgspec.structs.replace(
            study.assessed, disputed=tuple(sorted({*study.assessed.disputed, *unseen}))
        ),
    )
    return dropped, unseen - set(study.assessed.disputed)


def _count_kinds(names: Collection[str]) -> dict[Kind, int]:
    devices = sum(find_term(name, "device") is not None for name in names)
    return {"finding": len(names) - devices, "device": devices}


def _is_named(thing: Finding | Device, words: Language) -> bool:
    """Whether a finding or device is present or uncertain, and has a name."""
    return thing.certainty != "absent" and is_asked_by_name(words.canonical(thing.name))


def is_asked_by_name(name: str) -> bool:
    """Whether a canonical name is that of something, so that questions can name it."""
    return bool(name) and name not in UNNAMED.values()


def _find_looked_for(
    study: Study, kind: Kind, known: Sequence[tuple[Kind, str]], words: Language
) -> frozenset[str] | None:
    names = names_looked_for(study, kind)
    if names is None:
        return None
    disputed = study.assessed.disputed
    if disputed and scope_of(study, kind) == "every":
        # Everything was looked for, so that only what is in conflict is not known.
        return frozenset(name for other, name in known if other == kind).difference(
            map(words.canonical, disputed)
        )
    return frozenset([words.canonical(name) for name in names])


@lru_cache(maxsize=4096)
def zones_with_borders(zones: frozenset[str]) -> frozenset[str]:
    """Zones and their borders: two sets of zones that overlap or touch have something in common."""
    borders = {border for zone in zones for border in _BORDERS.get(zone, ())}
    return zones | borders


@lru_cache(maxsize=4096)
def separate_zones(zones: frozenset[str]) -> tuple[str, ...]:
    """Zones that have nothing in common with these."""
    return tuple(
        zone for zone in ZONES if not zones_with_borders(frozenset({zone})) & zones_with_borders(zones)
    )


def select_images(study: Study, most: int) -> tuple[Image, ...]:
    """A frontal and a lateral image, so that each can be named by its projection; otherwise the first `most` images."""
    frontal = [image for image in study.images if image.view in ("PA", "AP")]
    lateral = [image for image in study.images if image.view == "lateral"]
    return tuple([*frontal[:1], *lateral[:1]][:most]) or study.images[:1]


def _read_finding(finding: Finding, words: Language) -> Thing:
    uncertain = finding.certainty == "uncertain"
    called = words.canonical(finding.name)
    name = words.name(called, possible=uncertain)
    values: dict[str, str] = {}
    at = None if finding.location is None else words.at(finding.location)
    if at is not None and called in _PLEURAL and finding.location is not None and words.is_throughout(at):
        sides = _find_sides(finding.location)
        at = words.on_side("bilateral" if len(sides) != 1 else min(sides))
    if finding.location is not None and finding.location.side in ("right", "left", "bilateral"):
        values["side"] = words.on_side(finding.location.side)
    # A location that states only a side is asked for as a side.
    if at is not None and at != values.get("side"):
        values["location"] = at
    if finding.severity is not None:
        values["severity"] = finding.severity
    # A calcified lymph node is calcified by name: such a word is no answer.
    looks = tuple([look for look in finding.appearance if look[:_STEM] not in called])
    if looks:
        values["appearance"] = ", ".join(looks)
    if finding.distribution is not None:
        values["distribution"] = finding.distribution
    plain = words.describe(
        words.name(called),
        severity=finding.severity,
        distribution=finding.distribution,
        at=at,
        appearance=looks,
    )
    described = words.hedge(plain) if uncertain else plain
    place, sides, zones = _find_place(finding.location)
    return Thing(
        finding.id,
        "finding",
        called,
        finding.certainty,
        name.bare,
        name.a,
        name.the,
        values=values,
        looks=looks,
        described=described,
        plain=plain,
        measure=next((measure for measure in finding.measures if measure.name in _ESTIMATED), None),
        trend=finding.trend,
        evidence=finding.evidence,
        annotations=finding.annotations,
        place=place,
        sides=sides,
        zones=zones,
    )


@lru_cache(maxsize=65536)
def _find_place(
    location: Location | None,
) -> tuple[frozenset[str], frozenset[str], frozenset[str] | None]:
    """The place, the sides and the zones of a thing."""
    return _find_place_zones(location), _find_sides(location), _find_zones(location)


def _find_zones(location: Location | None) -> frozenset[str] | None:
    if location is None or location.site:
        return None
    if location.zones:
        return frozenset(location.zones) if set(location.zones) <= set(ZONES) else None
    return frozenset() if location.side == "midline" else None


def _find_sides(location: Location | None) -> frozenset[str]:
    if location is None or location.side == "midline":
        return frozenset()
    if location.side is None:
        return frozenset(side for side in SIDES if any(zone.startswith(side) for zone in location.zones))
    return frozenset(SIDES) if location.side == "bilateral" else frozenset({location.side})


def _find_place_zones(location: Location | None) -> frozenset[str]:
    """Zones of a location; all zones of a side where only the side is known."""
    if location is None:
        return frozenset()
    if location.site:
        return frozenset({lower_words(location.site)})
    if location.zones:
        return frozenset(location.zones)
    sides = SIDES if location.side == "bilateral" else (location.side,)
    return frozenset(zone for zone in ZONES if zone.partition(" ")[0] in sides)


def _read_device(device: Device, words: Language) -> Thing:
    called = words.canonical(device.name)
    name = words.name(called, possible=device.certainty == "uncertain")
    values: dict[str, str] = {}
    site = None if has_removed_words(device.site or "") else device.site
    if site:
        values["location"] = words.at_site(site)
    if device.position is not None:
        values["position"] = device.position
    tip = words.tip(called)
    placed = "" if not site else f" with its tip {values['location']}"
    return Thing(
        device.id,
        "device",
        called,
        device.certainty,
        name.bare,
        name.a,
        name.the,
        values=values,
        looks=(),
        described=name.a + placed,
        plain=words.name(called).a + placed,
        measure=None,
        trend=device.trend,
        evidence=device.evidence,
        annotations=device.annotations,
        place=frozenset({lower_words(site)}) if site else frozenset(),
        sides=frozenset(),
        zones=None,
        tip=tip,
    )


def _list_absent(
    study: Study,
    there: frozenset[str],
    known: Sequence[tuple[Kind, str]],
    words: Language,
    looked_for: Mapping[Kind, frozenset[str] | None],
) -> tuple[dict[Kind, list[AbsentThing]], dict[Kind, int]]:
    """By kind, what is certainly absent, and the number of names of which nothing is known."""
    company = find_companions(there)
    absent: dict[Kind, list[AbsentThing]] = {"finding": [], "device": []}
    unknown: dict[Kind, int] = {"finding": 0, "device": 0}
    # Names that cannot be used: the report contradicts what is recorded, or they are already in the list.
    disputed = set(map(words.canonical, study.assessed.disputed))
    taken: dict[Kind, set[str]] = {"finding": set(disputed), "device": set(disputed)}
    recorded: tuple[tuple[Kind, Sequence[Finding | Device]], ...] = (
        ("finding", study.findings),
        ("device", study.devices),
    )
    for kind, things in recorded:
        whole = {thing.id for thing in drop_partial_denials(things)}
        for thing in things:
            # What is denied at one place may be anywhere else, unless it has resolved.
            if thing.certainty != "absent" or (thing.id not in whole and thing.trend != "resolved"):
                continue
            name = words.canonical(thing.name)
            # Resolved findings are asked about in the comparison.
            is_new = is_asked_by_name(name) and name not in taken[kind]
            if is_new and is_clearly_absent(name, there) and thing.trend != "resolved":
                beside = name in company
                origin: Negative = "stated" if thing.evidence else "sibling" if beside else "sampled"
                absent[kind].append(
                    AbsentThing(
                        thing.id, kind, name, origin, thing.evidence, COMPANION_WEIGHT if beside else 1.0
                    )
                )
            taken[kind].add(name)
    for kind, name in known:
        if name in taken[kind] or not is_clearly_absent(name, there):
            continue
        names = looked_for[kind]
        if names is None or name in names:
            beside = name in company
            absent[kind].append(
                AbsentThing(
                    "",
                    kind,
                    name,
                    "sibling" if beside else "sampled",
                    (),
                    COMPANION_WEIGHT if beside else 1.0,
                )
            )
        else:
            unknown[kind] += 1
    return absent, unknown


def trend_between(now: Thing | None, before: Thing | None) -> Trend | None:
    """The trend of a finding, by presence and then by grade; None where the studies do not state enough."""
    if now is None or before is None:
        if now is not None and now.is_present:
            return "new"
        return "resolved" if before is not None and before.is_present else None
    grades = [_GRADES.get(thing.values.get("severity", "")) for thing in (before, now)]
    if grades[0] is None or grades[1] is None or not (now.is_present and before.is_present):
        return None
    if grades[0] == grades[1]:
        return "unchanged"
    return "worse" if grades[1] > grades[0] else "improved"
