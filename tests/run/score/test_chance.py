"""Chance levels against counting all admissible answers."""

from itertools import combinations

import pytest

from carina.run.score import chance, offers_uncertain


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_one_of_several(made, count):
    assert chance(made.choice("abcdefg"[:count], "A")) == 1 / count


@pytest.mark.parametrize(("content", "expected"), [(8, 1 / 256), (3, 1 / 8)])
def test_sets_with_none_of_them(made, content, expected):
    ids = [*"ABCDEFGH"[:content], "none"]
    step = made.choice(ids, ["A"], ids=ids, multiple=True)
    sets = [s for size in range(1, content + 1) for s in combinations(ids[:-1], size)]
    assert chance(step) == expected == 1 / (len(sets) + 1)


def test_sets_without_such_an_option(made):
    assert chance(made.choice("abcde", "AC", multiple=True)) == 1 / 31


def test_none_of_these_as_a_kind_and_as_the_key_by_its_words(made):
    wrong = made.choice(["x", "y", "none of these"], "A", multiple=True, kinds=["key", "distractor", "none"])
    right = made.choice(
        ["x", "y", "None of the above"], "C", multiple=True, kinds=["distractor", "distractor", "key"]
    )
    assert chance(wrong) == chance(right) == 1 / 4


@pytest.mark.parametrize(
    "question", ["Is there an effusion?", "Is there an effusion? Say yes, no or uncertain."]
)
def test_yes_or_no_has_three_answers_of_which_one_is_right_whatever_the_key(made, question):
    for label in ("yes", "no", "uncertain"):
        step = made.replace(made.yes_no(label), question=question)
        right = [made.scored(step, label=drawn).correct for drawn in ("yes", "no", "uncertain")]
        assert chance(step) == sum(right) / len(right) == 1 / 3
        assert offers_uncertain(step)


def test_words_and_boxes_are_not_drawn(made):
    assert chance(made.told("Edema.")) is None
    assert chance(made.boxed(made.box(0, 0, 1, 1))) is None
    assert chance(made.choice([], [])) is None
    assert not offers_uncertain(made.choice("ab", "A"))
