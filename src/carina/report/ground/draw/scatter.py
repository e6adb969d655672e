"""Recognition against grounding: a panel a run or all models, a mark a finding or a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, cut
from carina.report.draw.shapes import Drawing, Item, Line, Series, Words, text_width

_GAP: Final = 34.0
_AXIS: Final = 44.0
_ACROSS: Final = 3
_HEIGHT: Final = 270.0
_CLEAR: Final = 13.0
"""Upright distance that labels keep from each other."""


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
        for column, (panel, lines) in enumerate(zip(row, titles, strict=True)):
            left = LEFT + _AXIS + column * (width + _GAP + _AXIS)
            for line, text in enumerate(lines):
                items.append(Words(left, top + 12 + 15 * line, text, TEXT, bold=True))
            items.append(Words(left, head - 4, cut(panel.sub, width + 30, SMALL), SMALL, colour="quiet"))
            _panel(items, panel, (left, head + 6, width, _HEIGHT), across, up)
        top = head + 6 + _HEIGHT + 48
    drawing.height = top - 8
    return drawing


def _panel(
    items: list[Item], panel: Scatter, box: tuple[float, float, float, float], across: str, up: str
) -> None:
    left, top, width, height = box
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + width * tick, top + height * (1 - tick)
        items.append(Line(((left, y), (left + width, y)), "line", 1.0))
        items.append(Line(((x, top), (x, top + height)), "line", 1.0))
        items.append(Words(left - 8, y + 4, f"{100 * tick:.0f}%", SMALL, "end", "quiet"))
        items.append(Words(x, top + height + 16, f"{100 * tick:.0f}%", SMALL, "middle", "quiet"))
    items.append(Words(left + width / 2, top + height + 32, f"{across} →, {up} ↑", SMALL, "middle", "quiet"))
    for dot in panel.dots:
        x, y = left + width * dot.x, top + height * (1 - dot.y)
        if dot.across is not None:
            ends = tuple((left + width * at, y) for at in dot.across)
            items.append(Line(ends, dot.style.colour, 1.0))
        if dot.up is not None:
            ends = tuple((x, top + height * (1 - at)) for at in dot.up)
            items.append(Line(ends, dot.style.colour, 1.0))
    for dot in panel.dots:
        items.append(dot.style.mark(left + width * dot.x, top + height * (1 - dot.y)))
    _names(items, panel.dots, box)


def _names(items: list[Item], dots: Sequence[Dot], box: tuple[float, float, float, float]) -> None:
    """Names beside their marks where they lie on no other name; of marks that are too close, the first has one."""
    left, top, width, height = box
    taken: list[tuple[float, float, float]] = []
    for dot in dots:
        text = cut(dot.name, width * 0.45, SMALL)
        long = text_width(text, SMALL)
        x, y = left + width * dot.x, top + height * (1 - dot.y)
        for start, base in ((x + 8, y - 5), (x - 8 - long, y - 5), (x + 8, y + 13), (x - 8 - long, y + 13)):
            inside = start >= left and start + long <= left + width + 14 and top + 8 <= base <= top + height
            clear = all(
                abs(base - other) >= _CLEAR or start >= end or start + long <= begin
                for begin, end, other in taken
            )
            if inside and clear:
                taken.append((start, start + long, base))
                items.append(Words(start, base, text, SMALL))
                break
