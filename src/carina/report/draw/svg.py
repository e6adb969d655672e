"""A drawing as SVG: for the page, where colours follow its theme, or as a file of its own."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Final

from carina.report.draw.shapes import (
    COLOURS,
    DOT,
    Area,
    Drawing,
    Item,
    Line,
    Mark,
    Point,
    Words,
    left_half,
    outline,
)

Paint = Callable[[str], str]
"""The colour of a role."""
FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def svg(drawing: Drawing, *, alone: bool) -> str:
    """The drawing; alone with literal colours on white, otherwise with the colours of the page around it."""

    def paint(role: str) -> str:
        return COLOURS[role][0] if alone else f"var(--{role})"

    label = escape(f"{drawing.title}. {drawing.told}" if drawing.told else drawing.title)
    size = f"{_n(drawing.width)} {_n(drawing.height)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{_n(drawing.width)}" '
        f'height="{_n(drawing.height)}" role="img" aria-label="{label}" '
        f'font-family="{escape(FONT)}">'
        if alone
        else f'<svg class="chart" viewBox="0 0 {size}" style="max-width:{_n(drawing.width)}px" role="img" '
        f'aria-label="{label}">'
    ]
    if alone:
        lines.append(
            f"<title>{escape(drawing.title)}</title><desc>{escape(drawing.note)}</desc>"
            '<rect width="100%" height="100%" fill="#ffffff"/>'
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
            return _mark(item, paint)
        case Words():
            weight = ' font-weight="600"' if item.bold else ""
            anchor = "" if item.anchor == "start" else f' text-anchor="{item.anchor}"'
            return (
                f'<text x="{_n(item.x)}" y="{_n(item.y)}" font-size="{_n(item.size)}"{anchor}{weight} '
                f'style="fill:{paint(item.colour)}">{escape(item.text)}</text>'
            )


def _mark(mark: Mark, paint: Paint) -> str:
    """A rim of the ground keeps full marks apart that overlap; the others have a rim of their own."""
    full = mark.fill == "full"
    inside, rim, width = (mark.colour, "surface", 1.0) if full else ("surface", mark.colour, 1.6)
    drawn = f'<{_shape(mark)} style="fill:{paint(inside)};stroke:{paint(rim)}" stroke-width="{_n(width)}"/>'
    if mark.fill == "half":
        drawn += f'<polygon points="{_points(left_half(mark))}" style="fill:{paint(mark.colour)}"/>'
    if mark.fill == "dot":
        radius = _n(DOT * mark.size)
        drawn += (
            f'<circle cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{radius}" style="fill:{paint(mark.colour)}"/>'
        )
    return drawn


def _shape(mark: Mark) -> str:
    if mark.shape == "circle":
        return f'circle cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{_n(mark.size)}"'
    return f'polygon points="{_points(outline(mark))}"'


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(number: float) -> str:
    return f"{round(number, 2):g}"
