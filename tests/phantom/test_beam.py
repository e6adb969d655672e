"""Ray sums against brute force: every ray is computed again in float64 and intersected, sampled or integrated."""

import cv2
import numpy as np
import pytest
from scipy.integrate import quad

from carina.phantom.beam import Span, intersect_spans, make_beam, measure_length_outside
from carina.phantom.solids import Block, Ellipsoid, Plate, ellipsoid, rotation, tube

RIGHT_SIDE, LEFT_SIDE = np.array([-5.0, 0, 0]), np.array([5.0, 0, 0])
FRONT, BACK = np.array([0, 5.0, 0]), np.array([0, -5.0, 0])
HEAD, FEET = np.array([0, 0, 5.0]), np.array([0, 0, -5.0])


def make_test_beam(view="PA", *, size=96, field_cm=40.0, centre=(0.0, 0.0, 0.0), **more):
    return make_beam(
        view, size=size, field_cm=field_cm, centre=centre, half_depth=12.0, half_width=18.0, **more
    )


def rays(beam):
    """Unit direction of the ray of every pixel, from the position of its centre on the detector."""
    rows, cols = np.mgrid[: beam.rows, : beam.cols].astype(float)
    on_detector = (
        beam.distance * beam.towards
        + ((cols - beam.centre[0]) * beam.pixel)[..., None] * beam.right
        + ((rows - beam.centre[1]) * beam.pixel)[..., None] * beam.down
    )
    return on_detector / np.linalg.norm(on_detector, axis=-1, keepdims=True)


def chords(beam, solid: Ellipsoid):
    """Entry and exit of every ray, cm from the source (nan where it misses), by the quadric's equation."""
    shape = np.linalg.inv(solid.axes @ solid.axes.T)
    direction, away = rays(beam), beam.source - solid.centre
    a = np.einsum("...i,ij,...j->...", direction, shape, direction)
    b = 2 * np.einsum("...i,ij,j->...", direction, shape, away)
    c = away @ shape @ away - 1
    with np.errstate(invalid="ignore"):
        root = np.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def chord_lengths(beam, solid):
    near, far = chords(beam, solid)
    return np.nan_to_num(far - near)


def random_solid(rng, *, spread=8.0, size=(0.5, 9.0)):
    centre, semi = rng.uniform(-spread, spread, 3), rng.uniform(*size, 3)
    return ellipsoid(centre, semi, tilt_degrees=rng.uniform(-90, 90, 3))


# ---- geometry ----


@pytest.mark.parametrize("view", ["PA", "AP"])
def test_the_patients_right_is_on_the_left_of_a_frontal_image(view):
    beam = make_test_beam(view)
    u, v, _ = beam.project(np.stack([RIGHT_SIDE, LEFT_SIDE, HEAD, FEET]))
    middle = (96 - 1) / 2
    assert u[0] < middle < u[1]
    assert v[2] < middle < v[3]


def test_in_a_lateral_image_the_patient_faces_left():
    u, v, _ = make_test_beam("lateral").project(np.stack([FRONT, BACK, HEAD, FEET]))
    assert u[0] < (96 - 1) / 2 < u[1]
    assert v[2] < (96 - 1) / 2 < v[3]


@pytest.mark.parametrize(
    ("view", "nearer_detector", "further", "distance", "reach"),
    [
        ("PA", FRONT, BACK, 180.0, 12.0),
        ("AP", BACK, FRONT, 100.0, 12.0),
        ("lateral", LEFT_SIDE, RIGHT_SIDE, 180.0, 18.0),
    ],
)
def test_magnification_is_source_to_detector_over_source_to_object(
    view, nearer_detector, further, distance, reach
):
    beam = make_test_beam(view)
    _, _, magnification = beam.project(np.stack([nearer_detector, np.zeros(3), further]))
    # The detector touches the patient `reach` from the centre; the points lie 5 cm to either side of it.
    expected = [
        distance / (distance - reach + 5),
        distance / (distance - reach),
        distance / (distance - reach - 5),
    ]
    np.testing.assert_allclose(magnification, expected, rtol=1e-12)


