"""Masks to choose from: separated on the pixels, of the kinds that they say, drawn as all contours are."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import ndimage

from carina.percept import mask_options
from carina.percept.contour_features import measure_features
from carina.percept.deform import apply_changes
from carina.percept.layout import make_layout
from carina.percept.mask_options import KEY, MOST_DRAWN, list_option_sets, make_mask_pool
from carina.percept.outline import draw_outline
from carina.percept.rules import Ineligible, Rules
from carina.store.seeding import rng

RULES = Rules()


@pytest.fixture(scope="module")
def layouts(chest):
    """Outlines with what was planned on them."""
    made = []
    for name in ("bilateral", "lower", "pieces"):
        for seed, wanted in enumerate(("expansion", "contraction", "both")):
            scene = chest.scene(chest.lesions()[name])
            outline = draw_outline(scene, RULES, rng(seed, name))
            try:
                layout = make_layout(outline, scene.anatomy, RULES, wanted=wanted, chance=rng(seed, "edits"))
                pool = make_mask_pool(outline, layout, RULES, rng(seed, "options"))
            except Ineligible:
                continue
            made.append((outline, layout, pool))
    assert len(made) >= 5
    return made


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


def test_wrong_masks_differ_from_the_right_one_and_from_the_shown_contour(analyses):
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        masks = [choice.region.to_mask() for choice in one.masks]
        kinds = [choice.kind for choice in one.masks]
        assert kinds[0] == KEY
        assert KEY not in kinds[1:]
        assert 4 <= len(masks) <= 1 + MOST_DRAWN
        np.testing.assert_array_equal(masks[0], revised)
        for wrong in masks[1:]:
            assert overlap(wrong, revised) <= RULES.option_iou_key
        for n, mask in enumerate(masks):
            assert overlap(mask, shown) <= RULES.option_iou
            assert (mask != shown).any()
            assert one.masks[n].features[-1] == pytest.approx(overlap(mask, shown))


def test_sets_of_four_hold_the_right_mask_and_three_that_differ(analyses):
    for one in analyses[:6]:
        overlaps = np.array(one.mask_overlaps)
        sets = list_option_sets(overlaps, RULES)
        assert len(sets)
        assert (sets[:, 0] == 0).all()
        masks = [choice.region.to_mask() for choice in one.masks]
        for a, b in combinations(range(len(masks)), 2):
            assert overlaps[a, b] == pytest.approx(overlap(masks[a], masks[b]), abs=1e-9)
        found = {tuple(four) for four in sets.tolist()}
        for three in combinations(range(1, len(masks)), 3):
            apart = all(overlap(masks[a], masks[b]) <= RULES.option_iou for a, b in combinations(three, 2))
            assert ((0, *three) in found) is apart


def seen_kinds(option, shown, revised):
    """What went wrong, by the pixels: pieces of the difference, thicker than what ironing changes."""
    edits, count = ndimage.label(shown ^ revised)
    core = ndimage.binary_opening(option ^ revised, np.ones((3, 3)))
    pieces, found = ndimage.label(core)
    kinds = set()
    for n in range(1, found + 1):
        piece = pieces == n
        if piece.sum() < 0.03 * revised.sum():
            continue
        near = ndimage.binary_dilation(piece, iterations=2)
        touched = [k for k in range(1, count + 1) if (near & (edits == k)).any()]
        if not touched:
            kinds.add("wrong_place")
            continue
        edit = edits == touched[0]
        if (option & piece).any() != (shown & edit).any():
            kinds.add("overshoot")
        elif piece.sum() > 1.2 * edit.sum():
            kinds.add("wrong_operation")
        else:
            kinds.add("partial")
    return kinds


def test_the_kind_of_an_option_states_its_errors(analyses):
    right, total = 0, 0
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        for option in one.masks[1:4]:
            total += 1
            stated = set(option.kind.split("+"))
            seen = seen_kinds(option.region.to_mask(), shown, revised)
            right += seen == stated
            assert stated <= {"partial", "wrong_operation", "wrong_place", "overshoot"}
            assert option.kind == "+".join(sorted(stated))
    # Smoothing and touching pieces blur the picture a little.
    assert right / total >= 0.85, (right, total)


def test_every_kind_of_error_is_made(analyses):
    kinds = Counter(kind for one in analyses for option in one.masks[1:] for kind in option.kind.split("+"))
    assert set(kinds) == {"partial", "wrong_operation", "wrong_place", "overshoot"}


def test_all_masks_stay_in_the_field_and_are_drawn_in_the_same_way(layouts):
    for outline, _, pool in layouts:
        np.testing.assert_array_equal(pool.masks[0].mask, outline.revised)
        for option in pool.masks:
            assert not (option.mask & ~outline.field).any()
            assert option.features[:-1] == pytest.approx(measure_features(option.mask, outline.scale))


def test_drawing_what_changed_equals_drawing_everything(layouts):
    for outline, layout, _ in layouts:
        sites = mask_options._list_states(layout)
        for states in sites:
            change = states[1].change
            mask = apply_changes(outline.mask, [change])
            differ = outline.draw_changed(mask, [change.window]) ^ outline.draw(mask)
            assert differ.sum() <= 2  # rounding of sums


def test_the_state_of_every_edit_left_as_shown_is_the_shown_mask(layouts):
    for outline, layout, _ in layouts:
        sites = mask_options._list_states(layout)
        edits = [sites[n][1].change for n in range(len(layout.edits))]
        # But for specks away from the points of the edits.
        differ = outline.draw(apply_changes(outline.mask, edits)) ^ layout.shown
        assert differ.sum() <= 0.02 * outline.area
        assert all(states[0].change is None for states in sites)


def test_masks_that_are_too_similar_are_refused(layouts):
    outline, layout, _ = layouts[0]
    with pytest.raises(Ineligible) as found:
        make_mask_pool(outline, layout, Rules(option_iou_key=0.2), rng(1))
    assert found.value.reason == "no mask options"
    assert found.value.detail == "0 wrong masks are far enough from the right one"
    with pytest.raises(Ineligible) as found:
        make_mask_pool(outline, layout, Rules(option_iou_key=0.949, option_iou=0.5), rng(1))
    assert found.value.reason == "no mask options"


def test_the_same_seed_makes_the_same_masks(layouts):
    outline, layout, _ = layouts[0]
    one, same = (make_mask_pool(outline, layout, RULES, rng(7)) for _ in range(2))
    for a, b in zip(one.masks, same.masks, strict=True):
        assert (a.kind, a.features) == (b.kind, b.features)
        np.testing.assert_array_equal(a.mask, b.mask)
