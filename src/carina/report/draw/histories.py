"""One model under two histories: differences by measure, one panel a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carina.report.analyse.figures import Contrast
from carina.report.draw.parts import LEFT, SMALL, TEXT, WIDTH, bold_lines, legend
from carina.report.draw.shapes import Drawing, Item, Line, Series, Words, text_width

_GAP: Final = 60.0


@dataclass(frozen=True)
class Difference:
    """A panel: what is compared, and by title of the measure what each run differs by."""

    title: str
    rows: Mapping[str, Mapping[str, Contrast]]


def histories_chart(
    name: str, panels: Sequence[Difference], rows: Sequence[str], series: Mapping[str, Series]
) -> Drawing:
    """Rows are titles of measures; the axis is in points around zero, the same in every panel."""
    drawing = Drawing(
        name,
        WIDTH,
        0,
        "Accuracy of a model under one history less its accuracy under another, by stage",
        "Percentage points around zero, on the same cases; a line is a 95% interval over patients.",
    )
    items = drawing.items
    told = [item for panel in panels for found in panel.rows.values() for item in found.values()]
    known = [bound for item in told for bound in (item.value, item.low, item.high) if bound is not None]
    reach = max(0.1, -(-max(map(abs, known), default=0.1) // 0.1) * 0.1)
    start = max(text_width(title, TEXT) for title in rows) + 28
    width = (WIDTH - start - 24 - _GAP * (len(panels) - 1)) / len(panels)
    titles = [bold_lines(panel.title, width) for panel in panels]
    top = legend(items, series) + 18 + 16 * max(map(len, titles))
    each = max(26.0, 15.0 * len(series) + 8)
    floor = top + each * len(rows)
    for place, title in enumerate(rows):
        y = top + each * place
        items.append(Line(((LEFT, y), (WIDTH - 24, y)), "line", 0.5))
        items.append(Words(LEFT, y + each / 2 + 4, title, TEXT))
    for number, panel in enumerate(panels):
        left = start + number * (width + _GAP)
        for line, text in enumerate(titles[number]):
            y = top - 10 - 16 * (len(titles[number]) - 1 - line)
            items.append(Words(left, y, text, TEXT, bold=True))
        _axis(items, _Lane(left, width, top, floor - top), reach)
        for place, title in enumerate(rows):
            lane = _Lane(left, width, top + each * place, each)
            _row(items, panel.rows.get(title, {}), series, lane, reach)
    drawing.height = floor + 26
    drawing.told = "; ".join(
        f"{panel.title}: {_told(panel.rows.get(rows[0], {}), series)}" for panel in panels
    )
    return drawing


@dataclass(frozen=True)
class _Lane:
    """A rectangle with zero in the middle of its width."""

    left: float
    width: float
    top: float
    height: float

    def across(self, value: float, reach: float) -> float:
        return self.left + self.width * (value + reach) / (2 * reach)


def _axis(items: list[Item], lane: _Lane, reach: float) -> None:
    floor = lane.top + lane.height
    for tick in (-reach, -reach / 2, 0.0, reach / 2, reach):
        x = lane.across(tick, reach)
        colour, width = ("ink", 1.2) if tick == 0 else ("line", 1.0)
        items.append(Line(((x, lane.top), (x, floor)), colour, width))
        text = f"{100 * tick:+.0f}".replace("-", "−") if tick else "0"
        items.append(Words(x, floor + 16, text, SMALL, "middle", "quiet"))


def _row(
    items: list[Item],
    found: Mapping[str, Contrast],
    series: Mapping[str, Series],
    lane: _Lane,
    reach: float,
) -> None:
    for at, (run, style) in enumerate(series.items()):
        item = found.get(run)
        if item is None:
            continue
        y = lane.top + lane.height * (at + 1) / (len(series) + 1)
        if item.low is not None and item.high is not None:
            ends = ((lane.across(item.low, reach), y), (lane.across(item.high, reach), y))
            items.append(Line(ends, style.colour, 2.2))
        items.append(style.mark(lane.across(item.value, reach), y))


def _told(found: Mapping[str, Contrast], series: Mapping[str, Series]) -> str:
    return ", ".join(
        f"{style.name} {100 * found[run].value:+.1f} points" for run, style in series.items() if run in found
    )
