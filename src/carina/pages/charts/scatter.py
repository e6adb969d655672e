"""Two shares of a model or a finding against each other: a panel a model, a mark a finding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.pages.charts.canvas import LEFT, Canvas, Entry, lay_out_legend
from carina.pages.charts.figure import Figure
from carina.pages.charts.intervals import WIDTH
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import SMALL, TEXT, cut_text, text_width, wrap_text

_GAP: Final = 34.0
_AXIS: Final = 44.0
_ACROSS: Final = 3
_HEIGHT: Final = 270.0
_UP: Final = 9.0
_DOWN: Final = 3.0
"""Room of a name above and below its base line."""
_TICKS: Final = {share: f"{100 * share:.0f}%" for share in (0, 0.25, 0.5, 0.75, 1)}
Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


@dataclass(frozen=True)
class Dot:
    """A point from 0 to 1 either way, with its name and the interval along each axis."""

    name: str
    x: float
    y: float
    style: SeriesStyle
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class ScatterPanel:
    """Dots that are compared."""

    title: str
    subtitle: str
    dots: Sequence[Dot]
    has_legend: bool = False
    """Whether names stand below, beside marks that differ; otherwise each name stands at its mark."""


def scatter_chart(
    name: str, panels: Sequence[ScatterPanel], *, x_title: str, y_title: str, title: str, note: str
) -> Figure:
    """Draw panels in rows of three; `x_title` and `y_title` name the axes."""
    width = (WIDTH - LEFT - _ACROSS * _AXIS - (_ACROSS - 1) * _GAP - 20) / _ACROSS
    placed: list[tuple[ScatterPanel, float, float, list[str], list[Entry]]] = []
    top = 6.0
    for start in range(0, len(panels), _ACROSS):
        row = panels[start : start + _ACROSS]
        titles = [wrap_text(panel.title, width, TEXT, bold=True) for panel in row]
        head = top + 15 * max(map(len, titles)) + 18
        end = head + 6 + _HEIGHT + 32
        for column, (panel, heading) in enumerate(zip(row, titles, strict=True)):
            left = LEFT + _AXIS + column * (width + _GAP + _AXIS)
            entries: list[Entry] = []
            if panel.has_legend:
                styles = [dot.style for dot in panel.dots]
                entries, below = lay_out_legend(styles, left, head + 6 + _HEIGHT + 52, width, lines=False)
                end = max(end, below)
            placed.append((panel, left, head + 6, heading, entries))
        top = end + 16

    def draw(canvas: Canvas) -> None:
        for panel, left, upper, heading, entries in placed:
            canvas.heading(left, upper - 26, heading)
            canvas.text(left, upper - 10, cut_text(panel.subtitle, width + 30, SMALL), SMALL, colour="quiet")
            _draw_panel(canvas, panel, (left, upper, width, _HEIGHT), f"{x_title} →, {y_title} ↑")
            canvas.legend(entries)

    columns = {"panel": pl.String, "name": pl.String, "x": pl.Float64, "y": pl.Float64}
    rows = [(panel.title, dot.name, dot.x, dot.y) for panel in panels for dot in panel.dots]
    return Figure(
        name=name,
        title=title,
        note=note,
        summary="; ".join(f"{panel.title}: {panel.subtitle}" for panel in panels),
        width=WIDTH,
        height=top - 8,
        draw=draw,
        data=pl.DataFrame(rows, columns, orient="row"),
    )


def _draw_panel(canvas: Canvas, panel: ScatterPanel, box: Box, axis_title: str) -> None:
    left, top, width, height = box
    drawn_in = canvas.panel(box, (0, 1), (0, 1), x_ticks=_TICKS, y_ticks=_TICKS)
    canvas.text(left + width / 2, top + height + 32, axis_title, SMALL, anchor="middle", colour="quiet")
    for dot in panel.dots:
        if dot.x_interval is not None:
            canvas.line(dot.x_interval, (dot.y, dot.y), dot.style.colour, panel=drawn_in)
        if dot.y_interval is not None:
            canvas.line((dot.x, dot.x), dot.y_interval, dot.style.colour, panel=drawn_in)
    if not panel.has_legend:
        for name, x, y in place_names(panel.dots, box):
            # On a plate, so that a line ends before it.
            plate = (x - 2, y - _UP, text_width(name, SMALL) + 4, _UP + _DOWN)
            canvas.rectangle(plate, "surface", opacity=0.85)
            canvas.text(x, y, name, SMALL)
    for dot in panel.dots:
        tip = f"{dot.name}: {100 * dot.x:.1f}% across, {100 * dot.y:.1f}% up"
        canvas.marks([dot.x], [dot.y], dot.style, tips=[tip], panel=drawn_in)


def place_names(dots: Sequence[Dot], box: Box) -> list[tuple[str, float, float]]:
    """Names with x and base line in pixels, beside their marks where they lie on no other name or mark.

    Places on no line come first. Of marks that are too close together, only the first have a name.
    """
    left, top, width, height = box
    centres = [(left + width * dot.x, top + height * (1 - dot.y)) for dot in dots]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in centres]
    lines = [line for dot in dots for line in _interval_boxes(dot, box)]
    placed = []
    for dot, (x, y) in zip(dots, centres, strict=True):
        text = cut_text(dot.name, width * 0.75, SMALL)
        length = text_width(text, SMALL)
        free = [
            place
            for start in (x + 8, x - 8 - length)
            for base in (y - 5, y + 13, y - 19, y + 27)
            for place in [(start, base - _UP, start + length, base + _DOWN)]
            if place[0] >= left - 30 and place[2] <= left + width + 14
            if place[1] >= top and place[3] <= top + height
            if not any(_overlap(place, other) for other in taken)
        ]
        if free:
            best = min(free, key=lambda place: sum(_overlap(place, line) for line in lines))
            taken.append(best)
            placed.append((text, best[0], best[1] + _UP))
    return placed


def _interval_boxes(dot: Dot, box: Box) -> list[Box]:
    """The intervals of a mark as boxes without width or height."""
    left, top, width, height = box
    x, y = left + width * dot.x, top + height * (1 - dot.y)
    boxes = []
    if dot.x_interval is not None:
        boxes.append((left + width * dot.x_interval[0], y, left + width * dot.x_interval[1], y))
    if dot.y_interval is not None:
        boxes.append((x, top + height * (1 - dot.y_interval[1]), x, top + height * (1 - dot.y_interval[0])))
    return boxes


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