def test_the_central_ray_passes_the_centre_and_pixels_measure_the_detector():
    beam = make_test_beam("PA", size=100, field_cm=40.0, centre=(1.0, 2.0, 3.0))
    u, v, _ = beam.project(np.array([1.0, 2.0, 3.0]))
    assert (u[0], v[0]) == pytest.approx((49.5, 49.5))
    # 1 cm to the patient's left at the centre is 180/168 cm on the detector, whose pixels are 0.4 cm.
    u, v, _ = beam.project(np.array([2.0, 2.0, 4.0]))
    assert (u[0] - 49.5, v[0] - 49.5) == pytest.approx((180 / 168 / 0.4, -180 / 168 / 0.4))


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
def test_each_ray_projects_to_its_own_pixel(view):
    beam = make_test_beam(view, size=16, turn_degrees=7.0, tilt_degrees=-3.0)
    rows, cols = np.mgrid[:16, :16]
    for depth in (60.0, 95.0):
        u, v, _ = beam.project((beam.source + depth * rays(beam)).reshape(-1, 3))
        np.testing.assert_allclose(u.reshape(16, 16), cols, atol=1e-9)
        np.testing.assert_allclose(v.reshape(16, 16), rows, atol=1e-9)


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
def test_turning_the_beam_is_turning_the_patients_front_to_their_left(view):
    points = np.random.default_rng(3).uniform(-10, 10, (40, 3))
    # Front (+y) to the patient's left (+x) is a turn about z by a negative angle.
    turned = points @ rotation((0, 0, -8.0)).T
    expected = make_test_beam(view).project(turned)
    actual = make_test_beam(view, turn_degrees=8.0).project(points)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("view", ["PA", "AP"])
def test_the_sternum_of_a_patient_turned_to_their_left_moves_to_that_side(view):
    sternum, spine = np.array([0.0, 9.0, 5.0]), np.array([0.0, -7.0, 5.0])
    u, _, _ = make_test_beam(view, turn_degrees=10.0).project(np.stack([sternum, spine]))
    # The front goes to the patient's left, which is the right of the image.
    assert u[0] > u[1]


def test_tilting_turns_the_image_about_its_middle():
    point = np.array([[0.0, 0.0, 8.0]])
    (u0,), (v0,), _ = make_test_beam("PA").project(point)
    (u1,), (v1,), _ = make_test_beam("PA", tilt_degrees=10.0).project(point)
    middle = (96 - 1) / 2
    straight, tilted = np.array([u0, v0]) - middle, np.array([u1, v1]) - middle
    assert np.linalg.norm(tilted) == pytest.approx(np.linalg.norm(straight))
    angle = np.degrees(np.arccos(straight @ tilted / (straight @ straight)))
    assert angle == pytest.approx(10.0)


def test_a_margin_adds_a_border_and_changes_nothing_inside():
    solids = [random_solid(np.random.default_rng(seed)) for seed in range(4)]
    narrow, wide = make_test_beam(size=64), make_test_beam(size=64, margin=20)
    assert (wide.rows, wide.cols) == (104, 104)
    inner = np.s_[20:84, 20:84]
    for solid in solids:
        np.testing.assert_allclose(
            wide.length(wide.span(solid))[inner], narrow.length(narrow.span(solid)), atol=2e-3
        )
    bent = [tube(np.array([(-30.0, 0, -30), (0, 2, 1), (30, 0, 25)]), 0.8)]
    np.testing.assert_allclose(wide.project_tubes(bent)[inner], narrow.project_tubes(bent), atol=1e-4)


def test_the_height_of_a_ray_at_a_depth():
    beam = make_test_beam("AP", size=64, centre=(0, 0, 10), tilt_degrees=4.0)
    heights = beam.height_at(np.array([3.0, -4.0, 0.0]))
    direction = rays(beam)
    reach = ((np.array([3.0, -4.0, 0.0]) - beam.source) @ beam.towards) / (direction @ beam.towards)
    np.testing.assert_allclose(heights, (beam.source + reach[..., None] * direction)[..., 2], atol=1e-4)


def test_a_coarser_beam_has_each_pixel_in_the_middle_of_those_it_stands_for():
    beam = make_test_beam("AP", size=64, turn_degrees=5.0, margin=8)
    coarse = beam.coarsen(4)
    assert (coarse.rows, coarse.cols, coarse.pixel) == (20, 20, 4 * beam.pixel)
    points = np.random.default_rng(4).uniform(-10, 10, (20, 3))
    for fine, broad in zip(beam.project(points)[:2], coarse.project(points)[:2], strict=True):
        np.testing.assert_allclose((fine + 0.5) / 4, broad + 0.5)  # the same place, counted from the edge


