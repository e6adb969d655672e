"""A matplotlib figure with axes that are placed in pixels from its top left corner, and with colours by role."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as MplFigure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D

from carina.pages.charts.style import COLOURS, Fill, SeriesStyle, Shape, Theme
from carina.pages.charts.text import SMALL, TEXT, text_width, wrap_text

DPI: Final = 72
"""Resolution at which a point of matplotlib is a pixel."""
WIDTH: Final = 1160.0
"""Width of every chart."""
LEFT: Final = 8.0
"""Margin at the left."""
LINE: Final = 15.0
"""Distance of lines of text."""
ACROSS: Final = 3
"""Panels in a row."""
AXIS: Final = 44.0
"""Room for the labels at the left of a panel."""
GAP: Final = 34.0
"""Distance of a panel from the labels of the next."""
CHANCE: Final = SeriesStyle("chance", "quiet", "circle", (2.0, 3.0))
"""What chance gives: a dashed line without marks."""
CAPTION: Final = "caption"
TIP: Final = "tip-"
"""Ids of groups in the SVG: lines of the caption, and marks with tooltips."""
Box = tuple[float, float, float, float]
"""Left, top, width and height in pixels."""
_HANDLE_GAP: Final = 6.0
_COLUMN_GAP: Final = 22.0
"""Distances in a legend: of a mark from its name, and of columns."""
_HALVES: Final[dict[Fill, str]] = {"half": "left", "bottom": "bottom", "top": "top"}
"""The half of a mark that has its colour, as matplotlib names it."""
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
"""Markers of matplotlib, and factors that make them equally large to the eye."""


def chart_settings(theme: Theme) -> Any:  # noqa: ANN401 - settings have all kinds of types
    """Settings of matplotlib under which every chart is drawn and written: the same bytes on every machine."""
    ink, quiet, line = (COLOURS[role][theme == "dark"] for role in ("ink", "quiet", "line"))
    return {
        "axes.axisbelow": True,
        "axes.labelcolor": quiet,
        "axes.labelsize": SMALL,
        "font.family": ["DejaVu Sans"],
        "font.size": SMALL,
        "grid.color": line,
        "grid.linewidth": 1.0,
        "legend.borderaxespad": 0.0,
        "legend.borderpad": 0.0,
        "legend.columnspacing": _COLUMN_GAP / SMALL,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "legend.handletextpad": _HANDLE_GAP / SMALL,
        "legend.labelspacing": 0.45,
        "lines.scale_dashes": False,
        "lines.solid_capstyle": "butt",
        "path.simplify": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "carina",
        "text.color": ink,
        "text.hinting": "none",
        # A dollar sign is no formula.
        "text.parse_math": False,
        **{f"{axis}.labelcolor": quiet for axis in ("xtick", "ytick")},
        **{f"{axis}.labelsize": SMALL for axis in ("xtick", "ytick")},
        **{f"{axis}.major.pad": 8.0 for axis in ("xtick", "ytick")},
        **{f"{axis}.major.size": 0.0 for axis in ("xtick", "ytick")},
    }


def panels_width(count: int) -> float:
    """Width that remains for panels in a row, without their labels and gaps."""
    return WIDTH - LEFT - count * AXIS - (count - 1) * GAP - 20


class Canvas:
    """A figure whose height is set last, when all axes, texts and legends have their place."""

    def __init__(self, width: float = WIDTH, theme: Theme = "light") -> None:
        self.width, self.height, self.theme = width, 0.0, theme
        self.figure = MplFigure(figsize=(width / DPI, 1), dpi=DPI)
        FigureCanvasAgg(self.figure)
        self.tips: list[Sequence[str]] = []
        """Tooltips by number of the group that they belong to, one for each mark of the group."""
        self._boxes: list[tuple[Axes, Box]] = []
        self._flip = Affine2D()
        self._pixels = self._flip + self.figure.dpi_scale_trans

    def set_height(self, height: float) -> None:
        """Set the height of the figure, and with it where everything stands that is placed from the top."""
        self.height = float(round(height))
        self.figure.set_figheight(self.height / DPI)
        self._flip.clear().scale(1 / DPI, -1 / DPI).translate(0, self.height / DPI)
        for axes, (left, top, width, tall) in self._boxes:
            bottom = 1 - (top + tall) / self.height
            axes.set_position((left / self.width, bottom, width / self.width, tall / self.height))
        for artist in self.figure.findobj():
            # Marks at the edge of an axis are drawn as a whole.
            artist.set_clip_on(False)

    def colour(self, role: str) -> str:
        """The colour of a role in the theme of the figure."""
        return COLOURS[role][self.theme == "dark"]

    def add_axes(
        self,
        box: Box,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        x_ticks: Mapping[float, Sequence[str]] | None = None,
        y_ticks: Mapping[float, str] | None = None,
        x_title: str = "",
        grid: Literal["both", "x", "y"] = "both",
    ) -> Axes:
        """Add axes in a box, with their ranges, labels at the ticks and a light grid.

        Labels on x have one or more lines. Each line is a text of its own, because the font of a page may be narrower
        than the one that matplotlib measures, and each line has to stay centred below its tick.
        """
        axes = self.figure.add_axes((0, 0, 1, 1), xlim=x, ylim=y, frameon=False)
        self._boxes.append((axes, box))
        x_ticks, y_ticks = x_ticks or {}, y_ticks or {}
        axes.set_xticks(list(x_ticks), [lines[0] for lines in x_ticks.values()])
        axes.set_yticks(list(y_ticks), list(y_ticks.values()))
        axes.grid(visible=True, axis=grid)
        for at, lines in x_ticks.items():
            for place, line in enumerate(lines[1:], start=1):
                offset = (0, -17 - 13 * place)
                self.write_note(
                    axes, line, (at, 0), offset, ("data", "axes fraction"), colour="quiet", ha="center"
                )
        most_lines = max(map(len, x_ticks.values()), default=1)
        axes.set_xlabel(x_title, labelpad=4 + 13 * (most_lines - 1))
        return axes

    def write_note(
        self,
        axes: Axes,
        text: str,
        at: tuple[float, float],
        offset: tuple[float, float],
        coordinates: Any = "data",  # noqa: ANN401 - one of the kinds that matplotlib has, or two
        *,
        colour: str = "ink",
        **options: Any,  # noqa: ANN401 - those of matplotlib's texts
    ) -> None:
        """Write a text whose base line is at a distance, in pixels to the right and up, from a point of axes."""
        options = {"color": self.colour(colour), "va": "baseline", **options}
        axes.annotate(text, at, offset, coordinates, "offset points", **options)

    def write_title(
        self, axes: Axes, lines: Sequence[str], subtitle: str = "", *, height: float, ha: str = "left"
    ) -> None:
        """Write a bold title above axes, its last line at a height, and a subtitle below it."""
        at = (0.5 if ha == "center" else 0.0, 1.0)
        for place, line in enumerate(reversed(lines)):
            offset = (0, height + LINE * place)
            self.write_note(axes, line, at, offset, "axes fraction", size=TEXT, weight="bold", ha=ha)
        self.write_note(axes, subtitle, at, (0, 10), "axes fraction", colour="quiet")

    def write_text(
        self, x: float, y: float, lines: Sequence[str], size: float = TEXT, *, group: str | None = None
    ) -> None:
        """Write lines of text, the first with its base line at `y`; x and y in pixels."""
        colour = self.colour("ink" if group is None else "quiet")
        for place, line in enumerate(lines):
            at = (x, y + LINE * place)
            self.figure.text(*at, line, size=size, color=colour, transform=self._pixels, gid=group)

    def draw_marks(
        self,
        axes: Axes,
        xs: Sequence[float],
        ys: Sequence[float],
        style: SeriesStyle,
        *,
        size: float = 4.5,
        tips: Sequence[str] = (),
    ) -> None:
        """Draw marks of a series, each with its tooltip where there are any; `size` is their radius."""
        drawn = [axes.plot(xs, ys, zorder=3, **options)[0] for options in self._mark_options(style, size)]
        if tips:
            self.add_tips(drawn[0], tips)

    def add_tips(self, artist: Artist, tips: Sequence[str]) -> None:
        """Give the marks of an artist their tooltips."""
        artist.set_gid(f"{TIP}{len(self.tips)}")
        self.tips.append(tips)

    def line_options(self, style: SeriesStyle, width: float, offset: float = 0.0) -> dict[str, Any]:
        """How matplotlib draws the line of a series; `offset` says where in the pattern of its dashes it begins."""
        pattern = "-" if style.dash is None else (offset, style.dash)
        return {"color": self.colour(style.colour), "linewidth": width, "linestyle": pattern}

    def _mark_options(self, style: SeriesStyle, size: float) -> list[dict[str, Any]]:
        """How matplotlib draws the mark of a series.

        A rim in the colour of the ground keeps full marks apart that overlap; the others have a rim of their own.
        """
        marker, scale = _MARKERS[style.shape]
        is_full = style.fill == "full"
        colour, ground = self.colour(style.colour), self.colour("surface")
        mark = {
            "linestyle": "none",
            "marker": marker,
            "markersize": 2 * size * scale,
            "markerfacecolor": ground if style.fill in ("hollow", "dot") else colour,
            "markeredgecolor": ground if is_full else colour,
            "markeredgewidth": 1.0 if is_full else 1.6,
        }
        if style.fill in _HALVES:
            mark |= {"fillstyle": _HALVES[style.fill], "markerfacecoloralt": ground}
        dot = {"linestyle": "none", "marker": "o", "markersize": 0.84 * size, "color": colour, "mew": 0}
        return [mark, dot] if style.fill == "dot" else [mark]

    def draw_legend(
        self,
        styles: Sequence[SeriesStyle],
        left: float,
        top: float,
        width: float,
        *,
        has_lines: bool,
        size: float = 4.2,
    ) -> float:
        """Draw the names of series beside their marks, with or without lines, in as many columns as fit.

        A name that is too long continues in the next line.

        Returns:
            Where the legend ends.
        """
        length = 26.0 if has_lines else 2 * size + 1
        indent = length + _HANDLE_GAP
        handles: list[Any] = []
        for style in styles:
            options = [self.line_options(style, 2.0)] if has_lines else []
            options += [] if style == CHANCE else self._mark_options(style, size)
            handles.append(tuple(Line2D([], [], **one) for one in options))
        labels = [wrap_text(style.name, width - indent, SMALL) for style in styles]
        widths = [indent + max(text_width(line, SMALL) for line in lines) + _COLUMN_GAP for lines in labels]
        columns = len(styles)
        # One column is filled after another.
        while columns > 1 and sum(map(max, np.array_split(widths, columns))) - _COLUMN_GAP > width:
            columns -= 1
        legend = self.figure.legend(
            handles,
            ["\n".join(lines) for lines in labels],
            handler_map={tuple: HandlerTuple(ndivide=1)},
            handlelength=length / SMALL,
            labelcolor=[self.colour("quiet" if style == CHANCE else "ink") for style in styles],
            loc="upper left",
            bbox_to_anchor=(left, top),
            bbox_transform=self._pixels,
            ncols=columns,
        )
        return top + float(legend.get_window_extent().height)
