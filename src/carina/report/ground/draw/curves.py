"""Lines over numbers: overlap by threshold, frequency by probability."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, cut
from carina.report.draw.shapes import Drawing, Item, Line, Mark, Point, Series, Words
from carina.report.ground.draw.key import key

_GAP: Final = 34.0
_AXIS: Final = 44.0
_ACROSS: Final = 3
_HEIGHT: Final = 210.0
_TICKS: Final = 4


@dataclass(frozen=True)
class Trace:
    """Points of one series, its marked places, and intervals upwards."""

    style: Series
    points: Sequence[Point]
    marked: Sequence[Point] = ()
    """With a triangle that points at them."""
    bounds: Sequence[tuple[float, float, float]] = ()
    """x, low and high."""
    dots: bool = False
    """Whether every point has a mark."""


@dataclass(frozen=True)
class CurvePanel:
    title: str
    sub: str
    traces: Sequence[Trace]
    across: tuple[float, float] = (0.0, 1.0)
    highest: float = 1.0
    x_name: str = ""
    percent: bool = True
    """Whether x is a share."""
    diagonal: bool = False


def curve_chart(name: str, panels: Sequence[CurvePanel], *, title: str, note: str) -> Drawing:
    """Panels in rows, each with the names of its own lines below it."""
    drawing = Drawing(name, WIDTH, 0, title, note)
    drawing.told = "; ".join(f"{panel.title}: {panel.sub}" for panel in panels if panel.sub)
    items = drawing.items
    width = (WIDTH - LEFT - _ACROSS * _AXIS - (_ACROSS - 1) * _GAP - 20) / _ACROSS
    top = 6.0
    for start in range(0, len(panels), _ACROSS):
        row = panels[start : start + _ACROSS]
        titles = [bold_lines(panel.title, width) for panel in row]
        head = top + 15 * max(map(len, titles)) + 18
        lowest = head
        for column, (panel, lines) in enumerate(zip(row, titles, strict=True)):
            left = LEFT + _AXIS + column * (width + _GAP + _AXIS)
            for line, text in enumerate(lines):
                items.append(Words(left, top + 12 + 15 * line, text, TEXT, bold=True))
            items.append(Words(left, head - 4, cut(panel.sub, width + 30, SMALL), SMALL, colour="quiet"))
            _panel(items, panel, (left, head + 6, width, _HEIGHT))
            styles = [trace.style for trace in panel.traces]
            lowest = max(lowest, key(items, styles, left, head + 6 + _HEIGHT + 50, width, lines=True))
        top = lowest + 20
    drawing.height = top - 8
    return drawing


def _panel(items: list[Item], panel: CurvePanel, box: tuple[float, float, float, float]) -> None:
    left, top, width, height = box
    first, last = panel.across
    reach = last - first or 1.0

    def at(x: float, y: float) -> Point:
        return left + width * (x - first) / reach, top + height * (1 - min(1.0, y / panel.highest))

    for step in range(_TICKS + 1):
        share = step / _TICKS
        x, y = left + width * share, top + height * (1 - share)
        items.append(Line(((left, y), (left + width, y)), "line", 1.0))
        upwards = 100 * share * panel.highest
        items.append(Words(left - 8, y + 4, f"{upwards:.3g}%", SMALL, "end", "quiet"))
        value = first + reach * share
        text = f"{100 * value:.0f}%" if panel.percent else f"{value:.3g}"
        items.append(Words(x, top + height + 16, text, SMALL, "middle", "quiet"))
    items.append(Words(left + width / 2, top + height + 32, panel.x_name, SMALL, "middle", "quiet"))
    if panel.diagonal:
        items.append(Line((at(0, 0), at(1, 1)), "quiet", 1.2, (2.0, 3.0)))
    for trace in reversed(panel.traces):
        for x, low, high in trace.bounds:
            items.append(Line((at(x, low), at(x, high)), trace.style.colour, 1.2))
        items.append(
            Line(tuple(at(*point) for point in trace.points), trace.style.colour, 2.0, trace.style.dash)
        )
        # A line has its mark a few times, so that dashes of one grey are told apart.
        every = 1 if trace.dots else max(1, len(trace.points) // 4)
        items += [trace.style.mark(*at(*point), 4.2) for point in trace.points[every // 2 :: every]]
        for point in trace.marked:
            x, y = at(*point)
            items.append(Mark(x, y - 7, "down", trace.style.colour, 5.0))