# ---- ellipsoids ----


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
@pytest.mark.parametrize("seed", range(4))
def test_chords_of_tilted_ellipsoids(view, seed):
    rng = np.random.default_rng(seed)
    beam = make_test_beam(view, turn_degrees=rng.uniform(-15, 15), tilt_degrees=rng.uniform(-5, 5))
    solid = random_solid(rng)
    expected = chord_lengths(beam, solid)
    actual = beam.length(beam.span(solid))
    assert expected.max() > 0.9
    # At the silhouette the chord falls off like a square root: a tiny shift is a larger error there.
    np.testing.assert_allclose(actual, expected, atol=0.02)
    assert np.abs(actual - expected).mean() < 2e-4


def test_entry_and_exit_are_distances_along_the_ray():
    beam = make_test_beam("AP")
    solid = ellipsoid((3, 1, -2), (6, 4, 5), tilt_degrees=(10, 25, -30))
    near, far = chords(beam, solid)
    span = beam.span(solid)
    inside = np.nan_to_num(far - near)[span.window] > 0.5
    length = beam.ray_length[span.window]
    np.testing.assert_allclose((span.near * length)[inside], near[span.window][inside], atol=5e-3)
    np.testing.assert_allclose((span.far * length)[inside], far[span.window][inside], atol=5e-3)


def test_chords_by_marching_along_the_rays():
    """The same without a quadratic equation: count the steps inside the solid."""
    beam = make_test_beam(size=24)
    solid = ellipsoid((-2, 3, 1), (7, 3, 5), tilt_degrees=(20, -35, 50))
    step = 0.02
    depths = np.arange(150.0, 182.0, step) + step / 2
    points = beam.source + depths[:, None, None, None] * rays(beam)
    inside = solid.contains(points.reshape(-1, 3)).reshape(len(depths), 24, 24)
    np.testing.assert_allclose(beam.length(beam.span(solid)), inside.sum(axis=0) * step, atol=0.03)


def test_a_ball_of_radius_r_is_2r_thick_in_the_middle():
    beam = make_test_beam(size=65)
    thickness = beam.length(beam.span(ellipsoid((0, 0, 0), (4, 4, 4))))
    assert thickness[32, 32] == pytest.approx(8.0, abs=1e-3)
    assert thickness[0, 0] == 0


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_the_extent_of_the_silhouette(view, seed):
    rng = np.random.default_rng(100 + seed)
    beam = make_test_beam(view, turn_degrees=rng.uniform(-20, 20), tilt_degrees=rng.uniform(-10, 10))
    solid = random_solid(rng)
    # Rays that touch an ellipsoid do so where the surface's normal is perpendicular to them; here simply the
    # extreme projections of many points of its surface.
    polar, around = np.meshgrid(np.linspace(0, np.pi, 400), np.linspace(0, 2 * np.pi, 800))
    on_sphere = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1
    )
    u, v, _ = beam.project(on_sphere.reshape(-1, 3) @ solid.axes.T + solid.centre)
    expected = (u.min(), u.max(), v.min(), v.max())
    np.testing.assert_allclose(beam.bounds(solid), expected, atol=5e-3)


def test_a_solid_partly_outside_the_image_is_cut_at_its_border():
    beam = make_test_beam(size=48, field_cm=20.0)
    solid = ellipsoid((9, 0, 9), (6, 4, 5))
    expected = chord_lengths(beam, solid)
    assert 0 < (expected > 0).mean() < 0.5
    np.testing.assert_allclose(beam.length(beam.span(solid)), expected, atol=0.02)


def test_a_solid_outside_the_image_leaves_nothing():
    beam = make_test_beam(size=48, field_cm=20.0)
    for away in ((40, 0, 0), (-40, 0, 0), (0, 0, 40), (0, 0, -40)):
        span = beam.span(ellipsoid(away, (3, 3, 3)))
        assert not beam.length(span).any()
        assert not beam.silhouette(span).any()


