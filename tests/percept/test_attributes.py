"""Keys of the four attribute questions: worked by hand on rectangles, and stable for random lesions."""

from itertools import combinations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.percept.anatomy import REGIONS
from carina.percept.attributes import (
    choose_regions,
    measure_attributes,
    measure_stable_attributes,
    without_margins,
)
from carina.percept.rules import Rules
from carina.store.seeding import rng
from carina.studies.lungs import lung_parts
from carina.studies.vocabulary import ZONES

RULES = Rules()
HEIGHT, WIDTH, TOP, RIGHT, LEFT = 150, 40, 40, 30, 170
"""Of two rectangular lungs and where they begin: 6,000 px each, 2,000 px a zone."""
ZONE, LUNG = 2000, 6000


@pytest.fixture(scope="module")
def square(chest):
    """The anatomy of the two rectangles."""
    return chest.anatomy(
        chest.rectangle(TOP, RIGHT, HEIGHT, WIDTH), chest.rectangle(TOP, LEFT, HEIGHT, WIDTH)
    )


def filled(*amounts):
    """So many pixels, in reading order from a row of a lung on: `("right", 50, 300)`."""
    mask = np.zeros((256, 256), bool)
    for side, row, pixels in amounts:
        column = RIGHT if side == "right" else LEFT
        lung = np.zeros(HEIGHT * WIDTH, bool)
        lung[row * WIDTH : row * WIDTH + pixels] = True
        mask[TOP : TOP + HEIGHT, column : column + WIDTH] |= lung.reshape(HEIGHT, WIDTH)
    return mask


def refused(mask, anatomy, rules=RULES, *, task="distribution"):
    """Why an attribute is not asked."""
    found = measure_attributes(mask, anatomy, rules)
    assert getattr(found, task) in (None, {})
    return found.not_asked[task].partition(":")[0]


# ---- the cuts, one by one ----


def test_shares_and_keys_of_a_lesion_worked_by_hand(square):
    # All of the right upper zone, half of the mid one; a quarter of the left lower zone; 100 px beside the lungs.
    mask = filled(("right", 0, 3000), ("left", 100, 500))
    mask[0:10, 0:10] = True
    found = measure_attributes(mask, square, RULES)
    assert found.zones == {
        "right upper zone": 1.0,
        "right mid zone": 0.5,
        "right lower zone": 0.0,
        "left upper zone": 0.0,
        "left mid zone": 0.0,
        "left lower zone": 0.25,
    }
    assert found.affected == ("right upper zone", "right mid zone", "left lower zone")
    assert found.lungs == {"right": 0.5, "left": 500 / 6000}
    assert found.sizes == {"right": 3000, "left": 500}
    assert found.severity == {"right": "mid", "left": "low"}
    assert found.comparison == "right"
    assert found.outside_share == 100 / 3600


def test_a_zone_is_affected_from_a_quarter_on_and_undecided_above_three_twentieths(square):
    whole = ("right", 50, ZONE)
    for pixels, affected in ((300, False), (500, True), (501, True), (299, False)):
        found = measure_attributes(filled(whole, ("right", 0, pixels)), square, RULES)
        assert ("right upper zone" in found.affected) is affected, pixels
    for pixels in (301, 400, 499):
        assert refused(filled(whole, ("right", 0, pixels)), square) == "zone on a cut"


def test_a_lesion_in_no_zone_is_refused_and_not_called_four_or_more(square):
    # 300 px in each of the six zones: 15% of each.
    sparse = [(side, row, 300) for side in ("right", "left") for row in (0, 50, 100)]
    assert refused(filled(*sparse), square) == "no zone covered"
    assert refused(np.zeros((256, 256), bool), square) == "no zone covered"
    assert refused(filled(*sparse), square, without_margins(RULES)) == "no zone covered"


