"""Remarks after an answer: most change nothing, some do."""

import pytest
from tests.runs.parse.steps import NY, YN, K, L, P, T, Z, choice, lettered, make_step, numbers

from carina.runs.parse import parse

# Texts with the words of markers and of remarks, brackets, single letters and figures.
ODD = [
    choice("case of none", "the one", "correct mask", "best point", multiple=True),
    choice("4 zones (or more)", "none", "all zones"),
    choice("right", "left", "5 cm", "zone (apex)"),
    lettered("s", "i am", "a case", "option x"),
]
FINDING = make_step("yes_no", "Is there an effusion?")

REMARKED = [
    (K, "Answer: 3", {3}),
    (K, "In case 17 the 3rd rib is covered.\nAnswer: 3", {3}),
    (K, "Not 2.\n\n**Final answer:** [3]", {3}),
    (K, "Therefore, the correct answer is (3).", {3}),
    (K, "Answer: 3 (case 17)", {3}),
    (K, "Answer: 3. (case 17)", {3}),
    (K, "Answer: 3. The apex is covered by 2 masks.", {3}),
    (K, "Answer: mask 3, as 4 leaves out the base", {3}),
    (K, "Answer: 3\n\nExplanation: mask 2 leaves out the base.", {3}),
    (K, "**Answer: 3** (case 17)", {3}),
    (K, "Answer: 7 (case 17)", "out_of_range"),
    (K, "Answer: 1, 2 (case 17)", "too_many"),
    (K, "3 (case 17)", {3}),
    (L, "Answer: 1 and 3 (case 17)", {1, 3}),
    (P, "Answer: red, blue (case 17)", {1, 5}),
    (P, "Answer: red point (2) (case 17)", "ambiguous"),
    (P, "Answer: None, there is nothing to add.", {6}),
    (T, "Answer: B (case 17)", {2}),
    (YN, "Yes, the right base is opaque in case 17.", {1}),
    (NY, "Yes. The base is opaque. (Case 17)", {2}),
]


@pytest.mark.parametrize(("step", "reply", "expected"), REMARKED, ids=[reply for _, reply, _ in REMARKED])
def test_a_remark_does_not_change_the_chosen_options(step, reply, expected):
    assert numbers(step, parse(step, reply)) == expected


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("The base is clear.\nAnswer: no", "no"),
        ("Answer: Yes (case 17)", "yes"),
        ("Answer: no, the base is clear.", "no"),
        ("The answer is uncertain. The film of case 17 is rotated.", "uncertain"),
    ],
)
def test_a_remark_does_not_change_the_label(reply, label):
    assert parse(FINDING, reply).label == label


@pytest.mark.parametrize(
    ("step", "reply", "expected"),
    [
        (K, "Answer: 2 (or 3)", "ambiguous"),
        (K, "Answer: 2 (not 3)", {2}),
        (K, "Answer: 2 (my choice is 4)", {4}),
        (K, "Answer: 2. I would choose 4", {4}),
        (K, "Answer: 2, case 3, not 4", {2}),
        (K, "Answer: 2 (case 17) or 3", "ambiguous"),
        (K, "Answer: 2 (case 17)\n3", "too_many"),
        (K, "Answer: 2 (case\n3)", "too_many"),
        (K, "Answer: - 2\n- 3", "too_many"),
        (K, "Answer: not 2 (case 17)", "no_answer"),
        (K, "Answer: (case 17)", "no_answer"),
        (K, "Answer: 2 is (case 17) wrong", "no_answer"),
        (K, "The answer is not 2 (case 17)", "no_answer"),
        (K, "Answer: 3 ribs (case 17)", "no_answer"),
        (K, "I cannot answer: 3 ribs, case 17", "refusal"),
        (K, "The 2nd is wrong\n\nanswer: 3 of 4 ribs", "no_answer"),
        (K, "Answer: -1 (case 17)", "out_of_range"),
        (K, "\\boxed{2} Answer: \\boxed{3}", {3}),
        (Z, "Answer: 4 (zones or more)", {1}),
        (Z, "Answer: 2 (2 zones)", "ambiguous"),
        (Z, "Answer: 2. zones", {3}),
        (L, "Answer: 1, the right costophrenic angle", {1, 3}),
        (T, "Answer: a (consolidation)", "ambiguous"),
        (YN, "Yes, it is. No, it is not.", "ambiguous"),
        (ODD[1], "Answer: 4 zones (or more)", {1}),
        (ODD[0], "the one (case of none)", "ambiguous"),
    ],
)
def test_words_that_change_the_choice_are_read(step, reply, expected):
    assert numbers(step, parse(step, reply)) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Answer: yes, or no", "ambiguous"),
        ("Answer: y (case 17)", "no_answer"),
        ("Answer: likely, not", "no"),
        ("Answer: no (my final verdict is yes)", "yes"),
    ],
)
def test_words_that_change_the_label_are_read(reply, expected):
    parsed = parse(FINDING, reply)
    assert (parsed.label or parsed.status) == expected


def test_a_list_that_breaks_off_is_truncated_where_the_reply_was():
    for reply in ("Answer: 4,", "Answer: 4 (, sure", "Answer: 4, (sure)"):
        assert parse(P, reply, stop="max_tokens").status == "truncated"
        assert numbers(P, parse(P, reply)) == {4}