def test_the_silhouette_is_where_the_chord_is_positive():
    beam = make_test_beam()
    solid = ellipsoid((1, 2, 3), (6, 3, 4), tilt_degrees=(0, 20, 10))
    expected = chord_lengths(beam, solid)
    differs = beam.silhouette(beam.span(solid)) != (expected > 0)
    assert expected[differs].max(initial=0.0) < 0.05  # only grazing rays differ


def test_lengths_of_several_solids_add_up():
    beam = make_test_beam()
    solids = [random_solid(np.random.default_rng(seed)) for seed in (7, 8)]
    spans = [beam.span(solid) for solid in solids]
    np.testing.assert_allclose(
        beam.length(*spans), sum(chord_lengths(beam, solid) for solid in solids), atol=0.03
    )


def test_a_hull_runs_from_the_first_entry_to_the_last_exit():
    beam = make_test_beam()
    back, front = ellipsoid((0, -6, 0), (4, 2, 4)), ellipsoid((1, 6, 1), (4, 2, 4))
    hull = beam.hull([beam.span(back), beam.span(front)])
    entries, exits = zip(*(chords(beam, solid) for solid in (back, front)), strict=True)
    expected = np.zeros((beam.rows, beam.cols))
    met = ~np.isnan(np.stack(entries)).all(axis=0)
    expected[met] = np.nanmax(np.stack(exits)[:, met], axis=0) - np.nanmin(np.stack(entries)[:, met], axis=0)
    assert expected.max() > 12  # through both, the gap between them counted
    np.testing.assert_allclose(beam.length(hull), expected, atol=0.03)


# ---- solids without excluded ones ----


def inside_all(beam, solid, removed, *, low, high, step):
    """Centimetres of each ray in `solid` and in none of `removed`, by marching."""
    depths = np.arange(low, high, step) + step / 2
    points = (beam.source + depths[:, None, None, None] * rays(beam)).reshape(-1, 3)
    kept = solid.contains(points)
    for other in removed:
        kept &= ~other.contains(points)
    return kept.reshape(len(depths), beam.rows, beam.cols).sum(axis=0) * step


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_a_solid_without_others_by_marching(count):
    rng = np.random.default_rng(40 + count)
    beam = make_test_beam(size=20, field_cm=30.0)
    solid = ellipsoid((0, 0, 0), (9, 7, 10), tilt_degrees=(5, 10, 15))
    removed = [random_solid(rng, spread=6.0, size=(2.0, 6.0)) for _ in range(count)]
    expected = inside_all(beam, solid, removed, low=154.0, high=182.0, step=0.02)
    actual = measure_length_outside(beam, beam.span(solid), [beam.span(other) for other in removed])
    np.testing.assert_allclose(actual, expected, atol=0.08)
    assert expected.max() > 3


def test_excluding_the_same_solid_twice_excludes_it_once():
    beam = make_test_beam(size=48)
    solid, other = beam.span(ellipsoid((0, 0, 0), (8, 8, 8))), beam.span(ellipsoid((2, 1, 0), (5, 3, 4)))
    np.testing.assert_allclose(
        measure_length_outside(beam, solid, [other, other]),
        measure_length_outside(beam, solid, [other]),
        atol=1e-3,
    )


def test_a_solid_inside_an_excluded_one_has_no_length():
    beam = make_test_beam(size=48)
    left = measure_length_outside(
        beam, beam.span(ellipsoid((0, 0, 0), (3, 3, 3))), [beam.span(ellipsoid((0, 0, 0), (6, 6, 6)))]
    )
    assert left.max() < 1e-3


def test_solids_that_do_not_meet_do_not_overlap():
    beam = make_test_beam(size=48)
    one, other = beam.span(ellipsoid((-8, 0, 0), (3, 3, 3))), beam.span(ellipsoid((8, 0, 0), (3, 3, 3)))
    shared = intersect_spans(one, other)
    assert not beam.length(shared).any()
    np.testing.assert_array_equal(measure_length_outside(beam, one, [other]), beam.length(one))


# ---- tubes ----


def distance_to_line(beam, start, stop):
    """Distance of every ray from the straight line through two points, cm, and the angle between them."""
    along = (stop - start) / np.linalg.norm(stop - start)
    direction = rays(beam)
    normal = np.cross(direction, along)
    sine = np.linalg.norm(normal, axis=-1)
    return np.abs(normal @ (start - beam.source)) / sine, sine


