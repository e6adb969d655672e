"""Places: words such as "the mid and lower zones of the left lung" into a side, zones and a site."""

from dataclasses import dataclass

from carina.reports.lexicon import Lexicon
from carina.reports.phrases import Item, Word
from carina.studies.vocabulary import SIDES, ZONES, Side

LEVELS = ("upper", "mid", "lower")


@dataclass(frozen=True, slots=True)
class Place:
    """A place named in a sentence: words `start` to `end`."""

    start: int
    end: int
    side: Side | None
    zones: tuple[str, ...]
    site: str | None


def find_places(text: str, words: list[Word], items: list[Item], lexicon: Lexicon) -> list[Place]:
    """The places of a sentence, in order; a place is a row of words of place with only fillers between them."""
    places: list[Place] = []
    row: list[Item] = []
    for item in items:
        if not any(role.kind in ("side", "level", "lobe", "site") for role in item.roles):
            continue
        if row and not _is_joined(words, row[-1].end, item.start, lexicon):
            places.append(_make_place(text, words, row, lexicon))
            row = []
        row.append(item)
    if row:
        places.append(_make_place(text, words, row, lexicon))
    return places


def _is_joined(words: list[Word], start: int, end: int, lexicon: Lexicon) -> bool:
    between = [word.text for word in words[start:end]]
    if any(word not in lexicon.fillers and not _is_ordinal(word) for word in between):
        return False
    return "," not in between or ("and" in between or len(between) <= 2)


def _is_ordinal(word: str) -> bool:
    return word[:1].isdigit() or word in (
        "th",
        "st",
        "nd",
        "rd",
        "posterior",
        "anterior",
        "lateral",
        "through",
        "l",
        "t",
    )


def _make_place(text: str, words: list[Word], row: list[Item], lexicon: Lexicon) -> Place:
    zones = _Zones()
    named = False
    for index, item in enumerate(row):
        if index and _opens_part(words, row[index - 1].end, item.start):
            zones.part()
        own = _find_own_side(words, item, lexicon)
        for role in item.roles:
            if role.kind == "side":
                zones.add_side(role.key)
            elif role.kind in ("level", "lobe"):
                zones.add_level(role.key, own)
            named |= role.kind in ("site", "lobe")
    zones.part()
    start, end = row[0].start, row[-1].end
    while named and start > 0 and _is_ordinal(words[start - 1].text):
        start -= 1
    site = lower_words(text[words[start].start : words[end - 1].end]) if named else None
    return Place(start, end, zones.side(), tuple(zone for zone in ZONES if zone in zones.found), site)


def _opens_part(words: list[Word], start: int, end: int) -> bool:
    """Whether a new part of a place starts: "the right mid zone and the lower zones of the left lung"."""
    between = [word.text for word in words[start:end]]
    return "the" in between and ("and" in between or "," in between)


class _Zones:
    """Collects zones: a level belongs to the side before it in its part of the place, else to the side behind it."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._sides: set[str] = set()
        self._side: str | None = None
        self._last: str | None = None
        self._waiting: list[str] = []

    def add_side(self, side: str) -> None:
        self._sides |= set(SIDES) if side == "bilateral" else {side}
        if self._waiting:
            self.found |= _make_zones(side, self._waiting)
            self._waiting = []
        self._side = self._last = side

    def add_level(self, level: str, own: str | None) -> None:
        if own:
            self._sides |= set(SIDES) if own == "bilateral" else {own}
        side = own or self._side
        if side:
            self.found |= _make_zones(side, [level])
        else:
            self._waiting.append(level)

    def part(self) -> None:
        """End a part of the place: levels without a side take the last side."""
        if self._waiting and self._last:
            self.found |= _make_zones(self._last, self._waiting)
        self._waiting, self._side = [], None

    def side(self) -> Side | None:
        if self._sides == set(SIDES):
            return "bilateral"
        if self._sides:
            return "right" if "right" in self._sides else "left"
        return None


def _find_own_side(words: list[Word], item: Item, lexicon: Lexicon) -> str | None:
    """The side that a word means by itself: "bibasilar" is both, "lingula" is left."""
    text = " ".join(word.text for word in words[item.start : item.end])
    if text in lexicon.both:
        return "bilateral"
    for name, side in lexicon.one_side.items():
        if text == name or text.endswith(f" {name}"):
            return side
    first = words[item.start].text
    first = {"r": "right", "l": "left"}.get(first, first)
    return first if first in SIDES else None


def _make_zones(side: str, levels: list[str]) -> set[str]:
    sides = SIDES if side == "bilateral" else (side,)
    wanted = LEVELS if "all" in levels else levels
    return {f"{one} {level} zone" for one in sides for level in wanted}


def lower_words(text: str) -> str:
    """A text as it is written inside a sentence: words in lower case, abbreviations such as "SVC" and "T9" unchanged.

    Example:
        >>> lower_words("Right lower lobe"), lower_words("the SVC"), lower_words("T9 vertebral body")
        ('right lower lobe', 'the SVC', 'T9 vertebral body')
    """
    return " ".join(word.lower() if word[1:].islower() else word for word in text.split())
