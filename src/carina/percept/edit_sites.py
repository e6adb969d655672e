"""Sites at a contour: which changes are possible there, and which pixels are already used.

A site is a place with the changes that can be made at it. Some sites carry the edits of a case; at the others, only
wrong answers would revise the contour. Points of both kinds look the same: each is the thickest place of a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.anatomy import Anatomy, name_region
from carina.percept.deform import (
    OPERATIONS,
    OPPOSITE,
    STRAIGHTER,
    Change,
    EffortFunction,
    Operation,
    edge_length,
    find_thickest_place,
    make_change,
    match_straightness,
)
from carina.percept.outline import Outline, Window
from carina.percept.rules import Rules
from carina.percept.straight_changes import RunTable, list_runs, replace_run
from carina.studies.region import Mask

Place = tuple[int, int]
"""Row and column in the outline's window."""

WIDTHS: Final = (0.9, 1.3)
"""Range of the width of a kernel, divided by the square root of the area that it is to change: wide and flat, so that a
changed contour is no rougher than an unchanged one."""
SLENDER: Final = 2.5
"""The thickness of a change is about its area divided by the width of its kernel and by this factor."""
VARIANTS: Final = 2
"""Changes of each kind that are tried at an edit."""
OPPOSED: Final = (0.8, 1.8)
"""Range of the area of the opposite of an edit, relative to the edit. What is left of a half-made revision has the same
range relative to what was revised, and so has what a worsened error adds: whether the right state lies between two
others, at their end or beyond, does not follow from distances to the shown contour."""
STRAIGHT_VARIANTS: Final = 2
"""Changes of each direction at an edit that make the contour simpler."""
STRAIGHT_TRIES: Final = 5
"""Runs of the contour that are tried for them."""
STRAIGHT_SIZES: Final = (0.5, 2.0)
"""Range of their area, relative to the edit."""
LEAST_SHARED: Final = 0.5
"""Least share of the smaller of two changes, such a one and the edit, that lies in the other."""
SEPARATION: Final = 8.0
"""Least distance between changes at different sites, in pixels of the frame."""


