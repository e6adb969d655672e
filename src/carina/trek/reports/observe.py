"""Mentions of a whole report, one name each, on their way to become findings and devices."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from carina.studies.vocabulary import ZONES, Certainty, Distribution, Section, Severity, Side, Trend
from carina.trek.reports.devices import Position, position_of, tip_site
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.mentions import read_mentions
from carina.trek.reports.phrases import words
from carina.trek.reports.sentence import Mention, SentenceText

READ: Final[tuple[Section, ...]] = ("findings", "impression", "recommendation")
"""Sections that state findings; why a study was made and with what it is compared do not."""
REMEMBERED: Final = 4096
"""Sentences kept taken apart: reports repeat themselves ("No pneumothorax.")."""
DENIED_WITH: Final = {"blunted costophrenic angle": ("pleural effusion",)}
UNSIDED: Final = frozenset({"cardiomegaly"})


@dataclass(slots=True)
class Observation:
    """One name that one sentence states."""

    kind: Literal["finding", "device"]
    name: str
    certainty: Certainty
    sentence: int
    section: Section
    mention: int
    """Which mention of its sentence."""
    general: bool
    """One of many that are denied at once: "the lungs are clear"."""
    reference: bool
    """Speaks of something stated elsewhere: in a recommendation."""
    side: Side | None
    zones: tuple[str, ...]
    site: str | None
    severity: Severity | None
    distribution: Distribution | None
    trend: Trend | None
    looks: tuple[str, ...]
    position: Position | None = None
    about: str = ""
    """Id of the finding or device it became part of; empty where it was overruled."""

    @property
    def detail(self) -> int:
        """How much it says beside the name."""
        return sum(map(bool, (self.side, self.zones, self.site, self.severity)))


@dataclass(slots=True)
class Read:
    """One sentence, read."""

    text: SentenceText
    section: Section
    mentions: list[Mention]
    advice: bool
    observations: list[Observation]


def read_sentence(text: str, *, heading: str, index: int, section: Section) -> Read:
    """What a sentence states; one that names nothing is said of its heading: "Heart: Normal in size."."""
    sentence, mentions, advice = taken_apart(text, heading, section)
    asked = _first_advice(sentence) if advice else len(sentence.words)
    observations = [
        _observe(
            sentence,
            mention,
            name,
            number=number,
            index=index,
            section=section,
            reference=mention.start >= asked,
        )
        for number, mention in enumerate(mentions)
        if not mention.past and (mention.how != "panel" or mention.certainty == "absent")
        for name in (*mention.names, *_denied_with(mention))
    ]
    return Read(sentence, section, mentions, advice, observations)


@lru_cache(maxsize=REMEMBERED)
def taken_apart(text: str, heading: str, section: Section) -> tuple[SentenceText, list[Mention], bool]:
    """The sentence, its mentions and whether it advises; nothing of it is changed afterwards."""
    known = lexicon()
    sentence = SentenceText(text, words(text), known)
    if heading and not sentence.has("finding", "device", "organ", "panel"):
        headed = f"{heading}: {text}"
        sentence = SentenceText(headed, words(headed), known)
    advice = section == "recommendation" or (sentence.has("advice") and sentence.has("action"))
    return sentence, read_mentions(sentence, advice=advice) if section in READ else [], advice


def _denied_with(mention: Mention) -> tuple[str, ...]:
    """What goes without saying: no blunted angle, no fluid in it."""
    return DENIED_WITH.get(mention.name, ()) if mention.certainty == "absent" else ()


def _first_advice(sentence: SentenceText) -> int:
    if sentence.has("advice"):
        asked = (*sentence.of_kind("advice"), *sentence.of_kind("action"))
        return min((item.start for item, _ in asked), default=0)
    return 0


def _observe(
    sentence: SentenceText,
    mention: Mention,
    name: str,
    *,
    number: int,
    index: int,
    section: Section,
    reference: bool,
) -> Observation:
    side, zones, site = _where(mention)
    if name in UNSIDED:
        side, zones, site = None, (), None
    device = mention.kind == "device"
    return Observation(
        kind=mention.kind,
        name=name,
        certainty=mention.certainty,
        sentence=index,
        section=section,
        mention=number,
        general=mention.how == "panel" or (mention.how == "state" and len(mention.names) > 1),
        reference=reference or section == "recommendation",
        side=side,
        zones=() if device else zones,
        site=tip_site(sentence, mention) if device else site,
        severity=mention.severity,
        distribution=mention.distribution,
        trend=mention.trend,
        looks=tuple(mention.looks),
        position=position_of(sentence, mention) if device else None,
    )


def _where(mention: Mention) -> tuple[Side | None, tuple[str, ...], str | None]:
    if not mention.places:
        return None, (), None
    sides = {place.side for place in mention.places if place.side}
    zones = {zone for place in mention.places for zone in place.zones}
    site = next((place.site for place in mention.places if place.site), None)
    side: Side | None = None
    if "bilateral" in sides or {"right", "left"} <= sides:
        side = "bilateral"
    elif sides:
        side = min(sides)
    return side, tuple(zone for zone in ZONES if zone in zones), site
