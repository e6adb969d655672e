"""A conversation as a single PNG image, in columns: images where they are first shown, questions, options, answers."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.cases.draw import (
    GAP,
    HUES,
    MUTED,
    PANEL,
    WHITE,
    Colour,
    Layer,
    Rgb,
    Size,
    blank,
    fit_size,
    line_height,
    overlay,
    put_image,
    put_text,
    scale,
    shorten,
    size_of,
    stack,
    wrap,
)
from carina.pages.case_text import plain_answer
from carina.pages.conversation import ConversationContent, ConversationImage, Turn
from carina.pages.figures import Figure, PixelStore
from carina.pages.summary_text import Line, lines_height, put_lines
from carina.pages.words import join_parts
from carina.studies.region import Region

_COLUMN: Final = 500
_COLUMN_GAP: Final = 30
_TEXT: Final = 16
_SMALL: Final = 14
_HEAD: Final = 21
_INDENT: Final = 46
"""Indent of questions and answers, beside the number of the turn."""
_BOXED_SIDE: Final = 190
"""Longest side of an image with the boxes of an answer key."""
_LARGEST_RATIO: Final = 1.3
"""Largest height of the image as a multiple of its width, as long as columns can be added."""
_MOST_COLUMNS: Final = 5
"""A wider image cannot be read on a screen."""
_ANSWER: Final = Colour(110, 214, 178)
_QUESTION: Final = Colour(214, 220, 226)
_ACCENT: Final = HUES["sky blue"]
_LABELS: Final = {"yes": HUES["orange"], "no": _ACCENT, "uncertain": Colour(227, 156, 195)}


def draw_conversation_summary(content: ConversationContent) -> Rgb:
    """The summary image, with as many columns as keep it from getting much higher than wide."""
    strips = _draw_strips(content)
    total = sum(strip.shape[0] for strip in strips)
    columns = next(
        (
            n
            for n in range(1, _MOST_COLUMNS + 1)
            if total / n <= _LARGEST_RATIO * (n * (_COLUMN + _COLUMN_GAP) + _COLUMN_GAP)
        ),
        _MOST_COLUMNS,
    )
    parts = _distribute(strips, columns)
    height = max(sum(strip.shape[0] for strip in part) for part in parts)
    sheet = blank(
        Size(width=len(parts) * (_COLUMN + _COLUMN_GAP) + _COLUMN_GAP, height=height + _COLUMN_GAP), PANEL
    )
    for place, part in enumerate(parts):
        put_image(sheet, stack(part), x=_COLUMN_GAP + place * (_COLUMN + _COLUMN_GAP), y=0)
    return stack([_draw_heading(content, sheet.shape[1]), sheet])


def _draw_strips(content: ConversationContent) -> list[Rgb]:
    """Everything from top to bottom, in pieces that stay whole; a heading stays with its first turn."""
    strips: list[Rgb] = []
    for span in content.spans:
        new = [image for image in span.images if image.figure.id in span.new]
        above = [_draw_image_strip(new, content.pixels)] if new else []
        for group in span.groups:
            if group.stage is not None:
                title = f"{group.stage}  {group.title}{' (continued)' if group.continued else ''}"
                above.append(_draw_lines([("", MUTED, 6), (title, _ACCENT, _HEAD), ("", MUTED, 3)]))
            for turn in group.turns:
                stage = f"stage {turn.step.stage}" if group.stage is None else ""
                strips.append(stack([*above, _draw_turn(turn, stage, content.pixels)]))
                above = []
    return strips


def _distribute(strips: Sequence[Rgb], columns: int) -> list[list[Rgb]]:
    """Strips in order over columns of nearly the same height: the smallest height at which they fit."""
    heights = [strip.shape[0] for strip in strips]
    low, high = max(heights), sum(heights)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_breaks(heights, middle)) <= columns else (middle + 1, high)
    starts = _breaks(heights, low)
    return [list(strips[start:end]) for start, end in zip(starts, [*starts[1:], len(strips)], strict=True)]


def _breaks(heights: Sequence[int], limit: int) -> list[int]:
    """Indices at which columns begin if each is filled up to the limit."""
    starts, filled = [0], 0
    for place, height in enumerate(heights):
        if filled and filled + height > limit:
            starts.append(place)
            filled = 0
        filled += height
    return starts


def _draw_image_strip(images: Sequence[ConversationImage], store: PixelStore) -> Rgb:
    """Images side by side, each with its role below."""
    across = 2 if len(images) > 1 else 1
    side = (_COLUMN - (across - 1) * GAP) // across if across > 1 else 360
    cells = []
    for image in images:
        pixels = store[image.figure.id]
        scaled = scale(pixels, fit_size(size_of(pixels), Size(width=side, height=side)))
        band = blank(Size(width=side, height=scaled.shape[0] + line_height(_SMALL) + 8), PANEL)
        put_image(band, scaled, x=(side - scaled.shape[1]) // 2, y=0)
        caption = join_parts([image.figure.title, image.projection, f"from {image.since.id}"])
        put_text(band, caption, x=2, y=scaled.shape[0] + 3, size=_SMALL, colour=MUTED)
        cells.append(band)
    rows = []
    for start in range(0, len(cells), across):
        in_row = cells[start : start + across]
        row = blank(Size(width=_COLUMN, height=max(cell.shape[0] for cell in in_row) + 6), PANEL)
        for place, cell in enumerate(in_row):
            put_image(row, cell, x=place * (side + GAP), y=0)
        rows.append(row)
    return stack(rows)


def _draw_turn(turn: Turn, stage: str, store: PixelStore) -> Rgb:
    """A question, its options and its answer, beside the number of the turn; its stage where no heading gives it."""
    step = turn.step
    width = _COLUMN - _INDENT
    lines: list[Line] = []
    if step.context:
        lines += _wrap_lines(step.context, width, MUTED)
    lines += _wrap_lines(turn.stem, width, _QUESTION)
    earlier = ", ".join(link.id for link in turn.depends_on)
    notes = [
        *turn.limits,
        f"depends on {earlier}" if earlier else "",
        "reveals an answer" if step.restates else "",
    ]
    lines += _wrap_lines(join_parts([stage, step.task, *notes]), width, MUTED, _SMALL)
    for choice in turn.choices:
        text = f"{'right: ' if choice.is_right else ''}{choice.label} {choice.option.text}"
        lines += _wrap_lines(text, width - 14, _ANSWER if choice.is_right else MUTED)
    body = _draw_lines(lines, indent=_INDENT)
    questioned = [] if turn.questioned_figure is None else [_draw_boxed_image(turn.questioned_figure, store)]
    parts = [
        body,
        *questioned,
        *_draw_answer(turn, width),
        *(_draw_boxed_image(figure, store) for figure in turn.key_figures),
        _draw_lines([("", MUTED, 8)]),
    ]
    strip = stack(parts)
    put_text(strip, shorten(step.id, width=_INDENT - 6, size=_TEXT), x=0, y=0, size=_TEXT, colour=MUTED)
    return strip


def _draw_answer(turn: Turn, width: int) -> list[Rgb]:
    """The right answer in its colour with a bar at its side; nothing where the options give it."""
    key = turn.step.key
    if turn.choices:
        return []
    lines: list[Line] = []
    if key.label:
        lines.append((key.label, _LABELS[key.label], _TEXT))
    if key.sections:
        for section in key.sections:
            lines.append((section.name.upper(), MUTED, _SMALL))
            lines += _wrap_lines(section.text, width - 14, _ANSWER)
    elif turn.answer:
        lines += _wrap_lines(plain_answer(key.text or ""), width - 14, _ANSWER)
    if turn.unit:
        lines += _wrap_lines(turn.unit, width - 14, MUTED, _SMALL)
    if not lines:
        return []
    band = _draw_lines(lines, indent=_INDENT + 14)
    band[2:-1, _INDENT : _INDENT + 3] = HUES["bluish green"]
    return [band]


def _draw_boxed_image(figure: Figure, store: PixelStore) -> Rgb:
    pixels = store[figure.id]
    size = fit_size(size_of(pixels), Size(width=_BOXED_SIDE, height=_BOXED_SIDE))
    high, wide = pixels.shape[:2]
    layers = [
        Layer(
            region=Region.from_box(box.x, box.y, box.width, box.height, height=high, width=wide),
            colour=box.colour,
            fill=0.0,
            outline=2,
            casing=1,
        )
        for box in figure.boxes
    ]
    drawn = overlay(np.ascontiguousarray(pixels), layers, size=size)
    band = blank(Size(width=_COLUMN, height=drawn.shape[0] + 6), PANEL)
    put_image(band, drawn, x=_INDENT + 14, y=4)
    return band


def _wrap_lines(text: str, width: int, colour: Colour, size: int = _TEXT) -> list[Line]:
    return [(line, colour, size) for line in wrap(text, width=width, size=size) if line]


def _draw_lines(lines: Sequence[Line], *, indent: int = 0) -> Rgb:
    """Lines below each other on a strip as wide as a column."""
    band = blank(Size(width=_COLUMN, height=lines_height(lines)), PANEL)
    put_lines(band, lines, x=indent, y=0)
    return band


def _draw_heading(content: ConversationContent, width: int) -> Rgb:
    case = content.case
    inner = width - 2 * _COLUMN_GAP
    band = blank(Size(width=width, height=92), PANEL)
    count = len(content.turns)
    order = "shuffled" if case.order == "shuffled" else ""
    title = join_parts([case.target or case.protocol, f"{count} turns", order])
    put_text(band, shorten(title, width=inner, size=28), x=_COLUMN_GAP, y=14, size=28, colour=WHITE)
    compared = f"compared with {case.reference_study}" if case.reference_study else ""
    line = join_parts([f"case {case.id}", f"study {case.study}", compared, case.source])
    put_text(band, shorten(line, width=inner, size=_TEXT), x=_COLUMN_GAP, y=54, size=_TEXT, colour=MUTED)
    return band
