"""Region against numpy and pycocotools on masks of every shape, and its geometry on worked examples."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco
from scipy import ndimage

from carina.store.errors import RegionError
from carina.studies.region import Region, bounding_boxes

sizes = st.tuples(st.integers(1, 12), st.integers(1, 9))
masks = hnp.arrays(np.bool_, sizes)
mask_pairs = sizes.flatmap(lambda size: st.tuples(hnp.arrays(np.bool_, size), hnp.arrays(np.bool_, size)))


def area_of(ring):
    x, y = ring[:, 0], ring[:, 1]
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2


# ---- masks and dialects ----


@given(masks)
@settings(max_examples=60)
def test_every_encoding_decodes_to_the_same_region(mask):
    height, width = mask.shape
    region = Region.from_mask(mask)
    assert np.array_equal(region.to_mask(), mask)
    assert region.to_mask().dtype == np.bool_
    assert region.to_mask().flags.c_contiguous
    assert Region.from_coco(region.to_coco()) == region
    assert Region.from_siim(region.to_siim(), height=height, width=width) == region
    assert Region.from_chexmask(region.to_chexmask(), height=height, width=width) == region
    assert msgspec.json.decode(msgspec.json.encode(region), type=Region) == region
    assert np.array_equal(coco.decode(region.to_coco()).astype(bool), mask)
    region.validate()


def test_a_region_is_written_and_read_as_coco_runs():
    region = Region.from_mask(np.array([[0, 1, 0], [0, 1, 1]], dtype=bool))
    # Column-major 00 11 01: two unset, two set, one unset, one set (one less than the set run before).
    assert region.to_coco() == {"size": [2, 3], "counts": "221O"}
    assert Region.from_coco({"size": [2, 3], "counts": [2, 2, 1, 1]}) == region
    assert Region.from_coco({"size": (2, 3), "counts": b"221O"}) == region


@pytest.mark.parametrize(
    "encoded",
    [
        {},
        {"size": [2, 3]},
        {"counts": "6"},
        {"size": [6], "counts": "6"},
        {"size": [2, 3.0], "counts": "6"},
        {"size": [2, 3], "counts": None},
        {"size": [2, 3], "counts": 6},
    ],
)
def test_invalid_coco_runs_are_refused(encoded):
    with pytest.raises(RegionError, match="expected COCO's"):
        Region.from_coco(encoded)


def test_empty_and_full_regions_equal_their_masks():
    empty, full = Region.empty(2, 3), Region.full(2, 3)
    assert empty == Region.from_mask(np.zeros((2, 3), dtype=bool))
    assert full == Region.from_mask(np.ones((2, 3), dtype=bool))
    assert empty.is_empty
    assert not full.is_empty
    assert (empty.area, empty.bbox, empty.centroid) == (0, None, None)
    assert (full.area, full.bbox, full.centroid) == (6, (0, 0, 3, 2), (1.5, 1.0))
    assert empty.contours() == []
    assert empty.components() == []


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((2, 3), dtype=np.uint8), "mask: expected boolean pixels, got uint8"),
        (np.zeros((2, 3, 1), dtype=bool), r"mask: expected shape \(height, width\), got \(2, 3, 1\)"),
        (np.zeros(4, dtype=bool), r"got \(4,\)"),
        (np.zeros((0, 3), dtype=bool), "0 x 3"),
        ([[True]], "expected an array of shape .*, got list"),
    ],
)
def test_an_array_that_is_no_mask_is_refused(mask, message):
    with pytest.raises(RegionError, match=message):
        Region.from_mask(mask)


def test_a_label_image_gives_the_region_of_a_label():
    labels = np.array([[0, 7, 7], [3, 7, 0]], dtype=np.uint16)
    assert np.array_equal(Region.from_label_image(labels, 7).to_mask(), labels == 7)
    assert Region.from_label_image(labels, 9).is_empty
    with pytest.raises(RegionError, match="label image: expected integer pixels, got float64"):
        Region.from_label_image(labels.astype(float), 7)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("323O", "cover 9"),
        ("~~~", "position 0"),
        ("P", "stop within"),
        ("", "empty"),
        ("20:", "run 1 is empty"),
    ],
)
def test_a_damaged_region_is_refused_by_every_operation(counts, message):
    damaged = Region(3, 4, counts)
    sound = Region.full(3, 4)
    for use in (
        damaged.validate,
        damaged.to_mask,
        damaged.complement,
        damaged.mirror,
        damaged.contours,
        lambda: damaged.area,
        lambda: damaged.bbox,
        lambda: damaged.union(sound),
        lambda: sound.union(sound, damaged),
        lambda: sound.intersection(damaged),
        lambda: sound.difference(damaged),
    ):
        with pytest.raises(RegionError, match=message):
            use()


def test_validate_refuses_a_longer_spelling_of_the_same_runs():
    # "<" is 12; a backslash is 12 with more to follow, and "0" adds nothing.
    with pytest.raises(RegionError, match="longer than needed"):
        Region(3, 4, "\\0").validate()
    assert Region.from_coco({"size": [3, 4], "counts": "\\0"}) == Region(3, 4, "<") == Region.empty(3, 4)


# ---- boxes and polygons ----


def test_a_box_of_whole_pixels_holds_exactly_these():
    region = Region.from_box(1, 2, 3, 1, height=4, width=6)
    assert region.bbox == (1, 2, 3, 1)
    assert region.area == 3


@pytest.mark.parametrize(
    ("x", "w", "columns"),
    [
        (0.5, 1.0, [0, 1]),  # both centres lie on the box's edges
        (0.6, 1.0, [1]),
        (0.4, 1.0, [0]),
        (0.6, 0.8, []),
        (-3.0, 4.0, [0]),
        (3.5, 99.0, [3]),
    ],
)
def test_fractional_box_takes_the_pixels_whose_centre_it_holds(x, w, columns):
    mask = Region.from_box(x, 0, w, 1, height=1, width=4).to_mask()
    assert np.flatnonzero(mask[0]).tolist() == columns
    upright = Region.from_box(0, x, 1, w, height=4, width=1).to_mask()
    assert np.array_equal(upright.T, mask)


eighths = st.integers(-40, 120).map(lambda n: n / 8)


@given(eighths, eighths, eighths, eighths, sizes)
@settings(max_examples=60)
def test_a_box_equals_its_definition_also_mirrored(x, y, w, h, size):
    height, width = size
    if w <= 0 or h <= 0 or x >= width or y >= height or x + w <= 0 or y + h <= 0:
        with pytest.raises(RegionError, match="box"):
            Region.from_box(x, y, w, h, height=height, width=width)
        return
    cy, cx = np.mgrid[:height, :width] + 0.5
    region = Region.from_box(x, y, w, h, height=height, width=width)
    assert np.array_equal(region.to_mask(), (cx >= x) & (cx <= x + w) & (cy >= y) & (cy <= y + h))
    assert Region.from_box(width - x - w, y, w, h, height=height, width=width) == region.mirror()


@pytest.mark.parametrize("bad", [(0, 0, 0, 1), (0, 0, 1, -1), (math.nan, 0, 1, 1), (0, 0, math.inf, 1)])
def test_an_impossible_box_is_refused(bad):
    with pytest.raises(RegionError, match="expected finite numbers"):
        Region.from_box(*bad, height=4, width=4)


coordinates = st.integers(-200, 600).map(lambda n: n / 8)
rings_of_points = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=8, unique=True)


@given(st.lists(rings_of_points, min_size=1, max_size=3))
@settings(max_examples=60)
def test_polygons_equal_pycocotools(rings):
    height, width = 60, 50
    flat = [[float(value) for point in ring for value in point] for ring in rings]
    expected = coco.decode(coco.merge(coco.frPyObjects(flat, height, width))).astype(bool)
    assert np.array_equal(Region.from_polygons(rings, height=height, width=width).to_mask(), expected)


def test_repeated_points_do_not_change_a_polygon():
    square = [(1, 1), (5, 1), (5, 4), (1, 4)]
    plain = Region.from_polygons([square], height=6, width=8)
    assert plain.bbox == (1, 1, 4, 3)
    assert plain.area == 12
    repeated = [(1, 1), (1, 1), (5, 1), (5, 4), (5, 4), (1, 4), (1, 1)]
    assert Region.from_polygons([repeated], height=6, width=8) == plain
    assert Region.from_polygons([np.array(square)], height=6, width=8) == plain
    assert Region.from_polygons([], height=6, width=8).is_empty


@pytest.mark.parametrize(
    ("ring", "message"),
    [
        ([], "ring 1: expected points"),
        ([(1, 1), (2, 2)], "ring 1: expected at least 3 different points, got 2"),
        ([(1, 1), (2, 2), (2, 2), (1, 1)], "got 2"),
        ([(1, 1), (1, 1), (1, 1)], "got 0"),
        ([(1, 1), (2, 2), (math.nan, 1)], r"point \(nan, 1.0\) is not near"),
        ([(1, 1), (2, 2), (1e300, 1)], "not near the image of 6 x 8"),
        ([(1, 1, 1), (2, 2, 2), (3, 3, 3)], r"shape \(3, 3\)"),
        ([(1, 1), (2,), (3, 3)], "ring 1: expected points"),
        ([("a", "b"), (2, 2), (3, 3)], "ring 1: expected points"),
    ],
)
def test_a_degenerate_ring_is_refused(ring, message):
    with pytest.raises(RegionError, match=message):
        Region.from_polygons([[(0, 0), (3, 0), (3, 3)], ring], height=6, width=8)


# ---- measures ----


@given(masks)
@settings(max_examples=60)
def test_measures_equal_numpy(mask):
    region = Region.from_mask(mask)
    y, x = np.nonzero(mask)
    assert region.area == len(x)
    assert region.is_empty == (len(x) == 0)
    if len(x):
        width, height = np.ptp(x) + 1, np.ptp(y) + 1
        assert region.bbox == (x.min(), y.min(), width, height)
        assert region.centroid == pytest.approx((x.mean() + 0.5, y.mean() + 0.5))
    for i, j in np.ndindex(mask.shape):
        assert region.contains(j, i) == region.contains(j + 0.999, i + 0.5) == mask[i, j]
    assert not region.contains(-0.001, 0)
    assert not region.contains(0, mask.shape[0])


def test_iou_equals_counted_pixels():
    a = Region.from_box(0, 0, 4, 1, height=2, width=6)
    b = Region.from_box(2, 0, 4, 1, height=2, width=6)
    assert a.iou(b) == 2 / 6
    assert a.iou(a) == 1.0
    assert a.iou(Region.empty(2, 6)) == 0.0
    assert math.isnan(Region.empty(2, 6).iou(Region.empty(2, 6)))


# ---- combinations ----


@given(mask_pairs)
@settings(max_examples=60)
def test_combinations_equal_numpy(pair):
    one, two = pair
    a, b = Region.from_mask(one), Region.from_mask(two)
    assert a.union(b) == Region.from_mask(one | two)
    assert a.intersection(b) == Region.from_mask(one & two)
    assert a.difference(b) == Region.from_mask(one & ~two)
    assert a.complement() == Region.from_mask(~one)
    assert a.union(b, a.complement()) == Region.full(*one.shape)
    assert a.intersection(b, a.complement()) == Region.empty(*one.shape)
    assert a.union() == a
    assert a.union(b).area + a.intersection(b).area == a.area + b.area
    if (one | two).any():
        assert a.iou(b) == (one & two).sum() / (one | two).sum()


def test_regions_of_different_images_are_not_combined():
    with pytest.raises(RegionError, match=r"regions of 2 x 3 and 3 x 2 \(height x width\)"):
        Region.full(2, 3).union(Region.full(3, 2))
    with pytest.raises(RegionError, match="2 x 3 and 3 x 2"):
        Region.full(2, 3).iou(Region.full(3, 2))


# ---- moves ----


@given(masks)
@settings(max_examples=60)
def test_mirror_reverses_the_columns(mask):
    region = Region.from_mask(mask)
    assert region.mirror() == Region.from_mask(mask[:, ::-1])
    assert region.mirror().mirror() == region


@given(masks, st.data())
@settings(max_examples=60)
def test_crop_and_paste_equal_slicing_the_mask(mask, data):
    height, width = mask.shape
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    w, h = data.draw(st.integers(1, width - x)), data.draw(st.integers(1, height - y))
    cropped = Region.from_mask(mask).crop(x, y, w, h)
    assert cropped == Region.from_mask(mask[y : y + h, x : x + w])
    window = Region.from_box(x, y, w, h, height=height, width=width)
    assert cropped.paste(x, y, height=height, width=width) == Region.from_mask(mask).intersection(window)


def test_crop_and_paste_stay_in_the_image():
    region = Region.full(4, 4)
    with pytest.raises(RegionError, match=r"crop \(x 2, y 0, w 3, h 1\) leaves the image of 4 x 4"):
        region.crop(2, 0, 3, 1)
    with pytest.raises(RegionError, match=r"at \(x 3, y 0\) leaves the image of 5 x 6"):
        region.paste(3, 0, height=5, width=6)


@given(masks, sizes)
@settings(max_examples=60)
def test_resize_takes_the_pixel_under_each_centre(mask, size):
    height, width = size
    expected = np.zeros(size, dtype=bool)
    for i, j in np.ndindex(size):
        y, x = (2 * i + 1) * mask.shape[0] // (2 * height), (2 * j + 1) * mask.shape[1] // (2 * width)
        expected[i, j] = mask[y, x]
    assert Region.from_mask(mask).resize(*size) == Region.from_mask(expected)


@given(masks, st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=60)
def test_resize_by_a_whole_factor_is_exact(mask, tall, wide):
    region = Region.from_mask(mask)
    larger = region.resize(mask.shape[0] * tall, mask.shape[1] * wide)
    assert larger.area == region.area * tall * wide
    assert larger.resize(*mask.shape) == region


def test_resize_keeps_the_share_of_the_image():
    cy, cx = np.mgrid[:1024, :1024] + 0.5
    disc = Region.from_mask((cx - 400) ** 2 + (cy - 600) ** 2 < 250**2)
    for size in (224, 300, 512, 1500):
        assert disc.resize(size, size).area / size**2 == pytest.approx(disc.area / 1024**2, rel=0.005)


# ---- pieces and boundaries ----


@given(masks, st.sampled_from([4, 8]))
@settings(max_examples=60)
def test_components_are_the_connected_pieces(mask, connectivity):
    structure = np.ones((3, 3)) if connectivity == 8 else None
    labels, n = ndimage.label(mask, structure)
    pieces = Region.from_mask(mask).components(connectivity)
    order = sorted(range(1, n + 1), key=lambda k: (-(labels == k).sum(), np.flatnonzero(labels == k)[0]))
    assert pieces == [Region.from_mask(labels == k) for k in order]


@given(masks)
@settings(max_examples=100)
def test_halves_lie_on_either_side_of_the_widest_gap(mask):
    found = Region.from_mask(mask).halves()
    held = np.flatnonzero(mask.any(axis=0))
    gaps = np.diff(held)
    if not gaps.size or gaps.max() == 1:
        assert found is None
        return
    cut = held[np.argmax(gaps)] + 1
    left, right = (half.to_mask() for half in found)
    assert np.array_equal(left[:, :cut], mask[:, :cut])
    assert np.array_equal(right[:, cut:], mask[:, cut:])
    assert not left[:, cut:].any()
    assert not right[:, :cut].any()


def test_halves_are_split_within_the_given_range():
    # Bands of 1 to 3 empty columns, with their middles at 0.15, 0.5 and 0.85 of the width.
    region = Region.from_mask(np.array([[1, 0, 1, 1, 0, 0, 1, 0, 0, 1]], dtype=bool))
    assert [half.bbox[0] for half in region.halves()] == [0, 6]
    assert [half.bbox[0] for half in region.halves(0.6, 0.9)] == [0, 9]
    assert [half.bbox[0] for half in region.halves(0.0, 0.2)] == [0, 2]
    assert region.halves(0.2, 0.4) is None


def test_halves_equal_an_example_worked_out_by_hand():
    region = Region.from_mask(np.array([[1, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1]], dtype=bool))
    left, right = region.halves()
    assert (left.bbox, right.bbox) == ((0, 0, 3, 2), (5, 0, 1, 2))
    assert left.halves()[1].bbox == (2, 0, 1, 1)
    assert right.halves() is None


@given(masks)
@settings(max_examples=150)
def test_contours_enclose_exactly_the_region(mask):
    region = Region.from_mask(mask)
    rings = region.contours()
    outer = region.contours(holes=False)
    assert sum(map(area_of, rings)) == region.area
    assert all(area_of(ring) > 0 for ring in outer)
    assert len(outer) == len(region.components(8))
    filled = Region.from_mask(ndimage.binary_fill_holes(mask))
    assert sum(map(area_of, outer)) >= filled.area
    assert Region.from_polygons(outer, height=mask.shape[0], width=mask.shape[1]) == filled


def test_a_ring_of_pixels_has_two_contours():
    mask = np.ones((3, 3), dtype=bool)
    mask[1, 1] = False
    outer, hole = Region.from_mask(np.pad(mask, ((0, 1), (2, 0)))).contours()
    assert outer.tolist() == [[2, 0], [5, 0], [5, 3], [2, 3]]
    assert sorted(hole.tolist()) == [[3, 1], [3, 2], [4, 1], [4, 2]]
    assert area_of(hole) == -1


def test_pixels_that_touch_at_a_corner_have_one_contour():
    for mask in (np.eye(2, dtype=bool), np.eye(2, dtype=bool)[::-1]):
        (ring,) = Region.from_mask(mask).contours()
        assert area_of(ring) == 2
        assert [1, 1] in ring.tolist()


@given(st.lists(masks, min_size=1, max_size=5))
def test_boxes_of_many_are_those_of_each(several):
    regions = [Region.from_mask(mask) for mask in several]
    assert bounding_boxes(regions) == [region.bbox for region in regions]


@pytest.mark.parametrize("counts", ["é", "9" * 30, "oooo"])
def test_boxes_of_damaged_runs_are_refused_or_stay_within(counts):
    region = Region(height=4, width=5, counts=counts)
    try:
        (box,) = bounding_boxes([region])
    except RegionError:
        return
    assert box is None or (box[0] + box[2] <= 5 and box[1] + box[3] <= 4)


def test_no_regions_have_no_boxes():
    assert bounding_boxes([]) == []
