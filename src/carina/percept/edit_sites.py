"""Sites at a contour: which changes are possible there, and which pixels are already used.

A site is a place with the changes that can be made at it. Most sites carry the edits of a case; at one, only wrong
answers would revise the contour. Points of both kinds look the same: each is the thickest place of a change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.anatomy import Anatomy, name_region
from carina.percept.deform import (
    STRAIGHTER,
    Change,
    EffortFunction,
    Operation,
    as_change,
    crop,
    edge_length,
    find_largest_piece,
    find_thickest_place,
    make_change,
    match_straightness,
)
from carina.percept.outline import Outline, Window
from carina.percept.rules import Rules
from carina.percept.square_plan import Mistake, as_operation
from carina.percept.straight_changes import RunTable, list_runs, replace_run
from carina.studies.region import Mask

Place = tuple[int, int]
"""Row and column in the outline's window."""

WIDTHS: Final = (0.9, 1.3)
"""Range of the width of a kernel, divided by the square root of the area that it is to change: wide and flat, so that a
changed contour is no rougher than an unchanged one."""
SLENDER: Final = 2.5
"""The thickness of a change is about its area divided by the width of its kernel and by this factor."""
SAME_KERNEL: Final = 3
"""Wrong changes of each site that are made with the kernel of its change."""
OTHER_KERNELS: Final = 10
"""The same with another kernel nearby."""
STRAIGHT_RUNS: Final = 5
"""The same by replacing a run of the contour."""
STRAIGHT_TRIES: Final = 16
"""Runs of the contour that are tried for them."""
SIZE_RANGE: Final = (0.8, 1.2)
"""Range of the area of wrong changes, relative to what is planned."""
RUN_RANGE: Final = (0.8, 1.6)
"""Range of the area of runs that are tried, relative to what is planned: the edit may cut off a part."""
ROOM_SIDE: Final = 4.0
LEAST_ROOM_SIDE: Final = 2.4
"""Side of the square in which pixels are counted that a change could use, divided by the square root of its area; the
first for kernels of full width."""
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
    mistake: Mistake | None = None
    """What is wrong with the wrong version of the contour at this site; None where there is none."""
    wrong: tuple[Change, ...] = ()
    """Changes of the truth that give the wrong version, one at a time."""

    @property
    def is_edited(self) -> bool:
        return self.mistake != "wrong_place"


