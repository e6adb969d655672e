"""A case as a single PNG image: its views in order with the question about each, the options, and the right answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from carina.cases.draw import (
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
    fit_size,
    legend,
    put_image,
    put_text,
    scale,
    shorten,
    size_of,
    stack,
    wrap,
)
from carina.cases.model import Case
from carina.pages.case import CaseContent, StepContent
from carina.pages.case_text import path_title, target_colour
from carina.pages.contour_difference import ContourDifference
from carina.pages.summary_text import Line, lines_height, put_lines
from carina.pages.words import join_parts

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
"""Colour of answers: the hue of `_RIGHT`, light enough to read."""

_FRAME: Final = 5

_SPACE: Final[Line] = ("", MUTED, 8)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """An image, if there is one, and the lines below it."""

    image: Rgb | None
    lines: tuple[Line, ...]
    stage: int | None = None
    is_right: bool = False
    """Framed as the right one of several."""
    legend: Rgb | None = None
    """Below the lines."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells that share rows, below a title where they are the options of one step."""

    cells: list[Cell]
    title: tuple[Line, ...] = ()


def draw_case_summary(content: CaseContent) -> Rgb:
    """The summary image: four cells wide, or two where a case has no more."""
    groups = _groups(content)
    if content.difference:
        first = next((group for group in groups if group.cells[-1].image is not None), groups[0])
        first.cells.append(_difference_cell(content, content.difference))
    bands = [band for group in groups for band in (*_draw_title(group.title), *_draw_rows(group.cells))]
    columns = _COLUMNS if any(len(group.cells) > 2 for group in groups) else 2
    width = columns * (_CELL + GAP) + GAP
    return stack([_draw_heading(content.case, width), *(band[:, :width] for band in bands)])


def _groups(content: CaseContent) -> list[Group]:
    """Steps with images, options that are images, and steps of text alone are in groups of their own."""
    groups: list[Group] = []
    for step in content.steps:
        if step.has_image_options:
            groups.append(
                Group(cells=_options(content, step), title=_question_lines(step, width=_WIDTH - 2 * GAP))
            )
            continue
        cells = _cells(content, step)
        # The group continues where it is of the same kind and has no title of its own.
        before = groups[-1].cells if groups and not groups[-1].title else []
        last = before[-1] if before else None
        if (
            last
            and last.image is not None
            and last.stage == step.step.stage
            and step.has_no_new_view
            and step.views
        ):
            # A further question about the same image: below it, not beside it.
            before[-1] = replace(last, lines=(*last.lines, _SPACE, *cells[0].lines))
        elif last and (last.image is None) == (cells[0].image is None):
            before += cells
        else:
            groups.append(Group(cells=cells))
    return groups


def _cells(content: CaseContent, step: StepContent) -> list[Cell]:
    """A step's new images, its text below the first; or its text alone."""
    new = [content.pixels[view.figure.id] for view in step.views if view.since is None]
    images = [*new, *(content.pixels[figure.id] for figure in step.key_figures)]
    first = Cell(image=images[0] if images else None, lines=_lines(step), stage=step.step.stage)
    return [first, *(Cell(image=image, lines=(), stage=step.step.stage) for image in images[1:])]


def _options(content: CaseContent, step: StepContent) -> list[Cell]:
    """One cell for each option, the right one framed."""
    cells = []
    for choice in step.choices:
        title = (f"{choice.label} {choice.option.text}", _ANSWER if choice.is_right else WHITE, _HEAD)
        kind = "right" if choice.is_right else choice.kind
        cells.append(
            Cell(
                image=content.pixels[choice.figure.id] if choice.figure else None,
                lines=(title, (kind, _ANSWER if choice.is_right else MUTED, _TEXT)),
                is_right=choice.is_right,
            )
        )
    return cells


