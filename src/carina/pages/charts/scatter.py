"""Two shares of a model or a finding against each other: a panel a model, a mark a finding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.transforms import Affine2D, Bbox

from carina.pages.charts.canvas import ACROSS, AXIS, GAP, LEFT, LINE, Box, Canvas, panels_width
from carina.pages.charts.figure import Figure
from carina.pages.charts.numbers import require_finite
from carina.pages.charts.style import SeriesStyle
from carina.pages.charts.text import SMALL, TEXT, cut_text, text_width, wrap_text

_HEIGHT: Final = 270.0
_UP: Final = 9.0
_DOWN: Final = 3.0
"""Room of a name above and below its base line."""
_TICKS: Final = {share: f"{100 * share:.0f}%" for share in (0, 0.25, 0.5, 0.75, 1)}


@dataclass(frozen=True)
class Dot:
    """A point from 0 to 1 either way, with its name and the interval along each axis."""

    name: str
    x: float
    y: float
    style: SeriesStyle
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        require_finite(self.name, (self.x, self.y, *(self.x_interval or ()), *(self.y_interval or ())))


@dataclass(frozen=True)
class ScatterPanel:
    """Dots that are compared."""

    title: str
    subtitle: str
    dots: Sequence[Dot]
    has_legend: bool = False
    """Whether names stand below, beside marks that differ; otherwise each name stands at its mark."""


def scatter_chart(
    name: str, panels: Sequence[ScatterPanel], *, x_title: str, y_title: str, title: str, note: str
) -> Figure:
    """Draw panels in rows of three; `x_title` and `y_title` name the axes."""
    width = panels_width(ACROSS) / ACROSS

    def draw(canvas: Canvas) -> float:
        end = 0.0
        for start in range(0, len(panels), ACROSS):
            row = panels[start : start + ACROSS]
            titles = [wrap_text(panel.title, width, TEXT, bold=True) for panel in row]
            top = end + 30 + LINE * max(map(len, titles))
            end = top + _HEIGHT + 40
            for column, (panel, lines) in enumerate(zip(row, titles, strict=True)):
                box = (LEFT + AXIS + column * (width + GAP + AXIS), top, width, _HEIGHT)
                axes = canvas.add_axes(
                    box,
                    (0, 1),
                    (0, 1),
                    x_ticks={share: [label] for share, label in _TICKS.items()},
                    y_ticks=_TICKS,
                    x_title=f"{x_title} →, {y_title} ↑",
                )
                canvas.write_title(axes, lines, cut_text(panel.subtitle, width + 30, SMALL), height=26)
                _draw_dots(canvas, axes, panel, box)
                if panel.has_legend:
                    styles = [dot.style for dot in panel.dots]
                    below = canvas.draw_legend(styles, box[0], top + _HEIGHT + 44, width, has_lines=False)
                    end = max(end, below + 8)
        return end

    columns = {"panel": str, "name": str, "x": float, "y": float}
    rows = [(panel.title, dot.name, dot.x, dot.y) for panel in panels for dot in panel.dots]
    return Figure(
        name=name,
        title=title,
        note=note,
        summary="; ".join(f"{panel.title}: {panel.subtitle}" for panel in panels),
        draw=draw,
        data=pl.DataFrame(rows, columns, orient="row"),
    )


def _draw_dots(canvas: Canvas, axes: Axes, panel: ScatterPanel, box: Box) -> None:
    for dot in panel.dots:
        colour = canvas.colour(dot.style.colour)
        if dot.x_interval is not None:
            axes.hlines(dot.y, *dot.x_interval, color=colour, linewidth=1)
        if dot.y_interval is not None:
            axes.vlines(dot.x, *dot.y_interval, color=colour, linewidth=1)
        tip = f"{dot.name}: {100 * dot.x:.1f}% across, {100 * dot.y:.1f}% up"
        canvas.draw_marks(axes, [dot.x], [dot.y], dot.style, tips=[tip])
    # On a plate, so that a line ends before it.
    plate = {"facecolor": canvas.colour("surface"), "edgecolor": "none", "alpha": 0.85, "pad": 2}
    for dot, name, offset in [] if panel.has_legend else place_names(panel.dots, box):
        canvas.write_note(axes, name, (dot.x, dot.y), offset, bbox=plate, zorder=2.5)


def place_names(dots: Sequence[Dot], box: Box) -> list[tuple[Dot, str, tuple[float, float]]]:
    """Names and their distance, to the right and up, from their marks, where they lie on no other name or mark.

    Places on no line come first. Of marks that are too close together, only the first have a name.
    """
    _, _, width, height = box
    to_pixels = Affine2D().scale(width, height)
    centres = [to_pixels.transform((dot.x, dot.y)) for dot in dots]
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in centres]
    spans = [(dot.x_interval or (dot.x, dot.x), dot.y_interval or (dot.y, dot.y), dot) for dot in dots]
    lines = [
        Bbox.from_extents(low, dot.y, high, dot.y).transformed(to_pixels) for (low, high), _, dot in spans
    ]
    lines += [
        Bbox.from_extents(dot.x, low, dot.x, high).transformed(to_pixels) for _, (low, high), dot in spans
    ]
    placed = []
    for dot, (x, y) in zip(dots, centres, strict=True):
        text = cut_text(dot.name, width * 0.75, SMALL)
        length = text_width(text, SMALL)
        free = [
            place
            for start in (x + 8, x - 8 - length)
            for base in (y + 5, y - 13, y + 19, y - 27)
            for place in [Bbox.from_extents(start, base - _DOWN, start + length, base + _UP)]
            if place.x0 >= -30 and place.x1 <= width + 14 and place.y0 >= 0 and place.y1 <= height
            if not place.count_overlaps(taken)
        ]
        if free:
            best = min(free, key=lambda place: place.count_overlaps(lines))
            taken.append(best)
            placed.append((dot, text, (best.x0 - x, best.y0 + _DOWN - y)))
    return placed
