"""ROUGE-L, with values worked out by hand and by a slow table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.runs.score.text import LONGEST_ROUGE_TEXT, count_common_words, rouge_l, split_words

WORDS = st.lists(st.sampled_from(["no", "left", "right", "edema", "mild"]), max_size=70)


def by_table(one, other):
    """The textbook's table of lengths."""
    above = [0] * (len(other) + 1)
    for word in one:
        row = [0]
        for place, another in enumerate(other, start=1):
            row.append(above[place - 1] + 1 if word == another else max(above[place], row[-1]))
        above = row
    return above[-1]


def test_words_are_runs_of_letters_and_digits_in_lower_case():
    assert split_words("Left-sided effusion, 4.5 cm (it's new)!") == (
        ["left", "sided", "effusion", "4", "5", "cm", "it", "s", "new"]
    )
    assert split_words("Ödem") == ["dem"]
    assert split_words(" \n--") == []


@pytest.mark.parametrize(
    ("key", "answer", "expected"),
    [
        # Common: the cat on mat, 4 of 6 and 6.
        ("the cat sat on the mat", "the cat is on a mat", 2 / 3),
        # Common: edema; 1 of 2 and 1.
        ("Mild edema.", "EDEMA", 2 / 3),
        # The same words in another order have one in common in order.
        ("left right", "right left", 0.5),
        # Common: no effusion; 2 of 2 and 6.
        ("No effusion.", "No pneumothorax and no pleural effusion.", 0.5),
        ("Mild edema.", "", 0.0),
        ("Mild edema.", "mild, EDEMA", 1.0),
    ],
)
def test_rouge_l_equals_values_worked_out_by_hand(key, answer, expected):
    assert rouge_l(key, answer) == pytest.approx(expected)


def test_a_key_without_words_cannot_be_compared():
    assert rouge_l("...", "Edema.") is None


@given(one=WORDS, other=WORDS)
def test_the_subsequence_of_bits_equals_that_of_dynamic_programming(one, other):
    assert count_common_words(one, other) == by_table(one, other)


@given(one=st.text(), other=st.text())
def test_rouge_l_of_any_two_texts_is_symmetric_and_bounded(one, other):
    figure = rouge_l(one, other)
    if figure is None:
        assert split_words(one) == []
        return
    assert 0 <= figure <= 1
    assert rouge_l(one, one) == 1
    if split_words(other):
        assert rouge_l(other, one) == figure


def test_only_the_first_words_are_compared():
    long = "edema " * 10 * LONGEST_ROUGE_TEXT
    assert len(split_words(long)) == LONGEST_ROUGE_TEXT
    assert rouge_l("edema " * LONGEST_ROUGE_TEXT, long) == 1.0
