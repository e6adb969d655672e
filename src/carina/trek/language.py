"""Noun phrases and places in words: how a finding is named, placed and described in any sentence."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from carina.reports.places import lower_words
from carina.reports.sections import has_removed_words
from carina.studies.model import Location
from carina.studies.terms import find_term, list_terms
from carina.studies.vocabulary import SIDES, ZONES
from carina.trek.wording import Wording, load_wording

_NOUN_SLOTS: Final = (
    "finding",
    "a_finding",
    "the_finding",
    "the_other",
    "described",
    "described_other",
    "before",
)
"""Slots that hold a finding or device, and whose number verbs follow."""
_ADJECTIVES: Final = "(?:possible|mild|moderate|severe|focal|multifocal|diffuse) "


@dataclass(frozen=True, slots=True)
class Name:
    """A finding or device in the three forms that sentences need."""

    bare: str
    a: str
    the: str


class Language:
    """The grammar of one language with its wording; it caches the phrases that it has made."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording
        self.pools = wording.pools
        self._names = wording.common["names"]
        self._spelled = {name.lower(): name for name in self._names}
        self._place = wording.common["place"]
        self._grammar = wording.grammar
        self._regions = wording.grammar["regions"]
        self._looks = wording.grammar["look"]
        self._and = wording.grammar["and"]
        self._prepositions = frozenset(wording.grammar["prepositions"])
        self._uncounted = frozenset(wording.grammar["uncounted"])
        self._verbs: Mapping[str, str] = wording.grammar["plural_verbs"]
        self._governing = frozenset(wording.grammar["governing"])
        known = {term.name for term in list_terms() if term.kind != "anatomy"}
        plurals = sorted(filter(_is_plural_noun, {*self._names, *known}))
        self._plural_phrase = re.compile(
            rf"(?:the )?(?:{_ADJECTIVES})*(?:{'|'.join(map(re.escape, plurals))})\b"
        )
        self.is_plural = lru_cache(maxsize=65536)(self._is_plural)
        self._agreeing = lru_cache(maxsize=65536)(self._make_agreeing)
        self.name = lru_cache(maxsize=4096)(self._name)
        self.canonical = lru_cache(maxsize=4096)(self._canonical)
        self.at = lru_cache(maxsize=65536)(self._at)

    # ---- names ----------------------------------------------------------------------------------------------------

    def _canonical(self, name: str) -> str:
        """The term that a name or synonym stands for; another name without differences in case and spaces."""
        term = find_term(name, "finding") or find_term(name, "device")
        if term is not None:
            return term.name
        plain = " ".join(name.lower().split())
        return str(self._spelled.get(plain, plain))

    def _name(self, bare: str, *, possible: bool = False) -> Name:
        known = self._names.get(bare, {})
        is_uncounted = bare.rpartition(" ")[2] in self._uncounted
        a = known.get("a") or (bare if is_uncounted else _add_article(bare))
        the = known.get("the") or f"the {bare}"
        if not possible:
            return Name(bare, a, the)
        hedged = self._grammar["possible"].format(finding=bare)
        return Name(bare, _add_article(hedged) if _is_counted(a) else hedged, f"the {hedged}")

    def tip(self, device: str) -> str:
        """The tip of a device, whose location is asked for, as a noun phrase."""
        tip = self._names.get(device, {}).get("tip")
        return str(tip) if tip else f"the tip of the {device}"

    # ---- agreement ------------------------------------------------------------------------------------------------

    def _is_plural(self, phrase: str) -> bool:
        """Whether a noun phrase about a finding or device is a plural, as "the surgical clips" is."""
        return self._plural_phrase.match(phrase) is not None

    def fill(self, text: str, slots: Mapping[str, str]) -> str:
        """A text of the wording with its slots filled, and verbs that agree with the names in the slots."""
        plural = [name for name in _NOUN_SLOTS if name in slots and self.is_plural(slots[name])]
        return (self._agreeing(text, tuple(plural)) if plural else text).format_map(slots)

    def _make_agreeing(self, text: str, plural: tuple[str, ...]) -> str:
        """A text with plural verbs: after a slot that is the subject, after "there", and before it in questions."""

        def agree(match: re.Match[str]) -> str:
            verb = match["verb"]
            other = self._verbs[verb.lower()]
            if (match["before"] or "").strip().lower() in self._governing:
                return match[0]
            start, end = (place - match.start() for place in match.span("verb"))
            return match[0][:start] + _like(other, verb) + match[0][end:]

        verbs = "|".join(self._verbs)
        sentences = re.split(r"(?<=[.?!:;]) ", text)
        for place, sentence in enumerate(sentences):
            said = sentence
            for slot in plural:
                noun = re.escape(f"{{{slot}}}")
                said = re.sub(rf"(?P<before>\b\w+ )?{noun} (?P<verb>{verbs})\b", agree, said)
                said = re.sub(rf"(?P<before>)\b[Tt]here (?P<verb>is|was) {noun}", agree, said)
                said = re.sub(rf"(?P<before>)\b(?P<verb>[Ii]s|[Ww]as) there {noun}", agree, said)
                if sentence.endswith("?"):
                    asking = "[Ii]s|[Ww]as|[Dd]oes|Has" + ("|has" if slot.startswith("the_") else "")
                    said = re.sub(rf"(?P<before>)\b(?P<verb>{asking}) {noun}", agree, said)
            sentences[place] = said
        return " ".join(sentences)

    # ---- places ---------------------------------------------------------------------------------------------------

    def _at(self, location: Location) -> str | None:
        """The location as a phrase that follows "lies"; None where it would say nothing."""
        if location.site:
            return None if has_removed_words(location.site) else self.at_site(location.site)
        if location.zones:
            whole = self._whole_lungs(frozenset(location.zones))
            if whole is not None:
                return whole
            return str(self._place["zones"].format(zones=self._zones(location.zones)))
        return self.on_side(location.side) if location.side in ("right", "left", "bilateral") else None

    def _whole_lungs(self, zones: frozenset[str]) -> str | None:
        sides = [side for side in SIDES if {zone for zone in ZONES if zone.startswith(side)} <= zones]
        if len(zones) != 3 * len(sides):
            return None
        lungs = "both" if len(sides) > 1 else sides[0] if sides else None
        return None if lungs is None else str(self._grammar["throughout"][lungs])

    def on_side(self, side: str) -> str:
        """A side as a phrase that follows "lies"."""
        return str(self._place["bilateral"] if side == "bilateral" else self._place["side"].format(side=side))

    def at_site(self, site: str) -> str:
        """A site that is not a zone: in lower case; as it is where it is a phrase of place, otherwise with "at"."""
        site = lower_words(site)
        first = site.partition(" ")[0].lower()
        if first in self._prepositions or first[:1].isdigit():
            return site
        return str(self._grammar["at"].format(site=site.removeprefix("the ")))

    def _zones(self, zones: Sequence[str]) -> str:
        """ "right mid and lower zones and the left lower zone"."""
        by_side: dict[str, list[str]] = {}
        for zone in zones:
            words = zone.split(" ")
            if len(words) != 3 or words[2] != "zone":
                return f" {self._and} the ".join(zones)
            by_side.setdefault(words[0], []).append(words[1])
        parts = [
            f"{side} {self.join(levels)} zone{'s' if len(levels) > 1 else ''}"
            for side, levels in by_side.items()
        ]
        return f" {self._and} the ".join(parts)

    def region(self, name: str) -> str:
        """A structure or part of the chest, as a noun phrase of which there is one."""
        return str(self._regions.get(name) or f"the {name}")

    def is_throughout(self, at: str) -> bool:
        """Whether a place is a whole lung, or both."""
        return at in self._grammar["throughout"].values()

    def hedge(self, described: str) -> str:
        """A noun phrase for an uncertain finding."""
        counted = _is_counted(described)
        noun = self._grammar["possible"].format(finding=described.partition(" ")[2] if counted else described)
        return _add_article(noun) if counted else str(noun)

    # ---- whole phrases --------------------------------------------------------------------------------------------

    def join(self, items: Sequence[str]) -> str:
        """Items joined as in "a, b and c"; repeated items are named once."""
        items = list(dict.fromkeys(items))
        if len(items) <= 1:
            return items[0] if items else ""
        return f"{', '.join(items[:-1])} {self._and} {items[-1]}"

    def phrase_appearance(self, appearance: Iterable[str]) -> str:
        """The appearance as a phrase that follows the noun."""
        return self.join([self._looks.get(look) or f"described as {look}" for look in appearance])

    def describe(
        self,
        name: Name,
        *,
        severity: str | None = None,
        distribution: str | None = None,
        at: str | None = None,
        appearance: Sequence[str] = (),
    ) -> str:
        """ "a moderate multifocal pneumonia in the right upper zone, of patchy appearance"."""
        adjectives = " ".join(word for word in (severity, distribution) if word)
        noun = name.a
        if adjectives:
            bare = noun.partition(" ")[2] if _is_counted(noun) else noun
            noun = f"{adjectives} {bare}"
            if _is_counted(name.a):
                noun = _add_article(noun)
        if at:
            noun = f"{noun} {at}"
        looks = self.phrase_appearance(appearance)
        return f"{noun}, {looks}" if looks else noun