def test_a_lung_holds_the_lesion_from_a_fiftieth_on_and_is_free_of_it_up_to_a_five_hundredth(square):
    right = ("right", 0, 3000)
    for pixels, comparison in ((0, "one"), (11, "one"), (12, "one"), (120, "right"), (121, "right")):
        found = measure_attributes(filled(right, ("left", 0, pixels)), square, RULES)
        assert found.comparison == comparison, pixels
        assert set(found.severity) == ({"right"} if comparison == "one" else {"right", "left"})
    for pixels in (13, 60, 119):
        mask = filled(right, ("left", 0, pixels))
        assert refused(mask, square, task="comparison") == "lung presence on a cut"


@pytest.mark.parametrize(
    ("pixels", "severity"),
    [
        # 6000 x (1/3 - 0.04) = 1760, 6000 x (1/3 + 0.04) = 2240; and 3760, 4240.
        (1759, "low"),
        (1761, None),
        (2000, None),
        (2239, None),
        (2241, "mid"),
        (3759, "mid"),
        (3761, None),
        (4000, None),
        (4239, None),
        (4241, "high"),
        (6000, "high"),
    ],
)
def test_severity_is_classified_by_thirds_with_a_margin(square, pixels, severity):
    # Severity alone is asked here: zones and presence are without a band.
    rules = Rules(region=without_margins(RULES).region)
    found = measure_attributes(filled(("left", 0, pixels)), square, rules)
    assert found.severity.get("left") == severity


def test_severity_that_is_undecided_in_every_lung_is_not_asked_and_the_others_are(square):
    rules = Rules(region=without_margins(RULES).region)
    found = measure_stable_attributes(filled(("left", 0, 2000)), (), square, rules, scale=0.25)
    assert found.not_asked == {"severity": "severity on a cut: right 0.000, left 0.333"}
    assert (found.distribution, found.comparison) == ("1", "one")


def test_a_zone_on_a_cut_does_not_matter_where_four_others_are_covered(square):
    # 400 of 2000 px are the cut itself.
    four = [("right", 0, ZONE), ("right", 50, ZONE), ("left", 0, ZONE), ("left", 50, ZONE)]
    found = measure_attributes(filled(*four, ("right", 100, 400)), square, RULES)
    assert (found.distribution, found.not_asked.get("distribution")) == ("4+", None)
    assert len(found.affected) == 4
    assert refused(filled(*four[1:], ("right", 0, 400)), square) == "zone on a cut"


def test_a_small_lesion_is_asked_what_is_clear_of_it(square):
    # 200 of 2000 px of a zone: no zone is covered, but the lesion is in one lung, and a small part of it.
    found = measure_stable_attributes(filled(("right", 0, 200)), (), square, RULES, scale=0.25)
    assert found.not_asked == {"distribution": "no zone covered: at most 0.10 of a zone"}
    assert (found.severity, found.comparison) == ({"right": "low"}, "one")


@pytest.mark.parametrize(
    ("right", "left", "comparison"),
    [
        (1300, 1000, "similar"),
        (1000, 1300, "similar"),
        (1000, 1000, "similar"),
        (1299, 1000, "similar"),
        (1301, 1000, None),
        (1000, 1500, None),
        (1699, 1000, None),
        (1700, 1000, "right"),
        (1000, 1700, "left"),
        (2000, 1000, "right"),
    ],
)
def test_sides_are_similar_up_to_13_tenths_and_differ_from_17_tenths_on(square, right, left, comparison):
    mask = filled(("right", 0, right), ("left", 0, left))
    if comparison is None:
        assert refused(mask, square, task="comparison") == "size ratio on a cut"
    else:
        assert measure_attributes(mask, square, RULES).comparison == comparison


def test_regions_are_inside_from_a_quarter_on_outside_up_to_three_twentieths_and_else_neither(square):
    # The medial half of the right upper zone is 50 rows of 20 columns: 1000 px, from column 20 of the lung on.
    for pixels, where in ((150, "outside"), (151, "neither"), (249, "neither"), (250, "inside")):
        mask = filled(("right", 100, ZONE))
        medial = np.zeros(1000, bool)
        medial[:pixels] = True
        mask[TOP : TOP + 50, RIGHT + 20 : RIGHT + 40] = medial.reshape(50, 20)
        found = measure_attributes(mask, square, RULES)
        assert found.regions["right upper medial"] == pixels / 1000
        assert ("right upper medial" in found.inside) is (where == "inside")
        assert ("right upper medial" in found.outside) is (where == "outside")


