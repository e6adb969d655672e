"""Boxes: pairs, frames, images, and boxes too many or too few."""

import math

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.runs.score.steps import boxes_step, make_box, make_case, make_region, score_step

from carina.runs.records import ParsedAnswer
from carina.runs.score import score
from carina.runs.score.boxes import iou

CORNERS = st.tuples(*[st.floats(-50, 250, allow_nan=False)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)


def test_iou_of_boxes_half_a_width_apart():
    # 10 x 10 each, 5 x 10 shared: 50 of 150.
    step = boxes_step(make_box(0, 0, 10, 10))
    scores = score_step(step, boxes=(make_box(5, 0, 15, 10),))
    assert scores.iou == scores.score == pytest.approx(1 / 3)
    assert scores.correct is False
    # 10 x 10 within 10 x 20: just right.
    assert score_step(step, boxes=(make_box(0, 0, 10, 20),)).iou == 0.5
    assert score_step(step, boxes=(make_box(0, 0, 10, 20),)).correct is True


@pytest.mark.parametrize(
    ("frame", "corners"),
    [("pixel", (20, 10, 60, 50)), ("percent", (10, 10, 30, 50)), ("unit", (0.1, 0.1, 0.3, 0.5)),
     ("thousand", (100, 100, 300, 500))],
)  # fmt: skip
def test_frames_are_converted_with_the_size_of_the_image(frame, corners):
    step = boxes_step(make_box(20, 10, 60, 50))
    assert score_step(step, boxes=(make_box(*corners, frame=frame),)).iou == pytest.approx(1)


def test_corners_in_any_order_span_the_same_box():
    step = boxes_step(make_box(20, 10, 60, 50))
    assert score_step(step, boxes=(make_box(60, 50, 20, 10),)).iou == pytest.approx(1)


def test_boxes_are_paired_for_the_highest_total_iou():
    # Taking the best pair first would pair the wide box with the first key (1/2) and leave the second one nothing.
    first, second = make_box(0, 0, 10, 10), make_box(10, 0, 20, 10)
    wide, narrow = make_box(0, 0, 20, 10), make_box(0, 0, 5, 10)
    scores = score_step(boxes_step(first, second), boxes=(wide, narrow))
    assert scores.iou == pytest.approx((0.5 + 0.5) / 2)


def test_surplus_and_missing_boxes_lower_the_score():
    one, two, three = make_box(0, 0, 10, 10), make_box(50, 0, 60, 10), make_box(90, 0, 99, 10)
    assert score_step(boxes_step(one), boxes=(one, two)).iou == 0.5
    assert score_step(boxes_step(one, two), boxes=(two,)).iou == 0.5
    assert score_step(boxes_step(one, two), boxes=(two, three, one)).iou == pytest.approx(2 / 3)
    assert score_step(boxes_step(one), boxes=()).iou == 0.0


def test_a_box_on_another_or_unknown_image_scores_0():
    step = boxes_step(make_box(0, 0, 10, 10))
    assert score_step(step, boxes=(make_box(0, 0, 10, 10, image="b.png"),)).iou == 0.0
    assert score_step(step, boxes=(make_box(0, 0, 10, 10, image="z.png"),)).iou == 0.0


def test_relative_boxes_of_an_image_of_unknown_size_are_compared():
    step = boxes_step(make_box(10, 10, 30, 50, frame="percent"))
    known = make_case(step)
    images = tuple(msgspec.structs.replace(image, width=0, height=0) for image in known.images)
    unknown = msgspec.structs.replace(known, images=images)
    for found, expected in (
        (make_box(0.1, 0.1, 0.3, 0.5, frame="unit"), 1.0),
        (make_box(100, 100, 300, 900, frame="thousand"), 0.5),
        (make_box(20, 10, 60, 50), 0.0),
    ):
        scores = score(unknown, step, ParsedAnswer(status="ok", boxes=(found,)), "")
        assert scores.iou == pytest.approx(expected)
        assert scores.correct is (expected >= 0.5)


def test_a_key_of_regions_is_compared_by_bounding_boxes():
    region = make_region("r1", top=20, left=40, height=30, width=50)
    step = boxes_step(regions=("r1",))
    assert score_step(step, regions=(region,), boxes=(make_box(40, 20, 90, 50),)).iou == 1.0
    assert score_step(step, regions=(region,), boxes=(make_box(40, 20, 90, 80),)).iou == 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
def test_boxes_with_invalid_numbers_score_0(bad):
    scores = score_step(boxes_step(make_box(0, 0, 10, 10)), boxes=(make_box(-bad, 0, bad, 10),))
    assert scores.iou == pytest.approx(0)


def test_more_than_a_thousand_boxes_are_surplus():
    many = tuple(make_box(n, 0, n + 1, 1) for n in range(5000))
    assert score_step(boxes_step(many[0]), boxes=many).iou == pytest.approx(1 / 5000)


@given(one=CORNERS, other=CORNERS)
def test_overlap_is_symmetric_bounded_and_blind_to_stretching(one, other):
    share = iou(one, other)
    assert share == iou(other, one)
    assert 0 <= share <= 1
    assume(one[2] - one[0] > 1e-3 and one[3] - one[1] > 1e-3)
    assert iou(one, one) == 1
    wide, others = ((x1 * 2, y1, x2 * 2, y2) for x1, y1, x2, y2 in (one, other))
    assert iou(wide, others) == pytest.approx(share, abs=1e-9)


@given(step=st.floats(0, 9), more=st.floats(0.01, 5))
def test_the_farther_away_the_less_overlap(step, more):
    near, far = (iou((0, 0, 10, 10), (by, 0, 10 + by, 10)) for by in (step, step + more))
    assert far < near
