"""The contact sheet as one picture: a grid of studies with their findings and the start of their reports."""

from collections.abc import Sequence

import numpy as np

from carina.draw import (
    GAP,
    MUTED,
    PANEL,
    WHITE,
    Rgb,
    Size,
    blank,
    colour_of,
    line_height,
    put_picture,
    put_text,
    shorten,
    size_of,
    text_size,
    wrap,
)
from carina.show.cards import Card, Tag
from carina.show.pictures import marked

_COLUMNS = 4
_FRONTAL = Size(width=280, height=280)
_LATERAL = Size(width=128, height=280)
_TEXT = 14
_TAG_LINES = 2
_REPORT_LINES = 3
_PITCH = line_height(_TEXT) + 1
_HEIGHT = _FRONTAL.height + 8 + line_height(18) + _PITCH * (1 + _TAG_LINES + _REPORT_LINES) + 12


def contact_picture(cards: Sequence[Card]) -> Rgb:
    """Cards in rows of four, wide enough for a lateral view where any study has one."""
    width = _FRONTAL.width + (8 + _LATERAL.width if any(item.lateral for item in cards) else 0)
    rows = max(1, -(-len(cards) // _COLUMNS))
    step = Size(width=width + 2 * GAP, height=_HEIGHT + 2 * GAP)
    sheet = blank(Size(width=_COLUMNS * step.width + GAP, height=rows * step.height), PANEL)
    for place, item in enumerate(cards):
        row, column = divmod(place, _COLUMNS)
        put_picture(sheet, _card(item, width), x=GAP + column * step.width, y=GAP + row * step.height)
    return sheet


def _card(item: Card, width: int) -> Rgb:
    picture = blank(Size(width=width, height=_HEIGHT), PANEL)
    for thumbnail, box, x in ((item.frontal, _FRONTAL, 0), (item.lateral, _LATERAL, _FRONTAL.width + 8)):
        if thumbnail:
            view = marked(thumbnail.pixels, thumbnail.shapes, box, anatomy=True)
            put_picture(picture, view, x=x + (box.width - size_of(view).width) // 2, y=0)
    y = _FRONTAL.height + 8
    put_text(picture, shorten(item.study.id, width=width, size=18), x=0, y=y, size=18, colour=WHITE)
    y += line_height(18)
    put_text(picture, shorten(item.line, width=width, size=_TEXT), x=0, y=y, size=_TEXT, colour=MUTED)
    y += _PITCH
    _put_tags(picture[y : y + _PITCH * _TAG_LINES], item.tags)
    y += _PITCH * _TAG_LINES + 4
    lines = wrap(item.excerpt, width=width, size=_TEXT)
    if len(lines) > _REPORT_LINES:
        lines[_REPORT_LINES - 1] = shorten(lines[_REPORT_LINES - 1] + " …", width=width, size=_TEXT)
    for line in lines[:_REPORT_LINES]:
        put_text(picture, line, x=0, y=y, size=_TEXT, colour=MUTED)
        y += _PITCH
    return picture


def _put_tags(area: Rgb, tags: Sequence[Tag]) -> None:
    """Swatches with names, as many as there is room for."""
    if not tags:
        put_text(area, "no finding", x=0, y=0, size=_TEXT, colour=MUTED)
    x = y = 0
    for tag in tags:
        text = f"{tag.name}?" if tag.uncertain else tag.name
        width = 16 + text_size(text, size=_TEXT).width + 14
        if x and x + width > area.shape[1]:
            x, y = 0, y + _PITCH
        if y + _PITCH > area.shape[0]:
            return
        swatch: Rgb = np.full((10, 10, 3), colour_of(tag.name), np.uint8)
        put_picture(area, swatch, x=x, y=y + 5)
        put_text(area, text, x=x + 16, y=y, size=_TEXT, colour=WHITE)
        x += width
