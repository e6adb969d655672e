"""The layout of a case: edits that make a major revision, and distractor points.

Places are searched on a coarse copy of the outline, where an attempt is fast. The edits are then made again on the
pixels of the image and must keep every rule there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import cv2
import numpy as np
from cv2.typing import MatLike

from carina.percept.anatomy import Anatomy
from carina.percept.deform import Change, EffortFunction, Operation, apply_changes, warp
from carina.percept.edit_sites import ChangeParameters, EditSpace, Occupancy, Place, Site, changes_at
from carina.percept.outline import Field, Outline, coarsen, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

RevisionKind = Literal["expansion", "contraction", "both"]
"""Which revisions a case asks for; the edits are their opposites."""

PLACES: Final = 16
"""Places on the contour tried for one edit."""
COMPARED_SITES: Final = 4
"""Suitable sites that are compared before one is chosen."""
KERNEL_WIDTHS: Final = (1.0, 0.85, 0.65)
"""Relative width of kernels in cases with one, two and three edits, which share the contour."""
ROUGHNESS: Final = 0.04
"""Standard deviation of the logarithm of the roughness that a contour should have after the edits, relative to that of
the truth. It becomes smoother as often as rougher; otherwise its roughness would reveal whether it was changed."""


def find_edits(space: EditSpace, wanted: RevisionKind, *, most: int, wide: float) -> list[Site]:
    """Sites for as many edits as make a major revision; `Ineligible` where the contour has no room for them."""
    occupancy = Occupancy.blank(space.outline)
    target_roughening = float(space.chance.normal(0.0, ROUGHNESS))
    edits: list[Site] = []
    plan = _plan_edits(space, wanted, most)
    for operation, area in plan:
        found = list(_find_sites(space, occupancy, operation, area, wide * KERNEL_WIDTHS[len(plan) - 1]))
        if not found:
            raise Ineligible("no room for edits", f"{len(edits)} of the edits found a place")
        best = min(
            found, key=lambda site: abs(_measure_roughening(space, [*edits, site]) - target_roughening)
        )
        edits.append(best)
        reserve_edit(space, occupancy, best)
    return edits


def reserve_edit(space: EditSpace, occupancy: Occupancy, site: Site) -> None:
    """Reserve the point and the pixels of an edit; `Ineligible` where they are not free."""
    if not space.is_free(occupancy, site.change) or space.is_crowded(occupancy, site.point):
        raise Ineligible("no room for edits", "two edits come too near to each other")
    occupancy.points.append(site.point)
    space.reserve(occupancy, site.change)


def _plan_edits(space: EditSpace, wanted: RevisionKind, most: int) -> list[tuple[Operation, float]]:
    """Operations on the contour with their areas, the largest first."""
    rules, chance, lesion = space.rules, space.chance, float(space.outline.area)
    least = 1.06 * max(rules.edit_share * lesion, rules.edit_area * space.outline.scale**2)
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


def _find_sites(
    space: EditSpace, occupancy: Occupancy, operation: Operation, area: float, wide: float
) -> Iterator[Site]:
    """The first few suitable sites."""
    found = 0
    for place in _sample_places(space, occupancy):
        site = space.make_site(space.sample_parameters(place, operation, area, wide=wide))
        if (
            site is None
            or not space.is_free(occupancy, site.change)
            or space.is_crowded(occupancy, site.point)
        ):
            continue
        yield site
        found += 1
        if found == COMPARED_SITES:
            return


def _sample_places(space: EditSpace, occupancy: Occupancy) -> list[Place]:
    """Places on the contour to try, away from the points that are already placed."""
    some = space.contour[space.chance.integers(0, len(space.contour), 4 * PLACES)]
    if occupancy.points:
        apart = np.linalg.norm(some[:, None] - np.array(occupancy.points)[None], axis=2).min(axis=1)
        some = some[apart >= 0.7 * space.gap]
    return [(int(row), int(column)) for row, column in some[:PLACES]]


def _measure_roughening(space: EditSpace, edits: list[Site]) -> float:
    """Logarithm of how much rougher (length squared over area) the contour is after these edits."""
    before = space.outline.area
    length = space.length + sum(site.change.edge for site in edits)
    area = before + sum(site.change.sign * site.change.area for site in edits)
    return float(2 * np.log(length / space.length) - np.log(area / before))


# ---- points where no revision is needed ----

WRONG_CHANGE_SHARES: Final = (0.09, 0.20)
"""Range of the area of a change where none is needed, as a share of the lesion: like that of a single edit."""
ELSEWHERE: Final = 12
"""Changes away from all points that are tried."""
SIMPLER: Final = 8
"""Of these, how many are tried where they make the contour simpler."""
STRAIGHT_ELSEWHERE: Final = 3
"""Most changes of each direction away from all points that replace a run of the contour."""
STRAIGHT_TRIES: Final = 8
"""Runs that are tried for them."""
HOLLOW: Final = 40.0
"""Distance over which a place counts as hollow or as a corner, in pixels of the frame."""
WRONG_CHANGES: Final = 2
"""Changes that are tried at one point where none is needed."""
JITTER: Final = 0.15
"""Relative variation of the distance of a distractor point to the contour, around that of an edit's point."""


