"""Values with intervals in rows: one panel a measure, one row a run (or a finding, or a measure) with its marks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from carina.pages.charts.canvas import LEFT, Canvas, lay_out_legend
from carina.pages.charts.figure import Figure
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import TEXT, text_width, wrap_text

WIDTH: Final = 1160.0
_WIDEST_LABEL: Final = 300.0
_LINE: Final = 15.0
_ROW: Final = 24.0
_REFERENCE: Final = SeriesStyle("reference", "quiet", "down")
_DASHES: Final = (2.0, 2.0)


@dataclass(frozen=True)
class Interval:
    """A value with its bounds, where it has any."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Reference:
    """An upright line in a row: a value that can be reached without the model."""

    name: str
    value: float
    is_dashed: bool = False
    """Dashes; otherwise a line with a triangle at its upper end."""


@dataclass(frozen=True)
class IntervalPanel:
    """The values of one measure."""

    title: str
    values: Mapping[str, Mapping[str, Interval]]
    """By row, then by series."""
    references: Mapping[str, Sequence[Reference]] = field(default_factory=dict)
    """By row."""


@dataclass(frozen=True)
class _Axis:
    """Range and ticks that all panels share."""

    low: float
    high: float
    ticks: Mapping[float, str]

    @property
    def is_difference(self) -> bool:
        return self.low < 0


