"""A chart as SVG, for a page in its colours or as a file, and as PNG."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from typing import Any, Final, Literal

import matplotlib
import numpy as np
import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg

from carina.cases.draw import encode_png
from carina.pages.charts.canvas import CAPTION, DPI, LEFT, LINE, TIP, WIDTH, Canvas, chart_settings
from carina.pages.charts.style import COLOURS, ROLES, SeriesStyle, Theme
from carina.pages.charts.text import SMALL, wrap_text

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PNG_DPI: Final = 216
"""Three pixels of the file for a pixel of the chart."""
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_STYLE: Final = re.compile(r'style="[^"]*"')
_DIGITS: Final = re.compile(r"(\.\d\d)\d+")
_SHORTHAND: Final = re.compile(r"font: (?:(\d+) )?([\d.]+px) [^;]*")
_FAMILY: Final = re.compile(r"font-family: [^;]*; ?")
"""Two ways in which versions of matplotlib write the font of a text."""
_PAGE_COLOURS: Final = {role: f"var(--{role})" for role in COLOURS}


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart: what it shows in words and numbers, and how it is drawn."""

    name: str
    """Of its files, and unique within a page."""
    title: str
    note: str
    """What its marks and lines mean; a page shows it below the chart, a file within it."""
    summary: str
    """Its main values in words, for people who do not see it."""
    draw: Callable[[Canvas], float]
    """Draws the chart and returns its height without the note."""
    data: pl.DataFrame
    """The values that are drawn, one row a mark."""

    @property
    def alt(self) -> str:
        """Title and main values."""
        return f"{self.title}. {self.summary}" if self.summary else self.title

    def to_frame(self) -> pl.DataFrame:
        """The values that are drawn, one row a mark."""
        return self.data

    def svg(self, theme: Theme | Literal["page"] = "light") -> str:
        """The chart as SVG.

        Args:
            theme: "page" for an element that takes its colours and font from the page around it (custom properties
                named after the roles of `carina.pages.charts.style.COLOURS`), so that one element serves light and
                dark screens and print; "light" or "dark" for a file of its own, with the note below the chart.

        Returns:
            The text of an `svg` element.
        """
        canvas, height = self._light
        described = f'role="img" aria-label="{escape(self.alt)}" stroke-linejoin="round"'
        note = f"<desc>{escape(self.note)}</desc>"
        if theme == "page":
            shapes = [child for child in self._tree if child.get("class") != CAPTION]
            return (
                f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height:g}" style="max-width:{WIDTH:g}px" {described}>'
                f"{note}{_paint(shapes, _PAGE_COLOURS)}</svg>\n"
            )
        colours = {role: both[theme == "dark"] for role, both in COLOURS.items()}
        size = f'viewBox="0 0 {WIDTH:g} {canvas.height:g}" width="{WIDTH:g}" height="{canvas.height:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" {described}>'
            f'<title>{escape(self.title)}</title>{note}<rect width="100%" height="100%" '
            f'fill="{colours["surface"]}"/>{_paint(self._tree, colours)}</svg>\n'
        )

    def png(self, theme: Theme = "light", dpi: int = PNG_DPI) -> bytes:
        """The chart as the bytes of a PNG file, with the note below it; the same bytes each time.

        Args:
            theme: "light" or "dark".
            dpi: Pixels an inch; 72 gives one pixel of the file for each pixel of the chart.
        """
        canvas, _ = self._light if theme == "light" else self._draw(theme)
        with matplotlib.rc_context(chart_settings(theme)):
            canvas.figure.set(dpi=dpi, facecolor=canvas.colour("surface"))
            agg: Any = FigureCanvasAgg(canvas.figure)  # its methods have no types
            agg.draw()
        return encode_png(np.ascontiguousarray(np.asarray(agg.buffer_rgba())[..., :3]))

    @property
    def height(self) -> float:
        """Height of the chart in pixels, without the note."""
        return self._light[1]

    def _repr_svg_(self) -> str:
        return self.svg()

    def _draw(self, theme: Theme) -> tuple[Canvas, float]:
        """The chart with its note below it, and the height of the chart alone."""
        lines = wrap_text(self.note, WIDTH - 2 * LEFT, SMALL)
        with matplotlib.rc_context(chart_settings(theme)):
            canvas = Canvas(theme=theme)
            height = float(round(self.draw(canvas)))
            canvas.write_text(LEFT, height + 14, lines, SMALL, group=CAPTION)
            canvas.set_height(height + (6 + LINE * len(lines) if lines else 0))
        return canvas, height

    @cached_property
    def _light(self) -> tuple[Canvas, float]:
        return self._draw("light")

    @cached_property
    def _tree(self) -> list[ET.Element]:
        return _svg_elements(self._light[0], self.name)


