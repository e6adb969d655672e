"""Lesions: the pixels they change, their position in both views, and their growth."""

import cv2
import numpy as np
import pytest

NEEDS_LEVEL = ("atelectasis", "consolidation", "fracture", "lung opacity", "mass", "nodule", "pneumonia")
SIDE_OF = {"cardiomegaly": "midline", "edema": "bilateral"}
WITHOUT_DISPLACEMENT = [
    ("consolidation", "lobar"),
    ("consolidation", "patchy"),
    ("pneumonia", "patchy"),
    ("lung opacity", "ground-glass"),
    ("nodule", "solid"),
    ("nodule", "calcified"),
    ("mass", "lobulated"),
    ("fracture", "acute"),
    ("fracture", "healing"),
    ("pleural effusion", "free"),
    ("pneumothorax", "simple"),
]
"""Findings that do not displace organs."""
ALL = [
    *WITHOUT_DISPLACEMENT,
    ("atelectasis", "plate"),
    ("atelectasis", "wedge"),
    ("cardiomegaly", "global"),
    ("cardiomegaly", "left ventricular"),
    ("edema", "interstitial"),
    ("edema", "alveolar"),
    ("mass", "solid"),
    ("pneumothorax", "tension"),
]


def make_lesion(chest, name, form, *, side="left", level="mid", **more):
    placed = {"level": level} if name in NEEDS_LEVEL else {}
    return chest.lesion(name, SIDE_OF.get(name, side), form=form, **placed, **more)


def dilate(mask, pixels):
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (2 * pixels + 1, 2 * pixels + 1))
    return cv2.dilate(mask.astype(np.uint8), kernel) > 0


# ---- changed pixels ----


@pytest.mark.parametrize("view", ["PA", "AP", "lateral"])
@pytest.mark.parametrize(("name", "form"), WITHOUT_DISPLACEMENT)
def test_a_lesion_changes_no_pixel_outside_its_shadow(chest, name, form, view):
    with_it = chest.take_radiograph(make_lesion(chest, name, form), view=view)
    without = chest.take_radiograph(view=view)
    changed = with_it.pixels != without.pixels
    shadow = with_it.lesions["l1"].shadow
    # Blur extends a shadow by less than three pixels at this size.
    assert not (changed & ~dilate(shadow.attenuation != 0, 3)).any()
    assert changed[with_it.lesions["l1"].mask].mean() > 0.3  # the lesion is visible in its mask
    for region, mask in without.anatomy.items():
        np.testing.assert_array_equal(with_it.anatomy[region], mask)


@pytest.mark.parametrize(("name", "reach"), [("nodule", 4), ("mass", 6)])
def test_a_compact_lesion_changes_nothing_away_from_its_mask(chest, name, reach):
    with_it, without = (
        chest.take_radiograph(chest.lesion(name, level="upper", form="solid")),
        chest.take_radiograph(),
    )
    assert not ((with_it.pixels != without.pixels) & ~dilate(with_it.lesions["l1"].mask, reach)).any()


