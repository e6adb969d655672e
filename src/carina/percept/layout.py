"""The plan of a case's contours: edits that make a major revision, and points to tell them from.

Places are sought on a coarse copy of the outline, where a try costs little; what was found is made anew on the image's
own pixels and must keep every rule there.
"""

from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np

from carina.percept.anatomy import Anatomy
from carina.percept.deform import Reluctance, applied, warp
from carina.percept.distractors import Distractor, place_distractors, with_wrong_sites
from carina.percept.edits import Wanted, find_edits, take_edit
from carina.percept.outline import Field, Outline, coarser, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.percept.sites import Board, Ground, Site, changes_at
from carina.studies.region import Mask

ATTEMPTS: Final = ((3, 1.0), (2, 0.8), (2, 0.6), (1, 0.6), (1, 0.45))
"""Edits at most, and how wide their kernels are: fewer and narrower ones leave more room for points."""
COARSE: Final = 0.25
"""Pixels of the outline on which places are sought, to one of the frame."""


@dataclass(frozen=True)
class Layout:
    """Everything that was placed for one case."""

    edits: tuple[Site, ...]
    distractors: tuple[Distractor, ...]
    shown: Mask
    """The contour after the edits, in the outline's window."""
    distance: Field
    """Signed distance to the shown contour, positive inside."""


def lay_out(
    outline: Outline,
    anatomy: Anatomy,
    rules: Rules,
    *,
    wanted: Wanted,
    chance: np.random.Generator,
    deformer: Reluctance = warp,
) -> Layout:
    """A layout with the wanted revisions; `Ineligible` where the lesion has no room for one."""
    ground = Ground(outline, anatomy, rules, deformer, chance)
    # Only the warp looks the same on a coarse copy.
    times = max(1, round(outline.scale / COARSE)) if deformer is warp else 1
    rough = ground if times == 1 else replace(ground, outline=coarser(outline, times))
    failure = Ineligible("no room for edits")
    for most, wide in ATTEMPTS:
        try:
            edits = find_edits(rough, wanted, most=min(most, rules.max_edits), wide=wide)
            if times > 1:
                _place_points(rough, edits)
                edits = _made_anew(ground, edits, times)
            return _complete(ground, edits, wide=wide)
        except Ineligible as reason:
            failure = reason
    raise failure


def _made_anew(ground: Ground, edits: list[Site], times: int) -> list[Site]:
    sites = [ground.site(site.recipe.enlarged(times)) for site in edits]
    made = [site for site in sites if site is not None]
    if len(made) < len(edits):
        raise Ineligible("no room for edits", "an edit is too small on the image's own pixels")
    return made


def _place_points(ground: Ground, edits: list[Site]) -> tuple[Board, Mask, Field, list[Distractor]]:
    board = Board.blank(ground.outline)
    for site in edits:
        take_edit(ground, board, site)
    shown = applied(ground.outline.mask, [site.change for site in edits])
    _check_pieces(ground.outline.mask, shown)
    distance = signed_distance(shown)
    return board, shown, distance, place_distractors(ground, board, edits, shown, distance)


def _complete(ground: Ground, edits: list[Site], *, wide: float) -> Layout:
    board, shown, distance, distractors = _place_points(ground, edits)
    sites = list(edits)
    for n, site in enumerate(sites):
        sites[n] = ground.with_variants(site, sites[:n] + sites[n + 1 :])
        for change in changes_at(sites[n]):
            ground.take(board, change)
    return Layout(
        edits=tuple(sites),
        distractors=tuple(with_wrong_sites(ground, board, distractors, wide=wide)),
        shown=shown,
        distance=distance,
    )


def _check_pieces(before: Mask, after: Mask) -> None:
    count = cv2.connectedComponents(before.view(np.uint8), connectivity=4)[0]
    if cv2.connectedComponents(after.view(np.uint8), connectivity=4)[0] > count:
        raise Ineligible("no room for edits", "an edit would cut the contour in two")
