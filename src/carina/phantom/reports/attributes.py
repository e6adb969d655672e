"""Attributes of a finding in words: zones and sides, and measured values as a report rounds them."""

import math
from dataclasses import dataclass
from typing import cast

import msgspec

from carina.phantom.reports.grammar import join_items
from carina.phantom.reports.template import Sampler, Template
from carina.phantom.reports.wording import Language, LevelTemplates
from carina.studies.model import Location, Measure
from carina.studies.vocabulary import SIDES, Side

LEVELS = ("upper", "mid", "lower")
MM_PER = {"mm": 1.0, "cm": 10.0}
PA_ONLY = frozenset({"cardiothoracic ratio"})
"""Measures that are not read from a portable AP view, which magnifies the heart."""


@dataclass(frozen=True, slots=True)
class Zones:
    """The zones of a location by side: {"left": ("mid", "lower")}."""

    names: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]

    @property
    def side(self) -> Side:
        return "bilateral" if len(self.levels) == 2 else cast(Side, next(iter(self.levels)))

    @property
    def shared_levels(self) -> tuple[str, ...] | None:
        """The levels, if both sides (or the only one) have the same; otherwise None."""
        distinct = set(self.levels.values())
        return next(iter(distinct)) if len(distinct) == 1 else None


def get_zones(location: Location | None) -> Zones | None:
    if location is None or not location.zones:
        return None
    # The mask of a large lesion may cross the midline; the report uses the side of the lesion.
    sides = (location.side,) if location.side in SIDES else SIDES
    levels = {
        side: tuple(level for level in LEVELS if f"{side} {level} zone" in location.zones) for side in sides
    }
    levels = {side: found for side, found in levels.items() if found}
    if not levels:
        return None
    names = tuple(f"{side} {level} zone" for side, found in levels.items() for level in found)
    return Zones(names=names, levels=levels)


def write_area(zones: Zones, language: Language, sampler: Sampler) -> str:
    """A noun phrase: "the left lung base", "the right mid and lower zones and the left lower zone"."""
    words = language.words.zones
    shared_levels = zones.shared_levels
    if len(zones.levels) == 2 and shared_levels is not None:
        if len(shared_levels) == 3:
            return _fill_template(sampler.pick(words.area_lungs))
        if len(shared_levels) == 1:
            return _fill_template(sampler.pick(_get_level_templates(words.area_both, shared_levels[0])))
        return _fill_template(
            sampler.pick(words.area_levels_both), levels=_join_levels(shared_levels, language)
        )
    parts = [_write_area_of_side(side, levels, language, sampler) for side, levels in zones.levels.items()]
    return join_items(parts, language.common.conjunctions["and"])


def write_place(zones: Zones, language: Language, sampler: Sampler) -> str:
    """An adverbial phrase: "in both lung bases", "throughout the left lung"."""
    words = language.words.zones
    if zones.shared_levels == LEVELS:
        if len(zones.levels) == 2:
            return _fill_template(sampler.pick(words.place_lungs))
        return _fill_template(sampler.pick(words.place_lung), side=zones.side)
    return _fill_template(sampler.pick(words.place), area=write_area(zones, language, sampler))


def write_flank(side: Side, language: Language, sampler: Sampler) -> str:
    """An adverbial phrase for the side alone: "on the left", "bilaterally"."""
    words = language.words.zones
    return _fill_template(sampler.pick(words.flank_both if side == "bilateral" else words.flank), side=side)


def has_adjective(zones: Zones | None) -> bool:
    return zones is not None and zones.shared_levels is not None and len(zones.shared_levels) == 1


def write_adjective(zones: Zones, language: Language, sampler: Sampler) -> str:
    """An adjective before a noun: "bibasilar", "left mid zone"; only if `has_adjective`."""
    words = language.words.zones
    levels = words.adjective_both if len(zones.levels) == 2 else words.adjective
    (level,) = zones.shared_levels or ("",)
    return _fill_template(sampler.pick(_get_level_templates(levels, level)), side=zones.side)


def _write_area_of_side(side: str, levels: tuple[str, ...], language: Language, sampler: Sampler) -> str:
    words = language.words.zones
    if len(levels) == 3:
        return _fill_template(sampler.pick(words.area_lung), side=side)
    if len(levels) == 1:
        return _fill_template(sampler.pick(_get_level_templates(words.area, levels[0])), side=side)
    return _fill_template(sampler.pick(words.area_levels), side=side, levels=_join_levels(levels, language))


def _join_levels(levels: tuple[str, ...], language: Language) -> str:
    return join_items(
        [language.common.levels[level] for level in levels], language.common.conjunctions["and"]
    )


def _get_level_templates(levels: LevelTemplates, level: str) -> tuple[Template, ...]:
    return {"upper": levels.upper, "mid": levels.mid, "lower": levels.lower}[level]


def _fill_template(template: Template, **values: str) -> str:
    return template.text.format(**values)


@dataclass(frozen=True, slots=True)
class MeasurePhrase:
    text: str
    measure: Measure
    """The measure with its value as written: rounded, in the unit of the truth."""


def select_reportable_measures(
    measures: tuple[Measure, ...], language: Language, *, pa: bool
) -> tuple[Measure, ...]:
    """The measures that the wording has templates for and that can be read from the view."""
    known = language.common.measures
    return tuple(
        measure
        for measure in measures
        if measure.name in known
        and (pa or measure.name not in PA_ONLY)
        and measure.name in language.words.measures
        and (known[measure.name] != "length" or measure.unit in MM_PER)
        and (known[measure.name] != "percent" or measure.value >= 0.05)
        and (known[measure.name] != "count" or measure.value > 1)
    )


def write_measure(
    measure: Measure, templates: tuple[Template, ...], language: Language, sampler: Sampler
) -> MeasurePhrase:
    kind = language.common.measures[measure.name]
    if kind == "length":
        value, text = _round_length(measure, sampler)
    elif kind == "percent":
        # Readers estimate an area to about 5%.
        value = round(measure.value * 20) / 20
        text = f"{value:.0%}"
    elif kind == "count":
        value, text = measure.value, f"{measure.value:.0f}"
    else:
        value = round(measure.value, 2)
        text = f"{value:.2f}"
    phrase = msgspec.structs.replace(measure, value=value)
    return MeasurePhrase(sampler.pick(templates).text.format(value=text), phrase)


def _round_length(measure: Measure, sampler: Sampler) -> tuple[float, str]:
    millimeters = measure.value * MM_PER[measure.unit]
    if millimeters < 10 or (millimeters < 30 and sampler.bernoulli(0.4)):
        phrase = max(1.0, math.floor(millimeters + 0.5))
        text = f"{phrase:.0f} mm"
    else:
        phrase = math.floor(millimeters + 0.5)
        text = f"{phrase / 10:.1f} cm"
    return phrase / MM_PER[measure.unit], text