@lru_cache(maxsize=4)
def load_language(code: str = "en") -> Language:
    """The grammar of one language; loaded once in each process."""
    return Language(load_wording(code))


def capitalise(text: str) -> str:
    """The text with a capital first letter."""
    first = text[:1]
    return first.upper() + text[1:] if first.islower() else text


def make_sentence(clause: str) -> str:
    """A clause as a sentence of its own."""
    text = capitalise(clause)
    return text if text[-1:] in ".?!" else f"{text}."


def _like(word: str, other: str) -> str:
    """A word with a capital first letter where the other one has it."""
    return word.capitalize() if other[:1].isupper() else word


def _is_plural_noun(noun: str) -> bool:
    last = noun.lower()
    return last.endswith("s") and not last.endswith(("ss", "is", "us", "as"))


def _is_counted(a: str) -> bool:
    return a.startswith(("a ", "an "))


def _add_article(noun: str) -> str:
    """The noun with "a" or "an", by its spelling; a plural has no article."""
    if _is_plural_noun(noun):
        return noun
    last = noun.lower()
    if last.startswith("other "):
        return f"an{noun}"
    vowel = last[:1] in "aeiou" and not last.startswith(("uni", "eu", "us", "one"))
    return f"{'an' if vowel else 'a'} {noun}"
