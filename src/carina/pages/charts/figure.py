"""A chart as SVG, for a page in its colours or as a file, and as PNG."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from typing import Any, Final, Literal

import matplotlib
import numpy as np
import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg

from carina.cases.draw import encode_png
from carina.pages.charts.canvas import CAPTION, DPI, LEFT, RC, TIP, Canvas
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
_LINE: Final = 15.0


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
    width: float
    height: float
    draw: Callable[[Canvas], None]
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
        if theme == "page":
            content = "".join(_text(child) for child in self._tree if child.get("class") != CAPTION)
            painted = _paint(content, lambda role: f"var(--{role})")
            return (
                f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" '
                f'style="max-width:{self.width:g}px" role="img" aria-label="{escape(self.alt)}" '
                f'stroke-linejoin="round"><desc>{escape(self.note)}</desc>{painted}</svg>\n'
            )
        at = 0 if theme == "light" else 1
        height = self._canvas.height
        painted = _paint("".join(map(_text, self._tree)), lambda role: COLOURS[role][at])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height:g}" '
            f'width="{self.width:g}" height="{height:g}" role="img" aria-label="{escape(self.alt)}" '
            f'font-family="{FONT}" stroke-linejoin="round"><title>{escape(self.title)}</title>'
            f'<desc>{escape(self.note)}</desc><rect width="100%" height="100%" '
            f'fill="{COLOURS["surface"][at]}"/>{painted}</svg>\n'
        )

    def png(self, theme: Theme = "light", dpi: int = PNG_DPI) -> bytes:
        """The chart as the bytes of a PNG file, with the note below it; the same bytes each time.

        Args:
            theme: "light" or "dark".
            dpi: Pixels an inch; 72 gives one pixel of the file for each pixel of the chart.
        """
        canvas = self._canvas if theme == "light" else self._draw(theme)
        with matplotlib.rc_context(RC):
            canvas.figure.set(dpi=dpi, facecolor=canvas.colour("surface"))
            agg: Any = FigureCanvasAgg(canvas.figure)  # its methods have no types
            agg.draw()
        return encode_png(np.ascontiguousarray(np.asarray(agg.buffer_rgba())[..., :3]))

    def _repr_svg_(self) -> str:
        return self.svg()

    def _draw(self, theme: Theme = "light") -> Canvas:
        lines = wrap_text(self.note, self.width - 2 * LEFT, SMALL)
        below = 6 + _LINE * len(lines) if lines else 0.0
        with matplotlib.rc_context(RC):
            canvas = Canvas(self.width, float(round(self.height + below)), theme)
            self.draw(canvas)
            for place, line in enumerate(lines):
                y = self.height + 14 + _LINE * place
                canvas.text(LEFT, y, line, SMALL, colour="quiet", group=CAPTION)
        return canvas

    @cached_property
    def _canvas(self) -> Canvas:
        return self._draw()

    @cached_property
    def _tree(self) -> ET.Element:
        return _svg_tree(self._canvas, self.name)


@lru_cache(maxsize=256)
def mark_svg(style: SeriesStyle) -> str:
    """The mark of a series by itself, 14 pixels wide, in the colours of the page around it."""
    with matplotlib.rc_context(RC):
        canvas = Canvas(14, 14)
        canvas.marks([7], [7], style)
    tree = _svg_tree(canvas, "")
    _inline_marks(tree)
    shapes = _paint("".join(map(_text, tree)), lambda role: f"var(--{role})")
    return f'<svg class="key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{shapes}</svg>'


def _svg_tree(canvas: Canvas, name: str) -> ET.Element:
    """What matplotlib writes, reduced to groups of shapes and texts.

    Without metadata, style sheet and ids that nothing refers to; the other ids begin with the name of the chart,
    because several charts stand in one page. Marks get their tooltips.
    """
    buffer = io.BytesIO()
    with matplotlib.rc_context(RC):
        canvas.figure.savefig(buffer, format="svg", dpi=DPI, transparent=True, metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - written in the line above
    _simplify(root)
    used = {element.get("href", "")[1:] for element in root.iter("use")}
    tree = ET.Element("g")
    for element in list(root.iter()):
        own = element.attrib.pop("id", "")
        if own in used:
            element.set("id", f"{name}-{own}")
        if own == CAPTION:
            element.set("class", CAPTION)
        if own.startswith(TIP):
            _add_tips(element, canvas.tips[int(own.removeprefix(TIP))])
        if "href" in element.attrib:
            element.set("href", f"#{name}-{element.attrib['href'][1:]}")
        for key in ("d", "x", "y", "transform", "style"):
            if key in element.attrib:
                element.set(key, " ".join(_DIGITS.sub(r"\1", element.attrib[key]).split()))
        if element.tag == "text":
            element.set("style", _page_font(element.get("style", "")))
    tree.extend(_flatten(root))
    return tree


def _simplify(root: ET.Element) -> None:
    """Plain tags without name spaces and white space, without metadata, style sheet and invisible shapes."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        if element.tag != "text":
            element.text = None
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
    for parent in list(root.iter()):
        for child in list(parent):
            is_style = child.tag == "defs" and child.find("style") is not None
            if child.tag == "metadata" or is_style or child.get("style") == "fill: none":
                parent.remove(child)


def _flatten(element: ET.Element) -> list[ET.Element]:
    """Shapes and texts in order; of groups only those with tooltips, captions or definitions remain."""
    kept: list[ET.Element] = []
    for child in element:
        if child.tag == "g" and "class" not in child.attrib and child.find("title") is None:
            kept += _flatten(child)
        elif len(child) or child.tag not in ("g", "defs"):
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


def _inline_marks(tree: ET.Element) -> None:
    """Put the shape of a mark where it is used, so that no id is left."""
    shapes = {path.get("id"): path for path in tree.iter("path") if path.get("id")}
    for use in tree.iter("use"):
        shape = shapes[use.attrib.pop("href")[1:]]
        use.tag = "path"
        use.set("d", shape.get("d", ""))
        use.set("transform", f"translate({use.attrib.pop('x')} {use.attrib.pop('y')})")
    for child in list(tree):
        if child.tag == "defs":
            tree.remove(child)


def _page_font(style: str) -> str:
    """Size and weight only; the family is that of the page or the file."""
    style = _SHORTHAND.sub(lambda font: f"font-size: {font[2]}; font-weight: {font[1] or 400}", style)
    return _FAMILY.sub("", style).replace("font-weight: 700", "font-weight: 600")


def _text(element: ET.Element) -> str:
    return ET.tostring(element, encoding="unicode", short_empty_elements=True)


def _paint(svg: str, colour: Callable[[str], str]) -> str:
    """The SVG with other colours for the roles."""

    def repaint(style: re.Match[str]) -> str:
        return _COLOUR.sub(lambda found: colour(ROLES[found[0]]) if found[0] in ROLES else found[0], style[0])

    return _STYLE.sub(repaint, svg)
