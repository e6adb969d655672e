"""Masks to choose from: separated on the pixels, of the kinds that they say, drawn as all contours are."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import ndimage

from carina.percept import mask_options
from carina.percept.contour_features import measure_features
from carina.percept.deform import apply_changes
from carina.percept.layout import Layout, find_layouts
from carina.percept.mask_options import KEY, Sizes, make_mask_pool, measure_squares
from carina.percept.outline import draw_outline
from carina.percept.rules import Ineligible, Rules
from carina.store.seeding import rng

RULES = Rules()


@pytest.fixture(scope="module")
def layouts(chest):
    """Outlines with what was planned on them."""
    made = []
    for name in ("bilateral", "lower", "pieces"):
        for seed in range(4):
            scene = chest.scene(chest.lesions()[name])
            outline = draw_outline(scene, RULES, rng(seed, name))
            for layout in find_layouts(outline, scene.anatomy, RULES, chance=rng(seed, "edits")):
                if isinstance(layout, Layout) and (pool := try_masks(outline, layout)) is not None:
                    made.append((outline, layout, pool))
                    break
    assert len(made) >= 5
    return made


def try_masks(outline, layout):
    try:
        return make_mask_pool(outline, layout, RULES)
    except Ineligible:
        return None


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


def test_wrong_masks_are_the_right_one_with_one_wrong_state(analyses):
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        masks = [choice.region.to_mask() for choice in one.masks]
        kinds = [choice.kind for choice in one.masks]
        assert kinds[0] == KEY
        assert KEY not in kinds[1:]
        assert len(masks) >= 3
        np.testing.assert_array_equal(masks[0], revised)
        assert (one.shown_area, one.shown_change) == (shown.sum(), (shown ^ revised).sum())
        for choice, mask in zip(one.masks, masks, strict=True):
            assert choice.area == mask.sum()
            assert choice.change == (mask ^ revised).sum()
            assert choice.as_shown == ((mask ^ revised) & (shown ^ revised)).sum()


def test_the_four_masks_of_every_square_differ_as_the_rules_demand(analyses):
    for one in analyses[:6]:
        shown = one.shown.to_mask()
        masks = [choice.region.to_mask() for choice in one.masks]
        assert one.squares
        for first, second in one.squares:
            four = [masks[0], masks[first], masks[second], masks[0] ^ masks[first] ^ masks[second]]
            assert not ((masks[0] ^ masks[first]) & (masks[0] ^ masks[second])).any()
            assert all(overlap(wrong, four[0]) <= RULES.option_iou_key for wrong in four[1:])
            assert all(overlap(a, b) <= RULES.option_iou for a, b in combinations(four[1:], 2))
            assert all(overlap(mask, shown) <= RULES.option_iou for mask in four)


def test_overlaps_in_a_square_follow_from_sizes():
    right, shown = np.zeros((2, 10, 10), bool)
    right[2:8, 2:8] = True
    shown[2:8, 2:6] = True
    first, second = right.copy(), right.copy()
    first[2:8, 6:8] = False  # as shown
    second[0:2, 2:8] = True
    four = [right, first, second, right ^ (right ^ first) ^ (right ^ second)]
    sizes = Sizes(areas=np.array([36, 24, 48]), changes=np.array([0, 12, 12]), as_shown=np.array([0, 12, 0]))
    found = measure_squares(np.array([[1, 2]]), sizes, shown=24, shown_change=12)
    np.testing.assert_allclose(found.between[0], [[overlap(a, b) for b in four] for a in four])
    np.testing.assert_allclose(found.shown[0], [overlap(mask, shown) for mask in four])
    assert found.added[0].tolist() == [(mask & ~shown).sum() for mask in four]
    assert found.removed[0].tolist() == [(shown & ~mask).sum() for mask in four]


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
        for option in one.masks[1:]:
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
            assert option.features == pytest.approx(measure_features(option.mask, outline.scale))


def test_drawing_what_changed_equals_drawing_everything(layouts):
    for outline, layout, _ in layouts:
        for state in mask_options._list_states(layout):
            change = state.change
            mask = apply_changes(outline.mask, [change])
            differ = outline.draw_changed(mask, [change.window]) ^ outline.draw(mask)
            assert differ.sum() <= 2  # rounding of sums


def test_an_edit_that_is_left_is_as_in_the_shown_mask(layouts):
    seen = 0
    for outline, layout, pool in layouts:
        edits, _ = ndimage.label(layout.shown ^ outline.revised)
        for site in layout.sites:
            if site.mistake == "left":
                seen += 1
                left = outline.revised ^ (edits == edits[site.point])
                assert any((option.mask == left).all() for option in pool.masks[1:])
    assert seen


def test_in_one_direction_no_mask_changes_the_shown_contour_in_the_other(layouts):
    """A little of the other direction would tell masks whose revision is not quite the planned one."""
    seen = 0
    for _, layout, pool in layouts:
        sizes = [size for planned in layout.plan.sites for size in planned.versions]
        for one, other in pool.squares:
            right, first, second = (pool.masks[n].mask for n in (0, one, other))
            four = (right, first, second, right ^ (right ^ first) ^ (right ^ second))
            if min(sizes) >= 0:
                assert not any((layout.shown & ~mask).any() for mask in four)
                seen += 1
            if max(sizes) <= 0:
                assert not any((mask & ~layout.shown).any() for mask in four)
                seen += 1
    assert seen


def test_masks_that_are_too_similar_are_refused(layouts):
    outline, layout, _ = layouts[0]
    with pytest.raises(Ineligible) as found:
        make_mask_pool(outline, layout, Rules(option_iou_key=0.2))
    assert found.value.reason == "no mask options"
    assert "none differ enough" in found.value.detail
    with pytest.raises(Ineligible) as found:
        make_mask_pool(outline, layout, Rules(option_iou_key=0.949, option_iou=0.5))
    assert found.value.reason == "no mask options"


def test_the_same_layout_makes_the_same_masks(layouts):
    outline, layout, _ = layouts[0]
    one, same = (make_mask_pool(outline, layout, RULES) for _ in range(2))
    for a, b in zip(one.masks, same.masks, strict=True):
        assert (a.kind, a.features) == (b.kind, b.features)
        np.testing.assert_array_equal(a.mask, b.mask)


def test_every_wrong_mask_differs_from_the_right_one_in_one_piece(layouts):
    # Specks at the ends of a change would tell wrong masks: the shown contour has none at its edits.
    for outline, layout, pool in layouts:
        shown = ndimage.label(layout.shown ^ outline.revised)[1]
        assert shown == len(layout.edits)
        for option in pool.masks[1:]:
            assert ndimage.label(option.mask ^ outline.revised)[1] == 1
