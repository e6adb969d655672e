"""Bars of 100%, one a run, divided into named parts."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from carina.cases.draw import Colour, ink_on
from carina.pages.charts.canvas import LEFT, Canvas, fit_label
from carina.pages.charts.figure import Figure
from carina.pages.charts.intervals import WIDTH, list_shares
from carina.pages.charts.style import COLOURS, SeriesStyle
from carina.pages.charts.text import SMALL, TEXT, text_width

_WIDEST_LABEL: Final = 300.0
_TOP: Final = 34.0
_ROW: Final = 28.0


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
    last = list(parts)[-1]
    colours = {
        part: "good" if part == last else f"e{min(8, place)}" for place, part in enumerate(parts, start=1)
    }
    widest = max((text_width(style.name, TEXT) for style in series.values()), default=0)
    left = min(_WIDEST_LABEL, widest + 44)
    width = WIDTH - left - 12

    def draw(canvas: Canvas) -> None:
        x = LEFT
        for part, words in parts.items():
            canvas.rectangle((x, 8, 13, 13), colours[part])
            canvas.text(x + 19, 19, words)
            x += text_width(words, TEXT) + 44
        for place, (run, style) in enumerate(series.items()):
            y = _TOP + _ROW * place
            canvas.marks([LEFT + 7], [y + 11], style)
            canvas.text(LEFT + 20, y + 15, fit_label(style.name, left - 36))
            at = left
            for part, share in shares.get(run, {}).items():
                length = width * share
                if length <= 0:
                    continue
                label = f"{parts[part]} {100 * share:.0f}%"
                tip = f"{style.name}, {label}"
                canvas.rectangle((at, y, max(0.5, length - 1), 22), colours[part], tip=tip)
                # In words where they fit, so that nobody has to tell colours apart.
                fitting = [
                    text for text in (label, f"{100 * share:.0f}") if length > text_width(text, SMALL) + 8
                ]
                if fitting:
                    canvas.text(
                        at + length / 2,
                        y + 15,
                        fitting[0],
                        SMALL,
                        anchor="middle",
                        colour=ink_on_bar(colours[part]),
                    )
                at += length

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
        width=WIDTH,
        height=_TOP + _ROW * len(series) + 2,
        draw=draw,
        data=pl.DataFrame(rows, {"series": pl.String, "part": pl.String, "value": pl.Float64}, orient="row"),
    )


def ink_on_bar(colour: str) -> str:
    """The role of dark or white text: whichever reads better on a bar, in either theme."""
    code = COLOURS[colour][0].lstrip("#")
    dark = ink_on(Colour(*(int(code[at : at + 2], 16) for at in (0, 2, 4)))) != (255, 255, 255)
    return "bar-ink" if dark else "bar-white"
