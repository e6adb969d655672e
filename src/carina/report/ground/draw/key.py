"""What marks and lines of a panel stand for, below it."""

from collections.abc import Sequence
from typing import Final

from carina.report.draw.parts import SMALL, wrapped
from carina.report.draw.shapes import Item, Line, Series, Words, text_width

_LINE: Final = 16.0


def key(
    items: list[Item], styles: Sequence[Series], left: float, top: float, width: float, *, lines: bool
) -> float:
    """Names beside their marks, and lines where there are any; returns where they end.

    Names stand side by side as far as there is room; one that is too long goes on in a line of its own.
    """
    x, y = left, top
    indent = 26.0 if lines else 14.0
    for style in styles:
        told = wrapped(style.name, width - indent, SMALL)
        need = indent + max(text_width(line, SMALL) for line in told) + 18
        if x > left and x + need > left + width + 20:
            x, y = left, y + _LINE
        if lines:
            items.append(Line(((x, y - 4), (x + 20, y - 4)), style.colour, 2.0, style.dash))
        items.append(style.mark(x + (10 if lines else 4), y - 4, 4.0))
        for place, line in enumerate(told):
            items.append(Words(x + indent, y + _LINE * place, line, SMALL))
        x += need
        if len(told) > 1:
            x, y = left, y + _LINE * len(told)
    return y if x > left else y - _LINE