@lru_cache(maxsize=256)
def mark_svg(style: SeriesStyle) -> str:
    """The mark of a series by itself, 14 pixels wide, in the colours of the page around it."""
    with matplotlib.rc_context(chart_settings("light")):
        canvas = Canvas(14)
        canvas.draw_marks(canvas.add_axes((0, 0, 14, 14), (0, 1), (0, 1)), [0.5], [0.5], style)
        canvas.set_height(14)
    elements = _svg_elements(canvas, "")
    # The shape of a mark is put where it is used, so that no id is left.
    shapes = {path.get("id"): path for element in elements for path in element.iter("path")}
    marks = []
    for use in (use for element in elements for use in element.iter("use")):
        where = f"translate({use.get('x')} {use.get('y')})"
        shape = shapes[use.get("href", "")[1:]].get("d", "")
        marks.append(ET.Element("path", d=shape, transform=where, style=use.get("style", "")))
    painted = _paint(marks, _PAGE_COLOURS)
    return f'<svg class="key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{painted}</svg>'


def _svg_elements(canvas: Canvas, name: str) -> list[ET.Element]:
    """What matplotlib writes, reduced to shapes and texts.

    Without metadata, style sheet and ids that nothing refers to; the other ids begin with the name of the chart,
    because several charts stand in one page. Marks get their tooltips.
    """
    buffer = io.BytesIO()
    with matplotlib.rc_context(chart_settings(canvas.theme)):
        canvas.figure.savefig(buffer, format="svg", dpi=DPI, transparent=True, metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - written in the line above
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        element.attrib.pop("clip-path", None)
        if element.tag != "text":
            element.text = None
        if _HREF in element.attrib:
            element.set("href", f"#{name}-{element.attrib.pop(_HREF)[1:]}")
    used = {element.get("href", "")[1:] for element in root.iter("use")}
    for element in list(root.iter()):
        own = element.attrib.pop("id", "")
        if f"{name}-{own}" in used:
            element.set("id", f"{name}-{own}")
        if own == CAPTION:
            element.set("class", CAPTION)
        if own.startswith(TIP):
            _add_tips(element, canvas.tips[int(own.removeprefix(TIP))])
        for key in ("d", "x", "y", "transform", "style"):
            if key in element.attrib:
                element.set(key, " ".join(_DIGITS.sub(r"\1", element.attrib[key]).split()))
        if element.tag == "text":
            element.set("style", _page_font(element.get("style", "")))
            if "x" in element.attrib:
                # A rotation by nothing.
                element.attrib.pop("transform", None)
    return _flatten(root)


def _flatten(element: ET.Element) -> list[ET.Element]:
    """Shapes and texts that are visible; of groups only those with tooltips, captions or definitions remain."""
    kept: list[ET.Element] = []
    for child in element:
        if child.tag == "g" and "class" not in child.attrib and child.find("title") is None:
            kept += _flatten(child)
        elif child.tag == "defs":
            child[:] = child.findall("path")
            kept += [child] if len(child) else []
        elif child.tag != "metadata" and child.get("style") != "fill: none":
            kept.append(child)
    return kept


def _add_tips(group: ET.Element, tips: Sequence[str]) -> None:
    """A title in each mark of a group; a group of one shape has one title."""
    marks = list(group.iter("use"))
    for place, mark in enumerate(marks):
        ET.SubElement(mark, "title").text = tips[place % len(tips)]
    if not marks:
        title = ET.Element("title")
        title.text = tips[0]
        group.insert(0, title)


def _page_font(style: str) -> str:
    """Size and weight only; the family is that of the page or the file."""
    style = _SHORTHAND.sub(lambda font: f"font-size: {font[2]}; font-weight: {font[1] or 400}", style)
    return _FAMILY.sub("", style).replace("font-weight: 700", "font-weight: 600")


def _paint(elements: Sequence[ET.Element], colours: Mapping[str, str]) -> str:
    """The elements as text, with other colours for the roles."""

    def repaint(style: re.Match[str]) -> str:
        return _COLOUR.sub(
            lambda found: colours[ROLES[found[0]]] if found[0] in ROLES else found[0], style[0]
        )

    return _STYLE.sub(repaint, "".join(ET.tostring(element, encoding="unicode") for element in elements))
