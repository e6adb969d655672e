"""The headline chart: every run a row, every measure a panel, with intervals, chance and the best fixed answer."""

from collections.abc import Mapping, Sequence
from typing import Final

from carina.report.analyse.figures import Figure
from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, label, label_width, listed
from carina.report.draw.shapes import Drawing, Item, Line, Mark, Series, Words

_ROW: Final = 24.0
_DASHES: Final = (2.0, 2.0)


def headline_chart(
    name: str,
    columns: Sequence[tuple[str, Mapping[str, Figure]]],
    series: Mapping[str, Series],
) -> Drawing:
    """Columns are (title, figures by run)."""
    left = label_width(series)
    panel = (WIDTH - left - LEFT) / len(columns)
    titles = [bold_lines(title, panel - 4) for title, _ in columns]
    top = 24.0 + 15 * max(map(len, titles))
    floor = top + _ROW * len(series)
    drawing = Drawing(
        name,
        WIDTH,
        floor + 24,
        "Accuracy of every run by stage, with 95% intervals",
        "A line is a 95% interval over patients. Dashes: what chance gives. Upright line with a triangle: what the "
        "best constant answer gives, where there is one.",
        f"{columns[0][0]}: "
        + listed([(style.name, _value(columns[0][1].get(run))) for run, style in series.items()]),
    )
    items = drawing.items
    for place, style in enumerate(series.values()):
        label(items, style, top + _ROW * (place + 0.5), left)
        items.append(Line(((left, floor - _ROW * place), (WIDTH - 6, floor - _ROW * place)), "line", 0.5))
    items.append(Line(((left, top), (WIDTH - 6, top)), "line", 0.5))
    for column, (_, figures) in enumerate(columns):
        start, inner = left + column * panel + 18, panel - 36
        lines = titles[column]
        for line, text in enumerate(lines):
            y = top - 14 - 15 * (len(lines) - 1 - line)
            items.append(Words(start + inner / 2, y, text, TEXT, "middle", bold=True))
        for tick in (0.0, 0.5, 1.0):
            x = start + inner * tick
            items.append(Line(((x, top), (x, floor)), "line", 1.0))
            items.append(Words(x, floor + 16, f"{tick:.0%}", SMALL, "middle", "quiet"))
        marked: set[float] = set()
        for place, (run, style) in enumerate(series.items()):
            found = figures.get(run)
            y = top + _ROW * (place + 0.5)
            if found is None or found.value is None:
                continue
            _without_looking(items, found, y, (start, inner))
            if found.constant is not None and found.constant not in marked:
                # A triangle above the first row of a line that goes through many.
                marked.add(found.constant)
                items.append(Mark(start + inner * found.constant, y - _ROW / 2, "down", "quiet", 3.2))
            _row(items, found, style, y, (start, inner))
    return drawing


def _without_looking(items: list[Item], found: Figure, y: float, span: tuple[float, float]) -> None:
    start, inner = span
    for value, width, dash in ((found.constant, 1.1, None), (found.chance, 1.5, _DASHES)):
        if value is not None:
            x = start + inner * value
            items.append(Line(((x, y - _ROW / 2), (x, y + _ROW / 2)), "quiet", width, dash))


def _row(items: list[Item], found: Figure, style: Series, y: float, span: tuple[float, float]) -> None:
    start, inner = span
    if found.low is not None and found.high is not None:
        ends = ((start + inner * found.low, y), (start + inner * found.high, y))
        items.append(Line(ends, style.colour, 2.2))
    items.append(style.mark(start + inner * (found.value or 0.0), y))


def _value(found: Figure | None) -> float | None:
    return None if found is None else found.value
