"""A case as a single picture: its views in order with what is asked of each, the options, and the right answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    LegendEntry,
    Rgb,
    Size,
    blank,
    fitted,
    legend,
    line_height,
    put_picture,
    put_text,
    scale,
    shorten,
    size_of,
    stack,
    wrap,
)
from carina.show import case_words
from carina.show.case_steps import Block
from carina.show.case_truth import Explanation
from carina.show.words import joined

_COLUMNS: Final = 4
_CELL: Final = 385
"""Four cells and their gaps are 1600 pixels wide."""
_WIDTH: Final = _COLUMNS * (_CELL + GAP) + GAP
_TEXT: Final = 17
_HEAD: Final = 20
_QUESTION_LINES: Final = 4
_ANSWER_LINES: Final = 4
_RIGHT: Final = HUES["bluish green"]
_ANSWER: Final = Colour(110, 214, 178)
"""Of answers: the same hue, light enough to read."""

_FRAME: Final = 5

Line = tuple[str, Colour, int]
"""Text, colour and size."""
_SPACE: Final[Line] = ("", MUTED, 8)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A picture, if there is one, and the lines below it."""

    picture: Rgb | None
    lines: tuple[Line, ...]
    stage: int | None = None
    framed: bool = False
    """Marked as the right one of several."""
    foot: Rgb | None = None
    """Below the lines."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells in rows of their own, below a title where they are the options of one step."""

    cells: list[Cell]
    title: tuple[Line, ...] = ()


def case_sheet(case: Case, steps: Sequence[Block], truth: Explanation | None) -> Rgb:
    """The picture: four cells wide, or two where a case has no more."""
    groups = _groups(steps)
    if truth:
        first = next((group for group in groups if group.cells[-1].picture is not None), groups[0])
        first.cells.append(_explained(truth))
    bands = [band for group in groups for band in (*_title(group.title), *_rows(group.cells))]
    columns = _COLUMNS if any(len(group.cells) > 2 for group in groups) else 2
    width = columns * (_CELL + GAP) + GAP
    return stack([_heading(case, width), *(band[:, :width] for band in bands)])


def _groups(steps: Sequence[Block]) -> list[Group]:
    """Cells that share their rows: steps with pictures, options that are pictures, steps of words alone."""
    groups: list[Group] = []
    for block in steps:
        if block.pictured:
            groups.append(Group(cells=_options(block), title=_words(block, width=_WIDTH - 2 * GAP)))
            continue
        cells = _cells(block)
        # The group goes on where it is of the same kind and not closed by a title of its own.
        before = groups[-1].cells if groups and not groups[-1].title else []
        last = before[-1] if before else None
        if (
            last
            and last.picture is not None
            and last.stage == block.step.stage
            and block.known
            and block.shown
        ):
            # The same picture is asked about once more: below it, not beside it.
            before[-1] = replace(last, lines=(*last.lines, _SPACE, *cells[0].lines))
        elif last and (last.picture is None) == (cells[0].picture is None):
            before += cells
        else:
            groups.append(Group(cells=cells))
    return groups


def _cells(block: Block) -> list[Cell]:
    """A step's new pictures, its words below the first; or its words alone."""
    new = [shown.picture.pixels for shown in block.shown if shown.since is None]
    pictures = [*new, *(picture.pixels for picture in block.keyed)]
    first = Cell(picture=pictures[0] if pictures else None, lines=_lines(block), stage=block.step.stage)
    return [first, *(Cell(picture=picture, lines=(), stage=block.step.stage) for picture in pictures[1:])]


def _options(block: Block) -> list[Cell]:
    """One cell for each option, the right one framed."""
    cells = []
    for choice in block.choices:
        title = (f"({choice.number}) {choice.option.text}", _ANSWER if choice.right else WHITE, _HEAD)
        kind = "right" if choice.right else choice.kind
        cells.append(
            Cell(
                picture=choice.picture.pixels if choice.picture else None,
                lines=(title, (kind, _ANSWER if choice.right else MUTED, _TEXT)),
                framed=choice.right,
            )
        )
    return cells