def along_the_middle(beam, start, stop):
    """Pixels beside the middle half of a straight tube: away from its rounded ends."""
    u, v, _ = beam.project(start + np.array([[0.25], [0.75]]) * (stop - start))
    rows, cols = np.mgrid[: beam.rows, : beam.cols]
    axis = np.array([u[1] - u[0], v[1] - v[0]])
    share = ((cols - u[0]) * axis[0] + (rows - v[0]) * axis[1]) / (axis @ axis)
    return (share > 0) & (share < 1)


@pytest.mark.parametrize("view", ["PA", "AP"])
def test_a_straight_tube_is_as_thick_as_the_chord_of_its_circle(view):
    beam = make_test_beam(view, size=256, field_cm=40.0)
    start, stop, radius = np.array([-14.0, 2, -3]), np.array([14.0, 2, 5]), 1.5
    away, sine = distance_to_line(beam, start, stop)
    expected = 2 * np.sqrt(np.maximum(radius**2 - away**2, 0)) / sine
    actual = beam.project_tubes([tube(np.linspace(start, stop, 60), radius)])
    middle = along_the_middle(beam, start, stop)
    inside = middle & (away < 0.85 * radius)  # at the rim a pixel averages over the steep edge
    np.testing.assert_allclose(actual[inside], expected[inside], rtol=0.06)
    assert actual[inside].sum() == pytest.approx(expected[inside].sum(), rel=0.01)
    assert actual[middle & (away > radius + 0.25)].max() < 0.01


@pytest.mark.parametrize("view", ["PA", "AP"])
@pytest.mark.parametrize(
    ("start", "stop"),
    [((-14, -6, -10), (14, 8, 12)), ((-6, -11, 0), (6, 11, 1))],  # shallow and steep
)
def test_a_tube_that_runs_in_depth_is_longer_in_the_ray_by_its_angle(view, start, stop):
    beam = make_test_beam(view, size=256, field_cm=40.0)
    start, stop, radius = np.array(start, float), np.array(stop, float), 1.5
    away, sine = distance_to_line(beam, start, stop)
    expected = 2 * np.sqrt(np.maximum(radius**2 - away**2, 0)) / sine
    actual = beam.project_tubes([tube(np.linspace(start, stop, 60), radius)])
    middle = along_the_middle(beam, start, stop)
    assert sine[middle].max() < 0.97
    # Magnification varies the radius, which a few disk radii approximate: the total is exact, the edge soft.
    core = middle & (away < 0.7 * radius)
    np.testing.assert_allclose(actual[core], expected[core], rtol=0.07)
    assert actual[middle].sum() == pytest.approx(expected[middle].sum(), rel=0.01)


@pytest.mark.parametrize("radius", [0.02, 0.06, 0.15, 0.4, 0.9])
def test_thin_tubes_keep_their_volume(radius):
    """At any width in pixels, the sum of thickness x area of a pixel at the tube is pi r^2 x length."""
    beam = make_test_beam("PA", size=128, field_cm=40.0)
    curve = np.stack([np.linspace(-10, 10, 40), np.zeros(40), np.linspace(-2, 3, 40)], axis=1)
    length, magnification = np.hypot(20, 5), 180 / 168
    area = (beam.pixel / magnification) ** 2
    assert beam.project_tubes([tube(curve, radius)]).sum() * area == pytest.approx(
        np.pi * radius**2 * length, rel=0.01
    )


def test_a_tapered_tube_keeps_its_volume():
    beam = make_test_beam("PA", size=128, field_cm=40.0)
    curve = np.stack([np.linspace(-10, 10, 400), np.zeros(400), np.zeros(400)], axis=1)
    radius = np.linspace(0.05, 1.0, 400)
    area = (beam.pixel * 168 / 180) ** 2
    # The integral of r^2 for r from a to b is (a^2 + a b + b^2) / 3 of the length.
    volume = np.pi * 20 * (0.05**2 + 0.05 * 1.0 + 1.0) / 3
    assert beam.project_tubes([tube(curve, radius)]).sum() * area == pytest.approx(volume, rel=0.02)