@dataclass(frozen=True)
class Distractor:
    """A point where no revision is needed, outside or inside the shown contour."""

    point: Place
    inside: bool
    nearest_change: float
    """Distance to the nearest pixel that an edit has changed, in pixels."""
    sites: tuple[Site, ...] = ()
    """Changes that a revision at this point might make, one at a time; none where there is no room for one."""


def place_distractors(
    space: EditSpace, occupancy: Occupancy, edits: Sequence[Site], shown: Mask, distance: Field
) -> list[Distractor]:
    """A sampled number of distractors, as far as there is room; `Ineligible` for fewer than the rules demand."""
    rules, scale = space.rules, space.outline.scale
    changed = shown ^ space.outline.revised
    far = np.asarray(
        cv2.distanceTransform((~changed).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5), np.float32
    )
    free = space.outline.field & (far >= rules.change_gap * scale)
    for point in occupancy.points:
        _block_around(space, free, point)
    depths = [abs(float(distance[site.point])) for site in edits]
    found: list[Distractor] = []
    for inside in _sample_sides(space, len(edits)):
        chosen = _find_free_point(space, free, distance, depths, inside=inside)
        if chosen is not None:
            _block_around(space, free, chosen)
            found.append(Distractor(point=chosen, inside=inside, nearest_change=float(far[chosen])))
    outside = sum(not distractor.inside for distractor in found)
    if outside < rules.min_outside:
        raise Ineligible("no room for points", f"{outside} distractors fit outside the contour")
    if len(found) + len(edits) < rules.min_points:
        raise Ineligible("no room for points", f"{len(found) + len(edits)} points fit")
    return found


def add_wrong_sites(
    space: EditSpace, occupancy: Occupancy, distractors: Sequence[Distractor], *, wide: float
) -> list[Distractor]:
    """Each distractor with the changes that a revision at it might make, where there is room for one."""
    return [
        replace(placed, sites=_find_wrong_sites(space, occupancy, placed, wide=wide))
        for placed in distractors
    ]


def _sample_sides(space: EditSpace, edits: int) -> list[bool]:
    """For each distractor to be placed, whether it lies inside the contour; those that a case needs come first."""
    rules = space.rules
    wanted = int(space.chance.integers(rules.min_points, rules.max_points + 1)) - edits
    sides = [False] * rules.min_outside + [True] * rules.max_inside
    sides += [bool(inside) for inside in space.chance.integers(0, 2, max(0, wanted - len(sides)))]
    return sides[: max(wanted, rules.min_points - edits)]


def _find_free_point(
    space: EditSpace, free: Mask, distance: Field, depths: list[float], *, inside: bool
) -> Place | None:
    """A free pixel about as far from the shown contour as one of the edits' points; None where there is none."""
    sign = 1.0 if inside else -1.0
    for depth in space.chance.permutation(depths):
        wanted = sign * depth * space.chance.uniform(1 - JITTER, 1 + JITTER)
        there = np.flatnonzero(free & (np.abs(distance - np.float32(wanted)) <= 1.0))
        if there.size:
            row, column = divmod(int(there[space.chance.integers(there.size)]), free.shape[1])
            return row, column
    return None


def _block_around(space: EditSpace, free: Mask, point: Place) -> None:
    """Keep other points away from this one."""
    cv2.circle(free.view(np.uint8), point[::-1], int(np.ceil(space.gap)), (0,), cv2.FILLED)


