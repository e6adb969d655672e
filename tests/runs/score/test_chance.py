"""Chance levels against counting all admissible answers."""

from itertools import combinations

import msgspec
import pytest
from tests.runs.score.steps import boxes_step, choice_step, make_box, open_step, score_step, yes_no_step

from carina.runs.score import chance, offers_uncertain


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_chance_of_a_single_choice_is_one_over_the_options(count):
    assert chance(choice_step("abcdefg"[:count], "A")) == 1 / count


@pytest.mark.parametrize(("content", "expected"), [(8, 1 / 256), (3, 1 / 8)])
def test_a_none_option_counts_only_alone_in_the_chance_of_sets(content, expected):
    ids = [*"ABCDEFGH"[:content], "none"]
    step = choice_step(ids, ["A"], ids=ids, multiple=True)
    sets = [s for size in range(1, content + 1) for s in combinations(ids[:-1], size)]
    assert chance(step) == expected == 1 / (len(sets) + 1)


def test_chance_of_sets_counts_every_non_empty_set():
    assert chance(choice_step("abcde", "AC", multiple=True)) == 1 / 31


def test_a_none_option_is_recognised_by_its_words():
    wrong = choice_step(["x", "y", "none of these"], "A", multiple=True, kinds=["key", "distractor", "none"])
    right = choice_step(
        ["x", "y", "None of the above"], "C", multiple=True, kinds=["distractor", "distractor", "key"]
    )
    assert chance(wrong) == chance(right) == 1 / 4


@pytest.mark.parametrize(
    "question", ["Is there an effusion?", "Is there an effusion? Say yes, no or uncertain."]
)
def test_chance_of_a_yes_no_question_is_one_third_for_every_key(question):
    for label in ("yes", "no", "uncertain"):
        step = msgspec.structs.replace(yes_no_step(label), question=question)
        right = [score_step(step, label=drawn).correct for drawn in ("yes", "no", "uncertain")]
        assert chance(step) == sum(right) / len(right) == 1 / 3
        assert offers_uncertain(step)


def test_words_and_boxes_have_no_chance():
    assert chance(open_step("Edema.")) is None
    assert chance(boxes_step(make_box(0, 0, 1, 1))) is None
    assert chance(choice_step([], [])) is None
    assert not offers_uncertain(choice_step("ab", "A"))
