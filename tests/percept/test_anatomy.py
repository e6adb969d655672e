"""Lungs, their parts as codes, and the scene of a lesion: against plain boolean masks, and mirrored."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from carina.percept.anatomy import (
    REGIONS,
    decode_mask,
    make_geometry,
    measure_overlap,
    measure_share,
    name_region,
    read_anatomy,
)
from carina.percept.lesions import LESIONS
from carina.percept.rules import Ineligible, Rules
from carina.studies import Region
from carina.studies.lungs import lung_parts
from carina.studies.vocabulary import SIDES, ZONES

SIZE = 128


@st.composite
def chests(draw):
    """Two lungs of random shape, and some mask over and beside them."""
    seed = draw(st.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[:SIZE, :SIZE] + 0.5

    def blob(cx, cy, rx, ry):
        angle = np.arctan2(y - cy, x - cx)
        wave = 1 + 0.15 * np.sin(chance.integers(2, 6) * angle + chance.uniform(0, 6))
        return ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 <= wave

    middle = chance.uniform(58, 70)
    right = blob(36, 64, chance.uniform(14, 26), chance.uniform(30, 55)) & (x < middle)
    left = blob(94, 64, chance.uniform(14, 26), chance.uniform(30, 55)) & (x > middle)
    lesion = np.zeros_like(right)
    for _ in range(chance.integers(1, 4)):
        lesion |= blob(*chance.uniform(20, 108, 2), *chance.uniform(4, 40, 2))
    return right, left, lesion


def plain_region(parts, name):
    """A region as its name says it, from boolean masks."""
    if name in parts:
        return parts[name]
    side, level, part = name.split()
    return parts[f"{side} {level} zone"] & parts[f"{side} {part} lung"]


def mirrored_name(name):
    side, _, rest = name.partition(" ")
    return f"{'left' if side == 'right' else 'right'} {rest}"


@given(chests())
@settings(max_examples=20)
def test_coded_shares_are_those_counted_from_masks(chest, made):
    right, left, lesion = made
    coded = chest.anatomy(right, left)
    counts, parts = coded.counts(lesion), lung_parts(right, left)
    assert len(REGIONS) == len(set(REGIONS)) == 20
    for name in (*REGIONS, *ZONES):
        mask = plain_region(parts, name)
        np.testing.assert_array_equal(coded.region(name), mask)
        share = measure_share(name, counts, coded.totals)
        if mask.any():
            assert share == (mask & lesion).sum() / mask.sum()
        else:
            assert np.isnan(share)
    for side, lung in (("right", right), ("left", left)):
        assert measure_share(f"{side} lung", counts, coded.totals) == (lung & lesion).sum() / lung.sum()
    assert counts[0] == (lesion & ~right & ~left).sum()


@given(chests())
@settings(max_examples=10)
def test_the_overlap_of_two_regions_is_counted_from_masks(chest, made):
    coded, parts = chest.anatomy(*made[:2]), lung_parts(*made[:2])
    for n, one in enumerate(REGIONS):
        for other in REGIONS[n + 1 :]:
            a, b = plain_region(parts, one), plain_region(parts, other)
            if a.any() and b.any():
                assert measure_overlap(one, other, coded.totals) == (a & b).sum() / min(a.sum(), b.sum())


@given(chests())
@settings(max_examples=20)
def test_mirroring_and_swapping_sides_mirrors_every_region_and_share(chest, made):
    right, left, lesion = made
    here, there = chest.anatomy(right, left), chest.anatomy(left[:, ::-1].copy(), right[:, ::-1].copy())
    flipped = lesion[:, ::-1].copy()
    for name in (*REGIONS, *ZONES):
        other = mirrored_name(name)
        np.testing.assert_array_equal(there.region(other), here.region(name)[:, ::-1])
        assert measure_share(other, there.counts(flipped), there.totals) == pytest.approx(
            measure_share(name, here.counts(lesion), here.totals), abs=0, nan_ok=True
        )


@given(chests())
@settings(max_examples=10)
def test_every_region_lies_in_its_zone_and_side(chest, made):
    coded = chest.anatomy(*made[:2])
    lungs = {"right": coded.right, "left": coded.left}
    for name in REGIONS:
        side, level, *_ = name.split()
        mask = coded.region(name)
        assert not (mask & ~lungs[side]).any()
        if level in ("upper", "mid", "lower"):
            assert not (mask & ~coded.region(f"{side} {level} zone")).any()
    for side in SIDES:
        # An angle lies at the bottom of its own lung, on the outer side of the core.
        angle = coded.region(f"{side} costophrenic angle")
        assert not (angle & ~coded.region(f"{side} lower zone")).any()
    parts = [coded.region(f"{side} {level} {half}") for side in SIDES for level in ("upper", "mid", "lower")
             for half in ("medial", "lateral")]  # fmt: skip
    np.testing.assert_array_equal(np.sum(parts, axis=0), coded.lungs)


@given(chests(), st.integers(0, SIZE - 1), st.integers(0, SIZE - 1))
@settings(max_examples=30)
def test_the_name_at_a_pixel_is_a_region_that_holds_it(chest, made, row, column):
    coded = chest.anatomy(*made[:2])
    name = name_region(coded, row, column)
    if name is None:
        assert not coded.lungs[row, column]
    else:
        assert coded.region(name)[row, column]


def reason(call, *arguments):
    with pytest.raises(Ineligible) as found:
        call(*arguments)
    return found.value.reason, found.value.detail


def read(drawn):
    return read_anatomy(drawn, drawn.images[0], Rules())


def test_missing_and_implausible_lungs_are_ineligible(chest):
    right, left = chest.lungs()
    of = lambda *fields: reason(read, chest.study(fields=fields))  # noqa: E731
    assert reason(read, chest.study(fields=())) == ("no lungs", "the image has no region 'right lung'")
    assert of(right) == ("no lungs", "the image has no region 'left lung'")
    assert of(left, right) == (
        "implausible lungs",
        "the right lung is not on the image's left: sides swapped",
    )
    assert of(right, np.zeros_like(left)) == ("implausible lungs", "the left lung covers 0.0% of the image")
    tiny = chest.ellipse(184, 130, 15, 25)
    assert of(right, tiny) == ("implausible lungs", "the left lung covers 1.8% of the image")
    huge = chest.rectangle(0, 0, 256, 120)
    assert of(huge, left)[0] == "implausible lungs"
    assert "the right lung covers 46.9%" in of(huge, left)[1]
    small = chest.ellipse(184, 130, 20, 35)
    assert of(chest.rectangle(20, 5, 220, 120), small)[0] == "implausible lungs"
    assert of(right | chest.rectangle(120, 75, 20, 100), left) == (
        "implausible lungs",
        "the two lungs overlap",
    )


def test_lungs_that_their_source_doubts_are_ineligible(chest):
    drawn = chest.study(fields=chest.lungs())

    def with_quality(right, left):
        lungs = zip(drawn.anatomy, (right, left), strict=True)
        anatomy = tuple(msgspec.structs.replace(lung, quality=quality) for lung, quality in lungs)
        return msgspec.structs.replace(drawn, anatomy=anatomy)

    assert read(with_quality(0.7, None)).totals.any()
    assert reason(read, with_quality(0.95, 0.69))[0] == "lungs of low quality"
    assert "0.69, at least 0.7 needed" in reason(read, with_quality(0.95, 0.69))[1]
    lower = Rules(lung_quality=0.5)
    assert read_anatomy(with_quality(0.95, 0.69), drawn.images[0], lower).totals.any()


def test_lungs_at_the_limits_are_accepted(chest):
    # 2% of 256 x 256 is 1310.72 px; 4 times the smaller is the most.
    left = chest.rectangle(100, 170, 42, 32)
    right = chest.rectangle(100, 20, 84, 64)
    assert (left.sum(), right.sum()) == (1344, 4 * 1344)
    assert chest.anatomy(right, left).totals.sum() == 5 * 1344
    right[99, 20] = True
    assert reason(chest.anatomy, right, left) == ("implausible lungs", "right 5377 px, left 1344 px")


def test_a_damaged_region_or_one_of_another_image_is_ineligible(chest):
    right, left = chest.lungs()
    image = chest.image(right)
    assert reason(decode_mask, image, Region.empty(256, 300), "right lung") == (
        "region outside its image",
        "right lung is of an image of 300 x 256, the image is 256 x 256",
    )
    whole = Region.from_mask(right)
    for counts in (whole.counts[:-7], whole.counts + "0", "\x7f", "é"):
        broken = msgspec.structs.replace(whole, counts=counts)
        assert reason(decode_mask, image, broken, "right lung")[0] == "damaged region"
    assert reason(decode_mask, image, msgspec.structs.replace(whole, counts=""), "x")[1].startswith("x: ")
    np.testing.assert_array_equal(decode_mask(image, Region.from_mask(left), "left lung"), left)


def test_a_lesion_that_is_too_small_or_outside_the_lungs_is_ineligible(chest):
    coded, rules = chest.anatomy(), Rules()
    nothing = np.zeros((256, 256), bool)
    lesion = LESIONS["edema"]
    assert reason(make_geometry, lesion, nothing, coded, rules)[0] == "empty mask"
    # 2000 px of the frame are 125 px here.
    small = chest.rectangle(100, 70, 31, 4)
    assert reason(make_geometry, lesion, small, coded, rules) == (
        "lesion too small",
        "124 px, at least 125 needed",
    )
    small[99, 70] = True
    made = make_geometry(lesion, small, coded, rules)
    assert (made.area, made.scale) == (125, 0.25)
    beside = chest.rectangle(0, 0, 20, 20)
    assert reason(make_geometry, lesion, beside, coded, rules)[0] == "lesion outside the lungs"
    assert make_geometry(LESIONS["cardiomegaly"], beside, coded, rules).area == 400


def test_a_contour_may_run_in_the_lungs_and_where_the_lesion_is(chest):
    coded = chest.anatomy()
    truth = chest.ellipse(75, 150, 60, 40)
    made = make_geometry(LESIONS["effusion"], truth, coded, Rules())
    np.testing.assert_array_equal(made.field, coded.lungs | truth)


def test_the_contour_of_a_heart_may_run_in_the_convex_hull_of_the_lungs(chest):
    coded = chest.anatomy()
    truth = chest.ellipse(135, 170, 45, 35)
    field = make_geometry(LESIONS["cardiomegaly"], truth, coded, Rules()).field
    assert not ((coded.lungs | truth) & ~field).any()
    hull = ConvexHull(np.argwhere(coded.lungs | truth))
    rows, columns = np.argwhere(field).T
    inside = (hull.equations[:, :2] @ np.array([rows, columns]) + hull.equations[:, 2:]).max(axis=0)
    # A filled polygon also takes pixels whose centre lies just outside its edge.
    assert inside.max() <= 1.0
    assert field.sum() == pytest.approx(hull.volume, rel=0.02)
