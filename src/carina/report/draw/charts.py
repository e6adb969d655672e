"""The four charts of a report: headline, reach, propagation, first errors."""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.draw import Colour, ink_on
from carina.report.analyse.errors import NONE
from carina.report.analyse.figures import Contrast, Figure
from carina.report.analyse.reach import Curve
from carina.report.draw.shapes import (
    COLOURS,
    Area,
    Drawing,
    Item,
    Line,
    Mark,
    Series,
    Words,
    rectangle,
    text_width,
)

WIDTH: Final = 1160.0
_LEFT: Final = 8.0
_SMALL: Final = 11.0
_TEXT: Final = 12.0
_ROW: Final = 24.0
_CHANCE: Final = (2.0, 3.0)
"""Dashes of what chance gives."""


def headline_chart(
    name: str,
    columns: Sequence[tuple[str, Mapping[str, Figure]]],
    series: Mapping[str, Series],
) -> Drawing:
    """Every run a row, every measure a panel: value, interval, and chance as a tick. Columns are (title, by run)."""
    label = min(300.0, max(text_width(item.name, _TEXT) for item in series.values()) + 30)
    panel = (WIDTH - label - _LEFT) / len(columns)
    top, bottom = 54.0, 34.0
    drawing = Drawing(
        name,
        WIDTH,
        top + _ROW * len(series) + bottom,
        "Accuracy of every run by stage, with 95% intervals and chance",
    )
    items = drawing.items
    floor = top + _ROW * len(series)
    for place, style in enumerate(series.values()):
        y = top + _ROW * (place + 0.5)
        items.append(Mark(_LEFT + 7, y, style.shape, style.colour, 4.5))
        items.append(Words(_LEFT + 20, y + 4, _cut(style.name, label - 26, _TEXT), _TEXT))
        items.append(Line(((label, floor - _ROW * place), (WIDTH - 6, floor - _ROW * place)), "line", 0.5))
    items.append(Line(((label, top), (WIDTH - 6, top)), "line", 0.5))
    for column, (title, figures) in enumerate(columns):
        left = label + column * panel + 16
        inner = panel - 32
        lines = _wrapped(title, panel - 10, _TEXT)
        for line, text in enumerate(lines):
            y = top - 14 - 15 * (len(lines) - 1 - line)
            items.append(Words(left + inner / 2, y, text, _TEXT, "middle", bold=True))
        for tick in (0.0, 0.5, 1.0):
            x = left + inner * tick
            items.append(Line(((x, top), (x, floor)), "line", 1.0))
            items.append(Words(x, floor + 16, f"{tick:.0%}".removesuffix("%"), _SMALL, "middle", "quiet"))
        for place, (run, style) in enumerate(series.items()):
            found = figures.get(run)
            if found is None or found.value is None:
                continue
            y = top + _ROW * (place + 0.5)
            if found.chance is not None:
                x = left + inner * found.chance
                items.append(Line(((x, y - 9), (x, y + 9)), "quiet", 1.4, (2.0, 2.0)))
            if found.low is not None and found.high is not None:
                ends = ((left + inner * found.low, y), (left + inner * found.high, y))
                items.append(Line(ends, style.colour, 2.2))
            items.append(Mark(left + inner * found.value, y, style.shape, style.colour, 4.5))
    items.append(
        Words(
            WIDTH - 8,
            floor + 31,
            "percent · line: 95% interval over patients · dashes: chance",
            _SMALL,
            "end",
            "quiet",
        )
    )
    drawing.height += 4
    return drawing


