"""The redrawn truth: near to it, within the field, the same for the same seed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from carina.percept.outline import coarsen, draw_outline, iou, signed_distance
from carina.percept.rules import Ineligible, Rules
from carina.store.seeding import rng

RULES = Rules()


@given(
    name=st.sampled_from(["large", "oblique", "bilateral", "pieces", "filling", "lower"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=25)
def test_the_outline_agrees_with_the_truth_and_stays_in_the_field(chest, name, seed):
    scene = chest.scene(chest.lesions()[name])
    outline = draw_outline(scene, RULES, rng(seed))
    drawn = outline.on_image(outline.revised)
    both, either = (drawn & scene.truth).sum(), (drawn | scene.truth).sum()
    assert both / either >= RULES.good_iou
    assert iou(drawn, scene.truth) == both / either
    assert not (drawn & ~scene.field).any()
    np.testing.assert_array_equal(outline.on_image(outline.mask), scene.truth)
    np.testing.assert_array_equal(
        outline.on_image(outline.field)[outline.window], scene.field[outline.window]
    )


def test_the_outline_depends_on_the_seed(chest):
    scene = chest.scene(chest.lesions()["bilateral"])
    one, same, other = (draw_outline(scene, RULES, rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.revised, same.revised)
    assert (one.revised != other.revised).any()
    assert (one.on_image(one.revised) != scene.truth).any()


def test_the_depth_of_an_outline_is_the_distance_to_its_contour(chest):
    scene = chest.scene(chest.lesions()["large"])
    outline = draw_outline(scene, RULES, rng(3))
    inside = ndimage.distance_transform_edt(outline.mask) - 0.5
    outside = 0.5 - ndimage.distance_transform_edt(~outline.mask)
    exact = np.where(outline.mask, inside, outside)
    # Blurred by half a pixel, and the quick distance is off by two in a hundred.
    assert np.abs(outline.depth - exact).max() <= 0.6 + 0.021 * np.abs(exact).max()
    clear = np.abs(exact) > 1.5
    np.testing.assert_array_equal((outline.depth > 0)[clear], outline.mask[clear])


def test_a_lesion_that_cannot_be_redrawn_well_enough_is_refused(chest):
    speckled = chest.lesions()["large"] & (np.random.default_rng(1).random((256, 256)) < 0.5)
    with pytest.raises(Ineligible) as found:
        draw_outline(chest.scene(speckled), RULES, rng(1))
    assert found.value.reason == "too thin to redraw"
    assert found.value.detail.startswith("a redrawn contour agrees to 0.")


def test_thin_lesions_are_redrawn_more_gently_until_they_agree(chest):
    # Lines of two pixels, six apart, that a blur of half a pixel would still change.
    grid = np.zeros((256, 256), bool)
    for row in range(60, 200, 6):
        grid[row : row + 2, 40:110] = True
    truth = grid & chest.lungs()[0]
    outline = draw_outline(chest.scene(truth), RULES, rng(1))
    assert iou(outline.on_image(outline.revised), truth) >= RULES.good_iou


def test_a_lesion_at_the_border_of_the_image_has_a_window_within_it(chest):
    truth = chest.ellipse(10, 250, 40, 60)
    outline = draw_outline(chest.scene(truth, target="cardiomegaly"), RULES, rng(1))
    rows, columns = outline.window
    assert (columns.start, rows.stop) == (0, 256)
    # 200 px of the frame are 50 here; the ellipse ends at column 49 and begins at row 190.
    assert (columns.stop, rows.start) == (50 + 50, 190 - 50)


def test_signed_distance_is_half_a_pixel_on_either_side(chest):
    distance = signed_distance(chest.rectangle(100, 100, 20, 20))
    assert distance[105, 100] == 0.5
    assert distance[105, 99] == -0.5
    assert distance[105, 103] == 3.5
    assert distance[110, 90] == pytest.approx(-9.5)


def test_every_mask_is_drawn_with_rounded_corners_and_within_the_field(chest):
    scene = chest.scene(chest.lesions()["lower"])
    outline = draw_outline(scene, RULES, rng(1))
    square = np.zeros_like(outline.mask)
    square[20:80, 20:80] = True
    drawn = outline.draw(square)
    assert not (drawn & ~outline.field).any()
    whole = replace(outline, field=np.ones_like(outline.field), blur=6.0)
    assert not whole.draw(square)[20, 20]
    assert whole.draw(square)[50, 50]


def test_unchanged_parts_of_two_masks_are_drawn_alike(chest):
    outline = draw_outline(chest.scene(chest.lesions()["bilateral"]), RULES, rng(1))
    changed = outline.mask.copy()
    changed[:, : changed.shape[1] // 3] = False
    rest = slice(changed.shape[1] // 3 + 10, None)
    np.testing.assert_array_equal(outline.draw(changed)[:, rest], outline.revised[:, rest])


@pytest.mark.parametrize(("shape", "longest"), [("square", 60.0), ("disc", 30.0)])
def test_the_sides_of_a_square_are_longer_than_those_of_a_disc(chest, shape, longest):
    """A polygon 0.75 px (3 px of the frame) from a circle of radius 30 has sides of up to 2 sqrt(2 x 30 x 0.75) px."""
    mask = chest.rectangle(100, 60, 60, 60) if shape == "square" else chest.ellipse(90, 130, 30, 30)
    outline = draw_outline(chest.scene(mask), Rules(good_iou=0.9), rng(1))
    assert (
        outline.side_length == pytest.approx(59, abs=1)
        if shape == "square"
        else outline.side_length < longest
    )


def test_a_coarse_copy_has_the_averages_of_whole_blocks_of_pixels(chest):
    outline = draw_outline(chest.scene(chest.lesions()["bilateral"]), RULES, rng(1))
    half = coarsen(outline, 2)
    assert half.scale == outline.scale / 2
    assert half.shape == (128, 128)
    assert half.mask.shape == half.field.shape == half.depth.shape
    assert half.area * 4 == pytest.approx(outline.area, rel=0.02)
    # A pixel of it is set where at least two of its four are.
    rows, columns = half.mask.shape
    fours = outline.mask[: 2 * rows, : 2 * columns].reshape(rows, 2, columns, 2).sum(axis=(1, 3))
    np.testing.assert_array_equal(half.mask, fours >= 2)


def test_the_iou_of_empty_masks_is_nan():
    nothing = np.zeros((3, 3), bool)
    assert np.isnan(iou(nothing, nothing))
    assert iou(nothing, ~nothing) == 0.0
    assert iou(~nothing, ~nothing) == 1.0