def test_without_margins_the_cuts_are_those_of_the_questions(square):
    cuts = without_margins(RULES)
    # "at least a fifth"
    at = measure_attributes(filled(("right", 0, 400)), square, cuts)
    assert at.affected == ("right upper zone",)
    assert refused(filled(("right", 0, 399)), square, cuts) == "no zone covered"
    # "1/3 to less than 2/3", "2/3 or more"
    severities = {
        pixels: measure_attributes(filled(("right", 0, pixels)), square, cuts).severity["right"]
        for pixels in (1999, 2000, 3999, 4000)
    }
    assert severities == {1999: "low", 2000: "mid", 3999: "mid", 4000: "high"}
    # "at least 1.5 times the other"
    ratios = {
        right: measure_attributes(filled(("right", 0, right), ("left", 0, 1000)), square, cuts).comparison
        for right in (1499, 1500)
    }
    assert ratios == {1499: "similar", 1500: "right"}
    # A region is either in or out.
    for pixels in (199, 200, 201):
        mask = filled(("right", 100, ZONE))
        mask[TOP : TOP + 50, RIGHT + 20 : RIGHT + 40].ravel()[:] = False
        medial = np.arange(1000).reshape(50, 20) < pixels
        mask[TOP : TOP + 50, RIGHT + 20 : RIGHT + 40] = medial
        found = measure_attributes(mask, square, cuts)
        assert ("right upper medial" in found.inside) is (pixels >= 200)
        assert ("right upper medial" in found.outside) is (pixels < 200)


def test_pieces_count_once_however_they_overlap(square):
    one, other = filled(("right", 0, 2500)), filled(("right", 20, 2500))
    found = measure_attributes(one | other, square, RULES)
    # 20 rows of 40 px lie in one alone: 2500 + 800.
    assert found.sizes["right"] == 3300
    assert found.lungs["right"] == 0.55
    whole = measure_attributes(filled(("right", 0, LUNG)), square, RULES)
    assert whole.lungs["right"] == 1.0
    assert max(whole.regions.values()) == 1.0


def test_mirrored_lesions_have_mirrored_attributes(chest):
    right, left = chest.lungs()
    swap = {"right": "left", "left": "right", "similar": "similar", "one": "one"}

    def swapped(name):
        side, _, rest = name.partition(" ")
        return f"{swap[side]} {rest}".strip()

    other = chest.anatomy(left[:, ::-1].copy(), right[:, ::-1].copy())
    for name, mask in chest.lesions().items():
        here, there = (
            measure_attributes(mask, chest.anatomy(), without_margins(RULES)),
            measure_attributes(mask[:, ::-1].copy(), other, without_margins(RULES)),
        )
        assert there.zones == {swapped(zone): here.zones[zone] for zone in here.zones}, name
        assert there.regions == {swapped(region): here.regions[region] for region in here.regions}
        assert set(there.affected) == {swapped(zone) for zone in here.affected}
        assert set(there.inside) == {swapped(region) for region in here.inside}
        assert there.severity == {swap[side]: value for side, value in here.severity.items()}
        assert there.comparison == swap[here.comparison]
        assert there.sizes == {swap[side]: size for side, size in here.sizes.items()}


# ---- stability ----


