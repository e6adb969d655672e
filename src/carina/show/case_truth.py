"""What was done to a shown mask: the true border against the shown one, and the areas by which they differ.

Read from the case's facts alone: regions with the parts "truth" and "shown", and edits where it tells of any.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.cases.model import Case, CaseRegion, Fact, Mark
from carina.draw import (
    HUES,
    NAMED,
    WHITE,
    Colour,
    Point,
    Rgb,
    Size,
    fitted,
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
from carina.show.case_facts import Facts, facts_of, grouped, names_in, roles
from carina.show.case_pictures import Picture
from carina.show.case_source import CaseSet
from carina.studies.region import Mask

_OPPOSITE: Final = {"expansion": "contraction", "contraction": "expansion"}
_SIDE: Final = 900
"""Longest side of the picture."""
_EDIT: Final = re.compile(r"edit \d+")


@dataclass(frozen=True, kw_only=True)
class Sign:
    """What a line or a hatch of the picture means."""

    name: str
    text: str
    look: str
    """In words, for those who do not tell the colours apart."""
    colour: Colour


TRUE: Final = Sign(name="true", text="true border", look="solid", colour=WHITE)
SHOWN: Final = Sign(name="shown", text="shown border", look="dashed", colour=HUES["yellow"])
EXCESS: Final = Sign(name="excess", text="too much: contract", look="/ / /", colour=HUES["vermillion"])
MISSING: Final = Sign(name="missing", text="missing: expand", look="\\ \\ \\", colour=HUES["sky blue"])


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change that was made to the contour."""

    title: str
    done: str
    wanted: str
    """What undoes it."""
    place: str
    mark: str
    colour: str | None
    ink: str | None
    facts: Facts


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A picture of the difference and the edits that made it."""

    picture: Picture
    legend: tuple[Sign, ...]
    edits: tuple[Edit, ...]


def explanation(cases: CaseSet, case: Case) -> Explanation | None:
    """None where the case does not tell of a true and a shown mask on one image."""
    parts: dict[str, CaseRegion] = {}
    known = {region.name: region for region in case.regions}
    for name, role in roles(case).items():
        if name in known:
            parts.setdefault(role, known[name])
    true, shown = parts.get("truth"), parts.get("shown")
    if true is None or shown is None or true.image != shown.image:
        return None
    edits = _edits(case)
    start = parts.get("revised", true)
    pixels = to_rgb(cases.pixels(case.image(true.image)))
    points = [mark for mark in (_mark(case, edit.mark) for edit in edits) if mark]
    masks = [
        region.region.to_mask() for region in (true, shown, start if start.image == true.image else true)
    ]
    drawn = _drawn(pixels, masks, points)
    _, seen, begun = masks
    areas = ((EXCESS, seen & ~begun), (MISSING, begun & ~seen))
    words = "The true border, the shown border, and where they differ" + (
        f"; {len(points)} key point{'s' if len(points) > 1 else ''}." if points else "."
    )
    return Explanation(
        picture=Picture(id="truth", alt=words, pixels=drawn),
        legend=(TRUE, SHOWN, *(entry for entry, area in areas if area.any())),
        edits=edits,
    )


def apart(case: Case) -> tuple[Fact, ...]:
    """Facts of the case that belong neither to an edit nor to a region's part."""
    return tuple(fact for fact in case.facts if fact.name != "role" and not _EDIT.fullmatch(fact.about))


def _edits(case: Case) -> tuple[Edit, ...]:
    names = names_in(case)
    found = []
    for about, facts in grouped(case.facts).items():
        if not _EDIT.fullmatch(about):
            continue
        texts = {fact.name: fact.text or "" for fact in facts}
        mark = _mark(case, texts.get("mark", ""))
        colour = NAMED.get(mark.colour) if mark else None
        done = texts.get("operation", "")
        found.append(
            Edit(
                title=about.capitalize(),
                done=done,
                wanted=_OPPOSITE.get(done, ""),
                place=texts.get("place", ""),
                mark=texts.get("mark", ""),
                colour=colour.hex if colour else None,
                ink=ink_on(colour).hex if colour else None,
                facts=facts_of(_rest(facts), names),
            )
        )
    return tuple(found)


def _rest(facts: Iterable[Fact]) -> list[Fact]:
    """Without their common subject, which the heading says."""
    told = ("operation", "place", "mark")
    return [
        Fact(name=fact.name, text=fact.text, value=fact.value, low=fact.low, high=fact.high)
        for fact in facts
        if fact.name not in told
    ]


def _mark(case: Case, text: str) -> Mark | None:
    marks = (mark for view in case.views for panel in view.panels for mark in panel.marks)
    return next((mark for mark in marks if text and mark.text == text), None)


def _drawn(pixels: Rgb, masks: list[Mask], points: list[Mark]) -> Rgb:
    """The neighbourhood of both masks, enlarged."""
    true, shown, start = masks
    x, y, side_x, side_y = _window(true | shown | start, size_of(pixels))
    part = np.s_[y : y + side_y, x : x + side_x]
    size = fitted(Size(width=side_x, height=side_y), Size(width=_SIDE, height=_SIDE))
    picture = to_rgb(np.ascontiguousarray(scale(np.ascontiguousarray(pixels[part]), size)))
    true, shown, start = (scale_mask(np.ascontiguousarray(mask[part]), size) for mask in (true, shown, start))
    for area, entry, rising in ((shown & ~start, EXCESS, True), (start & ~shown, MISSING, False)):
        tint(picture, area, entry.colour, opacity=0.3)
        paint(picture, area & _hatch(size, rising=rising), entry.colour)
    for mask, entry, dash in ((shown, SHOWN, 12), (true, TRUE, 0)):
        paint(picture, outline(mask, width=3, dash=dash), entry.colour)
    zoom = size.width / side_x
    put_points(
        picture,
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
    return picture


def _window(mask: Mask, size: Size) -> tuple[int, int, int, int]:
    """x, y, width and height of a part of the image that holds the mask with room around it."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return 0, 0, size.width, size.height
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    # Square where it fits, so that the pictures of all cases stand beside their views alike.
    side = int(max(1.3 * max(bottom - top, right - left), 0.4 * max(size)))
    width, height = min(side, size.width), min(side, size.height)
    x = min(max(int(left + right - width) // 2, 0), size.width - width)
    y = min(max(int(top + bottom - height) // 2, 0), size.height - height)
    return x, y, width, height


def _hatch(size: Size, *, rising: bool) -> NDArray[np.bool_]:
    """Oblique lines, 2 of every 12 pixels."""
    y, x = np.ogrid[: size.height, : size.width]
    return np.asarray(((x + y) if rising else (x - y)) % 12 < 3)
