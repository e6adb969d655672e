"""Sheets: images side by side with captions, and the legend that names their colours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carina.cases.draw.image import Gray, Rgb, Size, blank, fit_size, scale, size_of, to_rgb
from carina.cases.draw.palette import MUTED, PANEL, WHITE, Colour
from carina.cases.draw.text import line_height, put_text, shorten, text_size, wrap

GAP = 12
"""Pixels between panels and around a sheet."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """An image and the line below it."""

    image: Gray | Rgb
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    """A colour and its meaning."""

    text: str
    colour: Colour


def montage(
    panels: Sequence[Panel], *, columns: int, cell: Size, text_size: int = 15, ground: Colour = PANEL
) -> Rgb:
    """Panels in rows of `columns`, each fitted into its cell and centred, with its caption below."""
    caption_height = line_height(text_size) + 6 if any(panel.caption for panel in panels) else 0
    rows = -(-len(panels) // columns)
    pitch = Size(width=cell.width + GAP, height=cell.height + caption_height + GAP)
    sheet = blank(Size(width=columns * pitch.width + GAP, height=rows * pitch.height + GAP), ground)
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        x, y = GAP + column * pitch.width, GAP + row * pitch.height
        size = fit_size(size_of(panel.image), cell)
        put_image(
            sheet,
            scale(panel.image, size),
            x=x + (cell.width - size.width) // 2,
            y=y + (cell.height - size.height) // 2,
        )
        if panel.caption:
            caption = shorten(panel.caption, width=cell.width, size=text_size)
            put_text(sheet, caption, x=x, y=y + cell.height + 5, size=text_size, colour=MUTED)
    return sheet


def join_panels(panels: Sequence[Panel], *, text_size: int = 15, ground: Colour = PANEL) -> Rgb:
    """Images from left to right, each at its own size with its whole caption below; their tops are aligned."""
    sizes = [size_of(panel.image) for panel in panels]
    lines = [
        wrap(panel.caption, width=size.width, size=text_size) if panel.caption else []
        for panel, size in zip(panels, sizes, strict=True)
    ]
    line = line_height(text_size)
    captions = max(map(len, lines), default=0) * line
    height = max(size.height for size in sizes) + (captions + 6 if captions else 0)
    width = sum(size.width for size in sizes) + GAP * (len(panels) + 1)
    sheet = blank(Size(width=width, height=height + 2 * GAP), ground)
    x = GAP
    for panel, size, words in zip(panels, sizes, lines, strict=True):
        put_image(sheet, panel.image, x=x, y=GAP)
        for place, text in enumerate(words):
            y = GAP + size.height + 5 + place * line
            put_text(sheet, text, x=x, y=y, size=text_size, colour=WHITE)
        x += size.width + GAP
    return sheet


def put_image(sheet: Rgb, image: Gray | Rgb, *, x: int, y: int) -> None:
    """Put an image on a sheet with its top left corner at (x, y), in place; it must fit."""
    height, width = image.shape[:2]
    sheet[y : y + height, x : x + width] = image if image.ndim == 3 else to_rgb(image)


def legend(entries: Sequence[LegendEntry], *, width: int, text_size: int = 15, ground: Colour = PANEL) -> Rgb:
    """Coloured squares with their names, in as many lines as `width` needs."""
    swatch, height = text_size, line_height(text_size) + 8
    places, x, line = [], GAP, 0
    for entry in entries:
        taken = swatch + 8 + _width(entry.text, text_size) + 2 * GAP
        if x > GAP and x + taken > width:
            x, line = GAP, line + 1
        places.append((x, line))
        x += taken
    sheet = blank(Size(width=width, height=(line + 1) * height if entries else 0), ground)
    for entry, (x, line) in zip(entries, places, strict=True):
        y = line * height
        top = y + (height - swatch) // 2
        sheet[top : top + swatch, x : x + swatch] = entry.colour
        put_text(sheet, entry.text, x=x + swatch + 8, y=y + 4, size=text_size, colour=WHITE)
    return sheet


def stack(images: Sequence[Rgb], *, ground: Colour = PANEL) -> Rgb:
    """Images below each other, aligned at the left, on a ground as wide as the widest."""
    width = max(image.shape[1] for image in images)
    rows = []
    for image in images:
        row = blank(Size(width=width, height=image.shape[0]), ground)
        put_image(row, image, x=0, y=0)
        rows.append(row)
    return np.concatenate(rows)


def _width(text: str, size: int) -> int:
    return text_size(text, size=size).width
