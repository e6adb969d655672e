"""Lines of text, each with its colour and size, on the summary images of cases and conversations."""

from collections.abc import Sequence

from carina.cases.draw import Colour, Rgb, line_height, put_text

Line = tuple[str, Colour, int]
"""Text, colour and size."""


def lines_height(lines: Sequence[Line]) -> int:
    """Height of lines below each other, in pixels."""
    return sum(line_height(size) + 1 for _, _, size in lines)


def put_lines(image: Rgb, lines: Sequence[Line], *, x: int, y: int) -> None:
    """Write lines below each other, the first with its top at `y`."""
    for place, (text, colour, size) in enumerate(lines):
        put_text(image, text, x=x, y=y + lines_height(lines[:place]), size=size, colour=colour)
