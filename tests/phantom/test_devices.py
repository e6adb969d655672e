"""Tubes, lines and implants: tips agree with the stored site, masks with the projected devices."""

import numpy as np
import pytest

from carina.phantom.devices import make_ecg_leads, place_device
from carina.phantom.habitus import sample_habitus
from carina.phantom.thorax import State, build_thorax
from carina.store.seeding import rng

NAMES = {
    "endotracheal tube": "midline",
    "nasogastric tube": "midline",
    "central venous line": "right",
    "pacemaker": "left",
    "chest tube": "left",
}


@pytest.fixture(scope="module")
def body(chest):
    patient = chest.patient(chest.study())
    return build_thorax(patient, sample_habitus(patient, 1), State(supine=True), 1)


def placements(chest, body, name, *, adequate, side=None, tries=12):
    device = [
        chest.device(name, side or NAMES[name], adequate=adequate, depth=depth)
        for depth in np.linspace(0, 1, tries)
    ]
    return [place_device(one, body, rng(k, "device")) for k, one in enumerate(device)]


# ---- tips in the patient ----


def test_an_endotracheal_tube_is_adequate_3_to_6_cm_above_the_carina(chest, body):
    for geometry in placements(chest, body, "endotracheal tube", adequate=True):
        above = geometry.tip[2] - body.carina[2]
        assert 2.9 <= above <= 6.1
        (measure,) = geometry.measures
        assert (measure.name, measure.unit) == ("distance above the carina", "cm")
        assert measure.value == pytest.approx(above, abs=0.2)
        assert geometry.site == f"{measure.value:.1f} cm above the carina"


def test_an_endotracheal_tube_is_malpositioned_at_the_carina_or_far_above(chest, body):
    heights = [
        geometry.tip[2] - body.carina[2]
        for geometry in placements(chest, body, "endotracheal tube", adequate=False, tries=24)
    ]
    assert all(above < 2 or above > 7 for above in heights)
    assert any(above < 2 for above in heights)
    assert any(above > 7 for above in heights)


def test_the_tip_of_an_endotracheal_tube_lies_in_the_trachea(chest, body):
    for geometry in placements(chest, body, "endotracheal tube", adequate=True):
        off_axis = np.linalg.norm(body.trachea.points - geometry.tip, axis=1).min()
        assert off_axis < 0.5


def test_a_nasogastric_tube_ends_below_the_left_dome_or_is_malpositioned(chest, body):
    dome = body.domes[1].centre[2] + body.domes[1].half_width(2)
    for geometry in placements(chest, body, "nasogastric tube", adequate=True):
        assert geometry.site == "in the stomach"
        assert geometry.tip[2] < dome - 3
        assert geometry.tip[0] > 3  # on the patient's left
    for geometry in placements(chest, body, "nasogastric tube", adequate=False):
        assert geometry.site == "in the distal esophagus"
        assert geometry.tip[2] > dome
        assert abs(geometry.tip[0]) < 2.5


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_central_line_enters_on_its_side_and_ends_in_the_vena_cava(chest, body, side):
    for geometry in placements(chest, body, "central venous line", adequate=True, side=side):
        (line,) = geometry.tubes
        assert (line.points[0, 0] < 0) == (side == "right")
        assert geometry.site == "at the cavoatrial junction"
        assert -4 < geometry.tip[0] < -1  # right of the midline for both sides of entry
        assert abs(geometry.tip[2] - 12.0 * body.habitus.scale) < 2.5


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_central_line_is_malpositioned_if_too_deep_or_too_short(chest, body, side):
    malpositioned = placements(chest, body, "central venous line", adequate=False, side=side, tries=16)
    junction_z = 12.0 * body.habitus.scale
    for geometry in malpositioned:
        if geometry.site == "deep in the right atrium":
            assert geometry.tip[2] < junction_z - 5
            assert geometry.tip[0] < 0
        else:
            assert geometry.site == "in the brachiocephalic vein"
            assert geometry.tip[2] > junction_z + 4
    assert len({geometry.site for geometry in malpositioned}) == 2


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_pacemaker_lies_below_the_clavicle_of_its_side(chest, body, side):
    for geometry in placements(chest, body, "pacemaker", adequate=True, side=side, tries=4):
        assert (geometry.plates[0].centre[0] < 0) == (side == "right")
        assert geometry.site == "at the right ventricular apex"
        ventricle = body.heart[0]
        assert np.linalg.norm(np.linalg.solve(ventricle.axes, geometry.tip - ventricle.centre)) < 1.0


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_chest_tube_lies_in_the_pleural_cavity_of_its_side_or_is_malpositioned(chest, body, side):
    cavity = body.lungs[0 if side == "right" else 1]
    for geometry in placements(chest, body, "chest tube", adequate=True, side=side, tries=4):
        assert geometry.site == "at the apex"
        assert cavity.contains(geometry.tip[None])[0]
    for geometry in placements(chest, body, "chest tube", adequate=False, side=side, tries=4):
        assert geometry.site == "in the chest wall"
        assert not cavity.contains(geometry.tip[None])[0]
        assert (geometry.tip[0] < 0) == (side == "right")


@pytest.mark.parametrize("name", NAMES)
def test_the_tip_is_the_end_of_the_device(chest, body, name):
    for adequate in (True, False):
        for geometry in placements(chest, body, name, adequate=adequate, tries=3):
            np.testing.assert_array_equal(geometry.tip, geometry.tubes[0].points[-1])
            steps = np.linalg.norm(np.diff(geometry.tubes[0].points, axis=0), axis=1)
            assert steps.max() < 1.0  # no gaps


def test_ecg_leads_are_no_device(body):
    leads = make_ecg_leads(body, rng(1, "leads"))
    assert leads.tip is None
    assert 6 <= len(leads.wires) <= 10  # three to five electrodes, each with its wire


