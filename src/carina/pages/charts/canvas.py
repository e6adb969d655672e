"""A matplotlib figure that is laid out in pixels from its top left corner, with colours by role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from matplotlib.artist import Artist
from matplotlib.figure import Figure as MplFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Transform

from carina.pages.charts.style import COLOURS, Dash, SeriesStyle, Shape, Theme
from carina.pages.charts.text import SMALL, TEXT, cut_text, text_width, wrap_text

RC: Final[Any] = {
    "font.family": ["DejaVu Sans"],
    "lines.scale_dashes": False,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "carina",
    "text.hinting": "none",
}
"""Settings of matplotlib under which every chart is drawn and written: the same bytes on every machine."""
DPI: Final = 72
"""At which a point of matplotlib is a pixel."""
LEFT: Final = 8.0
"""Margin at the left."""
CHANCE_DASH: Final[Dash] = (2.0, 3.0)
CAPTION: Final = "caption"
TIP: Final = "tip-"
"""Ids of groups in the SVG: lines of the caption, and marks with tooltips."""
MARK_SIZE: Final = 4.5
"""Radius of a mark."""
Anchor = Literal["start", "middle", "end"]
_ALIGNMENTS: Final[dict[Anchor, Literal["left", "center", "right"]]] = {
    "start": "left",
    "middle": "center",
    "end": "right",
}
_MARKERS: Final[dict[Shape, tuple[str, float]]] = {
    "circle": ("o", 1.0),
    "square": ("s", 0.88),
    "triangle": ("^", 1.0),
    "down": ("v", 1.0),
    "pentagon": ("p", 1.15),
    "hexagon": ("h", 1.12),
    "diamond": ("D", 0.9),
    "cross": ("P", 1.15),
    "saltire": ("X", 1.15),
    "star": ("*", 1.45),
}
"""Markers of matplotlib, and what makes them equally large to the eye."""
_KEY_LINE: Final = 16.0


@dataclass(frozen=True)
class Panel:
    """A part of the canvas with its own x and y."""

    box: tuple[float, float, float, float]
    """Left, top, width and height in pixels."""
    x: tuple[float, float]
    y: tuple[float, float]
    """Values at the left and right edge, and at the lower and upper edge."""
    transform: Transform
    """From values to the canvas."""

    @property
    def x_per_pixel(self) -> float:
        return (self.x[1] - self.x[0]) / self.box[2]

    @property
    def y_per_pixel(self) -> float:
        return (self.y[1] - self.y[0]) / self.box[3]

    def to_pixels(self, x: float, y: float) -> tuple[float, float]:
        """The point of the canvas where values stand."""
        left, top, _, height = self.box
        return left + (x - self.x[0]) / self.x_per_pixel, top + height - (y - self.y[0]) / self.y_per_pixel


class Canvas:
    """A figure to draw on: headings and legends in pixels, and panels with values.

    Artists are added to the figure itself, in the order in which they are drawn; full axes of matplotlib, with their
    locators and formatters, would take several times as long.
    """

    def __init__(self, width: float, height: float, theme: Theme = "light") -> None:
        self.width, self.height, self.theme = width, height, theme
        self.figure = MplFigure(figsize=(width / DPI, height / DPI), dpi=DPI)
        self.tips: list[Sequence[str]] = []
        """Tooltips by number of the group that they belong to, one for each mark of the group."""
        flipped = Affine2D().scale(1 / DPI, -1 / DPI).translate(0, height / DPI)
        self._pixels: Transform = flipped + self.figure.dpi_scale_trans

    def _add(self, artist: Artist, level: int = 0) -> None:
        """Add an artist above all others of its level; marks are above everything else."""
        artist.set_zorder(level)
        self.figure.add_artist(artist)

    def colour(self, role: str) -> str:
        """The colour of a role in the theme of the figure."""
        return COLOURS[role][self.theme == "dark"]

    def panel(
        self,
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        x_ticks: Mapping[float, str] | None = None,
        y_ticks: Mapping[float, str] | None = None,
        x_grid: bool = True,
        y_grid: bool = True,
    ) -> Panel:
        """A panel at (left, top, width, height) with ranges, labelled ticks and a light grid at them."""
        left, top, width, height = box
        scaled = Affine2D().translate(-x[0], -y[0])
        scaled.scale(width / (x[1] - x[0] or 1.0), -height / (y[1] - y[0] or 1.0))
        panel = Panel(box, x, y, scaled.translate(left, top + height) + self._pixels)
        for value, label in (x_ticks or {}).items():
            at, _ = panel.to_pixels(value, y[0])
            if x_grid:
                self.line((at, at), (top, top + height), "line")
            self.text(at, top + height + 16, label, SMALL, anchor="middle", colour="quiet")
        for value, label in (y_ticks or {}).items():
            _, at = panel.to_pixels(x[0], value)
            if y_grid:
                self.line((left, left + width), (at, at), "line")
            self.text(left - 8, at + 4, label, SMALL, anchor="end", colour="quiet")
        return panel

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = TEXT,
        *,
        anchor: Anchor = "start",
        colour: str = "ink",
        bold: bool = False,
        group: str | None = None,
    ) -> None:
        """A line of text with its base line at `y`."""
        self._add(
            Text(
                x,
                y,
                text,
                fontsize=size,
                ha=_ALIGNMENTS[anchor],
                va="baseline",
                color=self.colour(colour),
                fontweight="bold" if bold else "normal",
                # A dollar sign is no formula.
                parse_math=False,
                transform=self._pixels,
                gid=group,
            )
        )

    def line(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        colour: str,
        width: float = 1.0,
        *,
        dash: Dash | None = None,
        offset: float = 0.0,
        panel: Panel | None = None,
    ) -> None:
        """A line through points; `offset` says where in the pattern of its dashes it begins."""
        self._add(
            Line2D(
                list(xs),
                list(ys),
                color=self.colour(colour),
                linewidth=width,
                linestyle="-" if dash is None else (offset, dash),
                dash_capstyle="butt",
                solid_capstyle="butt",
                solid_joinstyle="round",
                transform=self._pixels if panel is None else panel.transform,
            )
        )

    def marks(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        style: SeriesStyle,
        *,
        size: float = MARK_SIZE,
        tips: Sequence[str] = (),
        panel: Panel | None = None,
    ) -> None:
        """Marks of a series, each with its tooltip where there are any.

        A rim in the colour of the ground keeps full marks apart that overlap; the others have a rim of their own.
        """
        marker, scale = _MARKERS[style.shape]
        full = style.fill == "full"
        colour, ground = self.colour(style.colour), self.colour("surface")
        half = {"fillstyle": "left", "markerfacecoloralt": ground} if style.fill == "half" else {}
        transform = self._pixels if panel is None else panel.transform
        artist = Line2D(
            list(xs),
            list(ys),
            linestyle="none",
            marker=marker,
            markersize=2 * size * scale,
            markerfacecolor=colour if full or half else ground,
            markeredgecolor=ground if full else colour,
            markeredgewidth=1.0 if full else 1.6,
            transform=transform,
            **half,  # type: ignore[arg-type] # a dictionary of keywords has one type for all
        )
        if tips:
            artist.set_gid(f"{TIP}{len(self.tips)}")
            self.tips.append(tips)
        self._add(artist, level=1)
        if style.fill == "dot":
            self._add(
                Line2D(
                    list(xs),
                    list(ys),
                    linestyle="none",
                    marker="o",
                    markersize=0.84 * size,
                    color=colour,
                    markeredgewidth=0,
                    transform=transform,
                ),
                level=1,
            )

    def area(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        *,
        opacity: float = 1.0,
        tip: str = "",
        panel: Panel | None = None,
    ) -> None:
        """A filled polygon."""
        artist = Polygon(
            points,
            facecolor=self.colour(colour),
            edgecolor="none",
            transform=self._pixels if panel is None else panel.transform,
        )
        if opacity < 1:
            artist.set_alpha(opacity)
        if tip:
            artist.set_gid(f"{TIP}{len(self.tips)}")
            self.tips.append([tip])
        self._add(artist)

    def rectangle(
        self, box: tuple[float, float, float, float], colour: str, *, opacity: float = 1.0, tip: str = ""
    ) -> None:
        """A filled rectangle at (left, top, width, height)."""
        x, y, width, height = box
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        self.area(corners, colour, opacity=opacity, tip=tip)

    def heading(self, x: float, y: float, lines: Sequence[str], anchor: Anchor = "start") -> None:
        """A title in bold lines, the last of them with its base line at `y`."""
        for place, text in enumerate(reversed(lines)):
            self.text(x, y - 15 * place, text, anchor=anchor, bold=True)

    def legend(self, entries: Sequence["Entry"]) -> None:
        """Names of series beside their lines and marks."""
        for x, y, style, lines, has_line in entries:
            indent = 20 if has_line else 0
            if has_line:
                self.line((x, x + 26), (y - 4, y - 4), style.colour, 2.0, dash=style.dash)
            if style.name != CHANCE.name:
                self.marks([x + (13 if has_line else 4)], [y - 4], style, size=4.2)
            for place, text in enumerate(lines):
                self.text(
                    x + indent + (12 if has_line else 14),
                    y + _KEY_LINE * place,
                    text,
                    SMALL,
                    colour="quiet" if style.name == CHANCE.name else "ink",
                )


CHANCE: Final = SeriesStyle("chance", "quiet", "circle", CHANCE_DASH)
"""Legend entry of what chance gives: a dashed line without marks."""
Entry = tuple[float, float, SeriesStyle, list[str], bool]
"""Of a legend: x, y, style, lines of text, and whether a line is drawn."""


def lay_out_legend(
    styles: Sequence[SeriesStyle], left: float, top: float, width: float, *, lines: bool
) -> tuple[list[Entry], float]:
    """Entries side by side as far as there is room, and the base line of the last of them.

    A name that is too long continues in the next line.
    """
    entries: list[Entry] = []
    x, y = left, top
    indent = 32.0 if lines else 14.0
    for style in styles:
        wrapped = wrap_text(style.name, width - indent, SMALL)
        need = indent + max(text_width(line, SMALL) for line in wrapped) + 22
        if x > left and x + need - 22 > left + width:
            x, y = left, y + _KEY_LINE
        entries.append((x, y, style, wrapped, lines))
        x += need
        if len(wrapped) > 1:
            x, y = left, y + _KEY_LINE * len(wrapped)
    return entries, y if x > left else y - _KEY_LINE


def fit_label(text: str, width: float) -> str:
    """The label of a row, cut to its column."""
    return cut_text(text, width, TEXT)
