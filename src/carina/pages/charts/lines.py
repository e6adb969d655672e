"""Lines in panels: the share of cases still right by stage, overlap by threshold, frequency by probability.

Lines that coincide are drawn as stripes of their colours with their marks side by side, and the note names them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import polars as pl

from carina.pages.charts.canvas import CHANCE, CHANCE_DASH, LEFT, Canvas, Entry, Panel, lay_out_legend
from carina.pages.charts.figure import Figure
from carina.pages.charts.intervals import WIDTH
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import SMALL, TEXT, cut_text, join_names, wrap_text

Point = tuple[float, float]
_AXIS: Final = 44.0
"""Room for the labels at the left of a panel."""
_GAP: Final = 34.0
_LINE: Final = 15.0
_STRIPE: Final = 7.0
"""Length of a stripe of lines that coincide, in pixels."""
_APART: Final = 9.0
"""Distance of the marks of lines that coincide, in pixels."""
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


@dataclass(frozen=True)
class _Place:
    """Where a panel stands, and its texts in lines that fit."""

    panel: LinePanel
    box: tuple[float, float, float, float]
    title: list[str]
    tick_labels: Mapping[float, list[str]]
    legend: list[Entry] = field(default_factory=list)
    has_subtitle: bool = False
    """Whether any panel of the row has a subtitle, below which the axes begin."""


def line_chart(
    name: str,
    panels: Sequence[LinePanel],
    *,
    title: str,
    note: str,
    summary: str,
    height: float = 250.0,
    across: int = 3,
    legend: Sequence[SeriesStyle] | None = None,
) -> Figure:
    """Draw lines in rows of panels.

    Args:
        name: Name of the figure's files.
        panels: In order; at most `across` in a row.
        title: Title of the chart.
        note: What lines and marks mean. The names of lines that coincide are added.
        summary: Main values in words.
        height: Height of a panel in pixels.
        across: Panels in a row.
        legend: Names above the chart; where there are none, each panel names its own lines below it.
    """
    places: list[_Place] = []
    top = 6.0
    above: list[Entry] = []
    if legend is not None:
        styles = [*legend, CHANCE] if any(panel.chance for panel in panels) else list(legend)
        above, end = lay_out_legend(styles, LEFT, 16, WIDTH - LEFT, lines=True)
        top = end + 10
    full_row = sum(panel.weight for panel in panels[:across])
    for start in range(0, len(panels), across):
        row = panels[start : start + across]
        placed, top = _place_row(
            row, top, height, full_row, across, is_first=start == 0, has_legend=legend is None
        )
        places += placed
    coinciding = _name_coinciding(panels)

    def draw(canvas: Canvas) -> None:
        canvas.legend(above)
        for place in places:
            _draw_panel(canvas, place)
            canvas.legend(place.legend)

    return Figure(
        name=name,
        title=title,
        note=" ".join(part for part in (note, coinciding) if part),
        summary=" ".join(part for part in (f"{summary}." if coinciding else summary, coinciding) if part),
        width=WIDTH,
        height=top - 8,
        draw=draw,
        data=_data(panels),
    )


def _place_row(
    row: Sequence[LinePanel],
    top: float,
    height: float,
    full_row: float,
    across: int,
    *,
    is_first: bool,
    has_legend: bool,
) -> tuple[list[_Place], float]:
    """Boxes of the panels of a row, and where the row ends."""
    weights = [panel.weight for panel in row]
    # A last row that is not full has panels as wide as those above it; so has a lone row of keyed panels.
    count = across if has_legend or not is_first else len(row)
    whole = max(sum(weights), full_row if not has_legend else across * 1.0)
    room = WIDTH - LEFT - count * _AXIS - (count - 1) * _GAP - 20
    widths = [room * weight / whole for weight in weights]
    titles = [wrap_text(p.title, width, TEXT, bold=True) for p, width in zip(row, widths, strict=True)]
    has_subtitle = any(panel.subtitle for panel in row)
    head = top + _LINE * max(map(len, titles)) + (18 if has_subtitle else 4)
    places = []
    left, end = LEFT + _AXIS, head
    for panel, width, heading in zip(row, widths, titles, strict=True):
        labels = {
            at: wrap_text(text, _label_width(panel, at, left, width), SMALL)
            for at, text in panel.x_ticks.items()
        }
        below = head + 6 + height + 4 + 13 * max(map(len, labels.values())) + (16 if panel.x_title else 0)
        entries: list[Entry] = []
        if has_legend:
            styles = [trace.style for trace in panel.traces]
            entries, below = lay_out_legend(styles, left, below + 18, width, lines=True)
        places.append(_Place(panel, (left, head + 6, width, height), heading, labels, entries, has_subtitle))
        end = max(end, below)
        left += width + _GAP + _AXIS
    return places, end + 20


def _label_width(panel: LinePanel, at: float, left: float, width: float) -> float:
    """Room for the label of a tick: up to the neighbouring labels, and within the chart."""
    first, last = panel.x_range
    x = left + width * (at - first) / (last - first or 1.0)
    return min(width / max(1, len(panel.x_ticks) - 1) - 4, 2 * (WIDTH - x) - 4)


def _draw_panel(canvas: Canvas, place: _Place) -> None:
    panel, (left, top, width, height) = place.panel, place.box
    canvas.heading(left, top - (26 if place.has_subtitle else 14), place.title)
    canvas.text(left, top - 10, cut_text(panel.subtitle, width + 30, SMALL), SMALL, colour="quiet")
    ticks = {share * panel.y_top: f"{100 * share * panel.y_top:.3g}%" for share in (0, 0.25, 0.5, 0.75, 1)}
    drawn_in = canvas.panel(place.box, panel.x_range, (0, panel.y_top), y_ticks=ticks)
    for at, lines in place.tick_labels.items():
        x, _ = drawn_in.to_pixels(at, 0)
        for line, text in enumerate(lines):
            canvas.text(x, top + height + 17 + 13 * line, text, SMALL, anchor="middle", colour="quiet")
    if panel.x_title:
        y = top + height + 20 + 13 * max(map(len, place.tick_labels.values()))
        canvas.text(left + width / 2, y, panel.x_title, SMALL, anchor="middle", colour="quiet")
    if panel.has_diagonal:
        canvas.line((0, 1), (0, 1), "quiet", 1.2, dash=CHANCE_DASH, panel=drawn_in)
    if panel.chance:
        xs, ys = zip(*panel.chance, strict=True)
        canvas.line(xs, ys, "quiet", 1.4, dash=CHANCE_DASH, panel=drawn_in)
    stripes = _stripes(panel.traces)
    # The first lines lie on top.
    for trace in reversed(panel.traces):
        stripe = stripes.get(trace.style, (0, 1))
        _draw_trace(canvas, drawn_in, panel, trace, stripe=stripe)


def _draw_trace(
    canvas: Canvas, drawn_in: Panel, panel: LinePanel, trace: Trace, *, stripe: tuple[int, int]
) -> None:
    """Draw one line with its interval and marks; `stripe` is its number among those that coincide, and their count."""
    style, points = trace.style, list(trace.points)
    number, count = stripe
    if trace.band:
        upper = [(x, high) for x, _, high in trace.band]
        lower = [(x, low) for x, low, _ in reversed(trace.band)]
        begin = [] if trace.start is None else [trace.start]
        canvas.area([*begin, *upper, *lower], style.colour, opacity=0.12, panel=drawn_in)
    for x, low, high in trace.whiskers:
        canvas.line((x, x), (low, high), style.colour, 1.2, panel=drawn_in)
    if not points:
        return
    xs, ys = zip(*([trace.start] if trace.start else []), *points, strict=True)
    dash, offset = style.dash, 0.0
    if count > 1:
        dash, offset = (_STRIPE, (count - 1) * _STRIPE), (count - number) % count * _STRIPE
    canvas.line(xs, ys, style.colour, 2.0, dash=dash, offset=offset, panel=drawn_in)
    every = max(1, len(points) // _MARKED) if trace.is_smooth else 1
    marked = points[every // 2 :: every]
    shift = (number - (count - 1) / 2) * _APART * drawn_in.x_per_pixel
    canvas.marks(
        [x + shift for x, _ in marked],
        [y for _, y in marked],
        style,
        size=4.2,
        tips=[f"{style.name}, {panel.x_ticks.get(x, f'{x:.3g}')}: {100 * y:.1f}%" for x, y in marked],
        panel=drawn_in,
    )
    for x, y in trace.highlights:
        raised = y + 7 * drawn_in.y_per_pixel
        canvas.marks([x], [raised], SeriesStyle(style.name, style.colour, "down"), size=5.0, panel=drawn_in)


def _coinciding(traces: Sequence[Trace]) -> list[list[Trace]]:
    """Lines through the same points, in groups of two or more."""

    def path(trace: Trace) -> str:
        return str([(round(x, 6), round(y, 6)) for x, y in trace.points])

    groups = [list(group) for _, group in groupby(sorted(traces, key=path), key=path)]
    return [group for group in groups if len(group) > 1 and group[0].points]


def _stripes(traces: Sequence[Trace]) -> dict[SeriesStyle, tuple[int, int]]:
    """Number and count of the stripes of lines that coincide."""
    return {
        trace.style: (number, len(group))
        for group in _coinciding(traces)
        for number, trace in enumerate(group)
    }


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
        sentences.append(f"{join_names(list(names))} coincide (striped line){where}.")
    return " ".join(sentences)


def _data(panels: Sequence[LinePanel]) -> pl.DataFrame:
    columns = {
        "panel": pl.String,
        "series": pl.String,
        "x": pl.Float64,
        "label": pl.String,
        "value": pl.Float64,
    }
    rows = [
        (panel.title, trace.style.name, x, panel.x_ticks.get(x), y)
        for panel in panels
        for trace in panel.traces
        for x, y in trace.points
    ]
    return pl.DataFrame(rows, columns, orient="row")