def reach_chart(
    name: str,
    panels: Sequence[tuple[str, Sequence[Curve], Mapping[str, str]]],
    series: Mapping[str, Series],
) -> Drawing:
    """One panel a set of cases: (title, curves, names of places). Bands are 95% intervals, dots what chance gives."""
    height, gap, axis = 250.0, 40.0, 34.0
    drawing = Drawing(
        name, WIDTH, 0, "Share of cases still right after each stage or step, with 95% intervals"
    )
    top = _legend(drawing.items, series, chance=True) + 38
    # Names of stages need more room than numbers of steps.
    weights = [max(3, len(curves[0].places)) * (1.7 if names else 1.0) for _, curves, names in panels]
    room = WIDTH - _LEFT - len(panels) * axis - (len(panels) - 1) * gap - 20
    left, lines = _LEFT + axis, 1
    for (title, curves, names), weight in zip(panels, weights, strict=True):
        width = room * weight / sum(weights)
        drawing.items.append(Words(left, top - 14, title, _TEXT, bold=True))
        _percent_axis(drawing.items, left, top, width, height)
        longest = max(curves, key=lambda curve: len(curve.places)).places
        each = width / (len(longest) + 0.25)
        spots = {place: left + each * (at + 1) for at, place in enumerate(longest)}
        drawing.items.append(Words(left, top + height + 17, "start", _SMALL, "middle", "quiet"))
        for place, x in spots.items():
            told = _wrapped(names.get(place, place), each - 4, _SMALL)
            lines = max(lines, len(told))
            for line, text in enumerate(told):
                y = top + height + 17 + 13 * line
                drawing.items.append(Words(x, y, text, _SMALL, "middle", "quiet"))
        shown = [curve for curve in curves if curve.run in series]
        _chance(drawing.items, shown, spots, (left, top, height))
        # The first runs lie on top.
        for curve in reversed(shown):
            _curve(drawing.items, curve, series[curve.run], spots, (left, top, height))
        left += width + gap + axis
    drawing.height = top + height + 17 + 13 * lines
    return drawing


