"""Charts as lists of plain shapes, written as SVG for pages and print, and as PNG, from the same list."""

from carina.report.draw.charts import error_chart, headline_chart, propagation_chart, reach_chart
from carina.report.draw.png import png_bytes
from carina.report.draw.shapes import Drawing, Series
from carina.report.draw.svg import svg

__all__ = [
    "Drawing",
    "Series",
    "error_chart",
    "headline_chart",
    "png_bytes",
    "propagation_chart",
    "reach_chart",
    "svg",
]
