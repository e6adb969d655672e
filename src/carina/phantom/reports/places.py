"""Where a finding lies, in words: zones as area, place and adjective, and what side they say."""

from dataclasses import dataclass
from typing import cast

from carina.phantom.reports.grammar import join
from carina.phantom.reports.template import Draw, Frame
from carina.phantom.reports.wording import Language, Levels
from carina.studies.model import Location
from carina.studies.vocabulary import SIDES, Side

LEVELS = ("upper", "mid", "lower")


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones of a location by side: {"left": ("mid", "lower")}."""

    names: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]

    @property
    def side(self) -> Side:
        return "bilateral" if len(self.levels) == 2 else cast(Side, next(iter(self.levels)))

    @property
    def even(self) -> tuple[str, ...] | None:
        """The levels, where both sides (or the only one) have the same; else None."""
        distinct = set(self.levels.values())
        return next(iter(distinct)) if len(distinct) == 1 else None


def zones_of(location: Location | None) -> Zones | None:
    if location is None or not location.zones:
        return None
    # A large lesion's mask may reach over the midline; the report keeps to the side that the lesion has.
    sides = (location.side,) if location.side in SIDES else SIDES
    levels = {
        side: tuple(level for level in LEVELS if f"{side} {level} zone" in location.zones) for side in sides
    }
    levels = {side: found for side, found in levels.items() if found}
    if not levels:
        return None
    names = tuple(f"{side} {level} zone" for side, found in levels.items() for level in found)
    return Zones(names=names, levels=levels)


def area(zones: Zones, language: Language, draw: Draw) -> str:
    """A noun phrase: "the left lung base", "the right mid and lower zones and the left lower zone"."""
    words = language.words.zones
    even = zones.even
    if len(zones.levels) == 2 and even is not None:
        if len(even) == 3:
            return _fill(draw.pick(words.area_lungs))
        if len(even) == 1:
            return _fill(draw.pick(_at(words.area_both, even[0])))
        return _fill(draw.pick(words.area_levels_both), levels=_levels(even, language))
    parts = [_one_side(side, levels, language, draw) for side, levels in zones.levels.items()]
    return join(parts, language.common.conjunctions["and"])


def place(zones: Zones, language: Language, draw: Draw) -> str:
    """Where: "in both lung bases", "throughout the left lung"."""
    words = language.words.zones
    if zones.even == LEVELS:
        if len(zones.levels) == 2:
            return _fill(draw.pick(words.place_lungs))
        return _fill(draw.pick(words.place_lung), side=zones.side)
    return _fill(draw.pick(words.place), area=area(zones, language, draw))


def flank(side: Side, language: Language, draw: Draw) -> str:
    """The side alone, as where: "on the left", "bilaterally"."""
    words = language.words.zones
    return _fill(draw.pick(words.flank_both if side == "bilateral" else words.flank), side=side)


def has_adjective(zones: Zones | None) -> bool:
    return zones is not None and zones.even is not None and len(zones.even) == 1


def adjective(zones: Zones, language: Language, draw: Draw) -> str:
    """Before a noun: "bibasilar", "left mid zone"; only where `has_adjective`."""
    words = language.words.zones
    levels = words.adjective_both if len(zones.levels) == 2 else words.adjective
    (level,) = zones.even or ("",)
    return _fill(draw.pick(_at(levels, level)), side=zones.side)


def _one_side(side: str, levels: tuple[str, ...], language: Language, draw: Draw) -> str:
    words = language.words.zones
    if len(levels) == 3:
        return _fill(draw.pick(words.area_lung), side=side)
    if len(levels) == 1:
        return _fill(draw.pick(_at(words.area, levels[0])), side=side)
    return _fill(draw.pick(words.area_levels), side=side, levels=_levels(levels, language))


def _levels(levels: tuple[str, ...], language: Language) -> str:
    return join([language.common.levels[level] for level in levels], language.common.conjunctions["and"])


def _at(levels: Levels, level: str) -> tuple[Frame, ...]:
    return {"upper": levels.upper, "mid": levels.mid, "lower": levels.lower}[level]


def _fill(frame: Frame, **values: str) -> str:
    return frame.text.format(**values)