def _explained(truth: Explanation) -> Cell:
    lines: list[Line] = [("what was done" if truth.edits else "true and shown border", WHITE, _HEAD)]
    for edit in truth.edits:
        where = ", ".join(part for part in (edit.done, edit.place) if part)
        needs = f"needs {edit.wanted} at point {edit.mark}" if edit.wanted and edit.mark else ""
        text = f"{edit.title}: {'; '.join(part for part in (where, needs) if part)}"
        lines += [(line, MUTED, _TEXT) for line in wrap(text, width=_CELL, size=_TEXT)]
    signs = [LegendEntry(text=f"{sign.text} ({sign.look})", colour=sign.colour) for sign in truth.legend]
    return Cell(
        picture=truth.picture.pixels,
        lines=(*lines, _SPACE),
        foot=legend(signs, width=_CELL, text_size=_TEXT)[:, GAP:],
    )


def _lines(block: Block) -> tuple[Line, ...]:
    """What a step is called, what it asks, and what is right."""
    told = _cut(wrap(block.answer, width=_CELL, size=_TEXT), _ANSWER_LINES)
    return (*_words(block, width=_CELL), *((line, _ANSWER, _TEXT) for line in told))


def _words(block: Block, *, width: int) -> tuple[Line, ...]:
    """What a step is called and what it asks."""
    step = block.step
    asked = _cut(wrap(block.stem, width=width, size=_TEXT), _QUESTION_LINES)
    return (
        (shorten(f"{step.id}  {step.task}", width=width, size=_HEAD), WHITE, _HEAD),
        *((line, MUTED, _TEXT) for line in asked),
    )


def _title(lines: Sequence[Line]) -> list[Rgb]:
    """A band of lines across the sheet, or nothing."""
    if not lines:
        return []
    band = blank(Size(width=_WIDTH, height=sum(map(_pitch, lines)) + 2), PANEL)
    y = 0
    for line in lines:
        put_text(band, line[0], x=GAP, y=y, size=line[2], colour=line[1])
        y += _pitch(line)
    return [band]


def _cut(lines: list[str], most: int) -> list[str]:
    lines = [line for line in lines if line]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], shorten(lines[most - 1] + " …", width=_CELL, size=_TEXT)]


def _rows(cells: Sequence[Cell]) -> list[Rgb]:
    return [_row(cells[start : start + _COLUMNS]) for start in range(0, len(cells), _COLUMNS)]


def _row(cells: Sequence[Cell]) -> Rgb:
    box = Size(width=_CELL, height=_CELL)
    fitted_pictures = [
        None if cell.picture is None else scale(cell.picture, fitted(size_of(cell.picture), box))
        for cell in cells
    ]
    top = max((picture.shape[0] for picture in fitted_pictures if picture is not None), default=0)
    below = max(
        sum(map(_pitch, cell.lines)) + (0 if cell.foot is None else cell.foot.shape[0]) for cell in cells
    )
    start = _FRAME + 1 if top else 0
    row = blank(Size(width=_WIDTH, height=start + top + below + 8 + 2 * GAP), PANEL)
    for column, (cell, picture) in enumerate(zip(cells, fitted_pictures, strict=True)):
        x = GAP + column * (_CELL + GAP)
        if picture is not None:
            high, wide = picture.shape[:2]
            left, up = x + (_CELL - wide) // 2, start + (top - high) // 2
            if cell.framed:
                row[up - _FRAME : up + high + _FRAME, left - _FRAME : left + wide + _FRAME] = _RIGHT
            put_picture(row, picture, x=left, y=up)
        y = start + top + (8 if top else 0)
        for line in cell.lines:
            put_text(row, line[0], x=x, y=y, size=line[2], colour=line[1])
            y += _pitch(line)
        if cell.foot is not None:
            put_picture(row, cell.foot, x=x, y=y)
    return row


def _pitch(line: Line) -> int:
    return line_height(line[2]) + 1


def _heading(case: Case, width: int) -> Rgb:
    band = blank(Size(width=width, height=84), PANEL)
    title = joined([case.target or case.protocol, case_words.path(case)])
    if case.target:
        swatch: Rgb = np.full((28, 8, 3), case_words.colour(case.target), np.uint8)
        put_picture(band, swatch, x=GAP, y=15)
    start = GAP + (20 if case.target else 0)
    put_text(band, shorten(title, width=width - start - GAP, size=28), x=start, y=10, size=28, colour=WHITE)
    line = joined([case.protocol, f"case {case.id}", f"study {case.study}", case.source])
    put_text(band, shorten(line, width=width - 2 * GAP, size=_TEXT), x=GAP, y=50, size=_TEXT, colour=MUTED)
    return band
