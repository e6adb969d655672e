"""Reach: curves of the share of cases still right, one panel a set of cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from carina.report.analyse.reach import Curve
from carina.report.draw.parts import (
    CHANCE,
    LEFT,
    SMALL,
    TEXT,
    WIDTH,
    bold_lines,
    legend,
    listed,
    percent_axis,
    wrapped,
)
from carina.report.draw.shapes import Area, Drawing, Item, Line, Series, Words

_AXIS = 38.0
_GAP = 36.0


@dataclass(frozen=True)
class Panel:
    """Curves over the same places."""

    title: str
    curves: Sequence[Curve]
    names: Mapping[str, str] = field(default_factory=dict)
    """Of places, where they are not called by themselves; all of them have room then, whether a curve gets there."""

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.names) or max((curve.places for curve in self.curves), key=len)


def reach_chart(
    name: str,
    panels: Sequence[Panel],
    series: Mapping[str, Series],
    *,
    title: str,
    note: str,
    across: int = 3,
    height: float = 250.0,
    bands: bool = True,
) -> Drawing:
    """At most so many panels a row, each as wide as its places need; bands are intervals."""
    drawing = Drawing(name, WIDTH, 0, title, note)
    first = panels[0]
    ends = [
        (series[curve.run].name, curve.figures[-1].value) for curve in first.curves if curve.run in series
    ]
    drawing.told = f"{first.title}, at the end: {listed(ends)}"
    top = legend(drawing.items, series, chance=_has_chance(panels)) + 38
    for start in range(0, len(panels), across):
        row = panels[start : start + across]
        # A last row that is not full has panels as wide as those above it.
        weights = [_weight(panel) for panel in row]
        whole = sum(weights) if start == 0 else max(sum(weights), sum(map(_weight, panels[:across])))
        count = len(row) if start == 0 else min(across, len(panels))
        room = WIDTH - LEFT - count * _AXIS - (count - 1) * _GAP - 20
        widths = [room * weight / whole for weight in weights]
        titles = [bold_lines(panel.title, width + 10) for panel, width in zip(row, widths, strict=True)]
        top += 15 * (max(map(len, titles)) - 1)
        left, lines = LEFT + _AXIS, 1
        for panel, width, heading in zip(row, widths, titles, strict=True):
            for line, text in enumerate(reversed(heading)):
                drawing.items.append(Words(left, top - 14 - 15 * line, text, TEXT, bold=True))
            box = (left, top, width, height)
            lines = max(lines, _panel(drawing.items, panel, series, box, bands=bands))
            left += width + _GAP + _AXIS
        drawing.height = top + height + 20 + 13 * lines
        top = drawing.height + 34
    return drawing


def _weight(panel: Panel) -> float:
    # Names of stages need more room than numbers of steps.
    return max(3, len(panel.places)) * (1.7 if panel.names else 1.0)


def _panel(
    items: list[Item],
    panel: Panel,
    series: Mapping[str, Series],
    box: tuple[float, float, float, float],
    *,
    bands: bool,
) -> int:
    """Draws a panel; returns how many lines the names of its places take."""
    left, top, width, height = box
    percent_axis(items, left, top, width, height)
    each = width / (len(panel.places) + 0.25)
    spots = {place: left + each * (at + 1) for at, place in enumerate(panel.places)}
    items.append(Words(left, top + height + 17, "start", SMALL, "middle", "quiet"))
    most = 1
    for place, x in spots.items():
        told = wrapped(panel.names.get(place, place), each - 4, SMALL)
        most = max(most, len(told))
        for line, text in enumerate(told):
            items.append(Words(x, top + height + 17 + 13 * line, text, SMALL, "middle", "quiet"))
    shown = [curve for curve in panel.curves if curve.run in series]
    _chance(items, shown, spots, (left, top, height))
    # The first runs lie on top.
    for curve in reversed(shown):
        if bands:
            _band(items, curve, series[curve.run], spots, (left, top, height))
        _curve(items, curve, series[curve.run], spots, (left, top, height))
    return most


def _has_chance(panels: Sequence[Panel]) -> bool:
    return any(curve.figures[-1].chance is not None for panel in panels for curve in panel.curves)


def _chance(
    items: list[Item], curves: Sequence[Curve], spots: Mapping[str, float], frame: tuple[float, float, float]
) -> None:
    """What chance gives: the same for all runs, so drawn once, where it is known."""
    left, top, height = frame
    known = next((curve for curve in curves if curve.figures[-1].chance is not None), None)
    if known is not None:
        points = [(spots[item.name], top + height * (1 - (item.chance or 0.0))) for item in known.figures]
        items.append(Line(((left, top), *points), "quiet", 1.4, CHANCE))


def _band(
    items: list[Item],
    curve: Curve,
    style: Series,
    spots: Mapping[str, float],
    frame: tuple[float, float, float],
) -> None:
    """The interval, for runs that are drawn with a line of their own."""
    left, top, height = frame
    bounds = [
        (spots[item.name], item.low, item.high)
        for item in curve.figures
        if item.low is not None and item.high is not None
    ]
    if bounds and style.dash is None:
        above = [(x, top + height * (1 - high)) for x, _, high in bounds]
        below = [(x, top + height * (1 - low)) for x, low, _ in bounds]
        items.append(Area(((left, top), *above, *reversed(below)), style.colour, 0.12))


def _curve(
    items: list[Item],
    curve: Curve,
    style: Series,
    spots: Mapping[str, float],
    frame: tuple[float, float, float],
) -> None:
    left, top, height = frame
    start = (left, top)
    told = [(spots[item.name], item) for item in curve.figures if item.value is not None]
    points = [(x, top + height * (1 - (item.value or 0.0))) for x, item in told]
    items.append(Line((start, *points), style.colour, 2.0, style.dash))
    items += [style.mark(x, y, 4.2) for x, y in points]
