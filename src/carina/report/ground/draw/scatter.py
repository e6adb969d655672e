"""Recognition against grounding: a panel a run or all models, a mark a finding or a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, cut
from carina.report.draw.shapes import Area, Drawing, Item, Line, Series, Words, rectangle, text_width
from carina.report.ground.draw.key import key

_GAP: Final = 34.0
_AXIS: Final = 44.0
_ACROSS: Final = 3
_HEIGHT: Final = 270.0
_UP: Final = 9.0
_DOWN: Final = 3.0
"""Room of a name above and below its base line."""
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Dot:
    """A point from 0 to 1 either way, with its name and the interval along each axis."""

    name: str
    x: float
    y: float
    style: Series
    across: tuple[float, float] | None = None
    up: tuple[float, float] | None = None


@dataclass(frozen=True)
class Scatter:
    title: str
    sub: str
    """The correlation in words."""
    dots: Sequence[Dot]
    keyed: bool = False
    """Whether names stand below, beside marks that differ; otherwise each stands at its mark."""


def scatter_chart(
    name: str, panels: Sequence[Scatter], *, across: str, up: str, title: str, note: str
) -> Drawing:
    """Panels in rows; `across` and `up` name the axes."""
    drawing = Drawing(name, WIDTH, 0, title, note)
    drawing.told = "; ".join(f"{panel.title}: {panel.sub}" for panel in panels)
    items = drawing.items
    width = (WIDTH - LEFT - _ACROSS * _AXIS - (_ACROSS - 1) * _GAP - 20) / _ACROSS
    top = 6.0
    for start in range(0, len(panels), _ACROSS):
        row = panels[start : start + _ACROSS]
        titles = [bold_lines(panel.title, width) for panel in row]
        head = top + 15 * max(map(len, titles)) + 18
        lowest = head + 6 + _HEIGHT + 32
        for column, (panel, lines) in enumerate(zip(row, titles, strict=True)):
            left = LEFT + _AXIS + column * (width + _GAP + _AXIS)
            for line, text in enumerate(lines):
                items.append(Words(left, top + 12 + 15 * line, text, TEXT, bold=True))
            items.append(Words(left, head - 4, cut(panel.sub, width + 30, SMALL), SMALL, colour="quiet"))
            _panel(items, panel, (left, head + 6, width, _HEIGHT), across, up)
            if panel.keyed:
                styles = [dot.style for dot in panel.dots]
                lowest = max(lowest, key(items, styles, left, head + 6 + _HEIGHT + 52, width, lines=False))
        top = lowest + 16
    drawing.height = top - 8
    return drawing


def _panel(items: list[Item], panel: Scatter, box: Box, across: str, up: str) -> None:
    left, top, width, height = box
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + width * tick, top + height * (1 - tick)
        items.append(Line(((left, y), (left + width, y)), "line", 1.0))
        items.append(Line(((x, top), (x, top + height)), "line", 1.0))
        items.append(Words(left - 8, y + 4, f"{100 * tick:.0f}%", SMALL, "end", "quiet"))
        items.append(Words(x, top + height + 16, f"{100 * tick:.0f}%", SMALL, "middle", "quiet"))
    items.append(Words(left + width / 2, top + height + 32, f"{across} →, {up} ↑", SMALL, "middle", "quiet"))
    for dot in panel.dots:
        for x0, y0, x1, y1 in _lines(dot, box):
            items.append(Line(((x0, y0), (x1, y1)), dot.style.colour, 1.0))
    if not panel.keyed:
        _names(items, panel.dots, box)
    for dot in panel.dots:
        items.append(dot.style.mark(left + width * dot.x, top + height * (1 - dot.y)))


def _names(items: list[Item], dots: Sequence[Dot], box: Box) -> None:
    """Names beside their marks where they lie on no other name or mark, and on no line if that can be.

    Of marks that are too close, the first has a name. It is written on a plate, so that a line ends before it.
    """
    left, top, width, height = box
    taken = [
        (x - 5, y - 5, x + 5, y + 5)
        for dot in dots
        for x, y in [(left + width * dot.x, top + height * (1 - dot.y))]
    ]
    drawn = [line for dot in dots for line in _lines(dot, box)]
    for dot in dots:
        text = cut(dot.name, width * 0.75, SMALL)
        long = text_width(text, SMALL)
        x, y = left + width * dot.x, top + height * (1 - dot.y)
        free = [
            place
            for start in (x + 8, x - 8 - long)
            for base in (y - 5, y + 13, y - 19, y + 27)
            for place in [(start, base - _UP, start + long, base + _DOWN)]
            if place[0] >= left - 30 and place[2] <= left + width + 14
            if place[1] >= top and place[3] <= top + height
            if not any(_meet(place, other) for other in taken)
        ]
        if free:
            best = min(free, key=lambda place: sum(_meet(place, line) for line in drawn))
            taken.append(best)
            items.append(Area(rectangle(best[0] - 2, best[1], long + 4, _UP + _DOWN), "surface", 0.85))
            items.append(Words(best[0], best[1] + _UP, text, SMALL))


def _lines(dot: Dot, box: Box) -> list[Box]:
    """Intervals of a mark as boxes without width: left, top, right, bottom."""
    left, top, width, height = box
    x, y = left + width * dot.x, top + height * (1 - dot.y)
    made = []
    if dot.across is not None:
        made.append((left + width * dot.across[0], y, left + width * dot.across[1], y))
    if dot.up is not None:
        made.append((x, top + height * (1 - dot.up[1]), x, top + height * (1 - dot.up[0])))
    return made


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
