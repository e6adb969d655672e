"""Where a contour is changed, and the points that mark where it was and where it was not.

A site is a place at the contour with the changes that can be made there. The edits of a case are made at some; at
others only wrong answers would revise. Distractor points lie as far from the shown contour as the points of the edits
do, so nothing but the image tells one from the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.anatomy import Anatomy, name_at
from carina.percept.deform import (
    OPPOSITE,
    Change,
    Operation,
    Reluctance,
    applied,
    change_of,
    thickest,
)
from carina.percept.outline import Field, Outline, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

Wanted = Literal["expansion", "contraction", "both"]
"""Which revisions a case asks for."""
Place = tuple[int, int]
"""Row and column in the outline's window."""

WIDTHS: Final = (0.42, 0.62)
"""Width of a kernel over the square root of the area it is to change: from deep and narrow to flat and wide."""
HALF: Final = 0.5
WORSE: Final = 1.7
"""Areas of a half-made and of a worsened error, relative to the edit."""
SEPARATION: Final = 8.0
"""Between changes at different sites, in pixels of the frame."""
SHARES: Final = (0.09, 0.20)
"""Area of a change where none was needed, as a share of the lesion: like that of a single edit."""
PLACES: Final = 16
"""Places on the contour tried for one edit."""
JITTER: Final = 0.15
"""Distance of a distractor point to the contour, relative to that of an edit's point: as different as those are."""


@dataclass(frozen=True)
class Recipe:
    """What a change was made from: the same kernel can be used for more, for less, or the other way."""

    centre: Place
    area: float
    width: float
    seed: int


@dataclass(frozen=True)
class Site:
    """A place at the contour: the point, and what can be changed there."""

    point: Place
    place: str
    """Region of the anatomy."""
    change: Change
    """The edit; where nothing was edited, what a wrong revision would do."""
    thickness: float
    displacement: float
    """How far the contour moves."""
    recipe: Recipe
    half: Change | None = None
    worse: Change | None = None
    overshoot: Change | None = None


@dataclass(frozen=True)
class Distractor:
    """A point where nothing is to be revised, outside or inside the shown contour."""

    point: Place
    inside: bool
    nearest_change: float
    """Pixels to the nearest one that an edit has changed."""
    site: Site | None = None
    """What a revision at this point would do, where it can be told apart from the truth."""


@dataclass(frozen=True)
class Layout:
    """Everything that was placed for one case."""

    edits: tuple[Site, ...]
    distractors: tuple[Distractor, ...]
    shown: Mask
    """The contour after the edits, in the outline's window."""
    distance: Field
    """Signed distance to the shown contour, positive inside."""


