"""Local changes of a contour: what the warp moves, how much of it, and how long the contour is afterwards."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import ndimage
from skimage.measure import perimeter_crofton

from carina.percept import deform
from carina.percept.deform import (
    LEAST_OF_WANTED,
    Change,
    apply_changes,
    edge_length,
    find_thickest_place,
    make_change,
    warp,
)
from carina.percept.outline import draw_outline
from carina.percept.rules import Rules
from carina.store.seeding import rng

RULES = Rules()
OPERATIONS = st.sampled_from(["expansion", "contraction"])
NAMES = st.sampled_from(["large", "oblique", "bilateral", "pieces", "lower"])


@pytest.fixture(scope="module")
def outlines(chest):
    return {
        name: draw_outline(chest.scene(mask), RULES, rng(1, name)) for name, mask in chest.lesions().items()
    }


def contour_of(mask):
    return np.argwhere(mask & ~ndimage.binary_erosion(mask))


def somewhere(outline, n):
    pixels = contour_of(outline.mask)
    return tuple(int(value) for value in pixels[n % len(pixels)])


def change_mask(outline, change):
    """The change in the outline's window."""
    there = np.zeros_like(outline.mask)
    there[change.window] = change.mask
    return there


def made(outline, n, operation, share, seed=0):
    area = share * outline.area
    window, effort = warp(
        outline, somewhere(outline, n), operation, width=1.1 * float(np.sqrt(area)), chance=rng(seed)
    )
    return make_change(outline, window, effort, operation, area)


@given(name=NAMES, n=st.integers(0, 10**6), operation=OPERATIONS, seed=st.integers(0, 10**6))
@example(name="lower", n=689, operation="expansion", seed=0)
@settings(max_examples=30)
def test_effort_is_the_amplitude_at_which_the_warped_distance_changes_sign(
    outlines, name, n, operation, seed
):
    outline = outlines[name]
    place, width = somewhere(outline, n), 12.0
    kernels = []
    real = deform._make_kernel

    def remembered(*args, **kwargs):
        kernels.append(real(*args, **kwargs))
        return kernels[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deform, "_make_kernel", remembered)
        window, effort = warp(outline, place, operation, width=width, chance=rng(seed))
    kernel, depth = kernels[0], outline.depth[window]
    mask, field = outline.mask[window], outline.field[window]
    finite = effort[np.isfinite(effort)]
    assume(finite.size)
    for near in np.quantile(finite, [0.1, 0.4, 0.8]):
        # Between two efforts that rounding can tell apart, so that rounding decides nothing.
        below, above = finite[finite <= near].max(), np.append(finite[finite > near], near * 1.1).min()
        if above - below < 1e-5 * above:
            continue
        a = (below + above) / 2
        sign = 1 if operation == "expansion" else -1
        warped = depth + sign * np.float32(a) * kernel
        moved = field & (kernel > 0) & ((~mask & (warped > 0)) if sign > 0 else (mask & (warped < 0)))
        # Where smoothing has left a pixel on the other side of zero than its mask, any amplitude moves it.
        # At the rim of the kernel its values are too small to divide by.
        agree = ((depth > 0) == mask) & ((kernel > 1e-6) | (kernel == 0))
        np.testing.assert_array_equal((effort < a)[agree], moved[agree])
    assert not np.isfinite(effort[~field]).any()


@given(
    name=NAMES,
    n=st.integers(0, 10**6),
    operation=OPERATIONS,
    share=st.floats(0.04, 0.4),
)
@settings(max_examples=60)
def test_a_change_is_one_piece_of_the_wanted_area_on_the_right_side(outlines, name, n, operation, share):
    outline = outlines[name]
    change = made(outline, n, operation, share, seed=n)
    assume(change is not None)
    wanted = round(share * outline.area)
    there = change_mask(outline, change)
    assert change.area == there.sum()
    assert LEAST_OF_WANTED * wanted <= change.area <= wanted
    assert ndimage.label(there)[1] == 1
    assert not (there & ~outline.field).any()
    inside = operation == "contraction"
    assert (outline.mask[there] == inside).all()
    assert change.sign == (-1 if inside else 1)
    after = apply_changes(outline.mask, [change])
    np.testing.assert_array_equal(after ^ outline.mask, there)
    assert after.sum() == outline.area + change.sign * change.area
    # It begins at the contour: the piece touches what it grows from or is cut from.
    other = ~outline.mask if inside else outline.mask
    assert (ndimage.binary_dilation(there) & other).any()


