"""Boxes: pairs, frames, images, and boxes too many or too few."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carina.run.records import Parsed
from carina.run.score import score
from carina.run.score.boxes import iou

CORNERS = st.tuples(*[st.floats(-50, 250, allow_nan=False)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)


def test_half_a_box_apart(made):
    # 10 x 10 each, 5 x 10 shared: 50 of 150.
    step = made.boxed(made.box(0, 0, 10, 10))
    scores = made.scored(step, boxes=(made.box(5, 0, 15, 10),))
    assert scores.iou == scores.score == pytest.approx(1 / 3)
    assert scores.correct is False
    # 10 x 10 within 10 x 20: just right.
    assert made.scored(step, boxes=(made.box(0, 0, 10, 20),)).iou == 0.5
    assert made.scored(step, boxes=(made.box(0, 0, 10, 20),)).correct is True


@pytest.mark.parametrize(
    ("frame", "corners"),
    [("pixel", (20, 10, 60, 50)), ("percent", (10, 10, 30, 50)), ("unit", (0.1, 0.1, 0.3, 0.5)),
     ("thousand", (100, 100, 300, 500))],
)  # fmt: skip
def test_frames_are_converted_with_the_size_of_the_image(made, frame, corners):
    step = made.boxed(made.box(20, 10, 60, 50))
    assert made.scored(step, boxes=(made.box(*corners, frame=frame),)).iou == pytest.approx(1)


def test_corners_in_any_order_span_the_same_box(made):
    step = made.boxed(made.box(20, 10, 60, 50))
    assert made.scored(step, boxes=(made.box(60, 50, 20, 10),)).iou == pytest.approx(1)


def test_the_best_pairs_are_found_and_not_the_first_ones(made):
    # Taking the best pair first would pair the wide box with the first key (1/2) and leave the second one nothing.
    first, second = made.box(0, 0, 10, 10), made.box(10, 0, 20, 10)
    wide, narrow = made.box(0, 0, 20, 10), made.box(0, 0, 5, 10)
    scores = made.scored(made.boxed(first, second), boxes=(wide, narrow))
    assert scores.iou == pytest.approx((0.5 + 0.5) / 2)


def test_boxes_too_many_and_too_few_both_cost(made):
    one, two, three = made.box(0, 0, 10, 10), made.box(50, 0, 60, 10), made.box(90, 0, 99, 10)
    assert made.scored(made.boxed(one), boxes=(one, two)).iou == 0.5
    assert made.scored(made.boxed(one, two), boxes=(two,)).iou == 0.5
    assert made.scored(made.boxed(one, two), boxes=(two, three, one)).iou == pytest.approx(2 / 3)
    assert made.scored(made.boxed(one), boxes=()).iou == 0.0


def test_a_box_on_another_image_or_on_none_of_the_case_hits_nothing(made):
    step = made.boxed(made.box(0, 0, 10, 10))
    assert made.scored(step, boxes=(made.box(0, 0, 10, 10, image="b.png"),)).iou == 0.0
    assert made.scored(step, boxes=(made.box(0, 0, 10, 10, image="z.png"),)).iou == 0.0


def test_shares_of_an_image_whose_size_nobody_knows_compare_among_themselves(made):
    step = made.boxed(made.box(10, 10, 30, 50, frame="percent"))
    known = made.case(step)
    unknown = made.replace(known, images=tuple(made.replace(i, width=0, height=0) for i in known.images))
    for found, expected in (
        (made.box(0.1, 0.1, 0.3, 0.5, frame="unit"), 1.0),
        (made.box(100, 100, 300, 900, frame="thousand"), 0.5),
        (made.box(20, 10, 60, 50), 0.0),
    ):
        scores = score(unknown, step, Parsed(status="ok", boxes=(found,)), "")
        assert scores.iou == pytest.approx(expected)
        assert scores.correct is (expected >= 0.5)


def test_a_key_of_regions_stands_for_the_boxes_around_them(made):
    region = made.region("r1", top=20, left=40, height=30, width=50)
    step = made.boxed(regions=("r1",))
    assert made.scored(step, regions=(region,), boxes=(made.box(40, 20, 90, 50),)).iou == 1.0
    assert made.scored(step, regions=(region,), boxes=(made.box(40, 20, 90, 80),)).iou == 0.5


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
def test_numbers_without_sense_hit_nothing(made, bad):
    scores = made.scored(made.boxed(made.box(0, 0, 10, 10)), boxes=(made.box(-bad, 0, bad, 10),))
    assert scores.iou == pytest.approx(0)


def test_many_boxes_are_surplus(made):
    many = tuple(made.box(n, 0, n + 1, 1) for n in range(5000))
    assert made.scored(made.boxed(many[0]), boxes=many).iou == pytest.approx(1 / 5000)


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
