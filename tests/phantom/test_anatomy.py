"""Anatomy regions: complete, on the right side, consistent with each other and with the technique."""

import numpy as np
import pytest

from carina.studies.vocabulary import COSTOPHRENIC_ANGLES, LUNG_PARTS, ZONES

SIDES = ("right", "left")
ORGANS = {
    "heart",
    "mediastinum",
    "spine",
    "trachea",
    *(
        f"{side} {organ}"
        for side in SIDES
        for organ in ("lung", "hilum", "hemidiaphragm", "ribs", "clavicle")
    ),
}
FRONTAL = ORGANS | {*ZONES, *LUNG_PARTS, *COSTOPHRENIC_ANGLES}
LATERAL = ORGANS | {
    *(f"{level} zone" for level in ("upper", "mid", "lower")),
    "anterior lung",
    "posterior lung",
    "posterior costophrenic angle",
}


def frontals(phantoms):
    return [(one, *view) for one in phantoms for view in one.views if view[0].view != "lateral"]


def laterals(phantoms):
    return [(one, *view) for one in phantoms for view in one.views if view[0].view == "lateral"]


def whole(phantoms):
    return [(one, masks) for one, image, technique, masks in frontals(phantoms) if not technique.cut_off]


def compute_centre(mask):
    """Mean column and row."""
    rows, cols = np.nonzero(mask)
    return cols.mean(), rows.mean()


def is_at_border(mask):
    return bool(mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any())


def test_every_image_has_every_region(phantoms):
    for one, image, technique, masks in frontals(phantoms):
        missing = FRONTAL - set(masks)
        allowed = {f"{technique.cut_off} costophrenic angle"} if technique.cut_off else set()
        assert missing <= allowed, f"{one} {image.view}"
        assert not set(masks) - FRONTAL
    for one, _, _, masks in laterals(phantoms):
        assert set(masks) == LATERAL, str(one)
    assert laterals(phantoms)


def test_no_region_is_empty_and_each_has_the_size_of_its_image(phantoms):
    for one in phantoms:
        for part in one.study.anatomy:
            image = one.study.image(part.image)
            assert (part.region.height, part.region.width) == (image.height, image.width)
            assert part.region.area > 0, f"{one} {part.name}"
            assert part.annotator == "phantom"


def test_the_right_lung_is_on_the_left_of_the_image_and_the_heart_between(phantoms):
    for one, masks in whole(phantoms):
        right, left, heart = (compute_centre(masks[name])[0] for name in ("right lung", "left lung", "heart"))
        assert right < heart < left, str(one)


def test_more_of_the_heart_is_on_the_patients_left(chest):
    for view in ("PA", "AP"):
        masks = chest.take_radiograph(view=view).anatomy
        heart, spine = masks["heart"], round(compute_centre(masks["spine"])[0])
        assert 0.55 < heart[:, spine:].sum() / heart.sum() < 0.8


@pytest.mark.parametrize("organ", ["lung", "hilum", "hemidiaphragm", "ribs", "clavicle"])
def test_paired_organs_are_on_the_side_they_name(phantoms, organ):
    for one, masks in whole(phantoms):
        middle = compute_centre(masks["spine"])[0]
        assert (
            compute_centre(masks[f"right {organ}"])[0] < middle < compute_centre(masks[f"left {organ}"])[0]
        ), str(one)


def test_lungs_overlap_neither_each_other_nor_heart_mediastinum_and_diaphragm(phantoms):
    for one, _, _, masks in frontals(phantoms):
        assert not (masks["right lung"] & masks["left lung"]).any(), str(one)
        lungs = masks["right lung"] | masks["left lung"]
        for name in ("heart", "mediastinum", "right hemidiaphragm", "left hemidiaphragm"):
            shared = (lungs & masks[name]).sum()
            # Each dome is excluded from its own lung; a few pixels may overlap with the other lung.
            assert shared <= 0.01 * lungs.sum(), f"{one} {name}: {shared}"


def test_zones_and_halves_partition_each_lung(phantoms):
    for one, _, _, masks in frontals(phantoms):
        for side in SIDES:
            lung = masks[f"{side} lung"].astype(int)
            zones = sum(masks[f"{side} {level} zone"].astype(int) for level in ("upper", "mid", "lower"))
            halves = sum(masks[f"{side} {half} lung"].astype(int) for half in ("medial", "lateral"))
            np.testing.assert_array_equal(zones, lung, err_msg=str(one))
            np.testing.assert_array_equal(halves, lung, err_msg=str(one))


def test_zones_lie_one_above_the_other_in_thirds(phantoms):
    for one, masks in whole(phantoms):
        for side in SIDES:
            rows = [
                np.flatnonzero(masks[f"{side} {level} zone"].any(axis=1))
                for level in ("upper", "mid", "lower")
            ]
            assert rows[0][-1] < rows[1][0]
            assert rows[1][-1] < rows[2][0]
            heights = [len(r) for r in rows]
            assert max(heights) - min(heights) <= 1, str(one)


