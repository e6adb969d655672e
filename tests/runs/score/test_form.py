"""Whether answers keep to the form that was demanded."""

import pytest
from tests.runs.score.steps import choice_step, open_step, score_answer, score_step, yes_no_step


def test_a_step_without_constraints_has_no_verdict_on_form():
    assert score_answer(open_step("Edema."), "Edema.").obeyed is None


@pytest.mark.parametrize(("words", "kept"), [(1, False), (2, True), (4, True), (5, False)])
def test_limits_count_words_separated_by_white_space(words, kept):
    step = open_step("Mild edema.", max_words=4, min_words=2)
    assert score_answer(step, "\n ".join(["well-known"] * words)).obeyed is kept


def test_reasoning_does_not_count_as_words():
    step = yes_no_step("no", max_words=3)
    raw = "<think>Let me look at both sides of the chest.</think> No effusion."
    assert score_step(step, raw=raw, label="no").obeyed is True
    assert score_step(step, raw=raw, label="no", text="No effusion, none at all.").obeyed is False


@pytest.mark.parametrize("raw", ["No", "no.", "**No**", "Answer: No", "The answer is no."])
def test_a_bare_label_keeps_the_form(raw):
    assert score_step(yes_no_step("no", answer_only=True), raw=raw, label="no").obeyed is True


@pytest.mark.parametrize("raw", ["No, I see none.", "No effusion", "No. The lungs are clear."])
def test_a_label_with_an_explanation_does_not_keep_the_form(raw):
    assert score_step(yes_no_step("no", answer_only=True), raw=raw, label="no").obeyed is False


def test_a_bare_uncertain_answer_may_take_three_words():
    step = yes_no_step("uncertain", answer_only=True)
    assert score_step(step, raw="I am unsure.", label="uncertain").obeyed is True
    assert score_step(step, raw="It may or may not be there.", label="uncertain").obeyed is False


@pytest.mark.parametrize(
    "raw",
    ["B", "(2)", "b.", "B. pleural effusion", "Pleural effusion.", "Option B: pleural effusion", "**B**"],
)
def test_a_bare_option_keeps_the_form(raw):
    step = choice_step(["edema", "pleural effusion", "mass"], "B", answer_only=True)
    assert score_step(step, raw=raw, options=("B",)).obeyed is True


@pytest.mark.parametrize(
    "raw",
    ["B, because of the meniscus", "Pleural effusion, not edema", "B. pleural effusion " * 9, "word " * 999],
)
def test_an_option_with_an_explanation_does_not_keep_the_form(raw):
    step = choice_step(["edema", "pleural effusion", "mass"], "B", answer_only=True)
    assert score_step(step, raw=raw, options=("B",)).obeyed is False


def test_several_bare_options_keep_the_form():
    step = choice_step(["left zone", "right zone", "left lower zone"], "AC", multiple=True, answer_only=True)
    for raw in ("A and C", "1, 3", "A. left zone\nC. left lower zone", "left lower zone and left zone"):
        assert score_step(step, raw=raw, options=("A", "C")).obeyed is True, raw
    assert score_step(step, raw="A, B and C", options=("A", "C")).obeyed is False


def test_a_text_is_bare_in_one_sentence_or_with_as_many_words_as_the_key():
    step = open_step("Edema. And an effusion.", answer_only=True)
    assert score_answer(step, "There is edema with a small effusion on both sides.").obeyed is True
    assert score_answer(step, "Edema. An effusion.").obeyed is True
    assert score_answer(step, "Edema. This is seen from the septal lines.").obeyed is False


def test_a_refusal_does_not_keep_the_form():
    assert score_step(open_step("Edema.", max_words=9), status="refusal", raw="I can't.").obeyed is False
