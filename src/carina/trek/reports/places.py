"""Where: rows of words such as "the mid and lower zones of the left lung" into a side, zones and a site."""

from dataclasses import dataclass

from carina.studies.vocabulary import SIDES, ZONES, Side
from carina.trek.reports.lexicon import Lexicon
from carina.trek.reports.phrases import Item, Word

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
    """The places of a sentence, in order: neighbouring words of place with nothing but fillers between."""
    places: list[Place] = []
    row: list[Item] = []
    for item in items:
        if not any(role.kind in ("side", "level", "lobe", "site") for role in item.roles):
            continue
        if row and not _joined(words, row[-1].end, item.start, lexicon):
            places.append(_place(text, words, row, lexicon))
            row = []
        row.append(item)
    if row:
        places.append(_place(text, words, row, lexicon))
    return places


def _joined(words: list[Word], start: int, end: int, lexicon: Lexicon) -> bool:
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


def _place(text: str, words: list[Word], row: list[Item], lexicon: Lexicon) -> Place:
    """Levels belong to the side before them, or to the one after where none is before."""
    zones: set[str] = set()
    sides: set[str] = set()
    side: str | None = None
    waiting: list[str] = []  # levels without a side yet
    used = False  # whether the side has got a level
    named = False
    for item in row:
        for role in item.roles:
            if role.kind == "side":
                if used and role.key != side and waiting:
                    waiting = []
                side, used = role.key, False
                sides |= set(SIDES) if side == "bilateral" else {side}
                if waiting:
                    zones |= _zones(side, waiting)
                    waiting, used = [], True
            elif role.kind in ("level", "lobe"):
                one = _own_side(words, item, lexicon)
                inner = one or side
                if one:
                    sides |= set(SIDES) if one == "bilateral" else {one}
                if inner:
                    zones |= _zones(inner, [role.key])
                    used = True
                else:
                    waiting.append(role.key)
            elif role.kind == "site":
                named = True
            if role.kind == "lobe":
                named = True
    whole: Side | None = None
    if sides == set(SIDES):
        whole = "bilateral"
    elif sides:
        whole = "right" if "right" in sides else "left"
    start = row[0].start
    while start > 0 and _is_ordinal(words[start - 1].text) and named:
        start -= 1
    end = row[-1].end
    site = " ".join(text[words[start].start : words[end - 1].end].split()) if named else None
    return Place(start, end, whole, tuple(zone for zone in ZONES if zone in zones), site)


def _own_side(words: list[Word], item: Item, lexicon: Lexicon) -> str | None:
    """The side that a word means by itself: "bibasilar" is both, "lingula" is left."""
    text = " ".join(word.text for word in words[item.start : item.end])
    if text in lexicon.both:
        return "bilateral"
    for name, side in lexicon.one_side.items():
        if text == name or text.endswith(f" {name}"):
            return side
    first = words[item.start].text
    return first if first in SIDES else None


def _zones(side: str, levels: list[str]) -> set[str]:
    sides = SIDES if side == "bilateral" else (side,)
    wanted = LEVELS if "all" in levels else levels
    return {f"{one} {level} zone" for one in sides for level in wanted}