def test_a_tube_nearer_to_the_source_looks_wider_but_no_thicker():
    beam = make_test_beam("AP", size=256, field_cm=40.0)

    def seen(y):
        field = beam.project_tubes([tube([(-15, y, 0), (0, y, 0), (15, y, 0)], 1.5)])
        middle = field[:, 128]
        return middle.max(), (middle > 0.5 * middle.max()).sum() * beam.pixel

    (thick_back, wide_back), (thick_front, wide_front) = seen(-8.0), seen(8.0)
    assert thick_back == pytest.approx(3.0, rel=0.03)
    assert thick_front == pytest.approx(3.0, rel=0.03)
    # The AP detector is behind: 100 / (88 -+ 8); half of the thickness is sqrt(3) r wide.
    assert wide_back == pytest.approx(np.sqrt(3) * 1.5 * 100 / 96, abs=2 * beam.pixel)
    assert wide_front == pytest.approx(np.sqrt(3) * 1.5 * 100 / 80, abs=2 * beam.pixel)


def test_a_tube_partly_outside_casts_the_same_shadow_inside():
    curve = np.stack([np.linspace(-25, 25, 80), np.zeros(80), np.linspace(-18, 20, 80)], axis=1)
    narrow, wide = make_test_beam(size=64, field_cm=20.0), make_test_beam(size=64, field_cm=20.0, margin=80)
    for radius in (0.1, 1.2):
        inside = wide.project_tubes([tube(curve, radius)])[80:144, 80:144]
        np.testing.assert_allclose(narrow.project_tubes([tube(curve, radius)]), inside, atol=1e-4)
        assert inside.any()


def test_a_tube_outside_the_image_casts_no_shadow():
    beam = make_test_beam(size=64, field_cm=20.0)
    assert not beam.project_tubes([tube([(30.0, 0, 0), (40.0, 0, 0)], 1.0)]).any()
    assert not beam.project_tubes([]).any()


def test_the_wall_of_a_hollow_tube_is_brighter_at_its_edges():
    """A cortex of 0.5 / cm around a core of 0.1 / cm: the double edge of a rib."""
    beam = make_test_beam("PA", size=400, field_cm=20.0)
    hollow = beam.project_tubes(
        [tube([(-9.0, 0, 0), (0, 0, 0), (9, 0, 0)], 1.5)], profile=((0.0, 0.5), (0.3, -0.4))
    )
    profile = hollow[:, 200]
    # Each pixel averages the exact profile over its own width and that of its neighbour's corner.
    fine = (np.arange(-1, 1, 0.1) + 0.05)[:, None]
    away = np.abs((np.arange(400) - 199.5) + fine) * beam.pixel * 168 / 180
    exact = np.sqrt(np.maximum(1.5**2 - away**2, 0)) - 0.8 * np.sqrt(np.maximum(1.2**2 - away**2, 0))
    expected = ((1 - np.abs(fine)) * exact).sum(axis=0) / (1 - np.abs(fine)).sum()
    np.testing.assert_allclose(profile, expected, atol=0.09)
    assert profile.max() > 1.4 * profile[200]


def test_a_flat_tube_is_thinner_along_the_ray_and_as_wide():
    beam = make_test_beam(size=128)
    points = [(-9.0, 0, 0), (0, 0, 0), (9, 0, 0)]
    np.testing.assert_allclose(
        beam.project_tubes([tube(points, 1.0, flat=0.4)]),
        0.4 * beam.project_tubes([tube(points, 1.0)]),
        rtol=1e-5,
        atol=1e-6,
    )


def test_a_bundle_casts_the_sum_of_its_tubes():
    beam = make_test_beam(size=96)
    rng = np.random.default_rng(5)
    tubes = [tube(rng.uniform(-12, 12, (5, 3)), rng.uniform(0.4, 0.9, 5)) for _ in range(3)]
    alone = sum(beam.project_tubes([one]) for one in tubes)
    together = beam.project_tubes(tubes)
    # Spacing and disk radii depend on the bundle: totals agree exactly, pixels nearly.
    assert together.sum() == pytest.approx(alone.sum(), rel=1e-3)
    assert np.abs(together - alone).mean() < 0.02 * alone[alone > 0].mean()


# ---- Gaussian balls ----