def test_medial_is_towards_the_spine_and_peripheral_along_the_chest_wall(phantoms):
    for one, masks in whole(phantoms):
        middle = compute_centre(masks["spine"])[0]
        for side in SIDES:
            medial, lateral, peripheral = (
                abs(compute_centre(masks[f"{side} {part} lung"])[0] - middle)
                for part in ("medial", "lateral", "peripheral")
            )
            assert medial < lateral, str(one)
            assert medial < peripheral, str(one)
            assert not (masks[f"{side} peripheral lung"] & ~masks[f"{side} lung"]).any()


def test_costophrenic_angles_are_the_low_outer_corners_of_the_lungs(phantoms):
    for one, masks in whole(phantoms):
        for side in SIDES:
            angle = masks[f"{side} costophrenic angle"]
            assert not (angle & ~masks[f"{side} lower zone"]).any()
            assert not (angle & ~masks[f"{side} peripheral lung"]).any()
            assert not is_at_border(angle), str(one)
            assert abs(compute_centre(angle)[0] - compute_centre(masks["spine"])[0]) > abs(
                compute_centre(masks[f"{side} lower zone"])[0] - compute_centre(masks["spine"])[0]
            )


def test_a_whole_chest_lies_within_the_image(phantoms):
    for one, masks in whole(phantoms):
        for side in SIDES:
            assert not is_at_border(masks[f"{side} lung"]), str(one)


def test_a_cut_off_angle_is_outside_the_image_and_stored_as_cut_off(phantoms):
    cut = [row for row in frontals(phantoms) if row[2].cut_off]
    assert len(cut) >= 2
    for one, image, technique, masks in cut:
        angle = f"{technique.cut_off} costophrenic angle"
        assert image.quality.cut_off == (angle,)
        assert angle not in masks or is_at_border(masks[angle]), str(one)
        other = "left" if technique.cut_off == "right" else "right"
        assert not is_at_border(masks[f"{other} costophrenic angle"]), str(one)
        # The patient's right is the image's left, where the image cuts off the lung.
        edge = masks[f"{technique.cut_off} lung"][:, 0 if technique.cut_off == "right" else -1]
        assert edge.any(), str(one)
    for _, image, technique, _ in frontals(phantoms):
        if not technique.cut_off:
            assert image.quality.cut_off == ()


def test_zones_of_a_lung_that_is_cut_off_are_those_of_the_whole_lung(chest):
    """A zone is a third of the whole lung, not of its visible part."""
    whole_lung = chest.take_radiograph(size=128).anatomy
    cut = chest.take_radiograph(size=128, cut_off="right").anatomy
    for level in ("upper", "mid", "lower"):
        # The field only moves sideways, so the visible part of each zone has the same rows.
        expected = np.flatnonzero(whole_lung[f"right {level} zone"].any(axis=1))
        actual = np.flatnonzero(cut[f"right {level} zone"].any(axis=1))
        assert actual[0] >= expected[0] - 2
        assert actual[-1] <= expected[-1] + 2


def test_the_trachea_runs_in_the_middle_above_the_heart(phantoms):
    for one, image, technique, masks in frontals(phantoms):
        if technique.cut_off or abs(technique.rotation_degrees) > 2:
            continue
        width = np.ptp(np.flatnonzero((masks["right lung"] | masks["left lung"]).any(axis=0)))
        trachea, spine = compute_centre(masks["trachea"]), compute_centre(masks["spine"])
        assert abs(trachea[0] - spine[0]) < 0.08 * width, f"{one} {image.view}"
        assert trachea[1] < compute_centre(masks["heart"])[1]


def test_the_left_hilum_is_a_little_higher_than_the_right(chest):
    for seed in range(3):
        masks = chest.take_radiograph(seed=seed).anatomy
        rise = compute_centre(masks["right hilum"])[1] - compute_centre(masks["left hilum"])[1]
        # 1 to 2 cm, at about 40 cm / 192 pixels.
        assert 3 <= rise <= 13


def test_the_right_dome_is_higher_than_the_left(chest):
    def top(mask):
        return np.flatnonzero(mask.any(axis=1))[0]

    for seed in range(4):
        masks = chest.take_radiograph(seed=seed).anatomy
        lower_by = top(masks["left hemidiaphragm"]) - top(masks["right hemidiaphragm"])
        assert 1 <= lower_by * 40 / 192 * 5 <= 15  # 0.2 to 3 cm


@pytest.mark.parametrize(("inspiration", "fewest", "most"), [(1.0, 9, 10), (0.75, 8, 10), (0.15, 6, 8)])
def test_deeper_inspiration_shows_more_posterior_ribs(chest, inspiration, fewest, most):
    for seed in range(3):
        assert fewest <= chest.take_radiograph(seed=seed, inspiration=inspiration).posterior_ribs <= most


