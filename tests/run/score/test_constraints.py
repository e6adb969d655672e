"""Whether answers keep to the form that was demanded."""

import pytest


def test_nothing_demanded_nothing_judged(made):
    assert made.said(made.told("Edema."), "Edema.").obeyed is None


@pytest.mark.parametrize(("words", "kept"), [(1, False), (2, True), (4, True), (5, False)])
def test_limits_count_what_stands_between_blanks(made, words, kept):
    step = made.told("Mild edema.", max_words=4, min_words=2)
    assert made.said(step, "\n ".join(["well-known"] * words)).obeyed is kept


def test_reasoning_does_not_count(made):
    step = made.yes_no("no", max_words=3)
    raw = "<think>Let me look at both sides of the chest.</think> No effusion."
    assert made.scored(step, raw=raw, label="no").obeyed is True
    assert made.scored(step, raw=raw, label="no", text="No effusion, none at all.").obeyed is False


@pytest.mark.parametrize("raw", ["No", "no.", "**No**", "Answer: No", "The answer is no."])
def test_a_bare_label(made, raw):
    assert made.scored(made.yes_no("no", answer_only=True), raw=raw, label="no").obeyed is True


@pytest.mark.parametrize("raw", ["No, I see none.", "No effusion", "No. The lungs are clear."])
def test_a_label_with_an_explanation(made, raw):
    assert made.scored(made.yes_no("no", answer_only=True), raw=raw, label="no").obeyed is False


def test_not_knowing_takes_more_words(made):
    step = made.yes_no("uncertain", answer_only=True)
    assert made.scored(step, raw="I am unsure.", label="uncertain").obeyed is True
    assert made.scored(step, raw="It may or may not be there.", label="uncertain").obeyed is False


@pytest.mark.parametrize(
    "raw",
    ["B", "(2)", "b.", "B. pleural effusion", "Pleural effusion.", "Option B: pleural effusion", "**B**"],
)
def test_a_bare_option(made, raw):
    step = made.choice(["edema", "pleural effusion", "mass"], "B", answer_only=True)
    assert made.scored(step, raw=raw, options=("B",)).obeyed is True


@pytest.mark.parametrize(
    "raw",
    ["B, because of the meniscus", "Pleural effusion, not edema", "B. pleural effusion " * 9, "word " * 999],
)
def test_an_option_with_an_explanation(made, raw):
    step = made.choice(["edema", "pleural effusion", "mass"], "B", answer_only=True)
    assert made.scored(step, raw=raw, options=("B",)).obeyed is False


def test_several_bare_options(made):
    step = made.choice(["left zone", "right zone", "left lower zone"], "AC", multiple=True, answer_only=True)
    for raw in ("A and C", "1, 3", "A. left zone\nC. left lower zone", "left lower zone and left zone"):
        assert made.scored(step, raw=raw, options=("A", "C")).obeyed is True, raw
    assert made.scored(step, raw="A, B and C", options=("A", "C")).obeyed is False


def test_words_are_bare_in_one_sentence_or_in_as_many_words_as_the_key_has(made):
    step = made.told("Edema. And an effusion.", answer_only=True)
    assert made.said(step, "There is edema with a small effusion on both sides.").obeyed is True
    assert made.said(step, "Edema. An effusion.").obeyed is True
    assert made.said(step, "Edema. This is seen from the septal lines.").obeyed is False


def test_what_is_no_answer_does_not_obey(made):
    assert made.scored(made.told("Edema.", max_words=9), status="refusal", raw="I can't.").obeyed is False