def keys_of(mask, right, left):
    """Every key by the cuts of the questions, counted from boolean masks in exact numbers."""
    parts = lung_parts(right, left)

    def covered(part):
        return 5 * (mask & part).sum() >= part.sum() > 0

    regions = {}
    for name in REGIONS:
        side, level, *rest = name.split()
        part = (
            parts[f"{side} {level} zone"] & parts[f"{side} {rest[0]} lung"]
            if level in ("upper", "mid", "lower")
            else parts[name]
        )
        regions[name] = bool(covered(part))
    size = {"right": int((mask & right).sum()), "left": int((mask & left).sum())}
    area = {"right": int(right.sum()), "left": int(left.sum())}
    severity = {
        side: "high" if 3 * size[side] >= 2 * area[side] else "mid" if 3 * size[side] >= area[side] else "low"
        for side in size
    }
    held = [side for side in size if 100 * size[side] >= area[side]]
    small, large = sorted(size.values())
    if len(held) < 2:
        comparison = "one" if held else "none"
    elif 2 * large < 3 * small:
        comparison = "similar"
    else:
        comparison = max(size, key=lambda side: size[side])
    return {
        "zones": tuple(zone for zone in ZONES if covered(parts[zone])),
        "regions": regions,
        "severity": severity,
        "comparison": comparison,
    }


def count_key(zones):
    return str(len(zones)) if len(zones) < 4 else "4+"


@st.composite
def lesions(draw):
    """One to four discs and ellipses, some filling a lung, some mirrored, in a chest of 256 px."""
    seed = draw(st.integers(0, 2**32 - 1))
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[:256, :256] + 0.5
    mask = np.zeros((256, 256), bool)
    for _ in range(draw(st.integers(1, 4))):
        cx, cy = chance.uniform(30, 226), chance.uniform(45, 215)
        rx, ry = np.exp(chance.uniform(np.log(6), np.log(75), 2))
        mask |= ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 <= 1
    if draw(st.booleans()):
        mask |= mask[:, ::-1]
    return mask


ELEMENTS = {
    "cross": cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3)),
    "square": np.ones((3, 3), np.uint8),
}


@given(lesions())
@settings(max_examples=150)
def test_accepted_keys_stay_when_the_mask_grows_or_shrinks_by_a_pixel(chest, mask):
    right, left = chest.lungs()
    mask &= right | left
    coded = chest.anatomy()
    found = measure_stable_attributes(mask, (), coded, RULES, scale=0.25)
    for shape, element in ELEMENTS.items():
        for change in (None, cv2.dilate, cv2.erode):
            other = mask if change is None else change(mask.view(np.uint8), element).astype(bool)
            keys = keys_of(other, right, left)
            if found.distribution is not None:
                assert count_key(keys["zones"]) == found.distribution, (shape, change)
            assert found.comparison in (None, keys["comparison"])
            assert {side: keys["severity"][side] for side in found.severity} == found.severity
            assert [name for name in found.inside if not keys["regions"][name]] == [], shape
            assert [name for name in found.outside if keys["regions"][name]] == [], shape


@pytest.mark.parametrize("size", [256, 1024])
def test_keys_stay_at_three_pixels_of_the_frame(chest, size):
    reach = 3 * size // 1024 or 1
    right, left = chest.lungs(size)
    coded = chest.anatomy(right, left)
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    chance, accepted = np.random.default_rng(4), 0
    for _ in range(12):
        y = chance.uniform(0.4, 0.6) * size
        k = size / 256
        mask = (right & chest.ellipse(75 * k, y, 40 * k, chance.uniform(30, 80) * k, size=size)) | (
            left & chest.ellipse(184 * k, y, 40 * k, chance.uniform(10, 80) * k, size=size)
        )
        found = measure_stable_attributes(mask, (), coded, RULES, scale=size / 1024)
        accepted += not found.not_asked
        for change in (cv2.dilate, cv2.erode):
            keys = keys_of(change(mask.view(np.uint8), disc).astype(bool), right, left)
            assert found.distribution in (None, count_key(keys["zones"]))
            assert found.comparison in (None, keys["comparison"])
            assert {side: keys["severity"][side] for side in found.severity} == found.severity
            assert all(keys["regions"][name] for name in found.inside)
            assert not any(keys["regions"][name] for name in found.outside)
    assert accepted >= 2


