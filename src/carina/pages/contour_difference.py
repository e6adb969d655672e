"""The difference between a true and a shown mask: both borders, the areas between them, and the edits that led there.

Made from the facts of a case: regions with the roles "truth" and "shown", and changes of the contour.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import (
    HUES,
    NAMED,
    WHITE,
    Colour,
    Point,
    Rgb,
    Size,
    fit_size,
    ink_on,
    outline,
    paint,
    put_points,
    scale,
    scale_mask,
    size_of,
    tint,
    to_rgb,
)
from carina.cases.model import Case, CaseRegion, Mark
from carina.pages.case_facts import ContourEdit, contour_edits, region_roles
from carina.pages.fact_table import FactTable, subject_names, tabulate_facts
from carina.pages.figures import Figure, PixelStore, make_figure
from carina.pages.sets import CaseSet
from carina.store.counts import format_count
from carina.studies.region import Mask

_OPPOSITE: Final = {"expansion": "contraction", "contraction": "expansion"}
_SIDE: Final = 900
"""Longest side of the figure in pixels."""


@dataclass(frozen=True, kw_only=True)
class LegendItem:
    """Meaning of a line or a hatch of the figure."""

    name: str
    text: str
    look: str
    """The line or hatch in words, for readers who cannot tell the colours apart."""
    colour: Colour


TRUE_BORDER: Final = LegendItem(name="true", text="true border", look="solid", colour=WHITE)
SHOWN_BORDER: Final = LegendItem(name="shown", text="shown border", look="dashed", colour=HUES["yellow"])
EXCESS: Final = LegendItem(name="excess", text="excess: contract", look="/ / /", colour=HUES["vermillion"])
MISSING: Final = LegendItem(name="missing", text="missing: expand", look="\\ \\ \\", colour=HUES["sky blue"])


@dataclass(frozen=True, kw_only=True)
class EditText:
    """One change that was made to the contour, as the page describes it."""

    title: str
    operation: str
    revision: str
    """The operation that undoes it."""
    place: str
    mark: str
    colour: str | None
    ink: str | None
    facts: FactTable


@dataclass(frozen=True, kw_only=True)
class ContourDifference:
    """A figure of the true and the shown border, and the edits that lie between them."""

    figure: Figure
    legend: tuple[LegendItem, ...]
    edits: tuple[EditText, ...]


def contour_difference(cases: CaseSet, case: Case, store: PixelStore) -> ContourDifference | None:
    """The difference between the true and the shown mask; None where a case does not have both on one image."""
    regions: dict[str, CaseRegion] = {}
    known = {region.name: region for region in case.regions}
    for name, role in region_roles(case).items():
        if name in known:
            regions.setdefault(role, known[name])
    true, shown = regions.get("truth"), regions.get("shown")
    if true is None or shown is None or true.image != shown.image:
        return None
    start = regions.get("revised", true)
    if start.image != true.image:
        start = true
    edits = contour_edits(case)
    points = [mark for mark in (_find_mark(case, edit.mark) for edit in edits) if mark]
    masks = [region.region.to_mask() for region in (true, shown, start)]
    _, shown_mask, start_mask = masks
    areas = ((EXCESS, shown_mask & ~start_mask), (MISSING, start_mask & ~shown_mask))
    pixels = to_rgb(cases.pixels(case.image(true.image)))
    alt = "The true border, the shown border, and where they differ" + (
        f"; {format_count(len(points), 'key point')}." if points else "."
    )
    return ContourDifference(
        figure=make_figure(_draw(pixels, masks, points), store, id="truth", alt=alt),
        legend=(TRUE_BORDER, SHOWN_BORDER, *(item for item, area in areas if area.any())),
        edits=tuple(_describe_edit(case, edit) for edit in edits),
    )


def _describe_edit(case: Case, edit: ContourEdit) -> EditText:
    point = _find_mark(case, edit.mark)
    colour = NAMED.get(point.colour) if point else None
    return EditText(
        title=edit.name.capitalize(),
        operation=edit.operation,
        revision=_OPPOSITE.get(edit.operation, ""),
        place=edit.place,
        mark=edit.mark,
        colour=colour.hex if colour else None,
        ink=ink_on(colour).hex if colour else None,
        facts=tabulate_facts(edit.details, subject_names(case)),
    )


def _find_mark(case: Case, text: str) -> Mark | None:
    marks = (mark for view in case.views for panel in view.panels for mark in panel.marks)
    return next((mark for mark in marks if text and mark.text == text), None)


def _draw(pixels: Rgb, masks: list[Mask], points: list[Mark]) -> Rgb:
    """The part of the image around both masks, enlarged."""
    true, shown, start = masks
    x, y, side_x, side_y = _window(true | shown | start, size_of(pixels))
    part = np.s_[y : y + side_y, x : x + side_x]
    size = fit_size(Size(width=side_x, height=side_y), Size(width=_SIDE, height=_SIDE))
    drawn = to_rgb(np.ascontiguousarray(scale(np.ascontiguousarray(pixels[part]), size)))
    true, shown, start = (scale_mask(np.ascontiguousarray(mask[part]), size) for mask in (true, shown, start))
    for area, entry, rising in ((shown & ~start, EXCESS, True), (start & ~shown, MISSING, False)):
        tint(drawn, area, entry.colour, opacity=0.3)
        paint(drawn, area & _hatch(size, rising=rising), entry.colour)
    for mask, entry, dash in ((shown, SHOWN_BORDER, 12), (true, TRUE_BORDER, 0)):
        paint(drawn, outline(mask, width=3, dash=dash), entry.colour)
    zoom = size.width / side_x
    put_points(
        drawn,
        [
            Point(
                x=(mark.x - x) * zoom,
                y=(mark.y - y) * zoom,
                colour=NAMED.get(mark.colour) or WHITE,
                text=mark.text,
            )
            for mark in points
        ],
        radius=17,
    )
    return drawn


def _window(mask: Mask, size: Size) -> tuple[int, int, int, int]:
    """x, y, width and height of a part of the image that holds the mask with a margin around it."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return 0, 0, size.width, size.height
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    # Square where it fits, so that the figures of all cases have the same shape.
    side = int(max(1.3 * max(bottom - top, right - left), 0.4 * max(size)))
    width, height = min(side, size.width), min(side, size.height)
    x = min(max(int(left + right - width) // 2, 0), size.width - width)
    y = min(max(int(top + bottom - height) // 2, 0), size.height - height)
    return x, y, width, height


def _hatch(size: Size, *, rising: bool) -> NDArray[np.bool_]:
    """Oblique lines, 2 of every 12 pixels."""
    y, x = np.ogrid[: size.height, : size.width]
    return np.asarray(((x + y) if rising else (x - y)) % 12 < 3)
