"""Charts of pages: one figure type, drawn by matplotlib, as SVG in the colours of a page, as SVG files and as PNG.

Import this package only where a chart is drawn: matplotlib takes time to import.
"""

from carina.pages.charts.bars import stacked_bar_chart
from carina.pages.charts.figure import Figure, mark_svg
from carina.pages.charts.intervals import Interval, IntervalPanel, Reference, interval_chart, list_shares
from carina.pages.charts.lines import LinePanel, Trace, line_chart
from carina.pages.charts.scatter import Dot, ScatterPanel, scatter_chart
from carina.pages.charts.style import COLOURS, MODEL_HUES, MODEL_SHAPES, Dash, Fill, SeriesStyle, Shape, Theme

__all__ = [
    "COLOURS",
    "MODEL_HUES",
    "MODEL_SHAPES",
    "Dash",
    "Dot",
    "Figure",
    "Fill",
    "Interval",
    "IntervalPanel",
    "LinePanel",
    "Reference",
    "ScatterPanel",
    "SeriesStyle",
    "Shape",
    "Theme",
    "Trace",
    "interval_chart",
    "line_chart",
    "list_shares",
    "mark_svg",
    "scatter_chart",
    "stacked_bar_chart",
]
