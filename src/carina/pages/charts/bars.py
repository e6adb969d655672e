"""Bars of 100%, one a run, divided into named parts."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from carina.cases.draw import Colour, ink_on
from carina.pages.charts.canvas import LEFT, WIDTH, Canvas
from carina.pages.charts.figure import Figure
from carina.pages.charts.intervals import label_rows, label_width, list_shares
from carina.pages.charts.numbers import require_finite
from carina.pages.charts.style import COLOURS, SeriesStyle
from carina.pages.charts.text import SMALL, text_width

_ROW: Final = 28.0
_BAR: Final = 22.0


def stacked_bar_chart(
    name: str,
    shares: Mapping[str, Mapping[str, float]],
    parts: Mapping[str, str],
    series: Mapping[str, SeriesStyle],
    *,
    title: str,
    note: str,
) -> Figure:
    """Draw one bar a run.

    Args:
        name: Name of the figure's files.
        shares: By run, then by part: share of the bar from 0 to 1.
        parts: Titles of the parts from left to right; the last is the good one.
        series: How each run is marked, in order of the bars.
        title: Title of the chart.
        note: What the bars mean.
    """
    for own in shares.values():
        require_finite(title, own.values())
    last = list(parts)[-1]
    roles = {
        part: "good" if part == last else f"e{min(8, place)}" for place, part in enumerate(parts, start=1)
    }

    def draw(canvas: Canvas) -> float:
        squares = [SeriesStyle(words, roles[part], "square") for part, words in parts.items()]
        top = 8 + canvas.draw_legend(squares, LEFT, 8, WIDTH - 2 * LEFT, has_lines=False, size=7.5)
        names = {run: style.name for run, style in series.items()}
        left = label_width(names)
        rows = label_rows(canvas, names, series, top, _ROW, has_lines=False)
        end = max(y + height for y, height in rows.values())
        box = (left, top, WIDTH - left - 12, end - top)
        axes = canvas.add_axes(box, (0, 1), (end, top))
        for run, (y, height) in rows.items():
            middle, start = y + height / 2, 0.0
            for part, share in shares.get(run, {}).items():
                if share <= 0:
                    continue
                colour = canvas.colour(roles[part])
                bar = axes.barh(
                    middle, share, _BAR, start, color=colour, edgecolor=canvas.colour("surface"), linewidth=1
                )
                percent = f"{100 * share:.0f}"
                label = f"{parts[part]} {percent}%"
                canvas.add_tips(bar[0], [f"{series[run].name}, {label}"])
                # In words where they fit, so that nobody has to tell colours apart.
                room = share * box[2] - 8
                text = next((text for text in (label, percent) if text_width(text, SMALL) < room), "")
                at = (start + share / 2, middle)
                canvas.write_note(axes, text, at, (0, -4), colour=ink_on_bar(roles[part]), ha="center")
                start += share
        return end + 2

    good = [(style.name, shares.get(run, {}).get(last)) for run, style in series.items()]
    rows = [
        (series[run].name, parts[part], share)
        for run, own in shares.items()
        if run in series
        for part, share in own.items()
    ]
    return Figure(
        name=name,
        title=title,
        note=note,
        summary=f"{parts[last][:1].upper()}{parts[last][1:]}: {list_shares(good)}",
        draw=draw,
        data=pl.DataFrame(rows, {"series": str, "part": str, "value": float}, orient="row"),
    )


def ink_on_bar(role: str) -> str:
    """The role of dark or white text: whichever reads better on a bar, in either theme."""
    code = COLOURS[role][0].lstrip("#")
    is_dark = ink_on(Colour(*(int(code[at : at + 2], 16) for at in (0, 2, 4)))) != (255, 255, 255)
    return "bar-ink" if is_dark else "bar-white"