# ---- in the image ----


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
def test_a_device_changes_pixels_along_its_mask_alone(chest, name, view):
    device = chest.device(name, NAMES[name])
    with_it, without = (
        chest.take_radiograph(devices=(device,), view=view, size=256),
        chest.take_radiograph(view=view, size=256),
    )
    changed = with_it.pixels != without.pixels
    mask = with_it.devices["d1"].mask
    near = np.zeros_like(mask)
    for rows in range(-3, 4):
        for cols in range(-3, 4):
            near |= np.roll(mask, (rows, cols), (0, 1))
    assert changed[mask].mean() > 0.5
    assert not (changed & ~near).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", ["PA", "AP"])
def test_the_mask_is_the_projection_of_the_device(chest, beams, name, view):
    """Every pixel of the mask lies within the radius of the projected course, plus the width of a pixel."""
    shown = chest.take_radiograph(devices=(chest.device(name, NAMES[name]),), view=view, size=320)
    (beam,) = beams
    seen = shown.devices["d1"]
    rows, cols = np.mgrid[: beam.rows, : beam.cols]
    expected, core = np.zeros_like(seen.mask), np.zeros_like(seen.mask)
    for tube in seen.geometry.tubes + seen.geometry.wires:
        fine = np.linspace(0, len(tube.points) - 1, 6 * len(tube.points))
        points = np.stack(
            [np.interp(fine, np.arange(len(tube.points)), tube.points[:, k]) for k in range(3)], axis=1
        )
        radius = np.interp(fine, np.arange(len(tube.points)), tube.radius)
        for u, v, r in zip(
            *beam.project(points)[:2], radius * beam.project(points)[2] / beam.pixel, strict=True
        ):
            if not (-9 < u < beam.cols + 9 and -9 < v < beam.rows + 9):
                continue
            window = np.s_[max(int(v) - 9, 0) : int(v) + 10, max(int(u) - 9, 0) : int(u) + 10]
            away = np.hypot(cols[window] - u, rows[window] - v)
            expected[window] |= away <= r + 1.5
            core[window] |= away <= max(r - 0.5, 0.5)
    for plate in seen.geometry.plates:
        silhouette = beam.silhouette(beam.span(plate))
        expected |= silhouette
        core |= silhouette
    assert not (seen.mask & ~expected).any()
    assert (core & ~seen.mask).sum() <= 0.01 * core.sum()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [96, 192])
def test_the_stored_tip_lies_on_the_mask(chest, name, size):
    for seed in range(3):
        for adequate in (True, False):
            device = chest.device(name, NAMES[name], adequate=adequate, depth=0.2 + 0.3 * seed)
            one = chest.make_phantom(devices=(device,), view="AP", seed=seed, size=size)
            (stored,) = one.study.devices
            for tip in stored.tips:
                (annotation,) = stored.annotations
                assert annotation.image == tip.image
                assert annotation.region.contains(tip.x, tip.y), f"seed {seed}, adequate {adequate}"


def test_the_tip_is_where_the_beam_projects_it(chest, beams):
    shown = chest.take_radiograph(devices=(chest.device("endotracheal tube"),), view="AP")
    seen = shown.devices["d1"]
    (u,), (v,), _ = beams[0].project(seen.geometry.tip)
    # A region's pixel (0, 0) has its centre at (0.5, 0.5).
    assert seen.tip == pytest.approx((u + 0.5, v + 0.5), abs=0.051)


def test_a_tip_outside_the_image_is_not_stored(chest):
    one = chest.make_phantom(devices=(chest.device("pacemaker", "left"),), cut_off="left", size=96)
    two = chest.make_phantom(devices=(chest.device("pacemaker", "left"),), size=96)
    for study in (one.study, two.study):
        for tip in study.devices[0].tips:
            assert 0 <= tip.x < 96
            assert 0 <= tip.y < 96
    assert two.study.devices[0].tips


def test_every_device_is_stored_as_planned(phantoms):
    planned = 0
    for one in phantoms:
        for device, stored in zip(one.plan.devices, one.study.devices, strict=False):
            planned += 1
            assert (stored.name, stored.side, stored.trend) == (device.name, device.side, device.trend)
            assert stored.certainty == "present"
            assert stored.position == ("adequate" if device.adequate else "malpositioned")
            assert stored.site
            assert stored.annotations
            for tip in stored.tips:
                (mask,) = (a.region for a in stored.annotations if a.image == tip.image)
                assert mask.contains(tip.x, tip.y), f"{one} {stored.name}"
        removed = one.study.devices[len(one.plan.devices) :]
        assert [(d.name, d.certainty, d.trend) for d in removed] == [
            (g.name, "absent", "resolved") for g in one.plan.removed_devices
        ]
        assert not any(d.annotations or d.tips for d in removed)
    assert planned > 20


def test_the_stored_tube_distance_agrees_with_the_image(phantoms):
    """Compares the distance of the tip from the lower end of the trachea's mask."""
    tubes = 0
    for one in phantoms:
        for stored in one.study.devices:
            if stored.name != "endotracheal tube" or not stored.tips:
                continue
            image, _, masks = one.views[0]
            trachea = np.flatnonzero(masks["trachea"].any(axis=1))
            above = (trachea[-1] - stored.tips[0].y) * image.spacing_mm[0] / 10 / 1.12
            (measure,) = stored.measures
            assert above == pytest.approx(measure.value, abs=1.2), str(one)
            assert (stored.position == "adequate") == (3.0 <= measure.value <= 6.0), str(one)
            assert f"{measure.value:.1f} cm above the carina" == stored.site
            tubes += 1
    assert tubes >= 4
