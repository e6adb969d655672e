"""Read one sentence: the findings and devices that it mentions, with everything it says of each.

A `Mention` is a place in the sentence; an `Observation` is one name that the sentence states, ready to be merged with
the observations of other sentences.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from carina.reports.attributes import (
    add_distribution_and_severity,
    add_limits,
    add_looks_of_names,
    add_places,
    add_trends,
    drop_partial_denials,
    read_device_position,
    read_tip_site,
)
from carina.reports.facts import Position
from carina.reports.lexicon import lexicon
from carina.reports.negation import apply_denials, apply_doubts
from carina.reports.phrases import split_words
from carina.reports.sentence import Mention, SentenceText
from carina.studies.vocabulary import ZONES, Certainty, Distribution, Section, Severity, Side, Trend

STATING_SECTIONS: Final[tuple[Section, ...]] = ("findings", "impression", "recommendation")
"""Sections that state findings; the indication, the technique and the comparison state none."""
CACHED_SENTENCES: Final = 4096
"""Parsed sentences that are kept: reports repeat themselves ("No pneumothorax.")."""
IMPLIED_DENIALS: Final = {"blunted costophrenic angle": ("pleural effusion",)}
WITHOUT_SIDE: Final = frozenset({"cardiomegaly"})


@dataclass(slots=True)
class Observation:
    """One name that one sentence states."""

    kind: Literal["finding", "device"]
    name: str
    certainty: Certainty
    sentence: int
    section: Section
    mention: int
    """Index of the mention in its sentence."""
    general: bool
    """One of several names that are denied at once: "the lungs are clear"."""
    reference: bool
    """Part of a recommendation, which refers to something stated elsewhere."""
    side: Side | None
    zones: tuple[str, ...]
    site: str | None
    severity: Severity | None
    distribution: Distribution | None
    trend: Trend | None
    looks: tuple[str, ...]
    limits: tuple[str, ...] = ()
    """What a denial is limited to: "acute" in "no acute fracture", which leaves an old one open."""
    position: Position | None = None
    about: str = ""
    """Id of the finding or device that it became part of; empty where another statement overruled it."""

    @property
    def detail(self) -> int:
        """Number of attributes that it states."""
        return sum(map(bool, (self.side, self.zones, self.site, self.severity)))


@dataclass(slots=True)
class SentenceFacts:
    """What one sentence states."""

    text: SentenceText
    section: Section
    mentions: list[Mention]
    advice: bool
    observations: list[Observation]


def read_sentence(text: str, *, heading: str, index: int, section: Section) -> SentenceFacts:
    """Read what a sentence states; one that names nothing speaks of its heading: "Heart: Normal in size."."""
    sentence, mentions, advice = parse_sentence(text, heading, section)
    advice_start = _find_first_advice(sentence) if advice else len(sentence.words)
    observations = [
        _observe(
            sentence,
            mention,
            name,
            number=number,
            index=index,
            section=section,
            reference=mention.start >= advice_start,
        )
        for number, mention in enumerate(mentions)
        if not mention.past and (mention.how != "panel" or mention.certainty == "absent")
        for name in (*mention.names, *_find_implied_denials(mention))
    ]
    return SentenceFacts(sentence, section, mentions, advice, observations)


@lru_cache(maxsize=CACHED_SENTENCES)
def parse_sentence(text: str, heading: str, section: Section) -> tuple[SentenceText, list[Mention], bool]:
    """Parse a sentence: its words, its mentions, and whether it is advice. The result is shared: do not change it."""
    known = lexicon()
    sentence = SentenceText(text, split_words(text), known)
    if heading and not sentence.has("finding", "device", "organ", "panel"):
        headed = f"{heading}: {text}"
        sentence = SentenceText(headed, split_words(headed), known)
    advice = section == "recommendation" or (sentence.has("advice") and sentence.has("action"))
    return sentence, _read_mentions(sentence, advice=advice) if section in STATING_SECTIONS else [], advice


def _find_implied_denials(mention: Mention) -> tuple[str, ...]:
    """Findings that are denied along with the mention: no blunted angle, so no effusion."""
    return IMPLIED_DENIALS.get(mention.name, ()) if mention.certainty == "absent" else ()


def _find_first_advice(sentence: SentenceText) -> int:
    if sentence.has("advice"):
        cues = (*sentence.of_kind("advice"), *sentence.of_kind("action"))
        return min((item.start for item, _ in cues), default=0)
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
    side, zones, site = _read_place(mention)
    if name in WITHOUT_SIDE:
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
        site=read_tip_site(sentence, mention) if device else site,
        severity=mention.severity,
        distribution=mention.distribution,
        trend=mention.trend,
        looks=tuple(mention.looks),
        limits=tuple(mention.limits) if name in sentence.lexicon.chronic else (),
        position=read_device_position(sentence, mention) if device else None,
    )


def _read_place(mention: Mention) -> tuple[Side | None, tuple[str, ...], str | None]:
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


# ---- mentions ----


def _read_mentions(sentence: SentenceText, *, advice: bool) -> list[Mention]:
    """Read everything a sentence says of its mentions; advice states no trend "improved" and nothing resolved."""
    if not sentence.mentions:
        return []
    for mention in sentence.mentions:
        mention.clause = sentence.clauses[mention.start]
    apply_denials(sentence)
    apply_doubts(sentence)
    add_trends(sentence, advice=advice)
    add_distribution_and_severity(sentence)
    add_looks_of_names(sentence)
    drop_partial_denials(sentence)
    add_limits(sentence)
    add_places(sentence)
    _drop_explained(sentence)
    _mark_past(sentence)
    return sentence.mentions


def _drop_explained(sentence: SentenceText) -> None:
    """Drop a weak word or the state of an organ where the same clause names the finding."""
    named = {(m.clause, m.name) for m in sentence.mentions if m.how == "named"}
    sentence.mentions = [m for m in sentence.mentions if m.how != "state" or (m.clause, m.name) not in named]
    kept: list[Mention] = []
    for mention in sentence.mentions:
        stronger = _find_explanation(sentence, mention) if mention.weak else None
        if stronger is None:
            kept.append(mention)
        elif stronger.certainty != "absent" and not stronger.places:
            stronger.places = mention.places  # "The retrocardiac density may be pneumonia": it lies there.
    sentence.mentions = kept


def _find_explanation(sentence: SentenceText, weak: Mention) -> Mention | None:
    """The stronger name of the same clause that explains a weak one; names listed beside it do not."""
    for mention in sentence.mentions:
        if (
            mention.weak
            or mention.how != "named"
            or mention.kind != "finding"
            or mention.clause != weak.clause
        ):
            continue
        start, end = min(weak.end, mention.end), max(weak.start, mention.start)
        if not sentence.is_list(start, end):
            return mention
    return None


def _mark_past(sentence: SentenceText) -> None:
    for item, _ in sentence.of_kind("past"):
        target = sentence.after(item.end)
        if target is None or target.kind == "device":
            continue
        article = sentence.words[target.start - 1].text if target.start else ""
        if article != "the" and sentence.words[item.end].text != "the":
            for mention in sentence.find_listed_after(target):
                mention.past = True
