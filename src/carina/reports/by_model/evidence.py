"""Check what a model states against the words of the sentences that it cites, by the lexicon of the rules."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, TypeVar

from carina.reports.by_model.prompt import stating_sentences
from carina.reports.lexicon import lexicon
from carina.reports.phrases import split_words
from carina.reports.sentence import SentenceText
from carina.studies.model import Report
from carina.studies.vocabulary import ZONES, Side, Trend

Kind = Literal["finding", "device"]
_GONE: Final = frozenset({"gone", "denial", "denied"})
_BOTH: Final = frozenset({"right", "left"})
_V = TypeVar("_V", bound=str)


class Evidence:
    """The words of the sentences of one report that may state facts."""

    def __init__(self, report: Report) -> None:
        self._texts = {
            number: _parse_text(report.quote(sentence))
            for number, sentence in stating_sentences(report).items()
        }
        self._quotes = {
            number: " ".join(report.quote(sentence).split()).casefold()
            for number, sentence in stating_sentences(report).items()
        }

    def has(self, numbers: Iterable[int]) -> bool:
        """Whether all of these sentences exist; False for none at all."""
        numbers = tuple(numbers)
        return bool(numbers) and all(number in self._texts for number in numbers)

    def names(self, number: int, kind: Kind, name: str) -> bool:
        """Whether a sentence mentions a finding or device, under any of its names."""
        mentions = self._texts[number].mentions
        return any(mention.kind == kind and name in mention.names for mention in mentions)

    def says(self, number: int, kind: str, key: str) -> bool:
        """Whether a sentence holds a word of a kind ("severity") that stands for a key ("mild")."""
        return key in self._keys(number, kind)

    def says_any(self, number: int, kind: str) -> bool:
        return bool(self._keys(number, kind))

    def quotes(self, number: int, site: str) -> bool:
        """Whether a sentence holds these very words."""
        return " ".join(site.split()).casefold() in self._quotes[number]

    def trend(self, number: int, trend: str) -> bool:
        """Whether a sentence has a word for a trend; a denial is enough for "resolved"."""
        if trend != "resolved":
            return self.says(number, "trend", trend)
        return any(self.says_any(number, kind) for kind in _GONE)

    def sides(self, number: int) -> frozenset[str]:
        """Sides that a sentence names; "bilateral" where it names both."""
        text = self._texts[number]
        found = {place.side for place in text.places if place.side} | self._keys(number, "side")
        if found >= _BOTH or any(word.text in text.lexicon.both for word in text.words):
            found |= {"bilateral"}
        return frozenset(side for side in found if side)

    def zones(self, number: int) -> frozenset[str]:
        """Zones that a sentence may mean: any level that it names with any side that it names."""
        levels = self._keys(number, "level") | self._keys(number, "lobe")
        sides = self.sides(number)
        if "all" in levels:
            levels |= {"upper", "mid", "lower"}
        if "bilateral" in sides:
            sides |= _BOTH
        return frozenset(f"{side} {level} zone" for side in sides for level in levels)

    def _keys(self, number: int, kind: str) -> set[str]:
        items = self._texts[number].items
        return {role.key for item in items for role in item.roles if role.kind == kind}


def find_name(kind: Kind, word: str) -> str | None:
    """Name in the lexicon for a model's word; None where the word means nothing, or several things."""
    text = _parse_text(word)
    names = {name for mention in text.mentions if mention.kind == kind for name in mention.names}
    return names.pop() if len(names) == 1 else None


def find_key(kind: str, word: str) -> str | None:
    """Key in the lexicon for a model's word for an appearance or an action; None where it is not exactly one."""
    items = lexicon().phrases.find(split_words(word))
    keys = {role.key for item in items for role in item.roles if role.kind == kind}
    return keys.pop() if len(keys) == 1 else None


def _parse_text(text: str) -> SentenceText:
    return SentenceText(text, split_words(text), lexicon())


class AttributeCheck:
    """Keeps the attributes of one fact that the cited sentences support; drops and counts the others."""

    def __init__(self, evidence: Evidence, cited: tuple[int, ...], dropped: Counter[str]) -> None:
        self._evidence = evidence
        self._cited = cited
        self._dropped = dropped

    def word(self, kind: str, value: _V | None) -> _V | None:
        """A severity or a distribution: kept where a cited sentence has a word for it."""
        return self._keep_supported(value, supported=value is not None and self._any_says(kind, value))

    def position(self, value: _V | None) -> _V | None:
        """A position: kept where a cited sentence judges it at all, since a denial may turn the word around."""
        return self._keep_supported(
            value, supported=any(self._evidence.says_any(n, "position") for n in self._cited)
        )

    def side(self, side: Side | None) -> Side | None:
        return self._keep_supported(side, supported=any(side in self._evidence.sides(n) for n in self._cited))

    def trend(self, trend: Trend | None) -> Trend | None:
        supported = trend is not None and any(self._evidence.trend(n, trend) for n in self._cited)
        return self._keep_supported(trend, supported=supported)

    def site(self, site: str | None) -> str | None:
        if site is None or not site.strip():
            return None
        return self._keep_supported(site, supported=any(self._evidence.quotes(n, site) for n in self._cited))

    def zones(self, zones: tuple[str, ...]) -> tuple[str, ...]:
        spoken = frozenset[str]().union(*(self._evidence.zones(n) for n in self._cited))
        kept = tuple(zone for zone in ZONES if zone in zones and zone in spoken)
        self._drop(len(set(zones)) - len(kept))
        return kept

    def looks(self, looks: tuple[str, ...]) -> tuple[str, ...]:
        keys = dict.fromkeys(find_key("look", look) for look in looks)
        kept = tuple(key for key in keys if key is not None and self._any_says("look", key))
        self._drop(len(keys) - len(kept))
        return kept

    def _any_says(self, kind: str, value: str) -> bool:
        return any(self._evidence.says(n, kind, value) for n in self._cited)

    def _keep_supported(self, value: _V | None, *, supported: bool) -> _V | None:
        if value is not None and not supported:
            self._drop(1)
            return None
        return value

    def _drop(self, number: int) -> None:
        if number:
            self._dropped["attribute"] += number
