"""What the sentences of a report bear out, by the words of the rules' lexicon: words, not what they add up to."""

from collections.abc import Iterable
from typing import Final, Literal

from carina.studies.model import Report
from carina.trek.reports.lexicon import lexicon
from carina.trek.reports.phrases import words
from carina.trek.reports.sentence import SentenceText
from carina.trek.reports_by_model.asked import readable

Kind = Literal["finding", "device"]
_GONE: Final = frozenset({"gone", "denial", "denied"})
_BOTH: Final = frozenset({"right", "left"})


class Support:
    """The readable sentences of one report."""

    def __init__(self, report: Report) -> None:
        self._texts = {
            number: _taken(report.quote(sentence)) for number, sentence in readable(report).items()
        }
        self._quotes = {
            number: " ".join(report.quote(sentence).split()).casefold()
            for number, sentence in readable(report).items()
        }

    def has(self, numbers: Iterable[int]) -> bool:
        """Whether these sentences exist, and are some."""
        numbers = tuple(numbers)
        return bool(numbers) and all(number in self._texts for number in numbers)

    def names(self, number: int, kind: Kind, name: str) -> bool:
        """Whether a sentence speaks of a finding or device, in any of its words."""
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
        """Whether a sentence tells of a change; what has gone is told as a denial."""
        if trend != "resolved":
            return self.says(number, "trend", trend)
        return any(self.says_any(number, kind) for kind in _GONE)

    def sides(self, number: int) -> frozenset[str]:
        """The sides that a sentence speaks of, "bilateral" where of both."""
        text = self._texts[number]
        found = {place.side for place in text.places if place.side} | self._keys(number, "side")
        if found >= _BOTH or any(word.text in text.lexicon.both for word in text.words):
            found |= {"bilateral"}
        return frozenset(side for side in found if side)

    def zones(self, number: int) -> frozenset[str]:
        """The zones that a sentence speaks of, taken generously: any level with any side."""
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


def name_of(kind: Kind, told: str) -> str | None:
    """The name in the lexicon of what a model calls something; None where it names nothing, or several things."""
    text = _taken(told)
    names = {name for mention in text.mentions if mention.kind == kind for name in mention.names}
    return names.pop() if len(names) == 1 else None


def key_of(kind: str, told: str) -> str | None:
    """The key in the lexicon of a look or an action in a model's words."""
    items = lexicon().phrases.find(words(told))
    keys = {role.key for item in items for role in item.roles if role.kind == kind}
    return keys.pop() if len(keys) == 1 else None


def _taken(text: str) -> SentenceText:
    return SentenceText(text, words(text), lexicon())
