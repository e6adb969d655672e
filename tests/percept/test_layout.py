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
from carina.percept.layout import find_edits, make_layout, place_distractors
from carina.percept.outline import draw_outline, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.store.seeding import rng

RULES = Rules()
NEARLY = 0.97
"""The quick distance is off by two in a hundred, so thickness and gaps are judged with this much tolerance."""
KINDS = ("expansion", "contraction", "both")


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


def laid_out(chest, truth, wanted, seed, rules=RULES):
    """Outline and layout, or None where the lesion has no room."""
    try:
        scene = chest.scene(truth, target="edema", rules=rules)
        outline = draw_outline(scene, rules, rng(seed, "outline"))
        layout = make_layout(outline, scene.anatomy, rules, wanted=wanted, chance=rng(seed, "edits"))
    except Ineligible:
        return None
    return scene, outline, layout


def change_mask(outline, change):
    there = np.zeros_like(outline.mask)
    there[change.window] = change.mask
    return there


def check_layout(scene, outline, layout, wanted, rules=RULES):
    """Every rule, from pixels and points alone."""
    scale = scene.scale
    changed = layout.shown ^ outline.revised
    pieces, count = ndimage.label(changed)
    edits = [pieces == pieces[site.point] for site in layout.edits]
    assert count == len(edits) == len({pieces[site.point] for site in layout.edits}) <= rules.max_edits
    assert not (layout.shown & ~outline.field).any()

    needed = {OPPOSITE[site.change.operation] for site in layout.edits}
    assert needed == ({"expansion", "contraction"} if wanted == "both" else {wanted})
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


