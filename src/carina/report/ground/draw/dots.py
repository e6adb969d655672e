"""Shares with intervals: rows of labels, a panel a measure, a mark a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, legend, listed, wrapped
from carina.report.draw.shapes import Drawing, Item, Line, Mark, Series, Words, text_width

_WIDEST: Final = 300.0
_LINE: Final = 15.0


@dataclass(frozen=True)
class Spot:
    """A share with its interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """What one measure says: by row, then by series."""

    title: str
    spots: Mapping[str, Mapping[str, Spot]]
    cells: Mapping[str, float] = field(default_factory=dict)
    """By row: what the best set of whole cells reaches."""


def dot_chart(
    name: str,
    rows: Mapping[str, str],
    panels: Sequence[Panel],
    series: Mapping[str, Series],
    *,
    title: str,
    note: str,
) -> Drawing:
    """`rows` are labels by key. A row whose key is that of a series is that series' own, and shows its mark."""
    own = all(key in series for key in rows)
    drawing = Drawing(name, WIDTH, 0, title, note)
    items = drawing.items
    left = min(_WIDEST, max((text_width(label, TEXT) for label in rows.values()), default=0) + 44)
    width = (WIDTH - left - LEFT) / len(panels)
    titles = [bold_lines(panel.title, width - 8) for panel in panels]
    top = (0.0 if own else legend(items, series) + 8) + 18 + 15 * max(map(len, titles))
    each = 24.0 if own else max(24.0, 13.0 * len(series) + 6)
    lanes: dict[str, tuple[float, float]] = {}
    floor = top
    for key, label in rows.items():
        # A label that is too long goes on below.
        lines = wrapped(label, left - 36, TEXT)
        lanes[key] = floor, max(each, _LINE * len(lines) + 9)
        middle = floor + lanes[key][1] / 2
        floor += lanes[key][1]
        items.append(Line(((LEFT, floor), (WIDTH - 6, floor)), "line", 0.5))
        if own:
            items.append(series[key].mark(LEFT + 7, middle))
        for line, text in enumerate(lines):
            y = middle + 4 + _LINE * (line - (len(lines) - 1) / 2)
            items.append(Words(LEFT + (20 if own else 0), y, text, TEXT))
    for column, panel in enumerate(panels):
        span = (left + column * width + 18, width - 36)
        for line, text in enumerate(titles[column]):
            y = top - 12 - 15 * (len(titles[column]) - 1 - line)
            items.append(Words(span[0] + span[1] / 2, y, text, TEXT, "middle", bold=True))
        _axis(items, span, top, floor)
        for key, (y, height) in lanes.items():
            if key in panel.cells:
                x = span[0] + span[1] * panel.cells[key]
                items.append(Line(((x, y + 3), (x, y + height - 3)), "quiet", 1.4))
                items.append(Mark(x, y + 3, "down", "quiet", 3.2))
            drawn = {key: series[key]} if own else series
            _row(items, panel.spots.get(key, {}), drawn, span, (y, height))
    drawing.height = floor + 24
    first = panels[0]
    told = [
        (label if own else f"{label}, {series[run].name}", spot.value)
        for key, label in rows.items()
        for run, spot in first.spots.get(key, {}).items()
    ]
    drawing.told = f"{first.title}: {listed(told)}"
    return drawing


def _axis(items: list[Item], span: tuple[float, float], top: float, floor: float) -> None:
    start, inner = span
    for tick in (0.0, 0.5, 1.0):
        x = start + inner * tick
        items.append(Line(((x, top), (x, floor)), "line", 1.0))
        items.append(Words(x, floor + 16, f"{tick:.0%}", SMALL, "middle", "quiet"))


def _row(
    items: list[Item],
    spots: Mapping[str, Spot],
    series: Mapping[str, Series],
    span: tuple[float, float],
    lane: tuple[float, float],
) -> None:
    start, inner = span
    shown = [key for key in series if key in spots]
    # Runs keep their place in every row; a row of one series alone has it in the middle.
    places = list(series) if len(spots) > 1 or len(series) < 3 else shown
    for key in shown:
        spot, style = spots[key], series[key]
        y = lane[0] + lane[1] * (places.index(key) + 1) / (len(places) + 1)
        if spot.low is not None and spot.high is not None:
            items.append(
                Line(((start + inner * spot.low, y), (start + inner * spot.high, y)), style.colour, 2.2)
            )
        items.append(style.mark(start + inner * spot.value, y))