def interval_chart(
    name: str,
    rows: Mapping[str, str],
    panels: Sequence[IntervalPanel],
    series: Mapping[str, SeriesStyle],
    *,
    title: str,
    note: str,
    summary: str = "",
    unit: Literal["share", "points"] = "share",
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
    axis = _difference_axis(panels) if unit == "points" else _Axis(0, 1, {0: "0%", 0.5: "50%", 1: "100%"})
    widest = max((text_width(label, TEXT) for label in rows.values()), default=0)
    left = min(_WIDEST_LABEL, widest + 44)
    width = (WIDTH - left - LEFT) / len(panels)
    titles = [wrap_text(panel.title, width - 8, TEXT, bold=True) for panel in panels]
    legend, legend_end = lay_out_legend(list(series.values()), LEFT, 16, WIDTH - LEFT, lines=False)
    top = (0.0 if is_own_row else legend_end + 8) + 18 + _LINE * max(map(len, titles))
    each = _ROW if is_own_row else max(_ROW, 13.0 * len(series) + 6)
    labels = {key: wrap_text(label, left - 36, TEXT) for key, label in rows.items()}
    bounds: dict[str, tuple[float, float]] = {}
    floor = top
    for key, lines in labels.items():
        bounds[key] = floor, max(each, _LINE * len(lines) + 9)
        floor += bounds[key][1]

    def draw(canvas: Canvas) -> None:
        if not is_own_row:
            canvas.legend(legend)
        for key, (y, height) in bounds.items():
            canvas.line((LEFT, WIDTH - 6), (y + height, y + height), "line", 0.5)
            middle = y + height / 2
            if is_own_row:
                canvas.marks([LEFT + 7], [middle], series[key])
            for place, text in enumerate(labels[key]):
                base = middle + 4 + _LINE * (place - (len(labels[key]) - 1) / 2)
                canvas.text(LEFT + (20 if is_own_row else 0), base, text)
        for column, (panel, heading) in enumerate(zip(panels, titles, strict=True)):
            box = (left + column * width + 18, top, width - 36, floor - top)
            canvas.heading(box[0] + box[2] / 2, top - 12, heading, "middle")
            _draw_panel(canvas, panel, box, axis, bounds=bounds, series=series, is_own_row=is_own_row)

    return Figure(
        name=name,
        title=title,
        note=note,
        summary=summary or _summarise(panels[0], rows, series, is_own_row=is_own_row),
        width=WIDTH,
        height=floor + 24,
        draw=draw,
        data=_data(panels, rows, series),
    )


def _draw_panel(
    canvas: Canvas,
    panel: IntervalPanel,
    box: tuple[float, float, float, float],
    axis: _Axis,
    *,
    bounds: Mapping[str, tuple[float, float]],
    series: Mapping[str, SeriesStyle],
    is_own_row: bool,
) -> None:
    """Draw the values of one measure; `bounds` are top and height of each row."""
    _, top, _, height = box
    drawn_in = canvas.panel(box, (axis.low, axis.high), (top + height, top), x_ticks=axis.ticks)
    if axis.is_difference:
        canvas.line((0, 0), (top, top + height), "ink", 1.2, panel=drawn_in)
    marked: set[float] = set()
    for key, (y, tall) in bounds.items():
        for one in panel.references.get(key, ()):
            inset = 0 if is_own_row else 3
            dash = _DASHES if one.is_dashed else None
            ends = (y + inset, y + tall - inset)
            canvas.line((one.value, one.value), ends, "quiet", 1.4, dash=dash, panel=drawn_in)
            if not one.is_dashed and not (is_own_row and one.value in marked):
                # One triangle for a line that goes through neighbouring rows.
                marked.add(one.value)
                canvas.marks([one.value], [ends[0]], _REFERENCE, size=3.2, panel=drawn_in)
    for run, style in series.items():
        places = [(key, _height(key, run, panel, series, bounds, is_own_row=is_own_row)) for key in bounds]
        marks = [(y, panel.values[key][run], key) for key, y in places if run in panel.values.get(key, {})]
        for y, value, _ in marks:
            if value.low is not None and value.high is not None:
                canvas.line((value.low, value.high), (y, y), style.colour, 2.2, panel=drawn_in)
        tips = [f"{style.name}, {panel.title}: {_words(value, axis)}" for _, value, _ in marks]
        if marks:
            canvas.marks(
                [value.value for _, value, _ in marks],
                [y for y, *_ in marks],
                style,
                tips=tips,
                panel=drawn_in,
            )


def _height(
    key: str,
    run: str,
    panel: IntervalPanel,
    series: Mapping[str, SeriesStyle],
    bounds: Mapping[str, tuple[float, float]],
    *,
    is_own_row: bool,
) -> float:
    """Where a series stands in a row: in the middle of its own, at the same place in rows of several."""
    top, height = bounds[key]
    held = panel.values.get(key, {})
    places = list(held) if is_own_row or (len(held) == 1 and len(series) > 2) else list(series)
    place = places.index(run) if run in places else 0
    return top + height * (place + 1) / (len(places) + 1)


def _difference_axis(panels: Sequence[IntervalPanel]) -> _Axis:
    """Around zero, up to the next ten points beyond every bound."""
    known = [
        bound
        for panel in panels
        for row in panel.values.values()
        for one in row.values()
        for bound in (one.value, one.low, one.high)
        if bound is not None
    ]
    reach = max(0.1, -(-max(map(abs, known), default=0.1) // 0.1) * 0.1)
    ticks = {tick * reach: f"{100 * tick * reach:+.0f}".replace("-", "−") for tick in (-1, -0.5, 0.5, 1)}
    return _Axis(-reach, reach, {**ticks, 0.0: "0"})


def _words(one: Interval, axis: _Axis) -> str:
    def written(value: float) -> str:
        return f"{100 * value:+.1f}".replace("-", "−") if axis.is_difference else f"{100 * value:.1f}%"

    unit = " points" if axis.is_difference else ""
    bounds = "" if one.low is None or one.high is None else f" ({written(one.low)} to {written(one.high)})"
    return f"{written(one.value)}{unit}{bounds}"


def _summarise(
    panel: IntervalPanel,
    rows: Mapping[str, str],
    series: Mapping[str, SeriesStyle],
    *,
    is_own_row: bool,
) -> str:
    values = [
        (label if is_own_row else f"{label}, {series[run].name}", one.value)
        for key, label in rows.items()
        for run, one in panel.values.get(key, {}).items()
    ]
    return f"{panel.title}: {list_shares(values)}"


def list_shares(values: Sequence[tuple[str, float | None]]) -> str:
    """Names and shares in a sentence: "one 64%, another 2%"."""
    return ", ".join(f"{name} {100 * value:.0f}%" for name, value in values if value is not None)


def _data(
    panels: Sequence[IntervalPanel], rows: Mapping[str, str], series: Mapping[str, SeriesStyle]
) -> pl.DataFrame:
    columns = {
        "panel": pl.String,
        "row": pl.String,
        "series": pl.String,
        "value": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    cells = [
        (panel.title, rows[key], series[run].name, one.value, one.low, one.high)
        for panel in panels
        for key in rows
        for run, one in panel.values.get(key, {}).items()
    ]
    return pl.DataFrame(cells, columns, orient="row")
