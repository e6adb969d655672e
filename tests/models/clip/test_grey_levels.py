"""Grey values before anything else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from carina.models.clip.grey_levels import equalise_grey_levels, stretch_grey_levels
from carina.models.clip.preprocessing import Preparation
from carina.models.frame import Frame

IMAGES = arrays.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12)))


def test_the_full_range_is_used_by_hand():
    image = np.array([[10, 20], [30, 60]], np.uint8)
    # Tenths, two tenths and four tenths of 50, cut after the decimal point.
    assert stretch_grey_levels(image).tolist() == [[0, 51], [102, 255]]
    assert stretch_grey_levels(np.full((2, 3), 7, np.uint8)).tolist() == [[0, 0, 0], [0, 0, 0]]


@given(IMAGES)
def test_stretched_grey_levels_reach_from_0_to_255(image):
    made = stretch_grey_levels(image)
    assert made.dtype == np.uint8
    if image.min() < image.max():
        assert (made.min(), made.max()) == (0, 255)
        assert (
            made.flat[np.argsort(image.flat, kind="stable")][:-1]
            <= made.flat[np.argsort(image.flat, kind="stable")][1:]
        ).all()


@given(IMAGES)
def test_equalised_grey_levels_equal_scikit_image(image):
    exposure = pytest.importorskip("skimage.exposure", reason="only for comparison")
    expected = (255 * exposure.equalize_hist(image.astype(float) / 255)).astype(np.uint8)
    np.testing.assert_array_equal(equalise_grey_levels(image), expected)


def test_equalised_grey_levels_equal_values_worked_out_by_hand():
    image = np.array([[0, 0, 0, 255]], np.uint8)
    # Three quarters are no brighter than the darkest, all are than the brightest.
    assert equalise_grey_levels(image).tolist() == [[191, 191, 191, 255]]


def test_grey_levels_are_transformed_before_resizing():
    made = Preparation(
        fit=lambda height, width: Frame.stretched(height, width, side=1),
        side=1, resample="pil bilinear", mean=(0.0,) * 3, std=(1.0,) * 3, tone=stretch_grey_levels,
    )(np.array([[100, 100, 100, 200]], np.uint8))  # fmt: skip
    # Resized first, it would be of one value, and black.
    assert made[0, 0, 0] > 0.1


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        # rows, columns, side, top, left
        ("medklip", (400, 300), (224, 224, 224, 0, 0)),
        ("kad", (400, 300), (512, 512, 512, 0, 0)),
        ("mavl", (300, 400), (224, 224, 224, 0, 0)),
        ("carzero", (400, 300), (256, 192, 224, -16, 16)),
        ("gloria", (300, 400), (192, 256, 224, 16, -16)),
        ("afloc", (400, 300), (224, 168, 224, 0, 28)),
        ("biovil", (600, 1200), (512, 1024, 480, -16, -272)),
        ("biovil-t", (1200, 600), (1024, 512, 448, -288, -32)),
    ],
)
def test_images_lie_where_each_publication_puts_them(opened, kind, size, expected):
    frame = opened(kind).frame(*size)
    assert (frame.rows, frame.columns, frame.side, frame.top, frame.left) == expected


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [
        ("kad", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("mavl", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("carzero", (0.4978,) * 3, (0.2449,) * 3),
        ("gloria", (0.5,) * 3, (0.5,) * 3),
        ("afloc", (0.5,) * 3, (0.5,) * 3),
    ],
)
def test_grey_values_are_scaled_as_published(opened, kind, mean, std):
    model = opened(kind)
    made = model.prepare(np.full((300, 300), 102, np.uint8))
    expected = (0.4 - np.array(mean)) / np.array(std)
    np.testing.assert_allclose(made[:, 112, 112], expected, rtol=1e-5, atol=1e-6)


def test_medklip_sees_equalised_and_biovil_stretched_values(opened):
    halves = np.full((64, 64), 40, np.uint8)
    halves[:, 32:] = 90
    made = opened("biovil").prepare(halves)
    assert (made.min(), made.max()) == (0.0, 1.0)
    image = np.random.default_rng(0).integers(40, 90, (64, 64), dtype=np.uint8)
    made = opened("medklip").prepare(image)[0] * 0.229 + 0.485
    assert abs(float(made.mean()) - 0.5) < 0.02