def test_a_fracture_changes_one_rib_or_a_few_on_its_side(chest):
    with_it, without = (
        chest.take_radiograph(chest.lesion("fracture", "left", level="mid", form="acute")),
        chest.take_radiograph(),
    )
    changed = with_it.pixels != without.pixels
    assert 0 < changed.mean() < 0.03
    assert not changed[:, : changed.shape[1] // 2].any()  # all on the image's right, the patient's left


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_removing_one_of_several_lesions_changes_only_its_shadow(chest, removed):
    lesions = [
        chest.lesion("nodule", "right", key="l1", level="upper", form="solid"),
        chest.lesion("consolidation", "right", key="l2", level="lower", form="lobar"),
        chest.lesion("pleural effusion", "left", key="l3", level="lower", form="free", extent=0.3),
    ]
    whole = chest.take_radiograph(*lesions)
    rest = chest.take_radiograph(*(one for k, one in enumerate(lesions) if k != removed))
    changed = whole.pixels != rest.pixels
    key = f"l{removed + 1}"
    assert changed.any()
    assert not (changed & ~dilate(whole.lesions[key].shadow.attenuation != 0, 3)).any()
    for other, seen in rest.lesions.items():
        np.testing.assert_array_equal(seen.mask, whole.lesions[other].mask)


@pytest.mark.parametrize(
    ("name", "form"), [("atelectasis", "plate"), ("atelectasis", "wedge"), ("cardiomegaly", "global")]
)
def test_lesions_that_move_organs_leave_the_corners_of_the_image_unchanged(chest, name, form):
    """Scatter and the display window depend on the organs, so all grey levels may change slightly."""
    with_it, without = chest.take_radiograph(make_lesion(chest, name, form)), chest.take_radiograph()
    difference = np.abs(with_it.pixels.astype(int) - without.pixels)
    for corner in (np.s_[:30, :30], np.s_[:30, -30:], np.s_[-30:, :30], np.s_[-30:, -30:]):
        assert difference[corner].mean() <= 2


# ---- one solid, two views ----


def compute_ray(beam, column, row):
    """Unit direction of the ray through a point of the image (pixel centres at whole numbers)."""
    direction = (
        beam.distance * beam.towards
        + (column - beam.centre[0]) * beam.pixel * beam.right
        + (row - beam.centre[1]) * beam.pixel * beam.down
    )
    return direction / np.linalg.norm(direction)


def find_nearest_points(beam, at, other_beam, other_at):
    """The points of two rays that come nearest to each other."""
    first, second = compute_ray(beam, *at), compute_ray(other_beam, *other_at)
    gap = other_beam.source - beam.source
    reach = np.linalg.lstsq(np.stack([first, -second], axis=1), gap, rcond=None)[0]
    return beam.source + reach[0] * first, other_beam.source + reach[1] * second


def measure_heights(beam, mask, depth_of):
    """Heights of the highest and lowest row of a mask at the depth of a point, cm."""
    rows, cols = np.nonzero(mask)
    heights = []
    for row in (rows.min() - 0.5, rows.max() + 0.5):
        direction = compute_ray(beam, cols.mean(), row)
        reach = ((depth_of - beam.source) @ beam.towards) / (direction @ beam.towards)
        heights.append((beam.source + reach * direction)[2])
    return heights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "extent"), [("nodule", 0.5), ("nodule", 1.0), ("mass", 0.3)])
@pytest.mark.parametrize("place", ["right upper", "left upper", "right mid"])
def test_frontal_and_lateral_masks_are_of_one_solid(chest, beams, *, place, name, extent, seed):
    side, level = place.split()
    lesion = chest.lesion(name, side, level=level, form="solid", extent=extent)
    one = chest.make_phantom(lesion, view="both", seed=seed, size=256)
    frontal, lateral = beams
    masks = [annotation.region.to_mask() for annotation in one.study.findings[0].annotations]
    assert len(masks) == 2
    middles = [(np.nonzero(mask)[1].mean(), np.nonzero(mask)[0].mean()) for mask in masks]
    # The rays through the middles of the two masks meet inside the patient, at the lesion.
    from_front, from_side = find_nearest_points(frontal, middles[0], lateral, middles[1])
    diameter = one.study.findings[0].measures[0].value
    assert np.linalg.norm(from_front - from_side) < 0.1 + 0.08 * diameter
    meeting = (from_front + from_side) / 2
    assert (meeting[0] < 0) == (side == "right")
    # At that depth both masks have the same height.
    for high, low in [measure_heights(beam, mask, meeting) for beam, mask in zip(beams, masks, strict=True)]:
        assert high - low == pytest.approx(diameter, rel=0.2, abs=0.25)
        assert (high + low) / 2 == pytest.approx(meeting[2], abs=0.15 + 0.05 * diameter)


def test_an_effusion_lies_at_the_base_in_both_views(chest):
    one = chest.make_phantom(chest.lesion("pleural effusion", level="lower", form="free"), view="both")
    for image, _, anatomy in one.views:
        (annotation,) = (a for a in one.study.findings[0].annotations if a.image == image.key)
        mask = annotation.region.to_mask()
        lungs = anatomy["right lung"] | anatomy["left lung"]
        rows = np.flatnonzero(lungs.any(axis=1))
        assert np.nonzero(mask)[0].mean() > rows[0] + 0.6 * np.ptp(rows)


# ---- position ----


