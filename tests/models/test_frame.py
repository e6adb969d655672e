"""Coordinates, masks and maps between an image and a model's input: nothing moves on the way."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carina.models.frame import Frame

sides = st.integers(1, 70)


@st.composite
def frames(draw):
    height, width = draw(sides), draw(sides)
    made = {
        "stretched": lambda: Frame.stretched(height, width, side=64),
        "padded": lambda: Frame.padded(height, width, longest=draw(st.sampled_from([48, 64])), side=64),
        "letterboxed": lambda: Frame.letterboxed(
            height, width, longest=draw(st.sampled_from([64, 73])), side=64
        ),
        "cropped": lambda: Frame.cropped(height, width, shortest=draw(st.sampled_from([64, 69])), side=64),
    }
    return made[draw(st.sampled_from(sorted(made)))]()


def test_the_longer_side_fills_the_input():
    # 200 x 100 to 64: a factor of 0.32.
    assert Frame.padded(200, 100, longest=64, side=64) == Frame(200, 100, 64, 32, 64)
    assert Frame.padded(100, 200, longest=64, side=64) == Frame(100, 200, 32, 64, 64)
    # 75 * 64 / 101 = 47.5 and 47.52: halves go up, as in SAM's own code.
    assert Frame.padded(101, 75, longest=64, side=64).columns == 48


def test_a_point_is_scaled_with_the_resized_image():
    frame = Frame.padded(101, 75, longest=64, side=64)
    np.testing.assert_allclose(frame.to_input(np.array([[75.0, 101.0], [37.5, 0.0]])), [[48, 64], [24, 0]])


def test_a_hand_made_map_comes_back_at_the_pixels():
    # Two cells over an input of 4; an image of 4 x 4: centres at -0.25, 0.25, 0.75, 1.25 of the map.
    frame = Frame.stretched(4, 4, side=4)
    low = np.array([[0.0, 4.0], [0.0, 4.0]], np.float32)
    np.testing.assert_allclose(frame.to_image(low), np.tile([0, 1, 3, 4], (4, 1)))


@given(frame=frames(), low=st.sampled_from([8, 16, 18]), slope=st.tuples(*[st.floats(-3, 3)] * 3))
def test_a_linear_map_is_resampled_exactly(frame, low, slope):
    """A linear function of the image's own coordinates, as the model would give it at the centres of its cells."""
    a, b, c = slope
    centres = (np.arange(low) + 0.5) * 64 / low
    x, y = frame.from_input(np.stack([centres, centres], axis=1)).T
    values = (a * x + b * y[:, None] + c).astype(np.float32)
    got = frame.to_image(values)
    assert got.shape == (frame.height, frame.width)
    columns, rows = np.arange(frame.width) + 0.5, np.arange(frame.height) + 0.5
    # Beyond the outermost centres a map is constant.
    columns, rows = np.clip(columns, x[0], x[-1]), np.clip(rows, y[0], y[-1])
    np.testing.assert_allclose(got, a * columns + b * rows[:, None] + c, atol=2e-3, rtol=1e-4)


@given(frame=frames(), seed=st.integers(0, 99))
def test_a_mask_keeps_its_area(frame, seed):
    assume(frame.sees_all)
    mask = np.random.default_rng(seed).random((frame.height, frame.width)) < 0.4
    cell = (64 / 16) ** 2 * (frame.height / frame.rows) * (frame.width / frame.columns)
    assert float(frame.cover(mask, 16).sum(dtype=np.float64)) * cell == pytest.approx(mask.sum(), rel=1e-5)


@given(frame=frames(), seed=st.integers(0, 99))
def test_a_mask_covers_the_cells_it_lies_on(frame, seed):
    """Against the same picture drawn very finely."""
    mask = np.random.default_rng(seed).random((frame.height, frame.width)) < 0.5
    fine = np.zeros((16 * 60, 16 * 60))
    centres = (np.arange(16 * 60) + 0.5) * 64 / (16 * 60)
    columns, rows = frame.from_input(np.stack([centres, centres], axis=1)).T
    down, right = (rows >= 0) & (rows < frame.height), (columns >= 0) & (columns < frame.width)
    fine[np.ix_(down, right)] = mask[np.ix_(rows[down].astype(int), columns[right].astype(int))]
    by_hand = fine.reshape(16, 60, 16, 60).mean(axis=(1, 3))
    np.testing.assert_allclose(frame.cover(mask, 16), by_hand, atol=0.14)
    assert abs(frame.cover(mask, 16) - by_hand).mean() < 0.03


@given(frame=frames(), x=st.floats(0, 0.999), y=st.floats(0, 0.999))
def test_a_map_peaks_where_the_model_marks_the_point(frame, x, y):
    assume(min(frame.height, frame.width) >= 16)  # else whole cells lie between two pixels
    x, y = x * frame.width, y * frame.height
    at = frame.to_input(np.array([[x, y]]))[0]
    assume(((at >= 0) & (at < 64)).all())
    column, row = (at * 16 / 64).astype(int)
    low = np.zeros((16, 16), np.float32)
    low[row, column] = 1
    # What lies in a margin that the model does not see has a value that says nothing.
    seen = np.where(frame.seen(), frame.to_image(low), -1)
    # The cell is so large on the image; the peak lies in it or, where it holds no pixel's centre, beside it.
    high, wide = 4 * frame.height / frame.rows, 4 * frame.width / frame.columns
    peak_y, peak_x = np.unravel_index(int(seen.argmax()), seen.shape)
    assert abs(peak_x + 0.5 - x) <= wide + 0.5
    assert abs(peak_y + 0.5 - y) <= high + 0.5


