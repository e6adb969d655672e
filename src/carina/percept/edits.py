"""Where the edits of a case are made: planned by area, sought on the contour, as rough as the contour was."""

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np

from carina.percept.deform import Operation
from carina.percept.rules import Ineligible
from carina.percept.sites import Board, Ground, Place, Site

Wanted = Literal["expansion", "contraction", "both"]
"""Which revisions a case asks for; the edits are their opposites."""

PLACES: Final = 16
"""Places on the contour tried for one edit."""
CHOICE: Final = 4
"""Places that would do, of which one is taken."""
NARROWER: Final = (1.0, 0.85, 0.65)
"""Width of kernels with one, two and three edits, which share the contour."""
ROUGHNESS: Final = 0.04
"""Standard deviation of the (logarithm of the) roughness that edits are to leave, relative to that of the truth: as
often smoother as rougher, else the look of a contour would tell whether it was changed."""


def find_edits(ground: Ground, wanted: Wanted, *, most: int, wide: float) -> list[Site]:
    """Sites for as many edits as make a major revision; `Ineligible` where the contour has no room for them."""
    board = Board.blank(ground.outline)
    due = float(ground.chance.normal(0.0, ROUGHNESS))
    edits: list[Site] = []
    plan = _plan(ground, wanted, most)
    for operation, area in plan:
        found = list(_fitting(ground, board, operation, area, wide * NARROWER[len(plan) - 1]))
        if not found:
            raise Ineligible("no room for edits", f"{len(edits)} of the edits found a place")
        best = min(found, key=lambda site: abs(_roughened(ground, [*edits, site]) - due))
        edits.append(best)
        take_edit(ground, board, best)
    return edits


def take_edit(ground: Ground, board: Board, site: Site) -> None:
    """An edit is made: its point and its pixels are taken; `Ineligible` where they are not free."""
    if not ground.is_free(board, site.change) or ground.crowded(board, site.point):
        raise Ineligible("no room for edits", "two edits come too near to each other")
    board.points.append(site.point)
    ground.take(board, site.change)


def _plan(ground: Ground, wanted: Wanted, most: int) -> list[tuple[Operation, float]]:
    """Operations on the contour and their areas, largest first."""
    rules, chance, lesion = ground.rules, ground.chance, float(ground.outline.area)
    least = 1.06 * max(rules.edit_share * lesion, rules.edit_area * ground.outline.scale**2)
    target = float(chance.uniform(rules.revise_low + 0.05, rules.revise_high - 0.03))
    if wanted == "both":
        outwards = float(chance.uniform(0.35, 0.65))
        lost = (1 - outwards) * (1 - target) * lesion
        totals: dict[Operation, float] = {"contraction": lost, "expansion": (lesion - lost) / target - lesion}
    elif wanted == "expansion":
        totals = {"contraction": (1 - target) * lesion}
    else:
        totals = {"expansion": lesion / target - lesion}
    plan: list[tuple[Operation, float]] = []
    left = max(most, len(totals)) - len(totals)
    for operation, asked in totals.items():
        total = max(asked, least)
        extra = int(chance.integers(0, min(left, int(total // least) - 1) + 1))
        left -= extra
        spare = (total - (1 + extra) * least) * chance.dirichlet(np.full(1 + extra, 2.0))
        plan += [(operation, least + float(share)) for share in spare]
    return sorted(plan, key=lambda edit: -edit[1])


def _fitting(ground: Ground, board: Board, operation: Operation, area: float, wide: float) -> Iterator[Site]:
    """The first few sites that would do."""
    found = 0
    for place in _places(ground, board):
        site = ground.site(ground.recipe(place, operation, area, wide=wide))
        if site is None or not ground.is_free(board, site.change) or ground.crowded(board, site.point):
            continue
        yield site
        found += 1
        if found == CHOICE:
            return


def _places(ground: Ground, board: Board) -> list[Place]:
    """Places on the contour to try, away from the points that are there."""
    some = ground.contour[ground.chance.integers(0, len(ground.contour), 4 * PLACES)]
    if board.points:
        apart = np.linalg.norm(some[:, None] - np.array(board.points)[None], axis=2).min(axis=1)
        some = some[apart >= 0.7 * ground.gap]
    return [(int(row), int(column)) for row, column in some[:PLACES]]


def _roughened(ground: Ground, edits: list[Site]) -> float:
    """Logarithm of how much rougher (length squared over area) the contour is after these edits."""
    before = ground.outline.area
    length = ground.length + sum(site.change.edge for site in edits)
    area = before + sum(site.change.sign * site.change.area for site in edits)
    return float(2 * np.log(length / ground.length) - np.log(area / before))
