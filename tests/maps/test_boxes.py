import math

import numpy as np
import pytest

from carina.maps import Detection, any_point_in_boxes, box_iou, recall_at_rates, score_boxes, score_points
from carina.store.errors import CarinaError
from carina.studies import Region

A, B, FAR = (0.0, 0.0, 10.0, 10.0), (5.0, 0.0, 10.0, 10.0), (100.0, 100.0, 4.0, 4.0)


def test_iou_of_boxes_is_that_of_their_areas() -> None:
    np.testing.assert_allclose(box_iou([A, FAR], [A, B]), [[1, 50 / 150], [0, 0]])
    assert box_iou([], [A]).shape == (0, 1)
    with pytest.raises(CarinaError, match=r"widths and heights above 0, .* second list"):
        box_iou([A], [(0, 0, 0, 1)])


def test_iou_of_boxes_is_that_of_their_pixels() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        boxes = [tuple(map(float, (*draw.integers(0, 20, 2), *draw.integers(1, 20, 2)))) for _ in range(2)]
        one, other = (Region.from_box(*box, height=40, width=40) for box in boxes)
        assert box_iou(boxes[:1], boxes[1:])[0, 0] == pytest.approx(one.iou(other))


def test_each_true_box_is_found_by_one_detection() -> None:
    near = (1.0, 0.0, 10.0, 10.0)  # 90 / 110 with A
    found = score_boxes([Detection(near, 0.9), Detection(A, 0.8), Detection(FAR, 0.1)], [A, B])
    # A is found by the first; the exact one comes too late, B is found by none.
    assert found == pytest.approx(
        {"box_iou": (1 + 60 / 140) / 2, "box_recall": 0.5, "box_precision": 1 / 3, "point_hit": 1.0}
    )


def test_scores_without_boxes_are_zero_or_undefined() -> None:
    none = score_boxes([], [A])
    assert (none["box_iou"], none["box_recall"], none["point_hit"]) == (0, 0, 0)
    assert math.isnan(none["box_precision"])
    assert all(math.isnan(value) for value in score_boxes([Detection(A)], []).values())
    assert score_boxes([], [A], points=[(10, 10)])["point_hit"] == 1.0


def test_a_point_hits_a_box_including_its_edge() -> None:
    assert any_point_in_boxes([(10, 10)], [A])
    assert not any_point_in_boxes([(10.01, 10)], [A])
    truth = Region.from_box(*A, height=20, width=20)
    assert score_points([(30, 30), (9.5, 9.5)], truth) == 1.0
    assert score_points([(10.5, 1)], truth) == 0.0
    assert score_points([], truth) == 0.0
    assert math.isnan(score_points([(1, 1)], Region.empty(20, 20)))


def test_recall_at_false_boxes_per_image() -> None:
    """Ten images, three with a truth; confidences in order: hit, false, hit, false and hit together."""
    named = [[] for _ in range(10)]
    truth: list[list] = [[] for _ in range(10)]
    truth[0], truth[1], truth[2] = [A], [A], [A]
    named[0] = [Detection(A, 0.9), Detection(FAR, 0.8)]
    named[1] = [Detection(A, 0.7)]
    named[2] = [Detection(A, 0.5)]
    named[5] = [Detection(A, 0.5)]
    found = recall_at_rates(named, truth, rates=(0.05, 0.1, 0.2))
    assert found == {0.05: pytest.approx(1 / 3), 0.1: pytest.approx(2 / 3), 0.2: 1.0}
    assert recall_at_rates([[]], [[A]]) == {0.05: 0, 0.1: 0, 0.2: 0}
    assert math.isnan(recall_at_rates([[Detection(A)]], [[]])[0.1])
    with pytest.raises(CarinaError, match="for each of 1 images, found 0"):
        recall_at_rates([], [[A]])