@given(truth=lesions(), wanted=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_every_rule_is_kept_for_random_lesions(chest, truth, wanted, seed):
    found = laid_out(chest, truth & (chest.anatomy().lungs), wanted, seed)
    if found is not None:
        check_layout(*found, wanted)


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("name", ["bilateral", "pieces", "lower"])
def test_lesions_with_room_are_laid_out_in_every_way(chest, name, wanted):
    found = [laid_out(chest, chest.lesions()[name], wanted, seed) for seed in range(2)]
    made = [one for one in found if one is not None]
    assert made
    for one in made:
        check_layout(*one, wanted)


def test_lengths_scale_with_the_image(chest):
    size = 1024
    right, left = chest.lungs(size)
    k = size / 256
    truth = (right & chest.ellipse(75 * k, 150 * k, 36 * k, 55 * k, size=size)) | (
        left & chest.ellipse(184 * k, 150 * k, 33 * k, 50 * k, size=size)
    )
    scene = chest.scene(truth, fields=(right, left))
    outline = draw_outline(scene, RULES, rng(size))
    layout = make_layout(outline, scene.anatomy, RULES, wanted="both", chance=rng(size, "edits"))
    check_layout(scene, outline, layout, "both")


def test_the_same_seed_gives_the_same_layout(chest):
    one, same, other = (laid_out(chest, chest.lesions()["lower"], "both", seed)[2] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.shown, same.shown)
    assert [p.point for p in one.distractors] == [p.point for p in same.distractors]
    assert (one.shown.shape != other.shown.shape) or (one.shown != other.shown).any()


@given(truth=lesions(), seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_changes_by_wrong_revisions_do_not_touch_other_sites(chest, truth, seed):
    found = laid_out(chest, truth & chest.anatomy().lungs, "both", seed)
    if found is None:
        return
    scene, outline, layout = found
    sites = []
    for site in layout.edits:
        edit = change_mask(outline, site.change)
        for half in (change_mask(outline, change) for change in site.half):
            # Straight sides make each of them a little larger or smaller.
            assert (half & edit).sum() >= 0.75 * half.sum()
            assert 0.25 * site.change.area <= half.sum() <= 0.9 * site.change.area
        for worse in (change_mask(outline, change) for change in site.worse):
            assert (edit & worse).sum() >= 0.75 * edit.sum()
            assert 1.1 * site.change.area <= worse.sum()
        for change in site.overshoot:
            assert change.operation == OPPOSITE[site.change.operation]
            assert not (change_mask(outline, change) & edit).any()
        for change in site.straight:
            mask = change_mask(outline, change)
            if change.operation == site.change.operation:
                assert (mask & edit).sum() >= 0.5 * min(mask.sum(), edit.sum())
            else:
                assert not (mask & edit).any()
        sites.append(np.logical_or.reduce([change_mask(outline, change) for change in changes_at(site)]))
    for placed in layout.distractors:
        if placed.sites:
            side = "contraction" if placed.inside else "expansion"
            assert {site.change.operation for site in placed.sites} == {side}
            sites.append(np.logical_or.reduce([change_mask(outline, site.change) for site in placed.sites]))
    sites += [change_mask(outline, site.change) for site in layout.elsewhere]
    edited = np.logical_or.reduce([change_mask(outline, site.change) for site in layout.edits])
    for change in layout.straight:
        assert not (change_mask(outline, change) & edited).any()
    gap = max(1, round(SEPARATION * scene.scale))
    for one, other in combinations(sites, 2):
        assert ndimage.distance_transform_edt(~one)[other].min(initial=np.inf) >= gap


def test_points_of_both_kinds_lie_equally_far_from_the_shown_contour(chest):
    ratios = []
    for name in ("bilateral", "pieces", "lower"):
        for seed in range(3):
            found = laid_out(chest, chest.lesions()[name], KINDS[seed], seed)
            if found is None:
                continue
            _, _, layout = found
            keys = [abs(float(layout.distance[site.point])) for site in layout.edits]
            for placed in layout.distractors:
                depth = abs(float(layout.distance[placed.point]))
                # As far as one of the edits' points, within the jitter and a pixel of tolerance.
                assert min(abs(depth - key) - 0.15 * key for key in keys) <= 1.0
                ratios.append(depth / np.mean(keys))
    assert len(ratios) > 15
    assert np.median(ratios) == pytest.approx(1.0, abs=0.15)


# ---- each brick for itself ----


def ground_of(chest, name="lower", rules=RULES, seed=1):
    scene = chest.scene(chest.lesions()[name], rules=rules)
    outline = draw_outline(scene, rules, rng(seed))
    return EditSpace(outline, scene.anatomy, rules, warp, rng(seed, "space"))


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
    edits = find_edits(space, "both", most=3, wide=1.0)
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


def test_a_lesion_without_room_for_edits_or_points_is_ineligible(chest):
    small = chest.ellipse(75, 130, 9, 9)
    scene = chest.scene(small)
    outline = draw_outline(scene, RULES, rng(1))
    with pytest.raises(Ineligible) as found:
        make_layout(outline, scene.anatomy, RULES, wanted="both", chance=rng(1))
    assert found.value.reason in {"no room for edits", "no room for points"}
    wide = msgspec.structs.replace(RULES, point_gap=900.0)
    space = ground_of(chest, rules=wide)
    edits = find_edits(space, "expansion", most=1, wide=1.0)
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
        found = laid_out(chest, bell, "expansion", seed)
        if found is not None:
            _, outline, layout = found
            assert ndimage.label(layout.shown)[1] == ndimage.label(outline.mask)[1] == 1


@pytest.mark.parametrize(("most", "wanted"), [(1, "expansion"), (3, "contraction"), (2, "both")])
def test_edits_are_at_most_as_many_as_allowed_and_make_a_major_revision(chest, most, wanted):
    counts = set()
    for seed in range(5):
        space = ground_of(chest, "bilateral", seed=seed)
        try:
            edits = find_edits(space, wanted, most=most, wide=0.8)
        except Ineligible:
            continue
        counts.add(len(edits))
        shown = space.outline.mask.copy()
        for site in edits:
            shown ^= change_mask(space.outline, site.change)
        both, either = (shown & space.outline.mask).sum(), (shown | space.outline.mask).sum()
        # Pieces may come out a fifth smaller than planned.
        assert RULES.revise_low <= both / either <= RULES.revise_high + 0.05
    assert counts
    assert max(counts) <= max(most, 2 if wanted == "both" else 1)
