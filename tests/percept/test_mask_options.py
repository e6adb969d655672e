"""Four masks to choose from: separated on the pixels, of the kinds that they say, measured right undrawn."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from carina.percept import mask_options
from carina.percept.deform import apply_changes, edge_length
from carina.percept.layout import make_layout
from carina.percept.mask_options import KEY, RULES_OF_THUMB, make_option_sets
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
                sets = make_option_sets(outline, layout, RULES, rng(seed, "options"))
            except Ineligible:
                continue
            made.append((outline, layout, sets))
    assert len(made) >= 5
    return made


def overlap(one, other):
    return (one & other).sum() / (one | other).sum()


def test_the_four_masks_differ_from_each_other_and_from_the_shown_contour(analyses):
    for one in analyses:
        shown, revised = one.shown.to_mask(), one.revised.to_mask()
        assert one.mask_sets
        for choice in one.mask_sets:
            masks = [option.region.to_mask() for option in choice.options]
            kinds = [option.kind for option in choice.options]
            assert kinds[0] == KEY
            assert KEY not in kinds[1:]
            assert len(masks) == 4
            np.testing.assert_array_equal(masks[0], revised)
            for wrong in masks[1:]:
                assert overlap(wrong, revised) <= RULES.option_iou_key
            for a, b in combinations(masks, 2):
                assert overlap(a, b) <= RULES.option_iou
            for mask in masks:
                assert overlap(mask, shown) <= RULES.option_iou
                assert (mask != shown).any()


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
        for option in one.mask_sets[0].options[1:]:
            total += 1
            stated = set(option.kind.split("+"))
            seen = seen_kinds(option.region.to_mask(), shown, revised)
            right += seen == stated
            assert stated <= {"partial", "wrong_operation", "wrong_place", "overshoot"}
            assert option.kind == "+".join(sorted(stated))
    # Ironing and touching pieces blur the picture a little.
    assert right / total >= 0.9, (right, total)


def test_every_kind_of_error_is_made(analyses):
    kinds = Counter(
        kind
        for one in analyses
        for choice in one.mask_sets
        for option in choice.options[1:]
        for kind in option.kind.split("+")
    )
    assert set(kinds) == {"partial", "wrong_operation", "wrong_place", "overshoot"}


def test_all_masks_stay_in_the_field_and_start_from_the_same_contour(layouts):
    for outline, _, sets in layouts:
        for choice in sets:
            np.testing.assert_array_equal(choice.options[0].mask, outline.mask)
            for option in choice.options:
                assert not (option.mask & ~outline.field).any()


def test_what_stands_out_is_recomputed_from_the_masks(layouts):
    for _, layout, sets in layouts:
        for choice in sets:
            masks = [option.mask for option in choice.options]
            area = [int(mask.sum()) for mask in masks]
            rough = [edge_length(mask) ** 2 / mask.sum() for mask in masks]
            typical = [sum(overlap(a, b) for b in masks) for a in masks]
            near = [overlap(mask, layout.shown) for mask in masks]
            for high, low, score in (
                ("largest", "smallest", area),
                ("roughest", "smoothest", rough),
                ("most typical", "least typical", typical),
                ("closest to the shown", "farthest from the shown", near),
            ):
                assert {high, low} <= set(RULES_OF_THUMB)
                assert (high in choice.stands_out) == (score[0] == max(score))
                assert (low in choice.stands_out) == (score[0] == min(score))


def test_option_sets_differ_in_how_the_right_mask_stands_out(layouts):
    for _, _, sets in layouts:
        assert 1 <= len(sets) <= 4
    assert any(len({choice.stands_out for choice in sets}) > 1 for _, _, sets in layouts)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_measures_without_drawing_equal_those_of_the_drawn_masks(layouts, seed):
    outline, layout, _ = layouts[seed % len(layouts)]
    sites = mask_options._list_states(layout)
    chance = np.random.default_rng(seed)
    rows = np.array([[chance.integers(len(states)) for states in sites] for _ in range(6)])
    measured = mask_options._measure_masks(rows, sites, outline)
    masks = []
    for row in rows:
        changes = [sites[site][state].change for site, state in enumerate(row)]
        masks.append(apply_changes(outline.mask, [change for change in changes if change is not None]))
    for a in range(len(masks)):
        assert measured.areas[a] == masks[a].sum()
        length = edge_length(masks[a])
        assert measured.roughness[a] == pytest.approx(length**2 / masks[a].sum(), rel=1e-6)
        for b in range(len(masks)):
            assert measured.overlap[a, b] == pytest.approx(overlap(masks[a], masks[b]), abs=1e-12)


def test_the_state_of_every_edit_left_as_shown_is_the_shown_mask(layouts):
    for outline, layout, _ in layouts:
        sites = mask_options._list_states(layout)
        edits = [sites[n][1].change for n in range(len(layout.edits))]
        np.testing.assert_array_equal(apply_changes(outline.mask, edits), layout.shown)
        assert all(states[0].change is None for states in sites)


def test_masks_are_compared_again_on_their_pixels(layouts):
    for _, layout, sets in layouts:
        made = list(sets[0].options)
        assert mask_options._are_apart(made, layout.shown, RULES)
        # The shown mask under another name, the right one once more, and one wrong mask twice.
        for n, double in ((1, layout.shown), (2, made[0].mask), (3, made[1].mask)):
            other = made.copy()
            other[n] = replace(made[n], mask=double.copy())
            assert not mask_options._are_apart(other, layout.shown, RULES)


def test_masks_that_are_too_similar_are_refused(layouts):
    outline, layout, _ = layouts[0]
    with pytest.raises(Ineligible) as found:
        make_option_sets(outline, layout, Rules(option_iou_key=0.2), rng(1))
    assert found.value.reason == "no mask options"
    assert found.value.detail == "0 wrong masks are far enough from the right one"
    with pytest.raises(Ineligible) as found:
        make_option_sets(outline, layout, Rules(option_iou_key=0.949, option_iou=0.5), rng(1))
    assert found.value.reason == "no mask options"


def test_the_same_seed_makes_the_same_choices(layouts):
    outline, layout, _ = layouts[0]
    one, same = (make_option_sets(outline, layout, RULES, rng(7)) for _ in range(2))
    for a, b in zip(one, same, strict=True):
        assert a.stands_out == b.stands_out
        for x, y in zip(a.options, b.options, strict=True):
            assert x.kind == y.kind
            np.testing.assert_array_equal(x.mask, y.mask)
