"""What several charts have in common: legends, axes, labels of rows, and text that fits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from carina.report.draw.shapes import Drawing, Item, Line, Series, Words, text_width

WIDTH: Final = 1160.0
LEFT: Final = 8.0
SMALL: Final = 11.0
TEXT: Final = 12.0
CHANCE: Final = (2.0, 3.0)
"""Dashes of what chance gives."""
_BOLD: Final = 1.15
_WIDEST: Final = 300.0
"""Of a row's label."""


def legend(items: list[Item], series: Mapping[str, Series], *, chance: bool = False) -> float:
    """Names of the series in lines; returns where they end."""
    x, y = LEFT, 16.0
    for style in series.values():
        need = text_width(style.name, TEXT) + 56
        if x > LEFT and x + need > WIDTH:
            x, y = LEFT, y + 20
        items.append(Line(((x, y - 4), (x + 26, y - 4)), style.colour, 2.0, style.dash))
        items.append(style.mark(x + 13, y - 4))
        items.append(Words(x + 32, y, style.name, TEXT))
        x += need
    if chance:
        if x > LEFT and x + 90 > WIDTH:
            x, y = LEFT, y + 20
        items.append(Line(((x, y - 4), (x + 26, y - 4)), "quiet", 1.4, CHANCE))
        items.append(Words(x + 32, y, "chance", TEXT, colour="quiet"))
    return y


def label_width(series: Mapping[str, Series]) -> float:
    """Room for a mark and a name at the left of every row."""
    return min(_WIDEST, max((text_width(item.name, TEXT) for item in series.values()), default=0) + 44)


def label(items: list[Item], style: Series, y: float, width: float) -> None:
    """A mark and a name at the left of a row with its middle at `y`."""
    items.append(style.mark(LEFT + 7, y))
    items.append(Words(LEFT + 20, y + 4, cut(style.name, width - 36, TEXT), TEXT))


def percent_axis(items: list[Item], left: float, top: float, width: float, height: float) -> None:
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = top + height * (1 - tick)
        items.append(Line(((left, y), (left + width, y)), "line", 1.0))
        items.append(Words(left - 8, y + 4, f"{100 * tick:.0f}%", SMALL, "end", "quiet"))


def listed(values: Sequence[tuple[str, float | None]]) -> str:
    """Names and shares in a sentence: "one 64%, another 2%"."""
    return ", ".join(f"{name} {100 * value:.0f}%" for name, value in values if value is not None)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Text in lines that fit, broken at spaces; a word that is too long is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return [cut(line, width + 6, size) for line in lines]


def captioned(drawing: Drawing) -> Drawing:
    """The drawing with the line that explains it, for where no page does."""
    lines = wrapped(drawing.note, drawing.width - 2 * LEFT, SMALL)
    words = [
        Words(LEFT, drawing.height + 14 + 15 * place, line, SMALL, colour="quiet")
        for place, line in enumerate(lines)
    ]
    height = drawing.height + 6 + 15 * len(lines) if lines else drawing.height
    return replace(drawing, height=height, items=[*drawing.items, *words])


def bold_lines(text: str, width: float) -> list[str]:
    """A heading in lines that fit; bold letters are wider."""
    return wrapped(text, width / _BOLD - 6, TEXT)


def cut(text: str, width: float, size: float) -> str:
    """Text that fits, with an ellipsis where something was left out."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"
