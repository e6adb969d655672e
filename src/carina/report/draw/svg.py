"""A drawing as SVG: for the page, where colours follow its theme, or as a file of its own."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Final

from carina.report.draw.shapes import COLOURS, Area, Drawing, Item, Line, Mark, Point, Words, outline

Paint = Callable[[str], str]
"""The colour of a role."""
FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def svg(drawing: Drawing, *, alone: bool) -> str:
    """The drawing; alone with literal colours on white, otherwise with the colours of the page around it."""

    def paint(role: str) -> str:
        return COLOURS[role][0] if alone else f"var(--{role})"

    size = f"{_n(drawing.width)} {_n(drawing.height)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{_n(drawing.width)}" '
        f'height="{_n(drawing.height)}" role="img" aria-label="{escape(drawing.title)}" '
        f'font-family="{escape(FONT)}">'
        if alone
        else f'<svg class="chart" viewBox="0 0 {size}" style="max-width:{_n(drawing.width)}px" role="img" '
        f'aria-label="{escape(drawing.title)}">'
    ]
    if alone:
        lines.append(
            f'<title>{escape(drawing.title)}</title><rect width="100%" height="100%" fill="#ffffff"/>'
        )
    lines += [_item(item, paint) for item in drawing.items]
    return "\n".join([*lines, "</svg>"]) + "\n"


def mark_svg(mark: Mark) -> str:
    """A mark by itself, 14 pixels wide, for a line of text."""
    drawn = _item(mark, lambda role: f"var(--{role})")
    return f'<svg class="key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{drawn}</svg>'


def _item(item: Item, paint: Paint) -> str:
    match item:
        case Line():
            dash = "" if item.dash is None else f' stroke-dasharray="{_n(item.dash[0])} {_n(item.dash[1])}"'
            return (
                f'<polyline points="{_points(item.points)}" fill="none" stroke-linejoin="round" '
                f'style="stroke:{paint(item.colour)}" stroke-width="{_n(item.width)}"{dash}/>'
            )
        case Area():
            opacity = "" if item.opacity == 1 else f' fill-opacity="{_n(item.opacity)}"'
            return f'<polygon points="{_points(item.points)}" style="fill:{paint(item.colour)}"{opacity}/>'
        case Mark():
            # A rim of the ground keeps marks apart that overlap; a ring is hollow.
            inside, rim, width = (
                ("surface", item.colour, 1.6) if item.shape == "ring" else (item.colour, "surface", 1.0)
            )
            shape = (
                f'circle cx="{_n(item.x)}" cy="{_n(item.y)}" r="{_n(item.size)}"'
                if item.shape in ("circle", "ring")
                else f'polygon points="{_points(outline(item))}"'
            )
            return f'<{shape} style="fill:{paint(inside)};stroke:{paint(rim)}" stroke-width="{_n(width)}"/>'
        case Words():
            weight = ' font-weight="600"' if item.bold else ""
            anchor = "" if item.anchor == "start" else f' text-anchor="{item.anchor}"'
            return (
                f'<text x="{_n(item.x)}" y="{_n(item.y)}" font-size="{_n(item.size)}"{anchor}{weight} '
                f'style="fill:{paint(item.colour)}">{escape(item.text)}</text>'
            )


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(number: float) -> str:
    return f"{round(number, 2):g}"