def test_mask_and_map_are_inverse_where_cells_are_pixels():
    mask = np.zeros((32, 24), bool)
    mask[5:20, 3:9] = True
    frame = Frame(32, 24, 32, 24, 32)
    covered = frame.cover(mask, 32)
    assert covered[:, 24:].sum() == 0
    np.testing.assert_array_equal(frame.to_image(covered) > 0.5, mask)


def test_only_the_middle_of_a_cropped_image_is_seen():
    # 200 x 100 to 256: 256 x 128, 64 columns of padding at each side; the middle 224 begin 16 further in.
    frame = Frame.letterboxed(200, 100, longest=256, side=224)
    assert frame == Frame(200, 100, 256, 128, 224, -16, 48)
    assert not frame.sees_all
    # 16 rows of 256 are 12.5 of 200: rows 0-11 are not seen, the centre of row 12 is on the edge.
    assert frame.seen()[:, 0].nonzero()[0][[0, -1]].tolist() == [12, 187]
    assert frame.seen().all(axis=0).sum() == 0
    assert Frame.letterboxed(200, 100, longest=320) == Frame(200, 100, 320, 160, 320, 0, 80)
    # The shorter side to 512, of which 480: 16 off it, and 272 off either end of the longer one.
    frame = Frame.cropped(200, 100, shortest=512, side=480)
    assert frame == Frame(200, 100, 1024, 512, 480, -272, -16)
    assert frame.seen().sum() == sum(272 <= (n + 0.5) * 5.12 <= 752 for n in range(200)) * sum(
        16 <= (n + 0.5) * 5.12 <= 496 for n in range(100)
    )


@given(frame=frames(), x=st.floats(-50, 150), y=st.floats(-50, 150))
def test_points_round_trip_between_image_and_input(frame, x, y):
    points = np.array([[x, y]])
    np.testing.assert_allclose(frame.from_input(frame.to_input(points)), points, atol=1e-9)


@given(frame=frames(), seed=st.integers(0, 99))
def test_the_square_shows_the_image_where_the_frame_says(frame, seed):
    """Every pixel of the square is that of the resized image at its place, or padding."""
    resized = np.random.default_rng(seed).integers(1, 255, (frame.rows, frame.columns, 3), np.uint8)
    square = frame.place(resized)
    for row, column in np.random.default_rng(seed).integers(0, 64, (20, 2)):
        y, x = row - frame.top, column - frame.left
        inside = 0 <= y < frame.rows and 0 <= x < frame.columns
        assert square[row, column].tolist() == (resized[y, x].tolist() if inside else [0, 0, 0])


@given(frame=frames(), low=st.sampled_from([7, 14, 16]), data=st.data())
def test_a_hot_cell_lands_on_the_pixels_it_was_computed_from(frame, low, data):
    row, column = data.draw(st.integers(0, low - 1)), data.draw(st.integers(0, low - 1))
    hot = np.zeros((low, low), np.float32)
    hot[row, column] = 1
    placed = frame.to_image(hot, "nearest") > 0
    for y, x in np.argwhere(placed & frame.seen()):
        at_x, at_y = frame.to_input(np.array([[x + 0.5, y + 0.5]]))[0] * low / 64
        assert column - 1e-9 <= at_x <= column + 1 + 1e-9
        assert row - 1e-9 <= at_y <= row + 1 + 1e-9
    # What is far from the cell, seen or not, is cold: the area of all cells is the image.
    whole = sum(
        frame.to_image(np.eye(1, low * low, n, dtype=np.float32).reshape(low, low), "nearest")
        for n in range(low * low)
    )
    assert (whole == 1).all()


TORCH_SHAPES = [
    ((7, 7), (333, 391)), ((10, 12), (1402, 1100)), ((14, 14), (1024, 900)), ((38, 38), (390, 320)),
    ((512, 512), (300, 200)), ((2, 3), (100, 64)),
]  # fmt: skip
"""Sizes of maps and of images: enlarged, reduced and stretched. Torch has another kernel for images up to 64 x 64."""


@pytest.mark.parametrize(("cells", "pixels"), TORCH_SHAPES)
def test_every_digit_of_a_map_in_the_pixels_is_that_of_torch(cells, pixels):
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(cells[0]).standard_normal(cells).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(values)[None, None], size=pixels, mode="bilinear", align_corners=False
    )[0, 0].numpy()
    found = Frame.stretched(*pixels, side=224).to_image(values, "torch")
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        np.testing.assert_array_equal(found, expected)
    else:  # torch rounds once more where the processor has no fused multiply-add
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@given(frames(), st.integers(0, 9))
def test_both_interpolations_differ_by_rounding_only(frame, seed):
    values = np.random.default_rng(seed).random((5, 6)).astype(np.float32)
    np.testing.assert_allclose(frame.to_image(values, "torch"), frame.to_image(values), rtol=0, atol=1e-5)


def test_a_large_map_is_interpolated_as_its_rows_are_one_by_one():
    # Rows are interpolated some at a time; where a block begins changes nothing.
    frame = Frame.letterboxed(150, 90, longest=64)
    values = np.random.default_rng(1).random((9, 9)).astype(np.float32)
    for how in ("linear", "torch"):
        whole = frame.to_image(values, how)
        turned = Frame.letterboxed(90, 150, longest=64).to_image(np.ascontiguousarray(values.T), how)
        np.testing.assert_allclose(whole, turned.T, rtol=0, atol=1e-6)
