"""What a text says of the chest, as sets that can be compared: things with their certainty, and their attributes."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from carina.run.score.trends import trend_of
from carina.studies.model import Device, Finding
from carina.trek.reports import read_report
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.phrases import words
from carina.trek.reports.places import find_places

REMEMBERED: Final = 2048
"""Texts kept read: keys are met again, and many answers are alike."""

Entity = tuple[str, str]
"""A finding or device, and whether it is present, absent or uncertain."""
Attribute = tuple[str, str, str]
"""A finding or device, what of it is said, and what it is said to be; "" for what is said of the whole."""
KINDS: Final = {
    "severity": "severity",
    "distribution": "distribution",
    "look": "appearance",
    "position": "position",
}
"""Kinds of phrases in the reader's lexicon that name an attribute by themselves."""
NOTHING: Final[Entity] = ("", "absent")
"""What a text says that names nothing and denies all the same: "No device is seen."."""
_DENIES: Final = re.compile(
    r"\b(?:no|none|nothing|not|neither|nor|without|free|clear|normal|unremarkable|negative)\b", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"[.;!?]\s+|\n+")


class Said(NamedTuple):
    """What a text says."""

    entities: frozenset[Entity]
    attributes: frozenset[Attribute]


@lru_cache(maxsize=REMEMBERED)
def said_in(text: str) -> Said:
    """Findings and devices of a text, as our report reader understands it."""
    reading = read_report(text)
    things: tuple[Finding | Device, ...] = (*reading.findings, *reading.devices)
    entities: frozenset[Entity] = frozenset((thing.name, thing.certainty) for thing in things)
    if not entities and _DENIES.search(text):
        entities = frozenset({NOTHING})
    attributes = {triple for finding in reading.findings for triple in _of_finding(finding)}
    attributes.update(triple for device in reading.devices for triple in _of_device(device))
    names = {thing.id: thing.name for thing in things}
    attributes.update(
        (names[link.subject], "relation", f"{link.kind} {names[link.object]}") for link in reading.relations
    )
    attributes.update(("", "recommendation", advice.action) for advice in reading.recommendations)
    return Said(entities, frozenset(attributes))


def _of_finding(finding: Finding) -> Iterator[Attribute]:
    if finding.trend is not None:
        yield finding.name, "trend", finding.trend
    if finding.certainty == "absent":
        return
    if finding.location is not None:
        if finding.location.side is not None:
            yield finding.name, "side", finding.location.side
        for zone in finding.location.zones:
            yield finding.name, "location", zone
    if finding.severity is not None:
        yield finding.name, "severity", finding.severity
    if finding.distribution is not None:
        yield finding.name, "distribution", finding.distribution
    for look in finding.appearance:
        yield finding.name, "appearance", look


def _of_device(device: Device) -> Iterator[Attribute]:
    if device.trend is not None:
        yield device.name, "trend", device.trend
    if device.certainty == "absent":
        return
    if device.side is not None:
        yield device.name, "side", device.side
    if device.position is not None:
        yield device.name, "position", device.position


def named_in(text: str) -> frozenset[str]:
    """Names of the findings and devices that a text mentions, whatever it says of them."""
    return frozenset(
        role.key
        for item in lexicon().phrases.find(words(text))
        for role in item.roles
        if role.kind in ("finding", "device")
    )


@lru_cache(maxsize=REMEMBERED)
def said_of(name: str, text: str) -> frozenset[Attribute]:
    """Attributes in a text that is about one thing and need not name it: "moderate", "on the left"."""
    known, signs = lexicon(), words(text)
    items = known.phrases.find(signs)
    found = {
        (name, KINDS[role.kind], role.key) for item in items for role in item.roles if role.kind in KINDS
    }
    sides: set[str] = set()
    for place in find_places(text, signs, items, known):
        found.update((name, "location", zone) for zone in place.zones)
        sides.update(("right", "left") if place.side == "bilateral" else filter(None, (place.side,)))
    if sides:
        found.add((name, "side", "bilateral" if {"right", "left"} <= sides else min(sides)))
    return frozenset(found)


@lru_cache(maxsize=REMEMBERED)
def courses_in(text: str) -> frozenset[Attribute]:
    """The course of everything that a text names, sentence by sentence; forecasts count as what they foresee."""
    told = {
        (name, "trend", course)
        for sentence in _SENTENCE.split(text)
        if (course := trend_of(sentence)) is not None
        for name in named_in(sentence)
    }
    named = {name for name, _, _ in told}
    # Of what no sentence tells in words of its own, the reader may know it from several together.
    told.update(
        triple for triple in said_in(text).attributes if triple[1] == "trend" and triple[0] not in named
    )
    return frozenset(told)
