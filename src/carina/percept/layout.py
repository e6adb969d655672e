"""The layout of a case: edits that make a major revision, and distractor points.

Places are searched on a coarse copy of the outline, where an attempt is fast. The edits are then made again on the
pixels of the image and must keep every rule there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np

from carina.percept.anatomy import Anatomy
from carina.percept.deform import EffortFunction, Operation, apply_changes, warp
from carina.percept.edit_sites import EditSpace, Occupancy, Place, Site, changes_at
from carina.percept.outline import Field, Outline, coarsen, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.percept.square_plan import CORNERS, SquarePlan, as_operation, draw_plan
from carina.studies.region import Mask

PLACES: Final = 16
"""Places on the contour tried for one edit."""
ENOUGH_ROOM: Final = 2.5
"""Places where this many times the pixels that are needed can be changed count as equal; places with less come last."""
COMPARED_SITES: Final = 4
"""Suitable sites that are compared before one is chosen."""
KERNEL_WIDTHS: Final = (1.0, 0.85, 0.65)
"""Relative width of kernels in cases with one, two and three edits, which share the contour."""
ROUGHNESS: Final = 0.04
"""Standard deviation of the logarithm of the roughness that a contour should have after the edits, relative to that of
the truth. It becomes smoother as often as rougher; otherwise its roughness would reveal whether it was changed."""


def find_sites(space: EditSpace, plan: SquarePlan, *, wide: float) -> list[Site]:
    """Sites for the edits of a plan, and for the change at a place that is right; `Ineligible` without room for them.

    In the order of the plan; the largest change is placed first.
    """
    occupancy = Occupancy.blank(space.outline)
    target_roughening = float(space.chance.normal(0.0, ROUGHNESS))
    sizes = [_size_of(plan, n, space.outline) for n in range(len(plan.sites))]
    placed: dict[int, Site] = {}
    for n in sorted(range(len(sizes)), key=lambda n: -abs(sizes[n])):
        found = list(_find_sites(space, occupancy, plan, n, wide=wide * KERNEL_WIDTHS[len(plan.sites) - 1]))
        if not found:
            raise Ineligible("no room for edits", f"{len(placed)} of the edits found a place")
        edits = list(placed.values())
        placed[n] = min(
            found, key=lambda site: abs(_measure_roughening(space, [*edits, site]) - target_roughening)
        )
        reserve_site(space, occupancy, placed[n])
    return [placed[n] for n in range(len(sizes))]


def pixels_of(size: float, plan: SquarePlan, outline: Outline) -> float:
    """A size relative to the shown contour, in pixels of an outline."""
    return size * outline.area / plan.growth


def _size_of(plan: SquarePlan, number: int, outline: Outline) -> float:
    """Pixels that the revision of a site adds or removes, or the mistake where nothing is edited."""
    site = plan.sites[number]
    return pixels_of(site.revision or site.mistake_size, plan, outline)


def reserve_site(space: EditSpace, occupancy: Occupancy, site: Site) -> None:
    """Reserve the point and the pixels of a site; `Ineligible` where they are not free."""
    if not space.is_free(occupancy, site.change) or space.is_crowded(occupancy, site.point):
        raise Ineligible("no room for edits", "two edits come too near to each other")
    occupancy.points.append(site.point)
    for change in changes_at(site):
        space.reserve(occupancy, change)


def _find_sites(
    space: EditSpace, occupancy: Occupancy, plan: SquarePlan, number: int, *, wide: float
) -> Iterator[Site]:
    """The first few suitable sites for one site of a plan."""
    planned, found = plan.sites[number], 0
    size = _size_of(plan, number, space.outline)
    wrong_size = pixels_of(planned.mistake_size, plan, space.outline)
    # An edit is the opposite of the revision that is needed.
    operation = as_operation(-size if planned.revision else size)
    needs = {operation: abs(size)}
    if planned.revision and planned.mistake_size:
        other = as_operation(wrong_size)
        needs[other] = max(needs.get(other, 0.0), abs(wrong_size))
    for place in _sample_places(space, occupancy, needs, wide):
        site = space.make_site(
            space.sample_parameters(place, operation, abs(size), wide=wide), planned.mistake
        )
        if (
            site is None
            or not space.is_free(occupancy, site.change)
            or space.is_crowded(occupancy, site.point)
        ):
            continue
        if site.is_edited and site.mistake not in (None, "left"):
            wrong = space.make_wrong_change(site, wrong_size, site.parameters)
            if wrong is None or not space.is_free(occupancy, wrong):
                continue
            site = replace(site, wrong=(wrong,))
        yield site
        found += 1
        if found == COMPARED_SITES:
            return


def _sample_places(
    space: EditSpace, occupancy: Occupancy, needs: Mapping[Operation, float], wide: float
) -> list[Place]:
    """Places on the contour to try, with room for what is needed and away from the points that are already placed."""
    some = space.contour[space.chance.integers(0, len(space.contour), 8 * PLACES)]
    some = some[~occupancy.taken[some[:, 0], some[:, 1]]]
    if occupancy.points:
        apart = np.linalg.norm(some[:, None] - np.array(occupancy.points)[None], axis=2).min(axis=1)
        some = some[apart >= 0.7 * space.gap]
    rooms = [space.measure_room(some, operation, area, wide=wide) for operation, area in needs.items()]
    room = np.minimum(np.min(rooms, axis=0), ENOUGH_ROOM)
    some = some[np.argsort(-room, kind="stable")]
    return [(int(row), int(column)) for row, column in some[: min(PLACES, np.count_nonzero(room >= 1))]]


def _measure_roughening(space: EditSpace, edits: list[Site]) -> float:
    """Logarithm of how much rougher (length squared over area) the contour is after these edits."""
    before = space.outline.area
    length = space.length + sum(site.change.edge for site in edits)
    area = before + sum(site.change.sign * site.change.area for site in edits)
    return float(2 * np.log(length / space.length) - np.log(area / before))


# ---- points where no revision is needed ----

DEPTHS: Final = (0.88, 1.2)
"""Range of the distance of a distractor point to the contour, relative to that of an edit's point. The point at a place
that is right is nearer than most edits' points, so the others are a little farther away: neither the nearest nor the
farthest point is an edit's more often than by chance."""


