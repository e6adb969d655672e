"""Values with intervals in rows: one panel a measure, one row a run (or a finding, or a measure) with its marks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl
from matplotlib.axes import Axes

from carina.pages.charts.canvas import LEFT, LINE, WIDTH, Canvas
from carina.pages.charts.figure import Figure
from carina.pages.charts.numbers import require_finite
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import TEXT, text_width, wrap_text

_WIDEST_LABEL: Final = 300.0
_ROW: Final = 24.0
_REFERENCE: Final = SeriesStyle("reference", "quiet", "down")
Unit = Literal["share", "points"]
Rows = Mapping[str, tuple[float, float]]
"""Top and height of each row, in pixels."""


@dataclass(frozen=True)
class Interval:
    """A value with its bounds, where it has any."""

    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        require_finite("a value with its interval", (self.value, self.low, self.high))


@dataclass(frozen=True)
class Reference:
    """An upright line in a row: a value that can be reached without the model."""

    name: str
    value: float
    is_dashed: bool = False
    """Dashes; otherwise a line with a triangle at its upper end."""

    def __post_init__(self) -> None:
        require_finite(self.name, (self.value,))


@dataclass(frozen=True)
class IntervalPanel:
    """The values of one measure."""

    title: str
    values: Mapping[str, Mapping[str, Interval]]
    """By row, then by series."""
    references: Mapping[str, Sequence[Reference]] = field(default_factory=dict)
    """By row."""


def interval_chart(
    name: str,
    rows: Mapping[str, str],
    panels: Sequence[IntervalPanel],
    series: Mapping[str, SeriesStyle],
    *,
    title: str,
    note: str,
    summary: str = "",
    unit: Unit = "share",
) -> Figure:
    """Draw values with intervals.

    Args:
        name: Name of the figure's files.
        rows: Label of each row by its key. Where every key is that of a series, a row shows that series alone, with
            its mark beside the label; otherwise every row shows all series, and a legend stands above.
        panels: One column each.
        series: How each series is drawn.
        title: Title of the chart.
        note: What marks and lines mean.
        summary: Main values in words; those of the first panel where it is empty.
        unit: "share" for an axis from 0 to 100%, "points" for percentage points around zero.
    """
    is_own_row = all(key in series for key in rows)
    ticks = _difference_ticks(panels) if unit == "points" else {0: "0%", 0.5: "50%", 1: "100%"}

    def draw(canvas: Canvas) -> float:
        top = 0.0
        if not is_own_row:
            top = 4 + canvas.draw_legend(list(series.values()), LEFT, 6, WIDTH - 2 * LEFT, has_lines=False)
        left = label_width(rows)
        width = (WIDTH - left - LEFT) / len(panels)
        titles = [wrap_text(panel.title, width - 8, TEXT, bold=True) for panel in panels]
        top += 18 + LINE * max(map(len, titles))
        least = _ROW if is_own_row else max(_ROW, 13.0 * len(series) + 6)
        places = label_rows(canvas, rows, series if is_own_row else {}, top, least)
        end = max(y + height for y, height in places.values())
        for column, (panel, lines) in enumerate(zip(panels, titles, strict=True)):
            box = (left + column * width + 18, top, width - 36, end - top)
            axes = canvas.add_axes(
                box,
                (min(ticks), max(ticks)),
                (end, top),
                x_ticks={at: [label] for at, label in ticks.items()},
            )
            canvas.write_title(axes, lines, height=12, ha="center")
            if unit == "points":
                axes.axvline(0, color=canvas.colour("ink"), linewidth=1.2, zorder=1)
            _draw_references(canvas, axes, panel, places, inset=0 if is_own_row else 3)
            _draw_values(canvas, axes, panel, places, series, unit=unit, is_own_row=is_own_row)
        return end + 24

    columns = {"panel": str, "row": str, "series": str, "value": float, "low": float, "high": float}
    cells = [
        (panel.title, label, series[run].name, one.value, one.low, one.high)
        for panel in panels
        for key, label in rows.items()
        for run, one in panel.values.get(key, {}).items()
    ]
    first = [
        (label if is_own_row else f"{label}, {series[run].name}", one.value)
        for key, label in rows.items()
        for run, one in panels[0].values.get(key, {}).items()
    ]
    return Figure(
        name=name,
        title=title,
        note=note,
        summary=summary or f"{panels[0].title}: {list_shares(first)}",
        draw=draw,
        data=pl.DataFrame(cells, columns, orient="row"),
    )


def label_width(labels: Mapping[str, str]) -> float:
    """Room for the labels of rows; longer ones are wrapped."""
    return min(_WIDEST_LABEL, max((text_width(label, TEXT) for label in labels.values()), default=0) + 44)


def label_rows(
    canvas: Canvas,
    labels: Mapping[str, str],
    series: Mapping[str, SeriesStyle],
    top: float,
    least: float,
    *,
    has_lines: bool = True,
) -> Rows:
    """Write the labels of rows, with the marks of those that are series; a row is at least `least` pixels high."""
    wrapped = {key: wrap_text(label, label_width(labels) - 36, TEXT) for key, label in labels.items()}
    rows: dict[str, tuple[float, float]] = {}
    end = top
    for key, lines in wrapped.items():
        rows[key] = end, max(least, LINE * len(lines) + 9)
        end += rows[key][1]
    axes = canvas.add_axes((LEFT, top, WIDTH - 6 - LEFT, end - top), (0, WIDTH - 6 - LEFT), (end, top))
    if has_lines:
        ends = [y + height for y, height in rows.values()]
        axes.hlines(ends, 0, WIDTH - 6 - LEFT, color=canvas.colour("line"), linewidth=0.5)
    for key, (y, height) in rows.items():
        middle = y + height / 2
        if key in series:
            canvas.draw_marks(axes, [7], [middle], series[key])
        first = middle + 4 - LINE * (len(wrapped[key]) - 1) / 2
        canvas.write_text(LEFT + (20 if key in series else 0), first, wrapped[key])
    return rows


def _draw_references(canvas: Canvas, axes: Axes, panel: IntervalPanel, rows: Rows, *, inset: float) -> None:
    """Draw the upright lines of a panel, with one triangle for a line that goes through several rows."""
    marked: set[float] = set()
    for key, (y, height) in rows.items():
        for one in panel.references.get(key, ()):
            pattern = (0, (2.0, 2.0)) if one.is_dashed else "-"
            ends = (y + inset, y + height - inset)
            axes.plot([one.value] * 2, ends, color=canvas.colour("quiet"), linewidth=1.4, linestyle=pattern)
            if not one.is_dashed and (inset or one.value not in marked):
                marked.add(one.value)
                canvas.draw_marks(axes, [one.value], [ends[0]], _REFERENCE, size=3.2)


def _draw_values(
    canvas: Canvas,
    axes: Axes,
    panel: IntervalPanel,
    rows: Rows,
    series: Mapping[str, SeriesStyle],
    *,
    unit: Unit,
    is_own_row: bool,
) -> None:
    """Draw the marks and intervals of each series: in the middle of its own row, or at the same place in every row."""
    for run, style in series.items():
        marks = []
        for key, (y, height) in rows.items():
            values = panel.values.get(key, {})
            if run in values:
                order = list(values) if is_own_row or (len(values) == 1 and len(series) > 2) else list(series)
                marks.append((values[run], y + height * (order.index(run) + 1) / (len(order) + 1)))
        for one, y in marks:
            if one.low is not None and one.high is not None:
                axes.hlines(y, one.low, one.high, color=canvas.colour(style.colour), linewidth=2.2)
        tips = [f"{style.name}, {panel.title}: {_describe(one, unit)}" for one, _ in marks]
        if marks:
            canvas.draw_marks(axes, [one.value for one, _ in marks], [y for _, y in marks], style, tips=tips)


def _difference_ticks(panels: Sequence[IntervalPanel]) -> dict[float, str]:
    """Ticks around zero, up to the next ten points beyond every bound."""
    values = [one for panel in panels for row in panel.values.values() for one in row.values()]
    known = [bound for one in values for bound in (one.value, one.low, one.high) if bound is not None]
    reach = max(0.1, math.ceil(round(10 * max(map(abs, known), default=0.1), 6)) / 10)
    return {share * reach: _signed(share * reach, 0) if share else "0" for share in (-1, -0.5, 0, 0.5, 1)}


def _signed(value: float, decimals: int) -> str:
    return f"{100 * value:+.{decimals}f}".replace("-", "−")


def _describe(one: Interval, unit: Unit) -> str:
    """The value with its bounds in words."""

    def write(value: float) -> str:
        return _signed(value, 1) if unit == "points" else f"{100 * value:.1f}%"

    bounds = "" if one.low is None or one.high is None else f" ({write(one.low)} to {write(one.high)})"
    return f"{write(one.value)}{' points' if unit == 'points' else ''}{bounds}"


def list_shares(values: Sequence[tuple[str, float | None]]) -> str:
    """Names and shares in a sentence: "one 64%, another 2%"."""
    return ", ".join(f"{name} {100 * value:.0f}%" for name, value in values if value is not None)