def propagation_chart(
    name: str,
    rows: Sequence[tuple[str, Mapping[str, Contrast]]],
    series: Mapping[str, Series],
) -> Drawing:
    """Own less mended: rows are (stage, contrast by run), the axis in points around zero."""
    drawing = Drawing(name, WIDTH, 0, "Accuracy with own answers less accuracy with mended ones, by stage")
    items = drawing.items
    top = _legend(items, series) + 12
    label = max(text_width(title, _TEXT) for title, _ in rows) + 24
    bounds = [
        abs(bound)
        for _, found in rows
        for item in found.values()
        for bound in (item.value, item.low, item.high)
        if bound is not None
    ]
    reach = max(0.1, -(-max(bounds, default=0.1) // 0.1) * 0.1)
    left, width = label, drawing.width - label - 24
    each = max(26.0, 15.0 * len(series) + 8)
    floor = top + each * len(rows)

    def across(value: float) -> float:
        return left + width * (value + reach) / (2 * reach)

    for tick in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = across(tick)
        items.append(Line(((x, top), (x, floor)), "ink" if tick == 0 else "line", 1.2 if tick == 0 else 1.0))
        items.append(
            Words(
                x,
                floor + 16,
                f"{100 * tick:+.0f}".replace("-", "−") if tick else "0",
                _SMALL,
                "middle",
                "quiet",
            )
        )
    for place, (title, found) in enumerate(rows):
        y = top + each * place
        items.append(Line(((_LEFT, y), (drawing.width - 24, y)), "line", 0.5))
        items.append(Words(_LEFT, y + each / 2 + 4, title, _TEXT))
        for at, (run, style) in enumerate(series.items()):
            item = found.get(run)
            if item is None:
                continue
            level = y + each * (at + 1) / (len(series) + 1)
            if item.low is not None and item.high is not None:
                items.append(Line(((across(item.low), level), (across(item.high), level)), style.colour, 2.2))
            items.append(Mark(across(item.value), level, style.shape, style.colour, 4.5))
    items.append(
        Words(
            left,
            floor + 32,
            "points; left of the line, a model's own earlier errors cost it",
            _SMALL,
            "start",
            "quiet",
        )
    )
    drawing.height = floor + 40
    return drawing


def error_chart(
    name: str,
    shares: Mapping[str, Sequence[Figure]],
    names: Mapping[str, str],
    series: Mapping[str, Series],
) -> Drawing:
    """A bar a run, cut by the stage of a case's first error; `names` are those of stages and of no error."""
    drawing = Drawing(name, WIDTH, 0, "Share of cases by the stage of their first error")
    items = drawing.items
    colours = {
        stage: "good" if stage == NONE else f"e{min(8, place)}" for place, stage in enumerate(names, start=1)
    }
    x = _LEFT
    for stage, title in names.items():
        items.append(Area(rectangle(x, 8, 13, 13), colours[stage]))
        items.append(Words(x + 19, 19, title, _TEXT))
        x += text_width(title, _TEXT) + 44
    label = min(300.0, max(text_width(item.name, _TEXT) for item in series.values()) + 30)
    top, width = 34.0, WIDTH - label - 12
    for place, (run, style) in enumerate(series.items()):
        y = top + 28 * place
        items.append(Mark(_LEFT + 7, y + 11, style.shape, style.colour, 4.5))
        items.append(Words(_LEFT + 20, y + 15, _cut(style.name, label - 26, _TEXT), _TEXT))
        at = label
        for figure in shares.get(run, ()):
            long = width * (figure.value or 0.0)
            if long <= 0:
                continue
            colour = colours[figure.name]
            items.append(Area(rectangle(at, y, max(0.5, long - 1), 22), colour))
            text = f"{100 * (figure.value or 0):.0f}"
            if long > text_width(text, _SMALL) + 8:
                items.append(Words(at + long / 2, y + 15, text, _SMALL, "middle", _on(colour)))
            at += long
    floor = top + 28 * len(series)
    items.append(Words(WIDTH - 12, floor + 12, "percent of complete cases", _SMALL, "end", "quiet"))
    drawing.height = floor + 20
    return drawing


def _legend(items: list[Item], series: Mapping[str, Series], *, chance: bool = False) -> float:
    """Names of the series in lines; returns where they end."""
    x, y = _LEFT, 16.0
    for style in series.values():
        need = text_width(style.name, _TEXT) + 56
        if x > _LEFT and x + need > WIDTH:
            x, y = _LEFT, y + 20
        items.append(Line(((x, y - 4), (x + 26, y - 4)), style.colour, 2.0, style.dash))
        items.append(Mark(x + 13, y - 4, style.shape, style.colour, 4.5))
        items.append(Words(x + 32, y, style.name, _TEXT))
        x += need
    if chance:
        items.append(Line(((x, y - 4), (x + 26, y - 4)), "quiet", 1.4, _CHANCE))
        items.append(Words(x + 32, y, "chance", _TEXT, colour="quiet"))
    return y


def _percent_axis(items: list[Item], left: float, top: float, width: float, height: float) -> None:
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = top + height * (1 - tick)
        items.append(Line(((left, y), (left + width, y)), "line", 1.0))
        items.append(Words(left - 8, y + 4, f"{100 * tick:.0f}", _SMALL, "end", "quiet"))


def _chance(
    items: list[Item], curves: Sequence[Curve], spots: Mapping[str, float], frame: tuple[float, float, float]
) -> None:
    """What chance gives: the same for all runs, so drawn once, where it is known."""
    left, top, height = frame
    known = next((curve for curve in curves if curve.figures and curve.figures[-1].chance is not None), None)
    if known is not None:
        points = [(spots[item.name], top + height * (1 - (item.chance or 0.0))) for item in known.figures]
        items.append(Line(((left, top), *points), "quiet", 1.4, _CHANCE))


def _curve(
    items: list[Item],
    curve: Curve,
    style: Series,
    spots: Mapping[str, float],
    frame: tuple[float, float, float],
) -> None:
    left, top, height = frame
    start = (left, top)
    told = [(spots[item.name], item) for item in curve.figures if item.value is not None]
    bounded = [(x, item.low, item.high) for x, item in told if item.low is not None and item.high is not None]
    if bounded and style.dash is None:
        above = [(x, top + height * (1 - high)) for x, _, high in bounded]
        below = [(x, top + height * (1 - low)) for x, low, _ in bounded]
        items.append(Area((start, *above, *reversed(below)), style.colour, 0.12))
    points = [(x, top + height * (1 - (item.value or 0.0))) for x, item in told]
    items.append(Line((start, *points), style.colour, 2.0, style.dash))
    items += [Mark(x, y, style.shape, style.colour, 4.2) for x, y in points]


def _on(colour: str) -> str:
    """Ink or ground: whichever reads better on a bar, in either theme."""
    code = COLOURS[colour][0].lstrip("#")
    dark = ink_on(Colour(*(int(code[at : at + 2], 16) for at in (0, 2, 4)))) != (255, 255, 255)
    return "bar-ink" if dark else "bar-white"


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """Text in lines that fit, broken at spaces; a word that is too long is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return [_cut(line, width + 6, size) for line in lines]


def _cut(text: str, width: float, size: float) -> str:
    """Text that fits, with an ellipsis where something was left out."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"