def place_sites(
    outline: Outline,
    anatomy: Anatomy,
    rules: Rules,
    *,
    wanted: Wanted,
    chance: np.random.Generator,
    deformer: Reluctance,
) -> Layout:
    """Edits whose sum is a major revision, and points to tell them from; `Ineligible` where there is no room."""
    finder = _Finder(outline, anatomy, rules, deformer, chance)
    failure = Ineligible("no room for edits")
    for attempt in range(rules.tries):
        # Fewer edits need less room.
        most = max(1, rules.max_edits - attempt // 2)
        try:
            return finder.attempt(wanted, most)
        except Ineligible as reason:
            failure = reason
    raise failure


@dataclass
class _Board:
    """What is taken while an attempt goes on; given up whole when it fails."""

    taken: Mask
    points: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class _Finder:
    outline: Outline
    anatomy: Anatomy
    rules: Rules
    deformer: Reluctance
    chance: np.random.Generator

    def attempt(self, wanted: Wanted, most: int) -> Layout:
        board = _Board(taken=np.zeros_like(self.outline.mask))
        edits: list[Site] = []
        for operation, area in self._edit_plan(wanted, most):
            site = self._edit(board, operation, area)
            if site is None:
                raise Ineligible("no room for edits", f"{len(edits)} of the edits found a place")
            edits.append(site)
        edits = [self._with_variants(board, site) for site in edits]
        shown = applied(self.outline.mask, [site.change for site in edits])
        self._check_pieces(shown)
        distance = signed_distance(shown)
        distractors = self._distractors(board, edits, shown, distance)
        return Layout(
            edits=tuple(edits),
            distractors=tuple(distractors),
            shown=shown,
            distance=distance,
        )

    # ---- edits ----

    def _edit_plan(self, wanted: Wanted, most: int) -> list[tuple[Operation, float]]:
        """Operations on the contour and their areas, largest first; the revisions are their opposites."""
        rules, chance, lesion = self.rules, self.chance, float(self.outline.area)
        least = max(rules.edit_share * 1.06 * lesion, rules.edit_area * 1.06 * self.outline.scale**2)
        target = float(chance.uniform(rules.revise_low + 0.05, rules.revise_high - 0.03))
        if wanted == "both":
            outwards = float(chance.uniform(0.35, 0.65))
            lost = (1 - outwards) * (1 - target) * lesion
            totals: dict[Operation, float] = {
                "contraction": lost,
                "expansion": (lesion - lost) / target - lesion,
            }
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

    def _edit(self, board: _Board, operation: Operation, area: float) -> Site | None:
        for place in self._places(board):
            site = self._site(place, operation, area)
            if site is None or not self._is_free(board, site.change) or self._crowded(board, site.point):
                continue
            board.points.append(site.point)
            self._take(board, site.change)
            return site
        return None

    def _places(self, board: _Board) -> Iterator[Place]:
        """Places on the contour to try, away from the points that are there."""
        some = self._contour[self.chance.integers(0, len(self._contour), 4 * PLACES)]
        if board.points:
            apart = np.linalg.norm(some[:, None] - np.array(board.points)[None], axis=2).min(axis=1)
            some = some[apart >= 0.7 * self._gap]
        yield from ((int(row), int(column)) for row, column in some[:PLACES])

    @cached_property
    def _contour(self) -> NDArray[np.int64]:
        """Pixels on the contour, (row, column)."""
        rings, _ = cv2.findContours(self.outline.mask.view(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
        return np.concatenate([ring[:, 0, ::-1] for ring in rings]).astype(np.int64)

    def _site(self, place: Place, operation: Operation, area: float) -> Site | None:
        """The change of such an area at a place, if it is a major one."""
        recipe = Recipe(
            centre=place,
            area=area,
            width=float(self.chance.uniform(*WIDTHS)) * float(np.sqrt(area)),
            seed=int(self.chance.integers(2**63)),
        )
        change = self._change(recipe, operation)
        if change is None:
            return None
        point, thickness = thickest(change)
        if not self._is_major(change, thickness):
            return None
        return Site(
            point=point,
            place=self._named(point),
            change=change,
            thickness=thickness,
            displacement=float(np.abs(self.outline.depth[change.window][change.mask]).max()),
            recipe=recipe,
        )

    def _change(self, recipe: Recipe, operation: Operation, *, times: float = 1.0) -> Change | None:
        chance = np.random.Generator(np.random.PCG64(recipe.seed))
        window, effort = self.deformer(
            self.outline, recipe.centre, operation, width=recipe.width, chance=chance
        )
        return change_of(self.outline, window, effort, operation, times * recipe.area)

    def _is_major(self, change: Change, thickness: float) -> bool:
        rules, scale = self.rules, self.outline.scale
        return (
            change.area >= rules.edit_share * self.outline.area
            and change.area >= rules.edit_area * scale**2
            and thickness >= rules.edit_thickness * scale
        )

    def _with_variants(self, board: _Board, site: Site) -> Site:
        """The site with those of its other changes that keep clear of the other sites."""
        operation = site.change.operation
        own = np.zeros_like(board.taken)
        own[site.change.window] = self._widened(site.change)

        def kept(change: Change | None) -> Change | None:
            if change is None:
                return None
            if (board.taken[change.window] & ~own[change.window] & change.mask).any():
                return None
            return change

        half = kept(self._change(site.recipe, operation, times=HALF))
        worse = kept(self._change(site.recipe, operation, times=WORSE))
        # The same kernel the other way: what revising too far at this point would do.
        overshoot = kept(self._change(site.recipe, OPPOSITE[operation]))
        for change in (half, worse, overshoot):
            if change is not None:
                self._take(board, change)
        return replace(site, half=half, worse=worse, overshoot=overshoot)

    def _check_pieces(self, shown: Mask) -> None:
        before = cv2.connectedComponents(self.outline.mask.view(np.uint8), connectivity=4)[0]
        if cv2.connectedComponents(shown.view(np.uint8), connectivity=4)[0] > before:
            raise Ineligible("no room for edits", "an edit would cut the contour in two")

    # ---- distractors ----

    def _distractors(
        self, board: _Board, edits: list[Site], shown: Mask, distance: Field
    ) -> list[Distractor]:
        rules, scale = self.rules, self.outline.scale
        changed = shown ^ self.outline.mask
        far = np.asarray(
            cv2.distanceTransform((~changed).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32
        )
        free = self.outline.field & (far >= rules.change_gap * scale)
        for point in board.points:
            self._block(free, point)
        depths = [abs(float(distance[site.point])) for site in edits]
        most = int(self.chance.integers(rules.min_points, rules.max_points + 1)) - len(edits)
        sides = [False] * rules.min_outside + [True] * rules.max_inside
        sides += [bool(inside) for inside in self.chance.integers(0, 2, max(0, most - len(sides)))]
        found: list[Distractor] = []
        for inside in sides[: max(most, rules.min_points - len(edits))]:
            chosen = self._point(free, distance, depths, inside=inside)
            if chosen is not None:
                self._block(free, chosen)
                found.append(Distractor(point=chosen, inside=inside, nearest_change=float(far[chosen])))
        outside = sum(not distractor.inside for distractor in found)
        if outside < rules.min_outside:
            raise Ineligible("no room for points", f"{outside} distractors fit outside the contour")
        if len(found) + len(edits) < rules.min_points:
            raise Ineligible("no room for points", f"{len(found) + len(edits)} points fit")
        return [replace(distractor, site=self._wrong_site(board, distractor)) for distractor in found]

    def _point(self, free: Mask, distance: Field, depths: list[float], *, inside: bool) -> Place | None:
        """A free pixel as far from the shown contour as one of the edits' points."""
        sign = 1.0 if inside else -1.0
        for depth in self.chance.permutation(depths):
            wanted = sign * depth * self.chance.uniform(1 - JITTER, 1 + JITTER)
            there = np.flatnonzero(free & (np.abs(distance - np.float32(wanted)) <= 1.0))
            if there.size:
                row, column = divmod(int(there[self.chance.integers(there.size)]), free.shape[1])
                return row, column
        return None

    def _block(self, free: Mask, point: Place) -> None:
        """No other point comes near this one."""
        cv2.circle(free.view(np.uint8), point[::-1], int(np.ceil(self._gap)), (0,), cv2.FILLED)

    def _wrong_site(self, board: _Board, distractor: Distractor) -> Site | None:
        """What revising at a distractor would do to the contour, where there is room for it."""
        operation: Operation = "contraction" if distractor.inside else "expansion"
        squares = ((self._contour - np.array(distractor.point)) ** 2).sum(axis=1)
        row, column = self._contour[int(squares.argmin())]
        least = self.rules.edit_area * self.outline.scale**2
        area = max(float(self.chance.uniform(*SHARES)) * self.outline.area, least)
        site = self._site((int(row), int(column)), operation, area)
        if site is None or not self._is_free(board, site.change):
            return None
        self._take(board, site.change)
        return site

    # ---- room ----

    @property
    def _gap(self) -> float:
        return self.rules.point_gap * self.outline.scale

    def _crowded(self, board: _Board, point: Place) -> bool:
        return any(np.hypot(*np.subtract(point, other)) < self._gap for other in board.points)

    def _is_free(self, board: _Board, change: Change) -> bool:
        return not (board.taken[change.window] & change.mask).any()

    def _take(self, board: _Board, change: Change) -> None:
        board.taken[change.window] |= self._widened(change)

    def _widened(self, change: Change) -> Mask:
        """A change and what must stay clear around it, as far as its window reaches."""
        reach = max(1, round(SEPARATION * self.outline.scale))
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
        return cv2.dilate(change.mask.view(np.uint8), kernel).astype(bool)

    def _named(self, point: Place) -> str:
        row, column = point[0] + self.outline.window[0].start, point[1] + self.outline.window[1].start
        return name_at(self.anatomy, row, column) or "mediastinum"
