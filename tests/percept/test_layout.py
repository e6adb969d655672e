"""Edits, points and what is shown: every rule of the protocol over random lesions, counted on the pixels."""

from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from carina.percept.anatomy import name_region
from carina.percept.deform import OPPOSITE, warp
from carina.percept.edit_sites import SEPARATION, ChangeParameters, EditSpace, Occupancy, changes_at
from carina.percept.layout import Layout, find_layouts, find_sites, place_distractors
from carina.percept.outline import draw_outline, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.percept.square_plan import CORNERS, draw_plan
from carina.store.seeding import rng

RULES = Rules()
NEARLY = 0.97
"""The quick distance is off by two in a hundred, so thickness and gaps are judged with this much tolerance."""


ROOMY = ("bilateral", "pieces", "lower")
"""Lesions with room for edits in every direction."""


@st.composite
def lesions(draw):
    """Discs and ellipses, up to three of them, that touch a lung; also filling it, also tiny."""
    seed = draw(st.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[:256, :256] + 0.5
    mask = np.zeros((256, 256), bool)
    for _ in range(draw(st.integers(1, 3))):
        cx, cy = chance.choice([75, 184]) + chance.uniform(-20, 20), chance.uniform(60, 200)
        rx, ry = np.exp(chance.uniform(np.log(8), np.log(70), 2))
        turn = chance.uniform(0, np.pi)
        u, v = (
            (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn),
            (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn),
        )
        mask |= (u / rx) ** 2 + (v / ry) ** 2 <= 1
    return mask


def laid_out(chest, truth, seed, rules=RULES):
    """Outline and layout, or None where the lesion has no room."""
    try:
        scene = chest.scene(truth, target="edema", rules=rules)
        outline = draw_outline(scene, rules, rng(seed, "outline"))
    except Ineligible:
        return None
    layout = first_layout(outline, scene, rules, seed)
    return None if layout is None else (scene, outline, layout)


def first_layout(outline, scene, rules, seed):
    found = find_layouts(outline, scene.anatomy, rules, chance=rng(seed, "edits"))
    return next((one for one in found if isinstance(one, Layout)), None)


def change_mask(outline, change):
    there = np.zeros_like(outline.mask)
    there[change.window] = change.mask
    return there


def check_layout(scene, outline, layout, rules=RULES):
    """Every rule, from pixels and points alone."""
    scale = scene.scale
    changed = layout.shown ^ outline.revised
    pieces, count = ndimage.label(changed)
    edits = [pieces == pieces[site.point] for site in layout.edits]
    assert count == len(edits) == len({pieces[site.point] for site in layout.edits}) <= rules.max_edits
    assert not (layout.shown & ~outline.field).any()

    needed = {OPPOSITE[site.change.operation] for site in layout.edits}
    assert needed == ({"expansion", "contraction"} if layout.plan.kind == "both" else {layout.plan.kind})
    assert [site.mistake for site in layout.sites] == [planned.mistake for planned in layout.plan.sites]
    for site, edit in zip(layout.edits, edits, strict=True):
        added = site.change.operation == "expansion"
        assert (layout.shown[edit] == added).all()
        assert edit[site.point]
        assert [other[site.point] for other in edits].count(True) == 1
        assert edit.sum() == site.drawn_area >= rules.edit_share * outline.area
        assert site.drawn_area >= rules.edit_area * scale**2
        thickness = 2 * ndimage.distance_transform_edt(np.pad(edit, 1)).max() - 1
        assert thickness >= NEARLY * rules.edit_thickness * scale
        assert site.thickness == pytest.approx(thickness, rel=0.05)
        inside = ndimage.distance_transform_edt(outline.mask)
        outside = ndimage.distance_transform_edt(~outline.mask)
        moved = np.where(outline.mask, inside, outside)[edit].max() - 0.5  # from the edge between pixels
        assert site.displacement == pytest.approx(moved, rel=0.03, abs=0.1)
        row, column = (place + part.start for place, part in zip(site.point, outline.window, strict=True))
        assert site.place == (name_region(scene.anatomy, row, column) or "mediastinum")

    points = [site.point for site in layout.edits] + [placed.point for placed in layout.distractors]
    for one, other in combinations(points, 2):
        assert np.hypot(*np.subtract(one, other)) >= rules.point_gap * scale
    assert rules.min_points <= len(points) <= rules.max_points
    assert sum(not placed.inside for placed in layout.distractors) >= rules.min_outside
    far = ndimage.distance_transform_edt(~changed)
    for placed in layout.distractors:
        assert layout.shown[placed.point] == placed.inside
        assert outline.field[placed.point]
        assert far[placed.point] >= NEARLY * rules.change_gap * scale
        assert placed.nearest_change == pytest.approx(far[placed.point], rel=0.03)
    pieces = [ndimage.label(mask)[1] for mask in (outline.revised, layout.shown)]
    assert pieces[1] <= pieces[0]


@given(truth=lesions(), seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_every_rule_is_kept_for_random_lesions(chest, truth, seed):
    found = laid_out(chest, truth & (chest.anatomy().lungs), seed)
    if found is not None:
        check_layout(*found)


def test_lesions_with_room_are_laid_out_in_every_way(chest):
    found = [laid_out(chest, chest.lesions()[name], seed) for name in ROOMY for seed in range(8)]
    made = [one for one in found if one is not None]
    assert len(made) >= 0.75 * len(found)
    assert {layout.plan.kind for _, _, layout in made} == {"expansion", "contraction", "both"}
    for one in made:
        check_layout(*one)


def test_lengths_scale_with_the_image(chest):
    size = 1024
    right, left = chest.lungs(size)
    k = size / 256
    truth = (right & chest.ellipse(75 * k, 150 * k, 36 * k, 55 * k, size=size)) | (
        left & chest.ellipse(184 * k, 150 * k, 33 * k, 50 * k, size=size)
    )
    scene = chest.scene(truth, fields=(right, left))
    outline = draw_outline(scene, RULES, rng(size))
    layout = first_layout(outline, scene, RULES, size)
    assert layout is not None
    check_layout(scene, outline, layout)


def test_the_same_seed_gives_the_same_layout(chest):
    one, same, other = (laid_out(chest, chest.lesions()["lower"], seed)[2] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.shown, same.shown)
    assert [p.point for p in one.distractors] == [p.point for p in same.distractors]
    assert (one.shown.shape != other.shown.shape) or (one.shown != other.shown).any()


@given(truth=lesions(), seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_changes_by_wrong_revisions_do_not_touch_other_sites(chest, truth, seed):
    found = laid_out(chest, truth & chest.anatomy().lungs, seed)
    if found is None:
        return
    scene, outline, layout = found
    check_wrong_changes(outline, layout)
    sites = [
        np.logical_or.reduce([change_mask(outline, change) for change in changes_at(site)])
        for site in layout.sites
    ]
    gap = max(1, round(SEPARATION * scene.scale))
    for one, other in combinations(sites, 2):
        assert ndimage.distance_transform_edt(~one)[other].min(initial=np.inf) >= gap


def check_wrong_changes(outline, layout):
    """Every wrong change gives the planned version of its site, of about the planned size."""
    for site, planned in zip(layout.sites, layout.plan.sites, strict=True):
        edit = change_mask(outline, site.change)
        size = planned.mistake_size * outline.area / layout.plan.growth
        for change in site.wrong:
            wrong = change_mask(outline, change)
            assert (change.operation == "expansion") == (size > 0)
            if site.mistake == "left":
                np.testing.assert_array_equal(wrong, edit)
                continue
            assert 0.8 * abs(size) <= wrong.sum() <= 1.2 * abs(size)
            if site.mistake == "partial":
                assert not (wrong & ~edit).any()
            elif site.mistake == "wrong_operation":
                assert not (edit & ~wrong).any()
            elif site.mistake == "overshoot":
                assert not (wrong & edit).any()
            else:
                assert wrong[site.point]


def test_every_mistake_is_made_at_some_lesion(chest):
    mistakes = set()
    for name in ROOMY:
        for seed in range(8):
            found = laid_out(chest, chest.lesions()[name], seed)
            if found is not None:
                check_wrong_changes(*found[1:])
                mistakes |= {site.mistake for site in found[2].sites if site.wrong}
    assert mistakes == {"left", "partial", "overshoot", "wrong_operation", "wrong_place"}


def test_points_of_both_kinds_lie_equally_far_from_the_shown_contour(chest):
    ratios = []
    for name in ROOMY:
        for seed in range(3):
            found = laid_out(chest, chest.lesions()[name], seed)
            if found is None:
                continue
            _, _, layout = found
            keys = [abs(float(layout.distance[site.point])) for site in layout.edits]
            for placed in layout.distractors:
                depth = abs(float(layout.distance[placed.point]))
                # As far as one of the edits' points, within the range and a pixel of tolerance.
                if placed.point not in [site.point for site in layout.sites]:
                    assert any(0.88 * key - 1 <= depth <= 1.2 * key + 1 for key in keys)
                ratios.append(depth / np.mean(keys))
    assert len(ratios) > 15
    assert np.median(ratios) == pytest.approx(1.0, abs=0.2)


def test_the_point_of_a_place_that_is_right_is_a_distractor_in_the_wrong_change(chest):
    """As every edit has its point, a change without one would be known to be wrong."""
    seen = 0
    for name in ROOMY:
        for seed in range(6):
            found = laid_out(chest, chest.lesions()[name], seed)
            if found is None or found[2].sites[1].mistake != "wrong_place":
                continue
            _, outline, layout = found
            seen += 1
            site = layout.sites[1]
            assert site.point in [placed.point for placed in layout.distractors]
            assert site.point not in [edit.point for edit in layout.edits]
            assert all(change_mask(outline, change)[site.point] for change in site.wrong)
    assert seen >= 3


# ---- each brick for itself ----


def ground_of(chest, name="lower", rules=RULES, seed=1):
    scene = chest.scene(chest.lesions()[name], rules=rules)
    outline = draw_outline(scene, rules, rng(seed))
    return EditSpace(outline, scene.anatomy, rules, warp, rng(seed, "space"))


def some_plan(space, *, right=(1, 1), extra=False):
    """A plan for a lesion with room."""
    plan = draw_plan(
        space.outline.area, space.rules, space.outline.scale, space.chance, extra=extra, smallest=0.1
    )
    return plan.decide(right)


def test_enlarged_parameters_are_at_the_same_place_on_finer_pixels():
    recipe = ChangeParameters((10, 20), "expansion", 50.0, 6.0, seed=3, straighter=2.0)
    assert recipe.enlarge(4) == ChangeParameters((42, 82), "expansion", 800.0, 24.0, seed=3, straighter=2.0)
    assert recipe.enlarge(1) == recipe


def test_a_site_is_only_where_the_change_is_major(chest):
    space = ground_of(chest)
    places = [tuple(int(value) for value in place) for place in space.contour[:: len(space.contour) // 4]]
    least = RULES.edit_share * space.outline.area
    seeds = [
        space.sample_parameters(place, "contraction", area, wide=1.0)
        for place in places
        for area in np.linspace(0.5, 3, 20) * least
    ]
    for recipe in seeds:
        site = space.make_site(recipe)
        if site is not None:
            assert site.change.area >= least
            assert site.thickness >= RULES.edit_thickness * 0.25
        if recipe.area < 0.8 * least:
            assert site is None
    made = {recipe.centre for recipe in seeds if space.make_site(recipe) is not None}
    assert len(made) >= len(places) - 1, "at nearly every place a change of some size is major"


def test_reserved_pixels_are_not_free_and_near_points_are_crowded(chest):
    space = ground_of(chest)
    occupancy = Occupancy.blank(space.outline)
    edits = find_sites(space, some_plan(space), wide=0.8)
    assert all(space.is_free(occupancy, site.change) for site in edits)
    space.reserve(occupancy, edits[0].change)
    assert not space.is_free(occupancy, edits[0].change)
    mask = change_mask(space.outline, edits[0].change)
    np.testing.assert_array_equal(occupancy.taken & mask, mask)
    far = ndimage.distance_transform_edt(~mask)
    assert far[occupancy.taken].max() <= SEPARATION * 0.25 + 0.5
    occupancy.points.append((50, 50))
    gap = RULES.point_gap * 0.25
    assert space.is_crowded(occupancy, (50, 50 + int(gap) - 1))
    assert not space.is_crowded(occupancy, (50, 50 + int(gap)))


def site_with_edit(space):
    made = (
        space.make_site(
            space.sample_parameters(tuple(place), "contraction", 0.3 * space.outline.area, wide=1.0)
        )
        for place in space.contour[::7].tolist()
    )
    return next(site for site in made if site is not None)


def test_a_lesion_without_room_for_edits_or_points_is_ineligible(chest):
    small = chest.ellipse(75, 130, 9, 9)
    scene = chest.scene(small)
    outline = draw_outline(scene, RULES, rng(1))
    for reason in find_layouts(outline, scene.anatomy, RULES, chance=rng(1)):
        assert isinstance(reason, Ineligible)
        assert reason.reason in {"no room for edits", "no room for points"}
    wide = msgspec.structs.replace(RULES, point_gap=900.0)
    space = ground_of(chest, rules=wide)
    edits = [site_with_edit(space)]
    occupancy = Occupancy.blank(space.outline)
    occupancy.points += [site.point for site in edits]
    shown = space.outline.mask ^ np.logical_or.reduce(
        [change_mask(space.outline, site.change) for site in edits]
    )
    with pytest.raises(Ineligible) as found:
        place_distractors(space, occupancy, edits, shown, signed_distance(shown))
    assert found.value.reason == "no room for points"
    assert found.value.detail == "0 distractors fit outside the contour"


def test_an_edit_that_would_cut_a_lesion_in_two_is_not_made(chest):
    # A dumb-bell: its narrow middle is the easiest place to contract.
    bell = chest.ellipse(75, 90, 30, 30) | chest.ellipse(75, 170, 30, 30) | chest.rectangle(110, 68, 40, 14)
    for seed in range(5):
        found = laid_out(chest, bell, seed)
        if found is not None:
            _, outline, layout = found
            assert ndimage.label(layout.shown)[1] == ndimage.label(outline.mask)[1] == 1


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("right", CORNERS)
def test_sites_make_the_revision_that_is_planned_whatever_is_right(chest, right, extra):
    made = 0
    for seed in range(6):
        space = ground_of(chest, "bilateral", seed=seed)
        plan = some_plan(space, right=right, extra=extra)
        try:
            sites = find_sites(space, plan, wide=0.6)
        except Ineligible:
            continue
        made += 1
        assert len(sites) == 2 + extra <= RULES.max_edits
        shown = space.outline.mask.copy()
        for site, planned in zip(sites, plan.sites, strict=True):
            assert site.is_edited == bool(planned.revision)
            if site.is_edited:
                shown ^= change_mask(space.outline, site.change)
                # Straight sides make a change a little larger or smaller.
                planned_area = abs(planned.revision) * space.outline.area / plan.growth
                assert 0.75 * planned_area <= site.change.area <= 1.25 * planned_area
        both, either = (shown & space.outline.mask).sum(), (shown | space.outline.mask).sum()
        assert RULES.revise_low - 0.03 <= both / either <= RULES.revise_high + 0.03
    assert made >= 2