def _find_wrong_sites(
    space: EditSpace, occupancy: Occupancy, distractor: Distractor, *, wide: float
) -> tuple[Site, ...]:
    operation: Operation = "contraction" if distractor.inside else "expansion"
    squares = ((space.contour - np.array(distractor.point)) ** 2).sum(axis=1)
    row, column = space.contour[int(squares.argmin())]
    if occupancy.taken[row, column]:
        return ()
    found = []
    for _ in range(WRONG_CHANGES):
        site = space.make_site(_sample_wrong_change(space, (int(row), int(column)), operation, wide=wide))
        if site is not None and space.is_free(occupancy, site.change):
            found.append(site)
    for site in found:
        space.reserve(occupancy, site.change)
    return tuple(found)


def _find_sites_elsewhere(
    space: EditSpace, rough: EditSpace, occupancy: Occupancy, *, wide: float
) -> tuple[Site, ...]:
    """Wrong changes away from all points. Most make the contour simpler, which changes at random places rarely do.

    Places are searched on the coarse copy `rough`.
    """
    times = round(space.outline.scale / rough.outline.scale)
    used = Occupancy(taken=_coarsen_taken(occupancy.taken, rough.outline.mask.shape, times))
    around = cv2.GaussianBlur(
        rough.outline.mask.astype(np.float32),
        (0, 0),
        HOLLOW * rough.outline.scale,
        borderType=cv2.BORDER_CONSTANT,
    )
    found: list[Site] = []
    for n in range(ELSEWHERE):
        operation: Operation = "contraction" if n % 2 else "expansion"
        place = _sample_place_elsewhere(rough, used, around, operation, simpler=n < SIMPLER)
        if place is None:
            continue
        parameters = _sample_wrong_change(rough, place, operation, wide=wide)
        site = rough.make_site(parameters)
        if site is None or not rough.is_free(used, site.change):
            continue
        made = site if times == 1 else space.make_site(parameters.enlarge(times))
        if made is not None and space.is_free(occupancy, made.change):
            found.append(made)
            space.reserve(occupancy, made.change)
            rough.reserve(used, site.change)
    return tuple(found)


def _find_straight_changes(space: EditSpace, edits: Sequence[Site]) -> tuple[Change, ...]:
    """Wrong changes away from the edits, where a straight line or a corner replaces a run of the contour."""
    edited = Occupancy.blank(space.outline)
    for site in edits:
        space.reserve(edited, site.change)
    low, high = (share * space.outline.area for share in WRONG_CHANGE_SHARES)
    sizes = max(low, space.rules.edit_area * space.outline.scale**2), high
    return tuple(space.find_straight_changes(edited, sizes, most=STRAIGHT_ELSEWHERE, tries=STRAIGHT_TRIES))


def _sample_place_elsewhere(
    space: EditSpace, used: Occupancy, around: MatLike, operation: Operation, *, simpler: bool
) -> Place | None:
    """A free place on the contour; `around` is the share of pixels around each pixel that are inside.

    Filling a hollow or cutting a corner makes a contour simpler.
    """
    some = space.contour[space.chance.integers(0, len(space.contour), PLACES)]
    some = some[~used.taken[some[:, 0], some[:, 1]]]
    if not len(some):
        return None
    inside = around[some[:, 0], some[:, 1]]
    at = int((inside if operation == "contraction" else -inside).argmin()) if simpler else 0
    return int(some[at, 0]), int(some[at, 1])


def _coarsen_taken(taken: Mask, shape: tuple[int, ...], times: int) -> Mask:
    """The pixels of a coarse copy in which any pixel is used."""
    rows, columns = shape
    parts = taken[: rows * times, : columns * times].reshape(rows, times, columns, times)
    return np.asarray(parts.any(axis=(1, 3)))


def _sample_wrong_change(
    space: EditSpace, place: Place, operation: Operation, *, wide: float
) -> ChangeParameters:
    least = space.rules.edit_area * space.outline.scale**2
    area = max(float(space.chance.uniform(*WRONG_CHANGE_SHARES)) * space.outline.area, least)
    return space.sample_parameters(place, operation, area, wide=wide)


# ---- edits and points together ----

ATTEMPTS: Final = ((3, 1.0), (2, 0.8), (2, 0.6), (1, 0.6), (1, 0.45))
"""Most edits and width of their kernels, for each attempt: fewer and narrower edits leave more room for points."""
COARSE: Final = 0.25
"""Pixels of the coarse outline for each pixel of the frame."""


