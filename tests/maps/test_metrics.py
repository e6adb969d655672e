"""Each metric on a few pixels, worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.maps import Scorer, score_pair
from carina.maps.alignment import AlignedMap
from carina.maps.pair import Pair
from carina.maps.pixel_values import kth_highest
from carina.models.frame import Frame
from carina.store.errors import CarinaError
from carina.studies import Region

FRAME = Frame.stretched(3, 4, side=4)
MAP = np.array([[0, 1, 2, 3], [0, 4, 8, 8], [1, 2, 3, 6]], np.float32)
TRUTH = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0]], bool)
"""Inside: 4, 8, 2, 3. Outside: 0, 1, 2, 3, 0, 8, 1, 6."""


def score(
    name: str, values: np.ndarray = MAP, truth: np.ndarray = TRUTH, frame: Frame = FRAME, **more: object
) -> float:
    (found,) = score_pair(values, truth, frame, [name], **more).values()
    return found


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("first_argmax", 1.0),  # the 8 at row 1, column 2
        ("any_max", 1.0),
        ("all_max", 0.0),  # the other 8 is outside
        ("expected", 0.5),
        ("within_1", 1.0),
    ],
)
def test_two_highest_pixels_are_resolved_by_the_rule(rule: str, expected: float) -> None:
    assert score(f"hit.{rule}") == expected
    assert score(f"hit_weighted.{rule}") == pytest.approx(expected * (1 - 4 / 12))


def test_the_first_of_the_highest_is_taken_row_by_row() -> None:
    mirrored = MAP[:, ::-1].copy()  # the 8 outside comes first now
    assert score("hit.first_argmax", mirrored, TRUTH[:, ::-1].copy()) == 0.0


def test_tolerance_is_a_distance_below_the_radius() -> None:
    values = np.zeros((1, 40), np.float32)
    values[0, 0] = 1
    truth = np.zeros((1, 40), bool)
    truth[0, 15] = True
    frame = Frame.stretched(1, 40, side=8)
    assert score("hit.within_15", values, truth, frame) == 0.0
    assert score("hit.within_16", values, truth, frame) == 1.0
    truth[0, 14] = True
    assert score("hit.within_15", values, truth, frame) == 1.0


def test_boxes_include_their_edges() -> None:
    # The highest pixels are at x 2 and x 3 of row 1.
    assert score("hit_box.first_argmax", boxes=[(0, 0, 2, 1)]) == 1.0
    assert score("hit_box.first_argmax", boxes=[(0, 0, 1.9, 1)]) == 0.0
    assert score("hit_box.expected", boxes=[(2.5, 0, 1, 1)]) == 0.5
    assert score("hit_box.any_max", boxes=[(2.5, 0, 1, 1)]) == 1.0
    assert score("hit_box.all_max", boxes=[(2, 0, 1, 1)]) == 1.0
    assert math.isnan(score("hit_box.expected", boxes=[]))
    # Without boxes the truth's pieces give them: columns 1 to 2, rows 1 to 2.
    assert score("hit_box.expected") == 0.5


@pytest.mark.parametrize(
    ("rule", "hit", "false"),
    [
        ("raw_2", 3, 3),  # 4, 8, 3 | 3, 8, 6
        ("raw_8", 0, 0),
        ("minmax_0.5", 1, 2),  # above 4: 8 | 8, 6
        ("minmax_0.25", 3, 3),
        ("symmetric_0", 1, 2),  # the same as minmax_0.5
        ("sigmoid_0.9", 3, 3),  # sigmoid(2) = 0.88, sigmoid(3) = 0.95
        ("oracle_area", 2, 2),  # 8, 8, 6, 4
        ("oracle_image", 4, 4),  # at or above 2: IoU 4/8; above 2: 3/7; 8, 8, 6, 4: 2/6
    ],
)
def test_overlap_at_a_threshold_equals_counted_pixels(rule: str, hit: int, false: int) -> None:
    assert score(f"iou.{rule}") == pytest.approx(hit / (4 + false))
    assert score(f"dice.{rule}") == pytest.approx(2 * hit / (4 + hit + false))
    assert score(f"recall.{rule}") == pytest.approx(hit / 4)
    assert score(f"specificity.{rule}") == pytest.approx((8 - false) / 8)
    assert score(f"accuracy.{rule}") == pytest.approx((hit + 8 - false) / 12)
    precision = score(f"precision.{rule}")
    assert precision == pytest.approx(hit / (hit + false)) if hit + false else math.isnan(precision)


def test_several_thresholds_are_averaged() -> None:
    assert score("iou.raw_2+4+8") == pytest.approx((3 / 7 + 1 / 6 + 0) / 3)
    assert score("iou.raw_2+4+8.tp_only") == pytest.approx((3 / 7 + 1 / 6) / 2)


def test_the_rule_for_empty_masks_decides_their_score() -> None:
    nothing = np.zeros_like(TRUTH)
    for empty, no_truth, no_prediction, neither in (
        ("positives", math.nan, 0.0, math.nan),
        ("tp_only", math.nan, math.nan, math.nan),
        ("any_mask", 0.0, 0.0, math.nan),
    ):
        same = pytest.approx
        assert score(f"iou.raw_2.{empty}", truth=nothing) == same(no_truth, nan_ok=True)
        assert score(f"iou.raw_9.{empty}") == same(no_prediction, nan_ok=True)
        assert score(f"iou.raw_9.{empty}", truth=nothing) == same(neither, nan_ok=True)
    assert score("image_specificity.raw_9", truth=nothing) == 1.0
    assert score("image_specificity.raw_2", truth=nothing) == 0.0
    assert math.isnan(score("image_specificity.raw_2"))


def test_areas_under_curves_equal_counted_pairs() -> None:
    # Inside above outside, of 4 x 8 pairs: 4 beats 6, 8 beats 7 and ties one, 2 beats 4 and ties one, 3 beats 5 and
    # ties one.
    assert score("auroc") == pytest.approx((6 + 7.5 + 4.5 + 5.5) / 32)
    # From the top: 8 (1 of 2), 4 (2 of 4), 3 (3 of 6), 2 (4 of 8).
    assert score("auprc") == pytest.approx(0.25 * (1 / 2 + 2 / 4 + 3 / 6 + 4 / 8))
    # Whole eighths of the range are kept apart by 4,096 levels.
    assert score("auroc_binned") == score("auroc")
    assert score("auprc_binned") == score("auprc")


def test_contrast_to_noise_equals_means_and_variances() -> None:
    # Inside: mean 17/4, variance (16+64+4+9)/4 - (17/4)^2. Outside: mean 21/8, variance 115/8 - (21/8)^2.
    expected = (17 / 4 - 21 / 8) / math.sqrt(93 / 4 - (17 / 4) ** 2 + 115 / 8 - (21 / 8) ** 2)
    assert score("cnr") == pytest.approx(expected)
    assert score("cnr", -MAP) == pytest.approx(-expected)
    assert score("cnr_abs", -MAP) == pytest.approx(expected)
    flat = np.where(TRUTH, 0.3, 0.1).astype(np.float32)
    assert score("cnr", flat) == 0.0  # both variances are 0
    assert math.isnan(score("cnr", truth=np.ones_like(TRUTH)))


def test_contrast_keeps_its_digits_on_a_large_offset() -> None:
    exact = (MAP + np.float32(1 << 17)).astype(np.float32)
    assert score("cnr", exact) == pytest.approx(score("cnr"), rel=1e-9)


def test_mass_and_rank_equal_sums_worked_out_by_hand() -> None:
    assert score("mass") == pytest.approx(17 / 38)
    assert score("mass", MAP - 3) == pytest.approx((1 + 5) / (1 + 5 + 5 + 3))
    assert score("mass_signed", MAP - 3) == pytest.approx((17 - 12) / (38 - 36))
    # The four highest are 8, 8, 6 and 4, two of them inside.
    assert score("rank") == 0.5
    # Of the six highest, the last two are 3 and 3, one inside.
    assert score("topk.top_6") == pytest.approx(3 / 6)
    assert score("topk.top_5") == pytest.approx(2.5 / 5)
    assert score("topk_gain.top_5") == pytest.approx(2.5 / 5 * 12 / 4)
    assert math.isnan(score("topk.top_13"))


def test_the_oracle_chooses_the_best_cells_of_the_grid() -> None:
    """Cells of 2 x 2 on 4 x 4 pixels: the truth fills the first, half of the second, a quarter of the third."""
    truth = np.zeros((4, 4), bool)
    truth[:2, :2] = truth[:2, 2] = truth[2, 0] = True
    frame = Frame.stretched(4, 4, side=2)
    values = np.zeros((2, 2), np.float32)
    # First alone: 4/7. With the second: 6/9. With the third too: 7/12.
    assert score("iou.nearest_full.oracle_grid", values, truth, frame) == pytest.approx(6 / 9)


def test_each_resampling_gives_its_own_mass() -> None:
    """A 2 x 2 map on 4 x 4 pixels."""
    values = np.array([[0, 4], [0, 0]], np.float32)
    frame = Frame.stretched(4, 4, side=2)
    row = np.zeros((4, 4), bool)
    row[0] = True
    # Nearest: the upper right cell has two pixels in row 0, two below.
    assert score("mass.nearest_full", values, row, frame) == pytest.approx(0.5)
    # Linear: columns 0, 1, 3, 4 of 4 in row 0; 3/4 and 1/4 of it below; nothing in the last.
    assert score("mass.bilinear_full", values, row, frame) == pytest.approx(8 / (8 + 6 + 2))
    # Corners aligned on 224: column i has 4 i/223, falling to 0 with the rows; 56 of them are row 0.
    ramp = 1 - np.arange(224) / 223
    assert score("mass.corners_224", values, row, frame) == pytest.approx(
        ramp[:56].sum() / ramp.sum(), rel=1e-6
    )
    assert score("mass.nearest_224", values, row, frame) == pytest.approx(0.5)


def test_truth_of_the_square_is_sampled_at_upper_left_corners() -> None:
    truth = np.zeros((336, 336), bool)
    truth[1::3] = True  # three rows of the image are two of the square: 0 and 1, never 2
    frame = Frame.stretched(336, 336, side=224)
    values = np.ones((1, 1), np.float32)
    assert score("mass.nearest_224", values, truth, frame) == pytest.approx(0.5)
    # Of rows 2, 5, 8... nothing is left.
    assert math.isnan(score("mass.nearest_224", values, np.roll(truth, 1, axis=0), frame))


def test_the_square_holds_only_what_the_model_sees() -> None:
    """A wide image in the middle of its square: padding above and below does not count."""
    frame = Frame.letterboxed(100, 200, longest=224)
    truth = np.zeros((100, 200), bool)
    truth[:, :50] = True
    values = np.ones((1, 1), np.float32)
    assert score("rank.nearest_224", values, truth, frame) == pytest.approx(0.25)
    assert score("recall.raw_0.5.nearest_224", values, truth, frame) == 1.0


def test_the_margin_decides_whether_unseen_pixels_count() -> None:
    """Of a 2 x 4 image the model sees the middle 2 x 2; half the truth lies outside."""
    frame = Frame.cropped(2, 4, shortest=2, side=2)
    values = np.array([[1, 3], [2, 4]], np.float32)
    truth = np.array([[0, 0, 1, 1], [0, 0, 1, 1]], bool)
    seen, full = (
        score_pair(
            values,
            truth,
            frame,
            [f"{metric}.{margin}" for metric in ("iou.raw_1", "hit.expected", "auroc", "rank", "mass")],
        ).values()
        for margin in ("visible_only", "full_image")
    )
    # Seen: 3, 4 inside, 1, 2 outside. Full: two more inside and two more outside, below all.
    assert list(seen) == pytest.approx([2 / 3, 1, 1, 1, 7 / 10])
    auroc = (2 * 4 + 2 * (2 / 2)) / 16
    rank = 2 / 4  # the four highest are the four that are seen
    assert list(full) == pytest.approx([2 / 5, 1, auroc, rank, 7 / 10])
    # A rank beyond what is seen goes into the unseen in equal parts.
    assert score("topk.top_6.full_image", values, truth, frame) == pytest.approx((2 + 2 * 2 / 4) / 6)


def test_nan_is_unseen() -> None:
    values = MAP.copy()
    values[1, 2] = math.nan  # the 8 inside
    assert score("hit.expected", values) == 0.0
    assert score("recall.raw_2", values) == pytest.approx(2 / 4)
    assert score("recall.raw_2.visible_only", values) == pytest.approx(2 / 3)
    assert score("mass", values) == pytest.approx(9 / 30)


def test_a_region_scores_as_its_mask() -> None:
    names = ["hit.expected", "iou.otsu", "auroc"]
    assert score_pair(MAP, Region.from_mask(TRUTH), FRAME, names) == score_pair(MAP, TRUTH, FRAME, names)


@pytest.mark.parametrize(
    ("values", "truth", "message"),
    [
        (MAP.astype(int), TRUTH, "expected rows and columns of floating-point numbers, found int64"),
        (MAP.ravel(), TRUTH, "of shape \\(12,\\)"),
        (np.full((2, 2), np.inf, np.float32), TRUTH, "found infinity"),
        (MAP, TRUTH.T, "3 x 4 pixels .* found 4 x 3"),
        (MAP, Region.empty(5, 4), "found 5 x 4"),
        (MAP, TRUTH.astype(np.uint8), "expected a mask of booleans, found uint8"),
    ],
)
def test_invalid_maps_and_truths_are_refused(values: np.ndarray, truth: np.ndarray, message: str) -> None:
    with pytest.raises(CarinaError, match=message):
        score_pair(values, truth, FRAME, ["hit.expected"])


@pytest.mark.parametrize(
    "name", ["iou.raw_1.pooled", "iou.oracle_set_iou_minmax256", "iou.tuned_iou_minmax256"]
)
def test_variants_of_a_set_are_refused_for_one_image(name: str) -> None:
    with pytest.raises(CarinaError, match=r"of images|another split"):
        score_pair(MAP, TRUTH, FRAME, [name])
    scorer = Scorer([name])
    scorer.add("a", "mass", MAP, TRUTH, FRAME)
    assert len(scorer) == 1


@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    inside=st.integers(0, 2**30 - 1),
    k=st.integers(1, 30),
)
def test_the_kth_highest_value_is_that_of_sorting_all(values: list[int], inside: int, k: int) -> None:
    truth = np.array([[bool(inside >> at & 1) for at in range(len(values))]])
    pair = Pair(AlignedMap(np.array([values], np.float32), truth, None), "full_image")
    k = min(k, len(values))
    assert kth_highest(pair, k) == sorted(values, reverse=True)[k - 1]
