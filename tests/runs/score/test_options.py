"""Options and labels: exact answers, sets, and answers that could not be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.score.steps import boxes_step, choice_step, make_box, open_step, score_step, yes_no_step

from carina.runs.records import STATUSES
from carina.runs.score import f1, jaccard

SETS = st.frozensets(st.sampled_from("ABCDEF"))


def test_one_option_is_right_or_wrong_and_has_no_overlap():
    step = choice_step(["edema", "mass"], "A")
    right, wrong = score_step(step, options=("A",)), score_step(step, options=("B",))
    assert (right.correct, right.score, right.overlap, right.f1) == (True, 1.0, None, None)
    assert (wrong.correct, wrong.score) == (False, 0.0)


def test_a_set_is_right_as_a_whole_with_partial_credit_beside_the_score():
    step = choice_step(["w", "x", "y", "z"], "AB", multiple=True)
    exact = score_step(step, options=("A", "B"))
    assert (exact.correct, exact.score, exact.overlap, exact.f1) == (True, 1.0, 1.0, 1.0)
    # One of two right ones, and one wrong: 1 of 3 in all, precision and recall 1/2.
    half = score_step(step, options=("B", "C"))
    assert (half.correct, half.score) == (False, 0.0)
    assert (half.overlap, half.f1) == (pytest.approx(1 / 3), 0.5)
    # One of two right ones and nothing else: precision 1, recall 1/2.
    less = score_step(step, options=("A",))
    assert (less.correct, less.overlap, less.f1) == (False, 0.5, pytest.approx(2 / 3))
    none = score_step(step, options=("C", "D"))
    assert (none.overlap, none.f1) == (0.0, 0.0)


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "ok"])
def test_an_answer_that_could_not_be_parsed_is_wrong(status):
    single = score_step(choice_step(["edema", "mass"], "A"), status=status, options=("A",))
    several = score_step(choice_step("xyz", "AB", multiple=True), status=status, options=("A", "B"))
    label = score_step(yes_no_step("yes"), status=status, label="yes")
    boxes = score_step(boxes_step(make_box(0, 0, 10, 10)), status=status, boxes=(make_box(0, 0, 10, 10),))
    words = score_step(open_step("Edema."), status=status, raw="Edema.")
    for scores in (single, several, label, boxes):
        assert (scores.correct, scores.score) == (False, 0.0)
    assert (several.overlap, several.f1, boxes.iou) == (0.0, 0.0, 0.0)
    assert (words.correct, words.score, words.rouge, words.entity_f1) == (None, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("key", ["yes", "no", "uncertain"])
@pytest.mark.parametrize("label", ["yes", "no", "uncertain", None])
def test_a_label_is_right_where_it_equals_the_key(key, label):
    scores = score_step(yes_no_step(key), label=label)
    assert (scores.correct, scores.score) == (key == label, float(key == label))


@given(one=SETS, other=SETS)
def test_overlaps_are_symmetric_bounded_and_ordered(one, other):
    assert jaccard(one, other) == jaccard(other, one)
    assert f1(one, other) == f1(other, one)
    assert 0 <= jaccard(one, other) <= f1(one, other) <= 1
    assert (jaccard(one, other) == 1) == (one == other and bool(one))


@given(right=SETS.filter(bool), data=st.data())
def test_another_right_option_never_lowers_the_overlap(right, data):
    part = data.draw(st.frozensets(st.sampled_from(sorted(right)), max_size=len(right) - 1))
    more = part | {min(right - part)}
    assert jaccard(more, right) > jaccard(part, right)
    assert f1(more, right) > f1(part, right)