@dataclass(frozen=True)
class Layout:
    """Everything that was placed for one case."""

    edits: tuple[Site, ...]
    distractors: tuple[Distractor, ...]
    elsewhere: tuple[Site, ...]
    """Changes away from all points, of which none is needed."""
    straight: tuple[Change, ...]
    """Changes away from the edits that replace a run of the contour; they may overlap others."""
    shown: Mask
    """The drawn contour after the edits, in the outline's window."""
    distance: Field
    """Signed distance to the shown contour, positive inside."""


def make_layout(
    outline: Outline,
    anatomy: Anatomy,
    rules: Rules,
    *,
    wanted: RevisionKind,
    chance: np.random.Generator,
    deformer: EffortFunction = warp,
) -> Layout:
    """A layout with revisions of the wanted kind; `Ineligible` where the lesion has no room for one."""
    space = EditSpace(outline, anatomy, rules, deformer, chance)
    # Only the warp makes the same changes on a coarse copy.
    times = max(1, round(outline.scale / COARSE)) if deformer is warp else 1
    rough = space if times == 1 else replace(space, outline=coarsen(outline, times))
    failure = Ineligible("no room for edits")
    for most, wide in ATTEMPTS:
        try:
            edits = find_edits(rough, wanted, most=min(most, rules.max_edits), wide=wide)
            if times > 1:
                _place_points(rough, edits)
                edits = _remake_edits(space, edits, times)
            return _complete_layout(space, rough, edits, wide=wide)
        except Ineligible as reason:
            failure = reason
    raise failure


def _remake_edits(space: EditSpace, edits: list[Site], times: int) -> list[Site]:
    sites = [space.make_site(site.parameters.enlarge(times)) for site in edits]
    made = [site for site in sites if site is not None]
    if len(made) < len(edits):
        raise Ineligible("no room for edits", "an edit is too small on the image's own pixels")
    return made


def _place_points(space: EditSpace, edits: list[Site]) -> tuple[Occupancy, Mask, Field, list[Distractor]]:
    occupancy = Occupancy.blank(space.outline)
    for site in edits:
        reserve_edit(space, occupancy, site)
    outline = space.outline
    shown = _draw_edits(outline, edits)
    _check_pieces(outline.revised, shown)
    distance = signed_distance(shown)
    return occupancy, shown, distance, place_distractors(space, occupancy, edits, shown, distance)


def _complete_layout(space: EditSpace, rough: EditSpace, edits: list[Site], *, wide: float) -> Layout:
    occupancy, shown, distance, distractors = _place_points(space, edits)
    sites = _measure_drawn_edits(space, edits, shown)
    for n, site in enumerate(sites):
        sites[n] = space.add_variants(site, sites[:n] + sites[n + 1 :])
        for change in changes_at(sites[n]):
            space.reserve(occupancy, change)
    distractors = add_wrong_sites(space, occupancy, distractors, wide=wide)
    return Layout(
        edits=tuple(sites),
        distractors=tuple(distractors),
        elsewhere=_find_sites_elsewhere(space, rough, occupancy, wide=wide),
        straight=_find_straight_changes(space, sites),
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


def _measure_drawn_edits(space: EditSpace, edits: Sequence[Site], shown: Mask) -> list[Site]:
    """The edits with their sizes on the drawn contour; `Ineligible` where one is too small."""
    away = np.abs(signed_distance(space.outline.mask))
    changed = np.ascontiguousarray(shown ^ space.outline.revised).view(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(changed, connectivity=4)
    sites = []
    for site in edits:
        label = int(labels[site.point])
        left, top, width, height = (int(value) for value in stats[label, : cv2.CC_STAT_AREA])
        is_drawn = labels[top : top + height, left : left + width] == label
        distance = cv2.distanceTransform(np.pad(is_drawn, 1).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
        made = replace(
            site,
            drawn_area=int(stats[label, cv2.CC_STAT_AREA]),
            thickness=2 * float(distance.max()) - 1,
            displacement=float(away[top : top + height, left : left + width][is_drawn].max()),
        )
        if not label or not space.is_major(made.drawn_area, made.thickness):
            raise Ineligible("no room for edits", "an edit is too small once its contour is drawn")
        sites.append(made)
    return sites


def _check_pieces(before: Mask, after: Mask) -> None:
    count = cv2.connectedComponents(before.view(np.uint8), connectivity=4)[0]
    if cv2.connectedComponents(after.view(np.uint8), connectivity=4)[0] > count:
        raise Ineligible("no room for edits", "an edit would cut the contour in two")