@pytest.mark.parametrize("level", ["upper", "mid", "lower"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_a_nodule_is_entirely_visible_in_the_lung_field(chest, side, level):
    """Its mask has the stored diameter: no part of it is behind the heart or the diaphragm."""
    for seed in range(6):
        shown = chest.take_radiograph(
            chest.lesion("nodule", side, level=level, form="solid", extent=0.6), seed=seed
        )
        seen = shown.lesions["l1"]
        (diameter,) = (m.value for m in seen.shadow.measures)
        # Magnified by about 1.07 in the middle of the chest.
        pixel_cm = shown.pixel_mm / 10 / 1.07
        assert 2 * np.sqrt(seen.mask.sum() / np.pi) * pixel_cm == pytest.approx(diameter, rel=0.2), (
            f"seed {seed}"
        )


@pytest.mark.parametrize("level", ["upper", "mid", "lower"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_the_zone_of_a_nodule_is_the_planned_one(chest, side, level):
    for seed in range(4):
        one = chest.make_phantom(
            chest.lesion("nodule", side, level=level, form="solid", extent=0.3), seed=seed, size=160
        )
        assert one.study.findings[0].location.zones == (f"{side} {level} zone",), f"seed {seed}"


@pytest.mark.parametrize(("name", "form"), ALL)
@pytest.mark.parametrize("side", ["right", "left"])
def test_every_lesion_has_a_mask_on_its_side(chest, name, form, side):
    shown = chest.take_radiograph(make_lesion(chest, name, form, side=side), size=128)
    mask = shown.lesions["l1"].mask
    assert mask.any()
    middle = round(np.nonzero(shown.anatomy["spine"])[1].mean())
    right, left = mask[:, :middle].sum(), mask[:, middle:].sum()
    if name in SIDE_OF:
        assert min(right, left) > 0.15 * mask.sum()
    else:
        assert (right > left) == (side == "right")
        assert max(right, left) > 0.98 * mask.sum()


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, form in ALL if name not in ("cardiomegaly", "fracture")]
)
def test_a_lesion_of_the_lung_lies_in_the_lung_field_of_its_side(chest, name, form):
    shown = chest.take_radiograph(make_lesion(chest, name, form, side="right"))
    field = shown.anatomy["right lung"]
    if name == "edema":
        field = field | shown.anatomy["left lung"]
    assert not (shown.lesions["l1"].mask & ~field).any()


def test_an_effusion_blunts_its_costophrenic_angle_and_leaves_the_other(chest):
    shown = chest.take_radiograph(
        chest.lesion("pleural effusion", "left", level="lower", form="free", extent=0.3)
    )
    mask = shown.lesions["l1"].mask
    assert (mask & shown.anatomy["left costophrenic angle"]).sum() > 0.5 * shown.anatomy[
        "left costophrenic angle"
    ].sum()
    assert not (mask & shown.anatomy["right lung"]).any()


def test_fluid_rises_along_the_chest_wall_when_upright(chest):
    """The meniscus: higher at the side than in the middle of the lung."""
    shown = chest.take_radiograph(
        chest.lesion("pleural effusion", "right", level="lower", form="free", extent=0.4)
    )
    mask = shown.lesions["l1"].mask
    first = np.where(mask.any(axis=0), mask.argmax(axis=0), mask.shape[0])
    cols = np.flatnonzero(mask.any(axis=0))
    outer, middle = first[cols[: len(cols) // 4]].min(), np.median(first[cols[len(cols) // 2 :]])
    assert outer < middle - 5  # rows count downwards


def test_supine_fluid_is_layering_and_upright_fluid_is_a_meniscus(chest):
    effusion = chest.lesion("pleural effusion", "right", level="lower", form="free", extent=0.5)
    supine, upright = (
        chest.take_radiograph(effusion, view="AP", supine=True),
        chest.take_radiograph(effusion, view="AP"),
    )
    assert supine.lesions["l1"].shadow.appearance == ("layering",)
    assert upright.lesions["l1"].shadow.appearance == ("meniscus",)

    def height(shown):
        lung = np.flatnonzero(shown.anatomy["right lung"].any(axis=1))
        mask = np.flatnonzero(shown.lesions["l1"].mask.any(axis=1))
        return np.ptp(mask) / np.ptp(lung)

    assert height(supine) > height(upright)


def test_fluid_and_filled_lung_are_brighter_and_free_air_is_darker(chest):
    for name, form, sign in [
        ("pleural effusion", "free", 1),
        ("consolidation", "lobar", 1),
        ("lung opacity", "ground-glass", 1),
        ("mass", "solid", 1),
        ("pneumothorax", "simple", -1),
    ]:
        with_it, without = chest.take_radiograph(make_lesion(chest, name, form)), chest.take_radiograph()
        mask = with_it.lesions["l1"].mask
        change = with_it.pixels[mask].astype(float).mean() - without.pixels[mask].astype(float).mean()
        assert sign * change > 4, name


def test_a_pneumothorax_contains_no_vessels(chest):
    """Outside the pleural line there are only noise and ribs, so the texture is weaker than that of lung."""
    air = chest.lesion("pneumothorax", "right", form="simple", extent=0.6)
    with_it, without = chest.take_radiograph(air, size=256), chest.take_radiograph(size=256)
    mask = with_it.lesions["l1"].mask & ~with_it.anatomy["right ribs"]

    def texture(shown):
        fine = shown.pixels.astype(np.float32)
        return (fine - cv2.GaussianBlur(fine, (0, 0), 2))[mask].std()

    assert texture(with_it) < texture(without)


def test_tension_pushes_the_mediastinum_away(chest):
    def heart(*lesions):
        return np.nonzero(chest.take_radiograph(*lesions).anatomy["heart"])[1].mean()

    right = chest.lesion("pneumothorax", "right", form="tension", extent=0.8)
    left = chest.lesion("pneumothorax", "left", form="tension", extent=0.8)
    # Towards the patient's left is to the right of the image.
    assert heart(right) > heart() + 3
    assert heart(left) < heart() - 3


def test_collapse_shifts_the_mediastinum_and_raises_the_dome(chest):
    collapsed = chest.take_radiograph(
        chest.lesion("atelectasis", "left", level="lower", form="wedge", extent=0.9)
    ).anatomy
    healthy = chest.take_radiograph().anatomy
    assert np.nonzero(collapsed["heart"])[1].mean() > np.nonzero(healthy["heart"])[1].mean() + 2
    tops = [np.flatnonzero(a["left hemidiaphragm"].any(axis=1))[0] for a in (collapsed, healthy)]
    assert tops[0] < tops[1] - 3


# ---- size ----


EXTENTS = (0.05, 0.3, 0.55, 0.8, 1.0)


@pytest.mark.parametrize(("name", "form"), ALL)
def test_masks_and_measures_grow_with_the_extent(chest, name, form):
    studies = [
        chest.make_phantom(make_lesion(chest, name, form, extent=extent), size=160) for extent in EXTENTS
    ]
    findings = [one.study.findings[0] for one in studies]
    areas = [finding.annotations[0].region.area for finding in findings]
    assert areas == sorted(areas)
    assert areas[-1] > 1.3 * areas[0]
    for name_of_measure in {m.name for m in findings[0].measures} - {"displacement"}:
        values = [m.value for finding in findings for m in finding.measures if m.name == name_of_measure]
        assert len(values) == len(EXTENTS)
        assert values == sorted(values), name_of_measure
        assert values[-1] > values[0], name_of_measure
    words = ["mild", "moderate", "severe"]
    if findings[0].severity:
        ranks = [words.index(finding.severity) for finding in findings]
        assert ranks == sorted(ranks)


BILATERAL = [
    ("atelectasis", "wedge"),
    ("consolidation", "lobar"),
    ("edema", "alveolar"),
    ("lung opacity", "ground-glass"),
    ("pleural effusion", "free"),
    ("pneumonia", "patchy"),
]


@pytest.mark.parametrize(("name", "form"), BILATERAL)
def test_bilateral_disease_is_visible_in_both_lungs_and_grows_with_the_extent(chest, name, form):
    for seed in range(4):
        before = (0, 0)
        for extent in EXTENTS:
            lesion = make_lesion(chest, name, form, side="bilateral", level="lower", extent=extent)
            shown = chest.take_radiograph(lesion, seed=seed, size=160)
            mask = shown.lesions["l1"].mask
            areas = tuple(int((mask & shown.anatomy[f"{side} lung"]).sum()) for side in ("right", "left"))
            assert min(areas) > 0
            assert sum(areas) > sum(before), f"seed {seed}, extent {extent}"
            before = areas


def test_bilateral_disease_is_symmetric_in_some_and_asymmetric_in_others(chest):
    ratios = []
    for seed in range(24):
        edema = chest.lesion("edema", "bilateral", form="interstitial", extent=0.5)
        shown = chest.take_radiograph(edema, seed=seed, size=96)
        mask = shown.lesions["l1"].mask
        right, left = ((mask & shown.anatomy[f"{side} lung"]).sum() for side in ("right", "left"))
        ratios.append(right / left)
    assert sum(0.75 < ratio < 1.33 for ratio in ratios) > 12  # in most
    assert min(ratios) < 0.6
    assert max(ratios) > 1.7


@pytest.mark.parametrize("form", ["lobar", "patchy"])
def test_a_consolidation_grows_from_a_segment_over_a_lobe_to_most_of_a_lung(chest, form):
    for level in ("lower", "mid", "upper"):
        shares = []
        for extent in (0.15, 0.45, 0.9):
            lesion = make_lesion(chest, "consolidation", form, side="right", level=level, extent=extent)
            shown = chest.take_radiograph(lesion, size=128)
            lung = shown.anatomy["right lung"]
            shares.append((shown.lesions["l1"].mask & lung).sum() / lung.sum())
        segment, lobe, most = shares
        assert 0.05 < segment < 0.28 < lobe < 0.66 < most, f"{level}: {shares}"


@pytest.mark.parametrize(
    "name", ["cardiomegaly", "consolidation", "edema", "lung opacity", "pleural effusion", "pneumothorax"]
)
def test_severity_is_mild_at_the_smallest_extent_and_severe_at_the_largest(chest, name):
    form = {"cardiomegaly": "global", "consolidation": "lobar", "edema": "interstitial"}.get(name, "")
    for seed in range(3):
        least, most = (
            chest.make_phantom(
                make_lesion(chest, name, form, extent=extent), size=128, seed=seed
            ).study.findings[0]
            for extent in (0.05, 1.0)
        )
        assert (least.severity, most.severity) == ("mild", "severe"), f"seed {seed}: {least.measures}"


def test_a_nodule_is_below_and_a_mass_above_3_cm(chest):
    for name, extent, low, high in (
        ("nodule", 0.0, 0.5, 3.0),
        ("nodule", 1.0, 2.0, 3.0),
        ("mass", 0.0, 3.0, 4.0),
        ("mass", 1.0, 5.0, 9.0),
    ):
        shown = chest.take_radiograph(chest.lesion(name, level="mid", form="solid", extent=extent), size=96)
        (size,) = shown.lesions["l1"].shadow.measures
        assert (size.name, size.unit) == ("diameter", "cm")
        assert low <= size.value <= high
        assert (size.value > 3.0) == (name == "mass")


@pytest.mark.parametrize(
    ("name", "form"),
    [("consolidation", "lobar"), ("lung opacity", "ground-glass"), ("mass", "solid"), ("nodule", "solid")],
)
def test_a_denser_lesion_is_more_conspicuous(chest, name, form):
    for seed in range(3):
        subtle, clear, obvious = (
            chest.take_radiograph(make_lesion(chest, name, form, side="right", density=density), seed=seed)
            .lesions["l1"]
            .conspicuity
            for density in (0.3, 0.65, 1.0)
        )
        assert 0 < subtle < clear < obvious, f"seed {seed}"


@pytest.mark.parametrize(("extent", "ribs"), [(0.1, 1), (0.6, 2), (0.95, 3)])
def test_each_fractured_rib_has_its_part_of_the_mask(chest, extent, ribs):
    shown = chest.take_radiograph(
        chest.lesion("fracture", level="mid", form="acute", extent=extent), size=256
    )
    seen = shown.lesions["l1"]
    assert {m.name: m.value for m in seen.shadow.measures}["fractured ribs"] == ribs
    pieces = cv2.connectedComponents(seen.mask.astype(np.uint8))[0] - 1
    assert 1 <= pieces <= ribs  # neighbouring sites may touch
    assert (seen.mask & shown.anatomy["right ribs"]).sum() > 0.5 * seen.mask.sum()
    assert seen.shadow.site.startswith("right ")
    assert seen.shadow.site.endswith("rib" if ribs == 1 else "ribs")


def test_a_lesion_keeps_its_position_when_it_grows(chest):
    small, large = (
        chest.take_radiograph(chest.lesion("mass", level="upper", form="solid", extent=extent))
        .lesions["l1"]
        .mask
        for extent in (0.2, 0.7)
    )
    middles = [np.array([np.nonzero(m)[1].mean(), np.nonzero(m)[0].mean()]) for m in (small, large)]
    assert np.linalg.norm(middles[0] - middles[1]) < 6
    assert (small & large).sum() > 0.95 * small.sum()


def test_the_mask_is_where_the_thickness_exceeds_the_stored_share_of_its_maximum(chest):
    for name, form in (("nodule", "solid"), ("consolidation", "lobar"), ("pleural effusion", "free")):
        shown = chest.take_radiograph(make_lesion(chest, name, form, side="right"))
        shadow, mask = shown.lesions["l1"].shadow, shown.lesions["l1"].mask
        thick = shadow.thickness > shadow.threshold * shadow.thickness.max()
        expected = thick & shown.anatomy["right lung"]
        # Except for fragments of about a pixel.
        assert not (mask & ~expected).any()
        assert (expected & ~mask).sum() <= 0.02 * expected.sum()
