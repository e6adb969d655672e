"""What a text says of the chest, as sets that can be compared: things with their certainty, and their attributes."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from carina.run.score.denial import denied, spelled_out
from carina.run.score.positions import position_of
from carina.run.score.trends import trend_of
from carina.studies.model import Device, Finding
from carina.trek.reports import read_report
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.phrases import Word, word_set, words
from carina.trek.reports.places import Place, find_places

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
}
"""Kinds of phrases in the reader's lexicon that name an attribute by themselves."""
NOTHING: Final[Entity] = ("", "absent")
"""What a text says that names nothing and denies all the same: "No device is seen."."""
_DENIES: Final = re.compile(
    r"\b(?:no|none|nothing|neither|nor|without|free|clear|normal|unremarkable|negative)\b"
    r"|\bnot (?:\w+ )?(?:any\w*|see|seen|present|visible|identif\w+|found|find|show|detect\w*|contain|there)\b",
    re.IGNORECASE,
)
_COMPLETE: Final = re.compile(
    r"\blist is complete\b|\bcovered all\b|\beverything (?:\w+ )?has been\b", re.IGNORECASE
)
"""That there is nothing else, in words that by themselves say nothing of the chest."""
_NO_DENIAL: Final = re.compile(
    r"\b(?:not|neither)(?: \w+)? (?:normal|clear|free|unremarkable|negative)\b"
    r"|\bno (?:idea|clear|opinion|answer|comment|doubt)\b"
    r"|\b(?:not|cannot|unable to)(?: \w+)? (?:tell|judge|assess|determine|say|see (?:the|an?) (?:image|picture))\b",
    re.IGNORECASE,
)
"""What looks like a denial of anything abnormal and is none: "not normal", "I cannot see the image"."""
_CLEAR: Final = word_set("clear normal spared unremarkable unaffected uninvolved intact healthy")
_SPARES: Final = _CLEAR | {"sparing", "spares", "spare"}
_LINKS: Final = word_set(
    "lung lungs side sides field fields hemithorax zone zones base apex is are was remains remain looks look appears "
    "appear seems seem completely entirely otherwise to be being both all the"
)
"""What may stand between a place and the word that it is clear."""
_SMALL: Final = word_set("the a an in at of its on")
_TOUCHED: Final = frozenset({"affected", "involved", "abnormal", "diseased"})
_SENTENCE: Final = re.compile(r"[.;!?]\s+|\n+")


class Said(NamedTuple):
    """What a text says."""

    entities: frozenset[Entity]
    attributes: frozenset[Attribute]
    devices: frozenset[str] = frozenset()
    """Names of the entities that are devices."""


@lru_cache(maxsize=REMEMBERED)
def said_in(text: str) -> Said:
    """Findings and devices of a text, as our report reader understands it."""
    reading = read_report(text)
    things: tuple[Finding | Device, ...] = (*reading.findings, *reading.devices)
    entities: frozenset[Entity] = frozenset((thing.name, thing.certainty) for thing in things)
    if not entities and _says_no(text):
        entities = frozenset({NOTHING})
    attributes = {triple for finding in reading.findings for triple in _of_finding(finding)}
    attributes.update(triple for device in reading.devices for triple in _of_device(device))
    names = {thing.id: thing.name for thing in things}
    attributes.update(
        (names[link.subject], "relation", f"{link.kind} {names[link.object]}") for link in reading.relations
    )
    attributes.update(("", "recommendation", advice.action) for advice in reading.recommendations)
    return Said(entities, frozenset(attributes), frozenset(device.name for device in reading.devices))


def denies(text: str) -> bool:
    """Whether a text says of anything that it is not there, or that there is nothing to add."""
    return _says_no(text) or _COMPLETE.search(text) is not None


def _says_no(text: str) -> bool:
    return _DENIES.search(_NO_DENIAL.sub(" ", spelled_out(text))) is not None


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
    """Attributes in a text that is about one thing and need not name it: "moderate", "on the left".

    What is denied does not count ("moderate, not severe"), nor do places that are called clear.
    """
    text = spelled_out(text)
    known, signs = lexicon(), words(text)
    reach = denied(signs)
    items = [item for item in known.phrases.find(signs) if not reach[item.start]]
    found = {
        (name, KINDS[role.kind], role.key) for item in items for role in item.roles if role.kind in KINDS
    }
    position = position_of(text)
    if position is not None:
        found.add((name, "position", position))
    sides: set[str] = set()
    for place in find_places(text, signs, items, known):
        if _is_clear(place, signs):
            continue
        found.update((name, "location", zone) for zone in place.zones)
        sides.update(("right", "left") if place.side == "bilateral" else filter(None, (place.side,)))
    if sides:
        found.add((name, "side", "bilateral" if {"right", "left"} <= sides else min(sides)))
    return frozenset(found)


def says(term: str, text: str) -> bool:
    """Whether a text has the words of a term in a row, small words aside, and does not deny them."""
    wanted = [sign.text for sign in words(term) if sign.text not in _SMALL]
    signs = words(spelled_out(text))
    kept = [
        (sign.text, off) for sign, off in zip(signs, denied(signs), strict=True) if sign.text not in _SMALL
    ]
    return bool(wanted) and any(
        not kept[start][1] and [word for word, _ in kept[start : start + len(wanted)]] == wanted
        for start in range(len(kept) - len(wanted) + 1)
    )


def _is_clear(place: Place, signs: list[Word]) -> bool:
    """Whether a place is named to say that it is clear: "the right lung is clear", "sparing the left base"."""
    before = place.start - 1
    while before >= 0 and signs[before].text in ("the", "of"):
        before -= 1
    if before >= 0 and signs[before].text in _SPARES:
        return True
    after = place.end
    while after < len(signs) and signs[after].text in _LINKS:
        after += 1
    here, behind = (signs[n].text if n < len(signs) else "" for n in (after, after + 1))
    return (
        here in _CLEAR
        or (here == "free" and behind == "of")
        or (here in ("not", "never") and behind in _TOUCHED)
    )


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