@given(name=NAMES, n=st.integers(0, 10**6), operation=OPERATIONS, seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_smaller_change_lies_within_a_larger_one_at_the_same_place(outlines, name, n, operation, seed):
    outline = outlines[name]
    # As half-made and worsened errors are to the edit itself.
    area = 0.12 * outline.area
    window, effort = warp(outline, somewhere(outline, n), operation, width=12.0, chance=rng(seed))
    changes = [make_change(outline, window, effort, operation, k * area) for k in (0.5, 1.0, 1.7)]
    masks = [change_mask(outline, change) for change in changes if change is not None]
    assume(len(masks) > 1)
    for small, large in pairwise(masks):
        assert not (small & ~large).any()


def test_a_change_larger_than_the_room_is_not_made(outlines):
    outline = outlines["large"]
    window, effort = warp(outline, somewhere(outline, 0), "contraction", width=4.0, chance=rng(1))
    room = int(np.isfinite(effort).sum())
    assert make_change(outline, window, effort, "contraction", room + 1) is None
    assert make_change(outline, window, effort, "contraction", room) is not None


def test_a_change_that_falls_apart_is_made_only_if_its_largest_piece_is_large_enough(outlines):
    outline = outlines["large"]
    window = (slice(0, 20), slice(0, 20))
    effort = np.full((20, 20), np.inf, np.float32)
    effort[0, :9], effort[5, :2], effort[10, :9] = 1.0, 2.0, 3.0
    # Of 11, the largest piece has 9; of 20 one of two pieces has 9.
    found = make_change(outline, window, effort, "expansion", 11)
    assert found.area == 9
    np.testing.assert_array_equal(np.argwhere(change_mask(outline, found)), [(0, n) for n in range(9)])
    assert make_change(outline, window, effort, "expansion", 20) is None


@pytest.mark.parametrize("radius", [8, 20, 45])
def test_the_contour_of_a_disc_has_the_length_of_its_circle(chest, radius):
    disc = chest.ellipse(128, 128, radius, radius)
    assert edge_length(disc) == pytest.approx(perimeter_crofton(disc, directions=4), rel=0.005)
    assert edge_length(disc) == pytest.approx(2 * np.pi * radius, rel=0.03)


@pytest.mark.parametrize("side", [10, 40, 101])
def test_the_contour_of_a_square_is_that_of_the_estimator_known_elsewhere(chest, side):
    square = chest.rectangle(60, 60, side, side)
    # Four directions see a square shorter than it is, by the same amount in both.
    assert edge_length(square) == pytest.approx(perimeter_crofton(square, directions=4), rel=0.005)
    assert edge_length(square) == pytest.approx(4 * side, rel=0.12)


@given(name=NAMES, seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_lengths_add_up_over_changes_that_do_not_touch(outlines, name, seed):
    outline = outlines[name]
    chance = np.random.default_rng(seed)
    some: list[Change] = []
    taken = np.zeros_like(outline.mask)
    for operation in ("expansion", "contraction", "expansion"):
        change = made(outline, int(chance.integers(10**6)), operation, 0.08, seed)
        if (
            change is None
            or (ndimage.binary_dilation(change_mask(outline, change), iterations=2) & taken).any()
        ):
            continue
        taken |= change_mask(outline, change)
        some.append(change)
    assume(len(some) > 1)
    after = apply_changes(outline.mask, some)
    np.testing.assert_array_equal(after, outline.mask ^ taken)
    longer = edge_length(after) - edge_length(outline.mask)
    assert longer == pytest.approx(sum(change.edge for change in some), abs=1e-6)


@given(name=NAMES, n=st.integers(0, 10**6), operation=OPERATIONS)
@settings(max_examples=20)
def test_the_thickest_place_is_the_deepest_pixel_of_the_change(outlines, name, n, operation):
    outline = outlines[name]
    change = made(outline, n, operation, 0.15)
    assume(change is not None)
    place, thickness = find_thickest_place(change)
    exact = ndimage.distance_transform_edt(np.pad(change_mask(outline, change), 1))[1:-1, 1:-1]
    assert change_mask(outline, change)[place]
    # The quick distance is off by two in a hundred.
    assert exact[place] >= 0.96 * exact.max()
    assert thickness == pytest.approx(2 * exact[place] - 1, rel=0.05)


def test_a_change_does_not_depend_on_anything_but_its_seed(outlines):
    one, same, other = (made(outlines["large"], 5, "expansion", 0.2, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(change_mask(outlines["large"], one), change_mask(outlines["large"], same))
    assert (change_mask(outlines["large"], one) != change_mask(outlines["large"], other)).any()