@dataclass(frozen=True)
class ChangeParameters:
    """Parameters of a change; the same kernel also makes a larger, a smaller and the opposite change."""

    centre: Place
    operation: Operation
    area: float
    width: float
    seed: int
    straighter: float
    """How much longer the sides of the new contour should be than those of the outline."""

    def enlarge(self, times: int) -> "ChangeParameters":
        """The same change on an outline with `times` as many pixels in each direction."""
        row, column = self.centre
        return replace(
            self,
            centre=(row * times + times // 2, column * times + times // 2),
            area=self.area * times**2,
            width=self.width * times,
        )


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
    parameters: ChangeParameters
    drawn_area: int = 0
    """Pixels that differ once the contour is drawn; 0 before that."""
    half: tuple[Change, ...] = ()
    worse: tuple[Change, ...] = ()
    overshoot: tuple[Change, ...] = ()
    straight: tuple[Change, ...] = ()
    """Changes in either direction that make the contour simpler."""


def changes_at(site: Site) -> list[Change]:
    """Every change that may be seen at a site."""
    return [site.change, *site.half, *site.worse, *site.overshoot, *site.straight]


@dataclass
class Occupancy:
    """Pixels and points that a layout already uses; discarded when an attempt fails."""

    taken: Mask
    points: list[Place] = field(default_factory=list)

    @classmethod
    def blank(cls, outline: Outline) -> "Occupancy":
        return cls(taken=np.zeros_like(outline.mask))


@dataclass(frozen=True)
class EditSpace:
    """An outline and everything that decides which edits are possible."""

    outline: Outline
    anatomy: Anatomy
    rules: Rules
    deformer: EffortFunction
    chance: np.random.Generator

    @property
    def gap(self) -> float:
        """Least distance between points, in pixels of the outline."""
        return self.rules.point_gap * self.outline.scale

    @cached_property
    def contour(self) -> NDArray[np.int64]:
        """Pixels on the contour, (row, column)."""
        rings, _ = cv2.findContours(self.outline.mask.view(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
        return np.concatenate([ring[:, 0, ::-1] for ring in rings]).astype(np.int64)

    @cached_property
    def runs(self) -> RunTable:
        """Runs of the contour that a straight line or a corner may replace."""
        return list_runs(self.outline)

    @cached_property
    def length(self) -> float:
        return edge_length(self.outline.mask)

    # ---- sites ----

    def sample_parameters(
        self, place: Place, operation: Operation, area: float, *, wide: float
    ) -> ChangeParameters:
        """Parameters of a change of this area at a place, as flat as allowed; a smaller `wide` makes it narrower."""
        width = wide * float(self.chance.uniform(*WIDTHS)) * float(np.sqrt(area))
        # A wider kernel would make the change too thin.
        width = min(width, area / (SLENDER * self.rules.edit_thickness * self.outline.scale))
        seed = int(self.chance.integers(2**63))
        return ChangeParameters(
            place, operation, area, width, seed=seed, straighter=self._sample_straightness()
        )

    def _sample_straightness(self) -> float:
        return float(np.exp(self.chance.uniform(*np.log(STRAIGHTER))))

    def make_site(self, parameters: ChangeParameters) -> Site | None:
        """The site with the change of these parameters; None where that is not a major change."""
        change = self._make_change(parameters)
        if change is None:
            return None
        point, thickness = find_thickest_place(change)
        if not self.is_major(change.area, thickness):
            return None
        return Site(
            point=point,
            place=self._name_region(point),
            change=change,
            thickness=thickness,
            displacement=float(np.abs(self.outline.depth[change.window][change.mask]).max()),
            parameters=parameters,
        )

    def add_variants(self, site: Site, others: Sequence[Site]) -> Site:
        """The site with those of its other changes that do not come too near to the other sites."""
        taken = Occupancy.blank(self.outline)
        for other in others:
            for change in changes_at(other):
                self.reserve(taken, change)

        def make_variants(factors: Sequence[float], operation: Operation) -> tuple[Change, ...]:
            made = [
                self._make_change(
                    replace(
                        site.parameters,
                        operation=operation,
                        area=factor * site.parameters.area,
                        straighter=self._sample_straightness(),
                    )
                )
                for factor in factors
            ]
            return tuple(c for c in made if c is not None and self.is_free(taken, c))

        operation = site.parameters.operation
        ratios = np.exp(self.chance.uniform(np.log(OPPOSED[0]), np.log(OPPOSED[1]), (3, VARIANTS)))
        return replace(
            site,
            half=make_variants(ratios[0] / (1 + ratios[0]), operation),
            worse=make_variants(1 + 1 / ratios[1], operation),
            # The same kernel the other way: what revising too far at this point would do.
            overshoot=make_variants(ratios[2], OPPOSITE[operation]),
            straight=tuple(
                change
                for towards in OPERATIONS
                for change in self._make_straight_changes(site, taken, towards)
            ),
        )

    def _make_straight_changes(self, site: Site, taken: Occupancy, operation: Operation) -> list[Change]:
        """Changes at a site that make the contour simpler; in the direction of the edit, they share pixels with it."""
        low, high = (times * site.change.area for times in STRAIGHT_SIZES)
        window, near = self._widen(site.change)
        here, edited = np.zeros_like(self.outline.mask), np.zeros_like(self.outline.mask)
        here[window] = near
        edited[site.change.window] = site.change.mask
        made: list[Change] = []
        for run in islice(self.runs.find_runs((low, high), operation, here, self.chance), STRAIGHT_TRIES):
            change = replace_run(self.outline, self.runs, run)
            if change is None or not self.is_free(taken, change):
                continue
            shared = int(np.count_nonzero(edited[change.window] & change.mask))
            if operation != site.change.operation or shared >= LEAST_SHARED * min(
                change.area, site.change.area
            ):
                made.append(change)
            if len(made) == STRAIGHT_VARIANTS:
                break
        return made

    def find_straight_changes(
        self, occupancy: Occupancy, sizes: tuple[float, float], *, most: int, tries: int
    ) -> list[Change]:
        """Major changes that make the contour simpler at places that are not used; they may overlap each other."""
        made: list[Change] = []
        for operation in OPERATIONS:
            found = 0
            for run in islice(self.runs.find_runs(sizes, operation, ~occupancy.taken, self.chance), tries):
                change = replace_run(self.outline, self.runs, run)
                if (
                    change is not None
                    and self.is_free(occupancy, change)
                    and self.is_major(change.area, find_thickest_place(change)[1])
                ):
                    made.append(change)
                    found += 1
                if found == most:
                    break
        return made

    def _make_change(self, parameters: ChangeParameters) -> Change | None:
        window, effort = self.deformer(
            self.outline,
            parameters.centre,
            parameters.operation,
            width=parameters.width,
            chance=np.random.Generator(np.random.PCG64(parameters.seed)),
        )
        change = make_change(self.outline, window, effort, parameters.operation, parameters.area)
        return None if change is None else match_straightness(self.outline, change, parameters.straighter)

    def is_major(self, area: int, thickness: float) -> bool:
        """Whether a change of this area and thickness (in pixels) is a major one."""
        rules, scale = self.rules, self.outline.scale
        return (
            area >= rules.edit_share * self.outline.area
            and area >= rules.edit_area * scale**2
            and thickness >= rules.edit_thickness * scale
        )

    def _name_region(self, point: Place) -> str:
        """The region of the anatomy at a point of the window; the outline may be coarser than the image."""
        times = self.anatomy.code.shape[0] / self.outline.shape[0]
        row, column = (
            int((place + part.start + 0.5) * times)
            for place, part in zip(point, self.outline.window, strict=True)
        )
        return name_region(self.anatomy, row, column) or "mediastinum"

    # ---- room ----

    def is_crowded(self, occupancy: Occupancy, point: Place) -> bool:
        return any(np.hypot(*np.subtract(point, other)) < self.gap for other in occupancy.points)

    def is_free(self, occupancy: Occupancy, change: Change) -> bool:
        return not (occupancy.taken[change.window] & change.mask).any()

    def reserve(self, occupancy: Occupancy, change: Change) -> None:
        window, widened = self._widen(change)
        occupancy.taken[window] |= widened

    def _widen(self, change: Change) -> tuple[Window, Mask]:
        """A change with the pixels around it that must stay free."""
        # At least two: an ellipse of one pixel is a cross, and changes that touch at a corner are one piece.
        reach = max(2, round(SEPARATION * self.outline.scale))
        window = tuple(
            slice(max(0, part.start - reach), min(length, part.stop + reach))
            for part, length in zip(change.window, self.outline.mask.shape, strict=True)
        )
        whole = np.zeros([part.stop - part.start for part in window], np.uint8)
        top, left = (part.start - wide.start for part, wide in zip(change.window, window, strict=True))
        whole[top : top + change.mask.shape[0], left : left + change.mask.shape[1]] = change.mask
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
        return (window[0], window[1]), cv2.dilate(whole, kernel).astype(bool)