def _difference_cell(content: CaseContent, difference: ContourDifference) -> Cell:
    lines: list[Line] = [
        ("how the contour was changed" if difference.edits else "true and shown border", WHITE, _HEAD)
    ]
    for edit in difference.edits:
        where = ", ".join(part for part in (edit.operation, edit.place) if part)
        needs = f"needs {edit.revision} at point {edit.mark}" if edit.revision and edit.mark else ""
        text = f"{edit.title}: {'; '.join(part for part in (where, needs) if part)}"
        lines += [(line, MUTED, _TEXT) for line in wrap(text, width=_CELL, size=_TEXT)]
    entries = [
        LegendEntry(text=f"{item.text} ({item.look})", colour=item.colour) for item in difference.legend
    ]
    return Cell(
        image=content.pixels[difference.figure.id],
        lines=(*lines, _SPACE),
        legend=legend(entries, width=_CELL, text_size=_TEXT)[:, GAP:],
    )


def _lines(step: StepContent) -> tuple[Line, ...]:
    """Name, question and right answer of a step."""
    answer = _shorten_lines(wrap(step.answer, width=_CELL, size=_TEXT), _ANSWER_LINES)
    return (*_question_lines(step, width=_CELL), *((line, _ANSWER, _TEXT) for line in answer))


def _question_lines(content: StepContent, *, width: int) -> tuple[Line, ...]:
    """Name and question of a step."""
    step = content.step
    question = _shorten_lines(wrap(content.stem, width=width, size=_TEXT), _QUESTION_LINES)
    return (
        (shorten(f"{step.id}  {step.task}", width=width, size=_HEAD), WHITE, _HEAD),
        *((line, MUTED, _TEXT) for line in question),
    )


def _draw_title(lines: Sequence[Line]) -> list[Rgb]:
    """A band of lines across the image, or nothing."""
    if not lines:
        return []
    band = blank(Size(width=_WIDTH, height=lines_height(lines) + 2), PANEL)
    put_lines(band, lines, x=GAP, y=0)
    return [band]


def _shorten_lines(lines: list[str], most: int) -> list[str]:
    lines = [line for line in lines if line]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], shorten(lines[most - 1] + " …", width=_CELL, size=_TEXT)]


def _draw_rows(cells: Sequence[Cell]) -> list[Rgb]:
    return [_draw_row(cells[start : start + _COLUMNS]) for start in range(0, len(cells), _COLUMNS)]


def _draw_row(cells: Sequence[Cell]) -> Rgb:
    box = Size(width=_CELL, height=_CELL)
    images = [
        None if cell.image is None else scale(cell.image, fit_size(size_of(cell.image), box))
        for cell in cells
    ]
    top = max((image.shape[0] for image in images if image is not None), default=0)
    below = max(
        lines_height(cell.lines) + (0 if cell.legend is None else cell.legend.shape[0]) for cell in cells
    )
    start = _FRAME + 1 if top else 0
    row = blank(Size(width=_WIDTH, height=start + top + below + 8 + 2 * GAP), PANEL)
    for column, (cell, image) in enumerate(zip(cells, images, strict=True)):
        x = GAP + column * (_CELL + GAP)
        if image is not None:
            high, wide = image.shape[:2]
            left, up = x + (_CELL - wide) // 2, start + (top - high) // 2
            if cell.is_right:
                row[up - _FRAME : up + high + _FRAME, left - _FRAME : left + wide + _FRAME] = _RIGHT
            put_image(row, image, x=left, y=up)
        y = start + top + (8 if top else 0)
        put_lines(row, cell.lines, x=x, y=y)
        if cell.legend is not None:
            put_image(row, cell.legend, x=x, y=y + lines_height(cell.lines))
    return row


def _draw_heading(case: Case, width: int) -> Rgb:
    band = blank(Size(width=width, height=84), PANEL)
    title = join_parts([case.target or case.protocol, path_title(case)])
    if case.target:
        stripe: Rgb = np.full((28, 8, 3), target_colour(case.target), np.uint8)
        put_image(band, stripe, x=GAP, y=15)
    start = GAP + (20 if case.target else 0)
    put_text(band, shorten(title, width=width - start - GAP, size=28), x=start, y=10, size=28, colour=WHITE)
    line = join_parts([case.protocol, f"case {case.id}", f"study {case.study}", case.source])
    put_text(band, shorten(line, width=width - 2 * GAP, size=_TEXT), x=GAP, y=50, size=_TEXT, colour=MUTED)
    return band