def changes_at(site: Site) -> list[Change]:
    """Every change that may be seen at a site."""
    return [site.change, *site.wrong]


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
    def _movable(self) -> dict[Operation, NDArray[np.int32]]:
        """Integral images of the pixels that each operation can change."""
        inside, field = self.outline.mask, self.outline.field
        movable: dict[Operation, Mask] = {"expansion": field & ~inside, "contraction": field & inside}
        return {
            operation: np.asarray(cv2.integral(pixels.view(np.uint8)), np.int32)
            for operation, pixels in movable.items()
        }

    def measure_room(
        self, places: NDArray[np.int64], operation: Operation, area: float, *, wide: float
    ) -> NDArray[np.float64]:
        """Pixels near each place that an operation can change, divided by the area that it is to change."""
        reach = int(np.ceil(max(LEAST_ROOM_SIDE, wide * ROOM_SIDE) / 2 * np.sqrt(area)))
        low = np.clip(places - reach, 0, self.outline.mask.shape)
        high = np.clip(places + reach + 1, 0, self.outline.mask.shape)
        sums = self._movable[operation]
        count = (
            sums[high[:, 0], high[:, 1]]
            - sums[low[:, 0], high[:, 1]]
            - sums[high[:, 0], low[:, 1]]
            + sums[low[:, 0], low[:, 1]]
        )
        return np.asarray(count / area, np.float64)

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

    def make_site(self, parameters: ChangeParameters, mistake: Mistake | None = None) -> Site | None:
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
            mistake=mistake,
        )

    def make_wrong_change(self, site: Site, size: float, parameters: ChangeParameters) -> Change | None:
        """A change of the truth that gives the wrong version of a site.

        Args:
            site: The site, with its mistake.
            size: Pixels that the change adds to the truth (positive) or removes from it (negative).
            parameters: The kernel; its area and operation do not count.
        """
        asked = replace(parameters, operation=as_operation(size), area=abs(size))
        if site.mistake in ("partial", "wrong_operation"):
            return self._make_change(asked, edit=site.change, is_within=site.mistake == "partial")
        return self._make_change(asked)

    def add_wrong_changes(self, site: Site, size: float, others: Sequence[Site]) -> Site:
        """The site with various changes that give its wrong version and do not come too near to the other sites."""
        if site.mistake is None:
            return site
        if site.mistake == "left":
            return replace(site, wrong=(site.change,))
        taken = Occupancy.blank(self.outline)
        for other in others:
            for change in changes_at(other):
                self.reserve(taken, change)
        low, high = (times * abs(size) for times in SIZE_RANGE)
        made = [
            *self._vary_kernels(site, size),
            *self._replace_runs(site, size),
        ]
        return replace(
            site,
            wrong=tuple(
                change
                for change in made
                if low <= change.area <= high and self.is_free(taken, change) and _is_at(site, change)
            ),
        )

    def _vary_kernels(self, site: Site, size: float) -> Iterator[Change]:
        places = self._find_contour_near(site.change)
        for n in range(SAME_KERNEL + OTHER_KERNELS):
            wanted = size * float(np.exp(self.chance.uniform(*np.log(SIZE_RANGE)) / 2))
            if n < SAME_KERNEL or not len(places):
                parameters = replace(site.parameters, straighter=self._sample_straightness())
            else:
                row, column = places[self.chance.integers(len(places))]
                parameters = self.sample_parameters(
                    (int(row), int(column)), as_operation(size), abs(size), wide=1.0
                )
            change = self.make_wrong_change(site, wanted, parameters)
            if change is not None:
                yield change

    def _replace_runs(self, site: Site, size: float) -> Iterator[Change]:
        """Changes that make the contour simpler."""
        low, high = (times * abs(size) for times in RUN_RANGE)
        window, near = self._widen(site.change)
        here = np.zeros_like(self.outline.mask)
        here[window] = near
        found = 0
        runs = self.runs.find_runs((low, high), as_operation(size), here, self.chance)
        for run in islice(runs, STRAIGHT_TRIES):
            change = replace_run(self.outline, self.runs, run)
            if change is not None and site.mistake in ("partial", "wrong_operation"):
                change = self._join_edit(change, site.change, is_within=site.mistake == "partial")
            if change is not None:
                found += 1
                yield change
            if found == STRAIGHT_RUNS:
                return

    def _find_contour_near(self, change: Change) -> NDArray[np.int64]:
        """Pixels on the contour of the truth that a change touches."""
        window, near = self._widen(change)
        inside = np.zeros_like(self.outline.mask)
        inside[window] = near
        return self.contour[inside[self.contour[:, 0], self.contour[:, 1]]]

    def _join_edit(self, change: Change, edit: Change, *, is_within: bool) -> Change | None:
        """The part of a change that lies in an edit, or the change with the edit; None where nothing is left."""
        whole = np.zeros_like(self.outline.mask)
        whole[change.window] = change.mask
        edited = np.zeros_like(self.outline.mask)
        edited[edit.window] = edit.mask
        joined = whole & edited if is_within else whole | edited
        if not joined.any():
            return None
        window, piece = crop((slice(0, joined.shape[0]), slice(0, joined.shape[1])), joined)
        return as_change(self.outline, window, find_largest_piece(piece), change.operation)

    def _make_change(
        self, parameters: ChangeParameters, edit: Change | None = None, *, is_within: bool = False
    ) -> Change | None:
        """The change of these parameters, within an edit or around it if one is given."""
        window, effort = self.deformer(
            self.outline,
            parameters.centre,
            parameters.operation,
            width=parameters.width,
            chance=np.random.Generator(np.random.PCG64(parameters.seed)),
        )
        if edit is not None:
            edited = np.zeros_like(self.outline.mask)
            edited[edit.window] = edit.mask
            here = edited[window]
            if is_within:
                effort = np.where(here, effort, np.float32(np.inf))
            elif np.count_nonzero(here) < edit.area:
                return None
            else:
                effort = np.where(here, np.float32(0), effort)
        change = make_change(self.outline, window, effort, parameters.operation, parameters.area)
        if change is None:
            return None
        change = match_straightness(self.outline, change, parameters.straighter)
        return (
            change if change is None or edit is None else self._join_edit(change, edit, is_within=is_within)
        )

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


def _is_at(site: Site, change: Change) -> bool:
    """Whether a wrong change is at the point of its site; where nothing is edited, the point must lie in it."""
    if site.is_edited:
        return True
    row, column = (place - part.start for place, part in zip(site.point, change.window, strict=True))
    return (
        0 <= row < change.mask.shape[0]
        and 0 <= column < change.mask.shape[1]
        and bool(change.mask[row, column])
    )
