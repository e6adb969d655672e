"""Lung parts against a pixel-by-pixel reading of their definition, mirrored, and lesions placed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from carina.store.errors import RegionError
from carina.studies.lungs import core, erode, locate, lung_parts
from carina.studies.model import Location
from carina.studies.vocabulary import COSTOPHRENIC_ANGLES, LUNG_PARTS, ZONES

NAMES = (*ZONES, *LUNG_PARTS, *COSTOPHRENIC_ANGLES)


@st.composite
def lungs(draw):
    """A noisy blob, so that widths, holes, ties and loose pieces all occur."""
    height, width = draw(st.integers(1, 16)), draw(st.integers(1, 13))
    noise = draw(hnp.arrays(np.bool_, (height, width), elements=st.booleans()))
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    bottom, right = draw(st.integers(top, height)), draw(st.integers(left, width))
    block = np.zeros((height, width), dtype=bool)
    block[top:bottom, left:right] = True
    return block if draw(st.booleans()) else block ^ (noise & draw(hnp.arrays(np.bool_, (height, width))))


def ellipse(size, cx, cy, rx, ry):
    y, x = np.mgrid[:size, :size] + 0.5
    return ((x / size - cx) / rx) ** 2 + ((y / size - cy) / ry) ** 2 < 1


def chest(size):
    """Two lungs of slightly different shape, the left one narrower."""
    return ellipse(size, 0.28, 0.5, 0.17, 0.36), ellipse(size, 0.73, 0.49, 0.15, 0.34)


def plain_erosion(mask, side):
    height, width = mask.shape
    kept = np.zeros_like(mask)
    for y, x in np.ndindex(mask.shape):
        top, left = y - side // 2, x - side // 2
        if top >= 0 and left >= 0 and top + side <= height and left + side <= width:
            kept[y, x] = mask[top : top + side, left : left + side].all()
    return kept


def plain_parts(lung):
    """The parts of one lung, lateral side on the left, one pixel at a time."""
    names = ("upper", "mid", "lower", "medial", "lateral", "peripheral", "angle")
    parts = {name: np.zeros_like(lung) for name in names}
    ys, xs = np.nonzero(lung)
    if not len(ys):
        return parts
    top, left, height, width = ys.min(), xs.min(), np.ptp(ys) + 1, np.ptp(xs) + 1
    mean = (lung[top + height // 3].sum() + lung[top + 2 * height // 3].sum()) / 2
    side = max(1, int(np.floor(mean / 2)))
    while not (kept := plain_erosion(lung, side)).any():
        side //= 2
    labels, n = ndimage.label(kept, np.ones((3, 3)))
    middle = max((labels == k for k in range(1, n + 1)), key=lambda piece: piece.sum())
    core_rows = np.flatnonzero(middle.any(axis=1))
    for y, x in zip(ys, xs, strict=True):
        down, across = (y - top + 0.5) / height, (x - left + 0.5) / width
        third = "upper" if down < 1 / 3 - 1e-9 else "mid" if down < 2 / 3 - 1e-9 else "lower"
        parts[third][y, x] = True
        parts["lateral" if across <= 0.5 else "medial"][y, x] = True
        row = min(max(y, core_rows[0]), core_rows[-1])
        if x < np.flatnonzero(middle[row])[0]:
            parts["peripheral"][y, x] = True
            parts["angle"][y, x] = down >= 0.75
    return parts


# ---- parts ----


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 14), st.data())
@settings(max_examples=60)
def test_erosion_equals_its_definition(height, width, side, data):
    mask = np.ones((height, width), dtype=bool)
    mask.flat[data.draw(st.lists(st.integers(0, mask.size - 1), max_size=4))] = False
    assert np.array_equal(erode(mask, side), plain_erosion(mask, side))


@pytest.mark.parametrize("side", [30, 31])
def test_erosion_of_a_whole_lung_by_an_odd_and_an_even_square(side):
    right, _ = chest(160)
    assert np.array_equal(erode(right, side), plain_erosion(right, side))
    assert erode(right, side).any()


@given(lungs())
@settings(max_examples=200)
def test_parts_equal_their_definition(lung):
    parts = lung_parts(lung, np.zeros_like(lung))
    expected = plain_parts(lung)
    assert tuple(parts) == NAMES
    for level in ("upper", "mid", "lower"):
        assert np.array_equal(parts[f"right {level} zone"], expected[level])
    for part in ("medial", "lateral", "peripheral"):
        assert np.array_equal(parts[f"right {part} lung"], expected[part])
    assert np.array_equal(parts["right costophrenic angle"], expected["angle"])
    assert not any(mask.any() for name, mask in parts.items() if name.startswith("left"))


def assert_mirrored(right, left):
    parts = lung_parts(right, left)
    mirrored = lung_parts(left[:, ::-1], right[:, ::-1])
    for name in NAMES:
        side, rest = name.split(" ", 1)
        twin = f"{'left' if side == 'right' else 'right'} {rest}"
        assert np.array_equal(mirrored[twin], parts[name][:, ::-1]), name


@given(lungs(), lungs())
@settings(max_examples=100)
def test_mirroring_the_image_mirrors_the_parts(one, two):
    assert_mirrored(one, np.zeros_like(one))
    height, width = max(one.shape[0], two.shape[0]), max(one.shape[1], two.shape[1])
    right, left = np.zeros((height, width), dtype=bool), np.zeros((height, width), dtype=bool)
    right[: one.shape[0], : one.shape[1]], left[: two.shape[0], : two.shape[1]] = one, two
    assert_mirrored(right, left)


@pytest.mark.parametrize("size", [255, 256, 257, 512])
def test_mirroring_a_chest_mirrors_its_parts(size):
    assert_mirrored(*chest(size))


def test_the_parts_of_a_rectangular_lung_are_rectangles():
    right = np.zeros((14, 12), dtype=bool)
    right[1:13, 2:11] = True  # 12 rows of 9 columns
    parts = {name: mask for name, mask in lung_parts(right, np.zeros_like(right)).items() if mask.any()}
    box = {}
    for name, mask in parts.items():
        y, x = np.nonzero(mask)
        box[name] = (x.min(), x.max(), y.min(), y.max())
        assert mask.sum() == (np.ptp(x) + 1) * (np.ptp(y) + 1)
    assert box == {
        "right upper zone": (2, 10, 1, 4),
        "right mid zone": (2, 10, 5, 8),
        "right lower zone": (2, 10, 9, 12),
        "right lateral lung": (2, 6, 1, 12),  # column 6 is the middle one, and lateral
        "right medial lung": (7, 10, 1, 12),
        # A square of side 4 reaches 2 pixels to the lateral side, so the core starts 2 pixels in.
        "right peripheral lung": (2, 3, 1, 12),
        "right costophrenic angle": (2, 3, 10, 12),
    }


def test_parts_of_a_chest_make_sense():
    right, left = chest(512)
    parts = lung_parts(right, left)
    for side, lung in (("right", right), ("left", left)):
        zones = [parts[f"{side} {level} zone"] for level in ("upper", "mid", "lower")]
        assert np.array_equal(np.sum(zones, axis=0), lung)
        medial, lateral, peripheral = (parts[f"{side} {p} lung"] for p in ("medial", "lateral", "peripheral"))
        assert np.array_equal(medial ^ lateral, lung)
        assert not (medial & lateral).any()
        assert 0.1 < peripheral.sum() / lung.sum() < 0.4
        angle = parts[f"{side} costophrenic angle"]
        assert angle.any()
        assert not (angle & ~(peripheral & parts[f"{side} lower zone"])).any()
    # The patient's right is on the image's left: its lateral side is the outer one.
    assert np.nonzero(parts["right peripheral lung"])[1].mean() < np.nonzero(right)[1].mean()
    assert np.nonzero(parts["left peripheral lung"])[1].mean() > np.nonzero(left)[1].mean()


def test_core_shrinks_its_square_until_something_remains():
    # Lines one pixel thick, 30 pixels in the two rows that are measured: sides 15, 7 and 3 leave nothing.
    cross = np.zeros((9, 30), dtype=bool)
    cross[3], cross[6], cross[:, 15] = True, True, True
    assert np.array_equal(core(cross), cross)
    assert not core(np.zeros((4, 4), dtype=bool)).any()


def test_masks_of_different_sizes_are_refused():
    right, left = chest(64)
    with pytest.raises(RegionError, match=r"one shape .*, got right bool \(64, 64\), left bool \(63, 64\)"):
        lung_parts(right, left[1:])
    with pytest.raises(RegionError, match="left uint8"):
        lung_parts(right, left.astype(np.uint8))
    with pytest.raises(RegionError, match=r"lesion bool \(1, 64\)"):
        locate(right[:1], lung_parts(right, left), right, left)


# ---- lesions ----

RIGHT = np.zeros((90, 200), dtype=bool)
RIGHT[:, 10:70] = True
LEFT = RIGHT[:, ::-1].copy()
PARTS = lung_parts(RIGHT, LEFT)


def box(x, y, w, h):
    mask = np.zeros_like(RIGHT)
    mask[y : y + h, x : x + w] = True
    return mask


def place(lesion):
    return locate(lesion, PARTS, RIGHT, LEFT)


def test_a_small_lesion_lies_in_the_zone_that_holds_it():
    location = place(box(60, 40, 4, 4))
    assert location == Location(side="right", zones=("right mid zone",), parts=("right medial lung",))
    assert place(box(132, 40, 4, 4)).side == "left"
    assert place(box(12, 80, 4, 4)).parts == (
        "right lateral lung",
        "right peripheral lung",
        "right costophrenic angle",
    )


def test_a_lesion_on_a_cut_lies_in_every_zone_with_a_quarter_of_it():
    assert place(box(40, 27, 4, 4)).zones == ("right upper zone", "right mid zone")  # 3 + 1 of 4 rows
    assert place(box(40, 26, 4, 5)).zones == ("right upper zone",)  # 4 + 1 of 5 rows


def test_a_large_lesion_lies_in_every_zone_it_covers_by_a_fifth():
    # 60 x 36 pixels, of which the mid zone has 6 rows of 30: a fifth of it, but a sixth of the lesion.
    assert place(box(10, 0, 60, 36)).zones == ("right upper zone", "right mid zone")
    assert place(box(10, 0, 60, 35)).zones == ("right upper zone",)


def test_side_by_the_share_of_each_lung():
    assert place(box(53, 40, 17, 1) | box(130, 40, 3, 1)).side == "bilateral"  # 17 + 3: exactly 15%
    assert place(box(52, 40, 18, 1) | box(130, 40, 3, 1)).side == "right"
    assert place(box(52, 40, 18, 1) | box(130, 40, 3, 1)).zones == ("right mid zone",)


def test_every_stated_side_has_a_zone():
    # The left lung holds 6 of 30 pixels, 3 + 2 + 1 from top to bottom: no zone passes, the upper holds most.
    left = box(140, 10, 3, 1) | box(140, 40, 2, 1) | box(140, 70, 1, 1)
    location = place(box(40, 40, 24, 1) | left)
    assert location.side == "bilateral"
    assert location.zones == ("right mid zone", "left upper zone")


def test_equal_zones_are_all_stated():
    spread = sum(box(x, y, 1, 1) for x in (30, 169) for y in (10, 40, 70)).astype(bool)
    location = place(spread)
    assert location.side == "bilateral"
    assert location.zones == ZONES


def test_pixels_outside_the_lungs_do_not_count():
    inside = box(60, 40, 10, 10)
    assert place(inside | box(70, 0, 60, 90)) == place(inside)
    assert place(box(75, 10, 20, 20)) == Location()
    assert place(np.zeros_like(RIGHT)) == Location()


@given(hnp.arrays(np.bool_, (9, 20), fill=st.just(False)))
@settings(max_examples=60)
def test_a_lesion_that_touches_a_lung_has_side_and_zone_and_mirrors(coarse):
    lesion = np.kron(coarse, np.ones((10, 10), dtype=bool))
    location, mirrored = place(lesion), place(lesion[:, ::-1])
    if (lesion & (RIGHT | LEFT)).any():
        assert location.side is not None
        assert location.zones
        assert location.parts
        sides = ("right", "left") if location.side == "bilateral" else (location.side,)
        assert {name.split()[0] for name in location.zones} == set(sides)
    swap = {"right": "left", "left": "right"}
    assert mirrored.side == swap.get(location.side, location.side)
    for names, twins in ((location.zones, mirrored.zones), (location.parts, mirrored.parts)):
        assert {f"{swap[n.split()[0]]} {n.split(' ', 1)[1]}" for n in names} == set(twins)