def test_an_attribute_whose_key_would_flip_is_not_asked(square):
    # 500 px are a quarter of the upper zone: 12 rows and a half. Shrunk by a pixel all round, a thin bar loses
    # two of 13 rows and two of 40 columns, so it keeps 11 x 38 = 418 of at least 400: stable. Cut into combs it is not.
    whole = filled(("right", 50, ZONE))
    bar, comb = whole.copy(), whole.copy()
    bar[TOP : TOP + 13, RIGHT : RIGHT + WIDTH] = True
    comb[TOP : TOP + 50, RIGHT : RIGHT + WIDTH : 4] = True
    assert measure_attributes(comb, square, RULES).affected == measure_attributes(bar, square, RULES).affected
    assert measure_stable_attributes(bar, (), square, RULES, scale=0.25).affected == (
        "right upper zone",
        "right mid zone",
    )
    found = measure_stable_attributes(comb, (), square, RULES, scale=0.25)
    assert found.distribution is None
    assert found.not_asked["distribution"] == "unstable attribute: shrunk by 1 px"


def test_a_redrawn_contour_with_another_key_excludes_the_mask_or_its_regions(square):
    mask = filled(("right", 0, 5000))
    found = measure_stable_attributes(mask, (filled(("right", 0, 3500)),), square, RULES, scale=0.25)
    assert found.not_asked == dict.fromkeys(("distribution", "severity"), "unstable attribute: redrawn")
    assert found.comparison == "one"
    # Down to row 118, the outer half of the lower zone is not covered in the redrawn mask: 8 of 50 rows of 20 columns.
    mask = filled(("right", 0, 118 * WIDTH))
    other = mask.copy()
    other[TOP + 108 : TOP + 118, RIGHT : RIGHT + 20] = False
    alone = measure_stable_attributes(mask, (), square, RULES, scale=0.25)
    both = measure_stable_attributes(mask, (other,), square, RULES, scale=0.25)
    assert "right lower lateral" in alone.inside
    assert "right lower lateral" not in both.inside + both.outside
    assert "right lower medial" in both.inside


# ---- what is offered ----


@given(lesions(), st.integers(0, 3), st.integers(0, 1000))
@settings(max_examples=60)
def test_regions_to_choose_from_are_clear_and_never_near_duplicates(chest, mask, right, seed):
    coded = chest.anatomy()
    mask &= coded.lungs
    found = measure_stable_attributes(mask, (), coded, RULES, scale=0.25)
    chosen = choose_regions(found, coded, RULES, right=right, chance=rng(seed))
    if chosen is None:
        return
    inside, outside = chosen
    assert (len(inside), len(outside)) == (right, 3 - right)
    assert set(inside) <= set(found.inside)
    assert set(outside) <= set(found.outside)
    for one, other in combinations((*inside, *outside), 2):
        a, b = coded.region(one), coded.region(other)
        assert 10 * (a & b).sum() <= min(a.sum(), b.sum())


def test_location_questions_have_zero_to_three_right_regions_where_these_do_not_overlap(chest):
    coded = chest.anatomy()
    filling = measure_stable_attributes(coded.right, (), coded, RULES, scale=0.25)

    assert choose_regions(filling, coded, RULES, right=3, chance=rng(1)) is not None
    assert choose_regions(filling, coded, RULES, right=0, chance=rng(1)) is not None
    # Everything is covered: nothing wrong can be offered.
    both = measure_stable_attributes(coded.lungs, (), coded, RULES, scale=0.25)
    assert choose_regions(both, coded, RULES, right=2, chance=rng(1)) is None
    assert choose_regions(both, coded, RULES, right=3, chance=rng(1)) is not None


def test_tiny_lesions_cover_no_zone(chest):
    coded = chest.anatomy()
    found = measure_stable_attributes(chest.rectangle(100, 70, 10, 10), (), coded, RULES, scale=0.25)
    assert found.not_asked["distribution"].startswith("no zone covered")
