"""Noun phrases and places in words: how a finding is named, placed and described in any sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from carina.studies.model import Location
from carina.studies.terms import find_term
from carina.studies.vocabulary import SIDES, ZONES
from carina.trek.wording import Wording, load_wording


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
        a = known.get("a") or _add_article(bare)
        the = known.get("the") or f"the {bare}"
        if not possible:
            return Name(bare, a, the)
        hedged = self._grammar["possible"].format(finding=bare)
        return Name(bare, _add_article(hedged) if _is_counted(a) else hedged, f"the {hedged}")

    def tip(self, device: str) -> str:
        """The tip of a device, whose location is asked for, as a noun phrase."""
        tip = self._names.get(device, {}).get("tip")
        return str(tip) if tip else f"the tip of the {device}"

    # ---- places ---------------------------------------------------------------------------------------------------

    def _at(self, location: Location) -> str | None:
        """The location as a phrase that follows "lies"; None where it would say nothing."""
        if location.site:
            return self.at_site(location.site)
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
        """A site that is not a zone: unchanged where it is a phrase of place, otherwise with "at"."""
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


def _is_counted(a: str) -> bool:
    return a.startswith(("a ", "an "))


def _add_article(noun: str) -> str:
    """The noun with "a" or "an", by its spelling; a plural has no article."""
    last = noun.lower()
    if last.endswith("s") and not last.endswith(("ss", "is", "us", "as")):
        return noun
    vowel = last[:1] in "aeiou" and not last.startswith(("uni", "eu", "us", "one"))
    return f"{'an' if vowel else 'a'} {noun}"
