"""Lines in panels: the share of cases still right by stage, overlap by threshold, frequency by probability.

Lines that coincide are drawn as stripes of their colours, and the note names them. Marks that would lie on each other
stand side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final

import polars as pl
from matplotlib.axes import Axes

from carina.pages.charts.canvas import ACROSS, AXIS, CHANCE, GAP, LEFT, LINE, WIDTH, Box, Canvas, panels_width
from carina.pages.charts.figure import Figure
from carina.pages.charts.numbers import require_finite
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import SMALL, TEXT, cut_text, wrap_text
from carina.pages.words import join_names

Point = tuple[float, float]
_STRIPE: Final = 7.0
"""Length of a stripe of lines that coincide, in pixels."""
_APART: Final = 9.0
"""Distance of marks that would lie on each other, in pixels."""
_MARKED: Final = 4
"""Marks of a smooth line."""


@dataclass(frozen=True)
class Trace:
    """One line of a panel."""

    style: SeriesStyle
    points: Sequence[Point]
    start: Point | None = None
    """Where the line begins, without a mark."""
    band: Sequence[tuple[float, float, float]] = ()
    """Interval as an area: x, low and high."""
    whiskers: Sequence[tuple[float, float, float]] = ()
    """Intervals as upright lines: x, low and high."""
    highlights: Sequence[Point] = ()
    """Points with a triangle above them."""
    is_smooth: bool = False
    """Whether the line has so many points that only a few get a mark."""

    def __post_init__(self) -> None:
        start = () if self.start is None else (self.start,)
        for places in (self.points, start, self.band, self.whiskers, self.highlights):
            require_finite(self.style.name, chain.from_iterable(places))


@dataclass(frozen=True)
class LinePanel:
    """Lines over the same x."""

    title: str
    traces: Sequence[Trace]
    x_range: tuple[float, float]
    x_ticks: Mapping[float, str]
    subtitle: str = ""
    x_title: str = ""
    y_top: float = 1.0
    chance: Sequence[Point] = ()
    """What chance gives, as a dashed line."""
    has_diagonal: bool = False
    weight: float = 1.0
    """Width relative to the other panels of its row."""

    def __post_init__(self) -> None:
        numbers = (*self.x_range, *self.x_ticks, self.y_top, *chain.from_iterable(self.chance), self.weight)
        require_finite(self.title, numbers)


def line_chart(
    name: str,
    panels: Sequence[LinePanel],
    *,
    title: str,
    note: str,
    summary: str,
    height: float = 250.0,
    legend: Sequence[SeriesStyle] | None = None,
) -> Figure:
    """Draw lines in rows of panels.

    Args:
        name: Name of the figure's files.
        panels: In order; at most three in a row.
        title: Title of the chart.
        note: What lines and marks mean. The names of lines that coincide are added.
        summary: Main values in words.
        height: Height of a panel in pixels.
        legend: Names above the chart; where there are none, each panel names its own lines below it.
    """
    coinciding = _name_coinciding(panels)

    def draw(canvas: Canvas) -> float:
        end = 0.0
        if legend is not None:
            styles = [*legend, CHANCE] if any(panel.chance for panel in panels) else legend
            end = 4 + canvas.draw_legend(styles, LEFT, 6, WIDTH - 2 * LEFT, has_lines=True)
        rows = [panels[start : start + ACROSS] for start in range(0, len(panels), ACROSS)]
        # A last row that is not full has panels as wide as those above it; so has a lone row with legends of its own.
        count = ACROSS if legend is None else len(rows[0])
        full = count if legend is None else sum(panel.weight for panel in rows[0])
        for row in rows:
            whole = max(full, sum(panel.weight for panel in row))
            widths = [panels_width(count) * panel.weight / whole for panel in row]
            end = _draw_row(canvas, row, widths, end, height, has_legends=legend is None)
        return end

    columns = {"panel": str, "series": str, "x": float, "label": str, "value": float}
    points = [
        (panel.title, trace.style.name, x, panel.x_ticks.get(x), y)
        for panel in panels
        for trace in panel.traces
        for x, y in trace.points
    ]
    return Figure(
        name=name,
        title=title,
        note=" ".join(part for part in (note, coinciding) if part),
        summary=" ".join(part for part in (f"{summary}." if coinciding else summary, coinciding) if part),
        draw=draw,
        data=pl.DataFrame(points, columns, orient="row"),
    )


def _draw_row(
    canvas: Canvas,
    row: Sequence[LinePanel],
    widths: Sequence[float],
    top: float,
    height: float,
    *,
    has_legends: bool,
) -> float:
    """Draw panels side by side; returns where the row ends."""
    titles = [
        wrap_text(panel.title, width, TEXT, bold=True) for panel, width in zip(row, widths, strict=True)
    ]
    rise = 26 if any(panel.subtitle for panel in row) else 12
    top += 8 + rise + LINE * max(map(len, titles))
    left, end = LEFT + AXIS, top
    for panel, width, title in zip(row, widths, titles, strict=True):
        box = (left, top, width, height)
        labels = {at: _wrap_tick(panel, at, box) for at in panel.x_ticks}
        shares = (share * panel.y_top for share in (0, 0.25, 0.5, 0.75, 1))
        axes = canvas.add_axes(
            box,
            panel.x_range,
            (0, panel.y_top),
            x_ticks=labels,
            y_ticks={share: f"{100 * share:.3g}%" for share in shares},
            x_title=panel.x_title,
            grid="y",
        )
        canvas.write_title(axes, title, cut_text(panel.subtitle, width + 30, SMALL), height=rise)
        pixels = (width / (panel.x_range[1] - panel.x_range[0] or 1.0), height / panel.y_top)
        _draw_lines(canvas, axes, panel, pixels)
        below = top + height + 8 + 13 * max(map(len, labels.values())) + (18 if panel.x_title else 0)
        if has_legends:
            styles = [trace.style for trace in panel.traces]
            below = canvas.draw_legend(styles, left, below + 6, width, has_lines=True)
        end = max(end, below)
        left += width + GAP + AXIS
    return end + 8


def _wrap_tick(panel: LinePanel, at: float, box: Box) -> list[str]:
    """The label of a tick in lines that reach neither the neighbouring labels nor the edge of the chart."""
    left, _, width, _ = box
    first, last = panel.x_range
    x = left + width * (at - first) / (last - first or 1.0)
    room = min(width / max(1, len(panel.x_ticks) - 1) - 4, 2 * (WIDTH - x) - 4)
    return wrap_text(panel.x_ticks[at], room, SMALL)


def _draw_lines(canvas: Canvas, axes: Axes, panel: LinePanel, pixels: Point) -> None:
    """Draw the lines of a panel, the first above the others; `pixels` is the width of 1 on x and the height on y."""
    if panel.has_diagonal:
        axes.plot((0, 1), (0, 1), **canvas.line_options(CHANCE, 1.2))
    if panel.chance:
        axes.plot(*zip(*panel.chance, strict=True), **canvas.line_options(CHANCE, 1.4))
    stripes = {
        trace.style: (number, len(group))
        for group in _coinciding(panel.traces)
        for number, trace in enumerate(group)
    }
    shifts = _shift_marks(panel.traces, pixels)
    for trace, own in reversed(list(zip(panel.traces, shifts, strict=True))):
        _draw_trace(canvas, axes, panel, trace, stripe=stripes.get(trace.style, (0, 1)), shifts=own)


def _marked_points(trace: Trace) -> list[Point]:
    """The points of a line that get a mark."""
    points = list(trace.points)
    every = max(1, len(points) // _MARKED) if trace.is_smooth else 1
    return points[every // 2 :: every]


def _shift_marks(traces: Sequence[Trace], pixels: Point) -> list[dict[Point, float]]:
    """For each line: how far each of its marks is moved on x, so that marks at the same height stand side by side."""
    across, up = pixels
    columns: dict[float, list[tuple[float, int]]] = {}
    for number, trace in enumerate(traces):
        for x, y in _marked_points(trace):
            columns.setdefault(x, []).append((y, number))
    shifts: list[dict[Point, float]] = [{} for _ in traces]
    for x, marks in columns.items():
        groups: list[list[tuple[float, int]]] = []
        for y, number in sorted(marks):
            if groups and (y - groups[-1][-1][0]) * up < _APART:
                groups[-1].append((y, number))
            else:
                groups.append([(y, number)])
        for group in groups:
            # From left to right in the order of the legend.
            for place, (y, number) in enumerate(sorted(group, key=lambda mark: mark[1])):
                shifts[number][x, y] = (place - (len(group) - 1) / 2) * _APART / across
    return shifts


def _draw_trace(
    canvas: Canvas,
    axes: Axes,
    panel: LinePanel,
    trace: Trace,
    *,
    stripe: tuple[int, int],
    shifts: Mapping[Point, float],
) -> None:
    """Draw one line with its interval and marks; `stripe` is its number among those that coincide, and their count."""
    style, points = trace.style, list(trace.points)
    colour = canvas.colour(style.colour)
    start = [] if trace.start is None else [trace.start]
    if trace.band:
        xs, lows, highs = zip(*((x, y, y) for x, y in start), *trace.band, strict=True)
        axes.fill_between(xs, lows, highs, color=colour, alpha=0.12, linewidth=0)
    for x, low, high in trace.whiskers:
        axes.vlines(x, low, high, color=colour, linewidth=1.2)
    if not points:
        return
    number, count = stripe
    line = style if count == 1 else replace(style, dash=(_STRIPE, (count - 1) * _STRIPE))
    options = canvas.line_options(line, 2.0, offset=-number % count * _STRIPE)
    axes.plot(*zip(*start, *points, strict=True), **options)
    marked = _marked_points(trace)
    tips = [f"{style.name}, {panel.x_ticks.get(x, f'{x:.3g}')}: {100 * y:.1f}%" for x, y in marked]
    canvas.draw_marks(
        axes, [x + shifts[x, y] for x, y in marked], [y for _, y in marked], style, size=4.2, tips=tips
    )
    for x, y in trace.highlights:
        triangle = replace(style, shape="down", fill="full")
        canvas.draw_marks(axes, [x], [y + 0.03 * panel.y_top], triangle, size=5.0)


def _coinciding(traces: Sequence[Trace]) -> list[list[Trace]]:
    """Lines through the same points, in groups of two or more."""

    def path(trace: Trace) -> str:
        return str([(round(x, 6), round(y, 6)) for x, y in trace.points])

    groups = [list(group) for _, group in groupby(sorted(traces, key=path), key=path)]
    return [group for group in groups if len(group) > 1 and group[0].points]


def _name_coinciding(panels: Sequence[LinePanel]) -> str:
    """A sentence for each set of lines that coincide in some panels."""
    panels_by_names: dict[tuple[str, ...], list[str]] = {}
    for panel in panels:
        for group in _coinciding(panel.traces):
            names = tuple(trace.style.name for trace in group)
            panels_by_names.setdefault(names, []).append(panel.title)
    sentences = []
    for names, titles in panels_by_names.items():
        where = "" if len(panels) == 1 else " in every panel"
        if len(titles) < len(panels):
            where = f" in: {'; '.join(titles)}"
        sentences.append(f"{join_names(names)} coincide (striped line){where}.")
    return " ".join(sentences)