@dataclass(frozen=True)
class Distractor:
    """A point where no revision is needed, outside or inside the shown contour."""

    point: Place
    inside: bool
    nearest_change: float
    """Distance to the nearest pixel that an edit has changed, in pixels."""


def place_distractors(
    space: EditSpace, occupancy: Occupancy, sites: Sequence[Site], shown: Mask, distance: Field
) -> list[Distractor]:
    """Points where no revision is needed: that of a site without edit, and a sampled number of others.

    `Ineligible` where there is no room for as many as the rules demand.
    """
    rules, scale = space.rules, space.outline.scale
    changed = shown ^ space.outline.revised
    far = np.asarray(
        cv2.distanceTransform((~changed).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32
    )
    free = space.outline.field & (far >= rules.change_gap * scale)
    found: list[Distractor] = []
    for site in sites:
        if not site.is_edited:
            if not free[site.point]:
                raise Ineligible("no room for points", "a point without edit is too near to an edit")
            inside = bool(shown[site.point])
            found.append(Distractor(site.point, inside=inside, nearest_change=float(far[site.point])))
    for point in occupancy.points:
        _block_around(space, free, point)
    depths = [abs(float(distance[site.point])) for site in sites if site.is_edited]
    for inside in _sample_sides(space, len(sites)):
        chosen = _find_free_point(space, free, distance, depths, inside=inside)
        if chosen is not None:
            _block_around(space, free, chosen)
            found.append(Distractor(point=chosen, inside=inside, nearest_change=float(far[chosen])))
    outside = sum(not distractor.inside for distractor in found)
    if outside < rules.min_outside:
        raise Ineligible("no room for points", f"{outside} distractors fit outside the contour")
    edits = sum(site.is_edited for site in sites)
    if len(found) + edits < rules.min_points:
        raise Ineligible("no room for points", f"{len(found) + edits} points fit")
    return found


def _sample_sides(space: EditSpace, sites: int) -> list[bool]:
    """For each further distractor, whether it lies inside the contour; those that a case needs come first."""
    rules = space.rules
    wanted = int(space.chance.integers(rules.min_points, rules.max_points + 1)) - sites
    sides = [False] * rules.min_outside + [True] * rules.max_inside
    sides += [bool(inside) for inside in space.chance.integers(0, 2, max(0, wanted - len(sides)))]
    return sides[: max(wanted, rules.min_points - sites, rules.min_outside)]


def _find_free_point(
    space: EditSpace, free: Mask, distance: Field, depths: list[float], *, inside: bool
) -> Place | None:
    """A free pixel about as far from the shown contour as one of the edits' points; None where there is none."""
    sign = 1.0 if inside else -1.0
    for depth in space.chance.permutation(depths):
        wanted = sign * depth * space.chance.uniform(*DEPTHS)
        there = np.flatnonzero(free & (np.abs(distance - np.float32(wanted)) <= 1.0))
        if there.size:
            row, column = divmod(int(there[space.chance.integers(there.size)]), free.shape[1])
            return row, column
    return None


def _block_around(space: EditSpace, free: Mask, point: Place) -> None:
    """Keep other points away from this one."""
    cv2.circle(free.view(np.uint8), point[::-1], int(np.ceil(space.gap)), (0,), cv2.FILLED)


# ---- edits and points together ----


@dataclass(frozen=True)
class Attempt:
    """How it is tried to lay out a case. Fewer, narrower and smaller edits leave more room for points."""

    wide: float
    """Relative width of kernels."""
    smallest: float
    """Share of plans, from those with the smallest changes on, from which one is taken."""
    has_extra: bool = False
    """Whether there is an edit that all masks revise."""
    is_fair: bool = False
    """Whether there must be room for the plan whichever versions are the truth."""


ATTEMPTS: Final = (
    Attempt(1.0, 1.0, has_extra=True, is_fair=True),
    Attempt(1.0, 0.7, is_fair=True),
    Attempt(0.8, 0.4, is_fair=True),
    Attempt(0.6, 0.2, is_fair=True),
    Attempt(1.0, 0.7),
    Attempt(0.8, 0.5),
    *(Attempt(0.6, 0.2),) * 4,
    *(Attempt(0.5, 0.1),) * 4,
    *(Attempt(0.45, 0.1),) * 4,
)
MOST_SQUARE_EDITS: Final = 2
"""Edits at the two sites of the square."""
TRIES: Final = 2
"""How often it is tried to place a plan."""
COARSE: Final = 0.25
"""Pixels of the coarse outline for each pixel of the frame."""


@dataclass(frozen=True)
class Layout:
    """Everything that was placed for one case."""

    plan: SquarePlan
    sites: tuple[Site, ...]
    """The sites of the plan. The first two make up the masks to choose from."""
    distractors: tuple[Distractor, ...]
    shown: Mask
    """The drawn contour after the edits, in the outline's window."""
    distance: Field
    """Signed distance to the shown contour, positive inside."""

    @property
    def edits(self) -> tuple[Site, ...]:
        """The sites with edits."""
        return tuple(site for site in self.sites if site.is_edited)


def find_layouts(
    outline: Outline,
    anatomy: Anatomy,
    rules: Rules,
    *,
    chance: np.random.Generator,
    deformer: EffortFunction = warp,
) -> Iterator[Layout | Ineligible]:
    """Layouts of various plans, or why there is none of a plan.

    The first plans are used only if there is room for them whichever versions are the truth: else the room would decide
    what is right, and the masks would tell. Lesions without such room get a plan that fits; which of them are asked to
    be revised is balanced when a benchmark is made (`carina.percept.select`).
    """
    space = EditSpace(outline, anatomy, rules, deformer, chance)
    # Only the warp makes the same changes on a coarse copy.
    times = max(1, round(outline.scale / COARSE)) if deformer is warp else 1
    rough = space if times == 1 else replace(space, outline=coarsen(outline, times))
    for attempt in ATTEMPTS:
        plan = draw_plan(
            outline.area,
            rules,
            outline.scale,
            chance,
            extra=attempt.has_extra and rules.max_edits > MOST_SQUARE_EDITS,
            smallest=attempt.smallest,
        )
        if plan is None:
            yield Ineligible("no room for edits", "no sizes of edits keep the rules")
            continue
        corners = [corner for corner in CORNERS if plan.decide(corner).edits <= rules.max_edits]
        if not corners:
            yield Ineligible("no room for edits", f"the plan needs more than {rules.max_edits} edits")
            continue
        right = corners[int(chance.integers(len(corners)))]
        try:
            sites = _find_rough_sites(rough, plan.decide(right), attempt.wide)
            if attempt.is_fair:
                for corner in corners:
                    if corner != right:
                        _find_rough_sites(rough, plan.decide(corner), attempt.wide)
            yield _complete_layout(space, plan.decide(right), sites, times)
        except Ineligible as reason:
            yield reason


def _find_rough_sites(rough: EditSpace, plan: SquarePlan, wide: float) -> list[Site]:
    """Sites of a plan with room for points."""
    failure = Ineligible("no room for edits")
    for _ in range(TRIES):
        try:
            sites = find_sites(rough, plan, wide=wide)
            _place_points(rough, sites)
        except Ineligible as reason:
            failure = reason
        else:
            return sites
    raise failure


def _place_points(space: EditSpace, sites: Sequence[Site]) -> tuple[Mask, Field, list[Distractor]]:
    occupancy = Occupancy.blank(space.outline)
    for site in sites:
        reserve_site(space, occupancy, site)
    outline = space.outline
    shown = _draw_edits(outline, [site for site in sites if site.is_edited])
    _check_pieces(outline.revised, shown)
    distance = signed_distance(shown)
    return shown, distance, place_distractors(space, occupancy, sites, shown, distance)


def _complete_layout(space: EditSpace, plan: SquarePlan, rough: list[Site], times: int) -> Layout:
    """The layout on the pixels of the image."""
    found = [space.make_site(site.parameters.enlarge(times), site.mistake) for site in rough]
    sites = [site for site in found if site is not None]
    if len(sites) < len(rough):
        raise Ineligible("no room for edits", "an edit is too small on the image's own pixels")
    shown, distance, distractors = _place_points(space, sites)
    sites = _measure_drawn_edits(space, sites, shown)
    for n, planned in enumerate(plan.sites):
        size = pixels_of(planned.mistake_size, plan, space.outline)
        sites[n] = space.add_wrong_changes(sites[n], size, sites[:n] + sites[n + 1 :])
    return Layout(
        plan=plan,
        sites=tuple(sites),
        distractors=tuple(distractors),
        shown=shown,
        distance=distance,
    )


def _draw_edits(outline: Outline, edits: Sequence[Site]) -> Mask:
    """The drawn contour after the edits; it differs from the drawn truth at the points of the edits only."""
    drawn = outline.draw(apply_changes(outline.mask, [site.change for site in edits]))
    changed = np.ascontiguousarray(drawn ^ outline.revised).view(np.uint8)
    count, labels = cv2.connectedComponents(changed, connectivity=4)
    is_edit = np.zeros(count, bool)
    is_edit[[labels[site.point] for site in edits]] = True
    is_edit[0] = False
    return np.asarray(outline.revised ^ is_edit[labels])


def _measure_drawn_edits(space: EditSpace, sites: Sequence[Site], shown: Mask) -> list[Site]:
    """The sites with the sizes of edits on the drawn contour; `Ineligible` where one is too small."""
    away = np.abs(signed_distance(space.outline.mask))
    changed = np.ascontiguousarray(shown ^ space.outline.revised).view(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(changed, connectivity=4)
    # Drawing may join edits that hardly touch: then one change would have two points.
    if cv2.connectedComponents(changed, connectivity=8)[0] - 1 < sum(site.is_edited for site in sites):
        raise Ineligible("no room for edits", "two edits touch once their contour is drawn")
    made = []
    for site in sites:
        if not site.is_edited:
            made.append(site)
            continue
        label = int(labels[site.point])
        left, top, width, height = (int(value) for value in stats[label, : cv2.CC_STAT_AREA])
        is_drawn = labels[top : top + height, left : left + width] == label
        distance = cv2.distanceTransform(np.pad(is_drawn, 1).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
        measured = replace(
            site,
            drawn_area=int(stats[label, cv2.CC_STAT_AREA]),
            thickness=2 * float(distance.max()) - 1,
            displacement=float(away[top : top + height, left : left + width][is_drawn].max()),
        )
        if not label or not space.is_major(measured.drawn_area, measured.thickness):
            raise Ineligible("no room for edits", "an edit is too small once its contour is drawn")
        made.append(measured)
    return made


def _check_pieces(before: Mask, after: Mask) -> None:
    count = cv2.connectedComponents(before.view(np.uint8), connectivity=4)[0]
    if cv2.connectedComponents(after.view(np.uint8), connectivity=4)[0] > count:
        raise Ineligible("no room for edits", "an edit would cut the contour in two")
