"""Charts as lists of plain shapes, written as SVG for pages and print, and as PNG, from the same list."""

from carina.report.draw.errors import error_chart
from carina.report.draw.headline import headline_chart
from carina.report.draw.histories import Difference, histories_chart
from carina.report.draw.parts import captioned
from carina.report.draw.png import png_bytes
from carina.report.draw.reach import Panel, reach_chart
from carina.report.draw.shapes import Drawing, Series
from carina.report.draw.svg import svg

__all__ = [
    "Difference",
    "Drawing",
    "Panel",
    "Series",
    "captioned",
    "error_chart",
    "headline_chart",
    "histories_chart",
    "png_bytes",
    "reach_chart",
    "svg",
]