def test_poor_inspiration_raises_the_diaphragm_and_shortens_the_lungs(chest):
    full, poor = (
        chest.take_radiograph(inspiration=1.0).anatomy,
        chest.take_radiograph(inspiration=0.15).anatomy,
    )
    for side in SIDES:
        dome = [np.flatnonzero(masks[f"{side} hemidiaphragm"].any(axis=1))[0] for masks in (full, poor)]
        assert dome[1] < dome[0] - 5
        assert poor[f"{side} lung"].sum() < 0.85 * full[f"{side} lung"].sum()


def test_ap_magnifies_the_heart(chest):
    """The heart lies in front: far from the detector in AP, at half the distance of the source."""

    def ratio(view):
        shown = chest.take_radiograph(view=view)
        return np.ptp(np.flatnonzero(shown.anatomy["heart"].any(axis=0))) * shown.pixel_mm

    assert 1.08 < ratio("AP") / ratio("PA") < 1.2


def test_views_of_one_patient_agree_in_height(phantoms):
    """Apex and dome of the same lungs in frontal and lateral view, with similar inspiration and posture."""
    for one, image, technique, lateral in laterals(phantoms):
        frontal_image, frontal_technique, frontal = one.views[0]
        if frontal_technique.cut_off or abs(technique.inspiration - frontal_technique.inspiration) > 0.1:
            continue

        def height(masks, picture):
            rows = np.flatnonzero((masks["right lung"] | masks["left lung"]).any(axis=1))
            return np.ptp(rows) * picture.spacing_mm[0]

        # In a frontal view the domes hide the posterior recess that a lateral view shows below them.
        assert height(frontal, frontal_image) < height(lateral, image) * 1.03
        assert height(frontal, frontal_image) > 0.75 * height(lateral, image)


def test_in_a_lateral_view_the_spine_is_behind_the_heart(phantoms):
    for one, _, _, masks in laterals(phantoms):
        assert compute_centre(masks["heart"])[0] < compute_centre(masks["spine"])[0], str(one)
        assert compute_centre(masks["anterior lung"])[0] < compute_centre(masks["posterior lung"])[0]
        lungs = (masks["right lung"] | masks["left lung"]).astype(int)
        zones = sum(masks[f"{level} zone"].astype(int) for level in ("upper", "mid", "lower"))
        np.testing.assert_array_equal(zones, lungs)
        assert not (masks["posterior costophrenic angle"] & ~masks["posterior lung"]).any()


# ---- size of the heart ----


def measure_ratio(masks):
    """Width of the heart against that of the chest, as a reader measures it."""
    heart, lungs = (
        np.flatnonzero(mask.any(axis=0))
        for mask in (masks["heart"], masks["right lung"] | masks["left lung"])
    )
    return (heart[-1] + 1 - heart[0]) / (lungs[-1] + 1 - lungs[0])


@pytest.mark.parametrize("body", [{"sex": "M", "bmi": 22.0}, {"sex": "F", "height_cm": 158.0, "bmi": 34.0}])
def test_the_cardiothoracic_ratio_of_the_masks_is_the_planned_one(chest, body):
    for seed in range(3):
        masks = chest.take_radiograph(seed=seed, size=256, inspiration=1.0, patient=body).anatomy
        assert measure_ratio(masks) == pytest.approx(0.45, abs=0.015)


@pytest.mark.parametrize("extent", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("form", ["global", "left ventricular"])
def test_the_mask_of_an_enlarged_heart_has_the_stored_ratio(chest, form, extent):
    enlarged = chest.lesion("cardiomegaly", "midline", form=form, extent=extent)
    one = chest.make_phantom(enlarged, size=256, inspiration=1.0)
    ((_, _, masks),) = one.views
    stored = one.study.findings[0].measures[0]
    assert (stored.name, stored.unit) == ("cardiothoracic ratio", "1")
    assert measure_ratio(masks) == pytest.approx(stored.value, abs=0.015)
    assert measure_ratio(masks) > 0.5
    assert stored.value > 0.5


def test_a_heart_is_enlarged_only_where_it_is_a_finding(phantoms):
    """On PA images; inspiration and rotation move the borders slightly."""
    for one in phantoms:
        image, technique, masks = one.views[0]
        if image.view != "PA" or technique.cut_off or abs(technique.rotation_degrees) > 2:
            continue
        finding = next(f for f in one.study.findings if f.name == "cardiomegaly")
        if finding.certainty == "absent":
            assert measure_ratio(masks) < 0.5, str(one)
        elif technique.inspiration > 0.5:
            assert measure_ratio(masks) == pytest.approx(finding.measures[0].value, abs=0.025), str(one)
            assert measure_ratio(masks) > 0.49, str(one)
