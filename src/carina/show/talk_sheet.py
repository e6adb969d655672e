"""A conversation as a single picture: films where they enter, questions, options and answers, in columns."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.cases.model import Case
from carina.draw import (
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
    fitted,
    line_height,
    overlay,
    put_picture,
    put_text,
    scale,
    shorten,
    size_of,
    stack,
    wrap,
)
from carina.show.case_text import plain
from carina.show.case_turns import Film, Framed, Scene, Turn, turns_of
from carina.show.words import joined
from carina.studies.region import Region

_COLUMN: Final = 500
_BETWEEN: Final = 30
_TEXT: Final = 16
_SMALL: Final = 14
_HEAD: Final = 21
_INDENT: Final = 46
"""Of what is said, beside the number of the turn."""
_FRAMED: Final = 190
"""Longest side of a film with the boxes of a key."""
_SHARE: Final = 1.3
"""A sheet is not higher than so many times its width, as long as columns can be added."""
_MOST: Final = 5
"""Columns: a wider sheet cannot be read on a screen."""
_ANSWER: Final = Colour(110, 214, 178)
_QUESTION: Final = Colour(214, 220, 226)
_ACCENT: Final = HUES["sky blue"]
_LABELS: Final = {"yes": HUES["orange"], "no": _ACCENT, "uncertain": Colour(227, 156, 195)}

Line = tuple[str, Colour, int]
"""Text, colour and size."""


def talk_sheet(case: Case, talk: Sequence[Scene]) -> Rgb:
    """The picture: as many columns as keep it from getting much higher than wide."""
    strips = _strips(talk)
    total = sum(strip.shape[0] for strip in strips)
    columns = next(
        (n for n in range(1, _MOST + 1) if total / n <= _SHARE * (n * (_COLUMN + _BETWEEN) + _BETWEEN)), _MOST
    )
    parts = _parted(strips, columns)
    height = max(sum(strip.shape[0] for strip in part) for part in parts)
    sheet = blank(Size(width=len(parts) * (_COLUMN + _BETWEEN) + _BETWEEN, height=height + _BETWEEN), PANEL)
    for place, part in enumerate(parts):
        put_picture(sheet, stack(part), x=_BETWEEN + place * (_COLUMN + _BETWEEN), y=0)
    return stack([_heading(case, talk, sheet.shape[1]), sheet])


def _strips(talk: Sequence[Scene]) -> list[Rgb]:
    """Everything from top to bottom, in pieces that are not broken; a heading keeps to its first turn."""
    strips: list[Rgb] = []
    for scene in talk:
        new = [film for film in scene.films if film.picture.id in scene.new]
        above = [_films(new)] if new else []
        for group in scene.groups:
            if group.stage is not None:
                title = f"{group.stage}  {group.title}{' (continued)' if group.continued else ''}"
                above.append(_lines([("", MUTED, 6), (title, _ACCENT, _HEAD), ("", MUTED, 3)]))
            for turn in group.turns:
                stage = f"stage {turn.step.stage}" if group.stage is None else ""
                strips.append(stack([*above, _turn(turn, stage)]))
                above = []
    return strips


def _parted(strips: Sequence[Rgb], columns: int) -> list[list[Rgb]]:
    """Strips in order over columns of nearly the same height: the least height at which they fit."""
    heights = [strip.shape[0] for strip in strips]
    low, high = max(heights), sum(heights)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_breaks(heights, middle)) <= columns else (middle + 1, high)
    starts = _breaks(heights, low)
    return [list(strips[start:end]) for start, end in zip(starts, [*starts[1:], len(strips)], strict=True)]


def _breaks(heights: Sequence[int], limit: int) -> list[int]:
    """Where columns begin if each is filled up to the limit."""
    starts, filled = [0], 0
    for place, height in enumerate(heights):
        if filled and filled + height > limit:
            starts.append(place)
            filled = 0
        filled += height
    return starts


def _films(films: Sequence[Film]) -> Rgb:
    """Films side by side, each with its part in the talk below."""
    across = 2 if len(films) > 1 else 1
    side = (_COLUMN - (across - 1) * GAP) // across if across > 1 else 360
    cells = []
    for film in films:
        picture = scale(
            film.picture.pixels, fitted(size_of(film.picture.pixels), Size(width=side, height=side))
        )
        band = blank(Size(width=side, height=picture.shape[0] + line_height(_SMALL) + 8), PANEL)
        put_picture(band, picture, x=(side - picture.shape[1]) // 2, y=0)
        words = joined([film.title, film.projection, f"from {film.since.id}"])
        put_text(band, words, x=2, y=picture.shape[0] + 3, size=_SMALL, colour=MUTED)
        cells.append(band)
    rows = []
    for start in range(0, len(cells), across):
        held = cells[start : start + across]
        row = blank(Size(width=_COLUMN, height=max(cell.shape[0] for cell in held) + 6), PANEL)
        for place, cell in enumerate(held):
            put_picture(row, cell, x=place * (side + GAP), y=0)
        rows.append(row)
    return stack(rows)


def _turn(turn: Turn, stage: str) -> Rgb:
    """A question, its options and its answer, beside the number of the turn; its stage where no heading tells it."""
    step = turn.step
    width = _COLUMN - _INDENT
    lines: list[Line] = []
    if step.context:
        lines += _wrapped(step.context, width, MUTED)
    lines += _wrapped(turn.stem, width, _QUESTION)
    notes = [*turn.chips, f"depends on {', '.join(item.id for item in turn.after)}" if turn.after else ""]
    told = joined([stage, step.task, *notes, "restates" if step.restates else ""])
    lines += _wrapped(told, width, MUTED, _SMALL)
    for pick in turn.picks:
        text = f"{'right: ' if pick.right else ''}{pick.label} {pick.option.text}"
        lines += _wrapped(text, width - 14, _ANSWER if pick.right else MUTED)
    body = _lines(lines, indent=_INDENT)
    given = [] if turn.given is None else [_framed(turn.given)]
    parts = [
        body,
        *given,
        *_answer(turn, width),
        *(_framed(item) for item in turn.framed),
        _lines([("", MUTED, 8)]),
    ]
    picture = stack(parts)
    put_text(picture, shorten(step.id, width=_INDENT - 6, size=_TEXT), x=0, y=0, size=_TEXT, colour=MUTED)
    return picture


def _answer(turn: Turn, width: int) -> list[Rgb]:
    """What is right, in its colour, with a bar at its side; nothing where the options tell it."""
    key = turn.step.key
    if turn.picks:
        return []
    lines: list[Line] = []
    if key.label:
        lines.append((key.label, _LABELS[key.label], _TEXT))
    if key.sections:
        for section in key.sections:
            lines.append((section.name.upper(), MUTED, _SMALL))
            lines += _wrapped(section.text, width - 14, _ANSWER)
    elif turn.answer:
        lines += _wrapped(plain(key.text or ""), width - 14, _ANSWER)
    if turn.unit:
        lines += _wrapped(turn.unit, width - 14, MUTED, _SMALL)
    if not lines:
        return []
    band = _lines(lines, indent=_INDENT + 14)
    band[2:-1, _INDENT : _INDENT + 3] = HUES["bluish green"]
    return [band]


def _framed(item: Framed) -> Rgb:
    pixels = item.film.picture.pixels
    size = fitted(size_of(pixels), Size(width=_FRAMED, height=_FRAMED))
    high, wide = pixels.shape[:2]
    layers = [
        Layer(
            region=Region.from_box(frame.x, frame.y, frame.width, frame.height, height=high, width=wide),
            colour=frame.colour,
            fill=0.0,
            outline=2,
            casing=1,
        )
        for frame in item.frames
    ]
    picture = overlay(np.ascontiguousarray(pixels), layers, size=size)
    band = blank(Size(width=_COLUMN, height=picture.shape[0] + 6), PANEL)
    put_picture(band, picture, x=_INDENT + 14, y=4)
    return band


def _wrapped(text: str, width: int, colour: Colour, size: int = _TEXT) -> list[Line]:
    return [(line, colour, size) for line in wrap(text, width=width, size=size) if line]


def _lines(lines: Sequence[Line], *, indent: int = 0) -> Rgb:
    """Lines below each other on a strip as wide as a column."""
    band = blank(Size(width=_COLUMN, height=sum(map(_pitch, lines))), PANEL)
    y = 0
    for line in lines:
        put_text(band, line[0], x=indent, y=y, size=line[2], colour=line[1])
        y += _pitch(line)
    return band


def _pitch(line: Line) -> int:
    return line_height(line[2]) + 1


def _heading(case: Case, talk: Sequence[Scene], width: int) -> Rgb:
    inner = width - 2 * _BETWEEN
    band = blank(Size(width=width, height=92), PANEL)
    count = len(turns_of(talk))
    order = "shuffled" if case.order == "shuffled" else ""
    title = joined([case.target or case.protocol, f"{count} turns", order])
    put_text(band, shorten(title, width=inner, size=28), x=_BETWEEN, y=14, size=28, colour=WHITE)
    compared = f"compared with {case.reference_study}" if case.reference_study else ""
    line = joined([f"case {case.id}", f"study {case.study}", compared, case.source])
    put_text(band, shorten(line, width=inner, size=_TEXT), x=_BETWEEN, y=54, size=_TEXT, colour=MUTED)
    return band
