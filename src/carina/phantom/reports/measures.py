"""Measured values in words, and the value as the reader of the words would take it down."""

import math
from dataclasses import dataclass

import msgspec

from carina.phantom.reports.template import Draw, Frame
from carina.phantom.reports.wording import Language
from carina.studies.model import Measure

MM_PER = {"mm": 1.0, "cm": 10.0}


@dataclass(frozen=True, slots=True)
class SaidMeasure:
    text: str
    measure: Measure
    """The measure with its value as said: rounded, in the unit of the truth."""


PA_ONLY = frozenset({"cardiothoracic ratio"})
"""A portable AP view magnifies the heart: nobody quotes this from one."""


def sayable(measures: tuple[Measure, ...], language: Language, *, pa: bool) -> tuple[Measure, ...]:
    """The measures that the language has words for and that may be read off the view."""
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


def say_measure(measure: Measure, frames: tuple[Frame, ...], language: Language, draw: Draw) -> SaidMeasure:
    kind = language.common.measures[measure.name]
    if kind == "length":
        value, text = _length(measure, draw)
    elif kind == "percent":
        # Nobody estimates an area to the percent.
        value = round(measure.value * 20) / 20
        text = f"{value:.0%}"
    elif kind == "count":
        value, text = measure.value, f"{measure.value:.0f}"
    else:
        value = round(measure.value, 2)
        text = f"{value:.2f}"
    said = msgspec.structs.replace(measure, value=value)
    return SaidMeasure(draw.pick(frames).text.format(value=text), said)


def _length(measure: Measure, draw: Draw) -> tuple[float, str]:
    millimeters = measure.value * MM_PER[measure.unit]
    if millimeters < 10 or (millimeters < 30 and draw.chance(0.4)):
        said = max(1.0, math.floor(millimeters + 0.5))
        text = f"{said:.0f} mm"
    else:
        said = math.floor(millimeters + 0.5)
        text = f"{said / 10:.1f} cm"
    return said / MM_PER[measure.unit], text
