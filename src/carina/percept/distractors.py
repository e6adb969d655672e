"""Points where nothing is to be revised, and what a revision there would do.

They lie as far from the shown contour as the points of the edits do, so nothing but the image tells one from the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np

from carina.percept.deform import Operation
from carina.percept.outline import Field
from carina.percept.rules import Ineligible
from carina.percept.sites import Board, Ground, Place, Site
from carina.studies.region import Mask

SHARES: Final = (0.09, 0.20)
"""Area of a change where none was needed, as a share of the lesion: like that of a single edit."""
JITTER: Final = 0.15
"""Distance of a distractor point to the contour, relative to that of an edit's point: as different as those are."""


@dataclass(frozen=True)
class Distractor:
    """A point where nothing is to be revised, outside or inside the shown contour."""

    point: Place
    inside: bool
    nearest_change: float
    """Pixels to the nearest one that an edit has changed."""
    site: Site | None = None
    """What a revision at this point would do, where it can be told apart from the truth."""


def place_distractors(
    ground: Ground, board: Board, edits: Sequence[Site], shown: Mask, distance: Field
) -> list[Distractor]:
    """As many as were drawn, if there is room; at least as many as the rules demand, else `Ineligible`."""
    rules, scale = ground.rules, ground.outline.scale
    changed = shown ^ ground.outline.mask
    far = np.asarray(
        cv2.distanceTransform((~changed).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32
    )
    free = ground.outline.field & (far >= rules.change_gap * scale)
    for point in board.points:
        _block(ground, free, point)
    depths = [abs(float(distance[site.point])) for site in edits]
    found: list[Distractor] = []
    for inside in _sides(ground, len(edits)):
        chosen = _free_point(ground, free, distance, depths, inside=inside)
        if chosen is not None:
            _block(ground, free, chosen)
            found.append(Distractor(point=chosen, inside=inside, nearest_change=float(far[chosen])))
    outside = sum(not distractor.inside for distractor in found)
    if outside < rules.min_outside:
        raise Ineligible("no room for points", f"{outside} distractors fit outside the contour")
    if len(found) + len(edits) < rules.min_points:
        raise Ineligible("no room for points", f"{len(found) + len(edits)} points fit")
    return found


def with_wrong_sites(
    ground: Ground, board: Board, distractors: Sequence[Distractor], *, wide: float
) -> list[Distractor]:
    """Each distractor with what revising at it would do to the contour, where there is room for it."""
    return [replace(placed, site=_wrong_site(ground, board, placed, wide=wide)) for placed in distractors]


def _sides(ground: Ground, edits: int) -> list[bool]:
    """On which side of the contour each distractor is sought, inside or not: first those that a case should have."""
    rules = ground.rules
    wanted = int(ground.chance.integers(rules.min_points, rules.max_points + 1)) - edits
    sides = [False] * rules.min_outside + [True] * rules.max_inside
    sides += [bool(inside) for inside in ground.chance.integers(0, 2, max(0, wanted - len(sides)))]
    return sides[: max(wanted, rules.min_points - edits)]


def _free_point(
    ground: Ground, free: Mask, distance: Field, depths: list[float], *, inside: bool
) -> Place | None:
    """A free pixel as far from the shown contour as one of the edits' points."""
    sign = 1.0 if inside else -1.0
    for depth in ground.chance.permutation(depths):
        wanted = sign * depth * ground.chance.uniform(1 - JITTER, 1 + JITTER)
        there = np.flatnonzero(free & (np.abs(distance - np.float32(wanted)) <= 1.0))
        if there.size:
            row, column = divmod(int(there[ground.chance.integers(there.size)]), free.shape[1])
            return row, column
    return None


def _block(ground: Ground, free: Mask, point: Place) -> None:
    """No other point comes near this one."""
    cv2.circle(free.view(np.uint8), point[::-1], int(np.ceil(ground.gap)), (0,), cv2.FILLED)


def _wrong_site(ground: Ground, board: Board, distractor: Distractor, *, wide: float) -> Site | None:
    operation: Operation = "contraction" if distractor.inside else "expansion"
    squares = ((ground.contour - np.array(distractor.point)) ** 2).sum(axis=1)
    row, column = ground.contour[int(squares.argmin())]
    least = ground.rules.edit_area * ground.outline.scale**2
    area = max(float(ground.chance.uniform(*SHARES)) * ground.outline.area, least)
    site = ground.site(ground.recipe((int(row), int(column)), operation, area, wide=wide))
    if site is None or not ground.is_free(board, site.change):
        return None
    ground.take(board, site.change)
    return site