@pytest.mark.parametrize("view", ["PA", "AP"])
def test_a_gaussian_is_integrated_within_the_lung(view):
    beam = make_test_beam(view, size=32)
    soft = ellipsoid((2, 1, -1), (3, 2, 1.5), tilt_degrees=(20, 30, 40))
    lung = ellipsoid((4, -1, 0), (5, 6, 8), tilt_degrees=(0, 10, 0))
    window, field = beam.integrate_gaussian(soft, beam.span(lung))
    whole = beam.blank()
    whole[window] = field
    inverse, direction = np.linalg.inv(soft.axes), rays(beam)
    near, far = chords(beam, lung)
    checked = 0
    for row in range(4, 28, 2):
        for col in range(4, 28, 2):
            expected = 0.0
            if not np.isnan(near[row, col]):

                def height(depth, ray=direction[row, col]):
                    local = inverse @ (beam.source + depth * ray - soft.centre)
                    return np.exp(-0.5 * local @ local)

                expected = quad(height, near[row, col], far[row, col], limit=200)[0]
            checked += expected > 0.1
            # Beyond three standard deviations nothing is added: at most exp(-4.5) of the middle.
            assert whole[row, col] == pytest.approx(expected, abs=0.07 if expected < 0.07 else 0.01)
    assert checked >= 8


def test_a_gaussian_that_misses_the_lung_adds_nothing():
    beam = make_test_beam(size=48)
    window, field = beam.integrate_gaussian(
        ellipsoid((-12, 0, 0), (1, 1, 1)), beam.span(ellipsoid((10, 0, 0), (3, 3, 3)))
    )
    assert field.size == 0
    assert beam.blank()[window].size == 0


def test_an_unclipped_gaussian_has_its_full_mass():
    beam = make_test_beam(size=128, field_cm=40.0)
    everywhere = Span(
        (slice(0, 128), slice(0, 128)),
        np.full((128, 128), -1e6, np.float32),
        np.full((128, 128), 1e6, np.float32),
    )
    _, field = beam.integrate_gaussian(ellipsoid((0, 0, 0), (2.0, 1.5, 1.0)), everywhere)
    area = (beam.pixel * 168 / 180) ** 2
    # (2 pi)^1.5 a b c, except for 1.1 % beyond three standard deviations in the plane.
    assert field.sum() * area == pytest.approx((2 * np.pi) ** 1.5 * 3.0, rel=0.02)


# ---- flat and box-shaped bones ----


def test_a_plate_seen_face_on_is_as_thick_as_it_is_and_covers_its_outline():
    beam = make_test_beam(size=128)
    corners = np.array([(-6.0, 0, -4), (6, 0, -4), (6, 0, 5), (-6, 0, 5)])
    field = beam.project_plates([Plate(corners, 0.8)])
    assert field[64, 64] == pytest.approx(0.8, rel=0.01)
    u, v, _ = beam.project(corners)
    outline = np.zeros((128, 128), np.uint8)
    cv2.fillPoly(outline, [np.round(np.stack([u, v], axis=1)).astype(np.int32)], 1)
    covered = field > 0.4
    assert (covered != outline.astype(bool)).sum() < 0.06 * outline.sum()


def test_a_slanted_plate_is_longer_in_the_ray():
    beam = make_test_beam(size=128)
    corners = np.array([(-4.0, -4, -4), (4, 4, -4), (4, 4, 4), (-4, -4, 4)])  # turned by 45 degrees
    assert beam.project_plates([Plate(corners, 0.5)])[64, 64] == pytest.approx(0.5 * np.sqrt(2), rel=0.03)


def test_a_block_attenuates_by_its_depth():
    beam = make_test_beam(size=128)
    block = Block(np.array([0.0, 0, 0]), np.array([4.0, 3.0, 5.0]))
    field = beam.project_blocks([block], core=0.1, rim=0.0)
    assert field[64, 64] == pytest.approx(0.1 * 6.0, rel=0.02)
    u, v, _ = beam.project(np.array([(4.0, -3, 5), (-4, -3, -5)]))
    rows, cols = np.nonzero(field > 0.3)
    # Widest where the box is nearest to the source, at its back.
    assert (cols.max(), cols.min()) == pytest.approx((u[0], u[1]), abs=1.5)
    assert (rows.min(), rows.max()) == pytest.approx((v[0], v[1]), abs=1.5)
    assert not beam.project_blocks([], core=0.1, rim=0.1).any()
