"""Solids: plain geometry in the patient frame (x to the patient's left, y to the front, z up)."""

import numpy as np
import pytest

from carina.phantom.solids import ellipsoid, mirror_points, resample_curve, rotation, smooth_curve, tube

AXES = np.eye(3)


@pytest.mark.parametrize(
    ("degrees", "turned"),
    [
        ((90, 0, 0), {"x": "x", "y": "z"}),
        ((0, 90, 0), {"z": "x", "y": "y"}),
        ((0, 0, 90), {"x": "y", "z": "z"}),
    ],
)
def test_rotation_turns_one_axis_into_the_next(degrees, turned):
    axis = dict(zip("xyz", AXES, strict=True))
    for before, after in turned.items():
        np.testing.assert_allclose(rotation(degrees) @ axis[before], axis[after], atol=1e-12)


def test_rotation_is_about_x_then_y_then_z():
    # y goes to z (about x), then z to x (about y), then x to y (about z).
    np.testing.assert_allclose(rotation((90, 90, 90)) @ AXES[1], AXES[1], atol=1e-12)
    np.testing.assert_allclose(
        rotation((20, 30, 40)), rotation((0, 0, 40)) @ rotation((0, 30, 0)) @ rotation((20, 0, 0)), atol=1e-12
    )


def test_a_rotation_keeps_lengths_and_handedness():
    matrix = rotation((13, -47, 101))
    np.testing.assert_allclose(matrix @ matrix.T, AXES, atol=1e-12)
    assert np.linalg.det(matrix) == pytest.approx(1.0)


def test_an_ellipsoid_contains_what_its_equation_says():
    solid = ellipsoid((1, 2, 3), (4, 2, 1), tilt_degrees=(10, 20, 30))
    points = np.random.default_rng(0).normal(size=(500, 3)) * 3 + solid.centre
    shape = np.linalg.inv(solid.axes @ solid.axes.T)
    away = points - solid.centre
    expected = np.einsum("ni,ij,nj->n", away, shape, away) <= 1
    np.testing.assert_array_equal(solid.contains(points), expected)
    assert 20 < expected.sum() < 480


def test_the_extent_of_a_tilted_ellipsoid_is_that_of_its_surface():
    solid = ellipsoid((0, 0, 0), (5, 2, 1), tilt_degrees=(0, 30, 20))
    on_sphere = np.random.default_rng(1).normal(size=(200_000, 3))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    surface = on_sphere @ solid.axes.T
    for axis in range(3):
        assert solid.half_width(axis) == pytest.approx(surface[:, axis].max(), rel=1e-3)


def test_an_ellipsoid_is_scaled_about_its_own_centre_and_axes():
    solid = ellipsoid((1, 0, 0), (3, 2, 1), tilt_degrees=(0, 0, 90))
    # The first semi-axis, 3 cm along x, was turned to lie along y: scaling it stretches y.
    longer = solid.scale((2, 1, 1))
    assert [longer.half_width(axis) for axis in range(3)] == pytest.approx([2, 6, 1])
    np.testing.assert_array_equal(longer.centre, solid.centre)
    np.testing.assert_array_equal(solid.shift((0, 5, 0)).centre, (1, 5, 0))


def test_mirroring_swaps_the_patients_sides_alone():
    np.testing.assert_array_equal(mirror_points(np.array([[1.0, 2.0, 3.0]])), [[-1.0, 2.0, 3.0]])


def test_a_smooth_curve_passes_its_knots_with_even_steps():
    knots = np.array([(0, 0, 0), (3, 1, 0), (5, 4, 2), (5, 8, 1)], dtype=float)
    curve = smooth_curve(knots, n=400)
    assert curve.shape == (400, 3)
    np.testing.assert_allclose(curve[[0, -1]], knots[[0, -1]], atol=1e-9)
    for knot in knots:
        assert np.linalg.norm(curve - knot, axis=1).min() < 0.03
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    assert steps.max() / steps.min() < 1.05


def test_resampling_a_bent_line_spaces_points_along_it():
    bent = np.array([(0.0, 0, 0), (3, 0, 0), (3, 1, 0)])  # 3 cm, then 1 cm round the corner
    np.testing.assert_allclose(
        resample_curve(bent, n=5), [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (3, 1, 0)], atol=1e-12
    )


def test_one_radius_serves_all_points_of_a_tube():
    thin = tube([(0, 0, 0), (1, 0, 0), (2, 0, 0)], 0.3)
    np.testing.assert_array_equal(thin.radius, [0.3, 0.3, 0.3])
