"""Short cuts give what a reading of the whole reply gives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.run.parse.steps import NY, YN, C, K, L, M, P, T, V, Z, asked, choice, lettered, numbers
from tests.run.parse.test_choice_replies import NATURAL
from tests.run.parse.test_choice_replies import REPLIES as CHOSEN
from tests.run.parse.test_choice_table import TABLE
from tests.run.parse.test_labels import REPLIES as LABELS
from tests.run.parse.test_labels import SENTENCES

from carina.run.parse import parse, parse_fully
from carina.run.parse.choices import choices_of
from carina.run.parse.normalise import spoken
from carina.run.parse.quick import quick_choice, quick_label

# Texts with the words of markers and of remarks, brackets, single letters and figures.
ODD = [
    choice("case of none", "the one", "correct mask", "best point", multiple=True),
    choice("4 zones (or more)", "none", "all zones"),
    choice("right", "left", "5 cm", "zone (apex)"),
    lettered("s", "i am", "a case", "option x"),
]
FINDING = asked("yes_no", "Is there an effusion?")
STEPS = [YN, NY, K, L, P, Z, V, C, T, M, *ODD, FINDING]
WORDINGS = [(step, reply) for step, reply, _ in CHOSEN + NATURAL + TABLE] + [
    (FINDING, reply) for reply, _ in LABELS + SENTENCES
]


def quick(step, text):
    if step.format == "yes_no":
        return quick_label(text)
    return quick_choice(text, choices_of(step.options, step.multiple))


def is_same(step, text, stop="stop"):
    whole = parse_fully(step, text, stop=stop)
    assert parse(step, text, stop=stop) == whole
    found = quick(step, spoken(text).text)
    assert found is None or found == whole


# ---- what the short cuts are for ------------------------------------------------------------------------------------

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
def test_a_choice_is_told_by_a_few_words(step, reply, expected):
    found = quick(step, reply)
    assert found is not None
    assert numbers(step, found) == expected
    assert found == parse_fully(step, reply)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("The base is clear.\nAnswer: no", "no"),
        ("Answer: Yes (case 17)", "yes"),
        ("Answer: no, the base is clear.", "no"),
        ("The answer is uncertain. The film of case 17 is rotated.", "uncertain"),
    ],
)
def test_a_label_is_told_by_a_few_words(reply, label):
    found = quick_label(reply)
    assert found is not None
    assert found.label == label
    assert found == parse_fully(FINDING, reply)


# ---- what they must leave alone -------------------------------------------------------------------------------------


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
def test_words_that_matter_are_read(step, reply, expected):
    assert numbers(step, parse(step, reply)) == expected
    assert parse(step, reply) == parse_fully(step, reply)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Answer: yes, or no", "ambiguous"),
        ("Answer: y (case 17)", "no_answer"),
        ("Answer: likely, not", "no"),
        ("Answer: no (my final verdict is yes)", "yes"),
    ],
)
def test_words_that_matter_to_a_label_are_read(reply, expected):
    parsed = parse(FINDING, reply)
    assert (parsed.label or parsed.status) == expected
    assert parsed == parse_fully(FINDING, reply)


def test_a_list_that_breaks_off_is_truncated_where_the_reply_was():
    for reply in ("Answer: 4,", "Answer: 4 (, sure", "Answer: 4, (sure)"):
        assert parse(P, reply, stop="max_tokens").status == "truncated"
        assert numbers(P, parse(P, reply)) == {4}


# ---- both, on whatever models may say -------------------------------------------------------------------------------

HEADS = [
    *(
        "",
        "In case 17 the rib is covered.\n",
        "**Final ",
        "Therefore, the correct ",
        "Not 2.\n\n",
        "wrong\n\n",
    ),
    *(
        "not the ",
        "I cannot ",
        "no\n",
        "not\\, ",
        "that\n\n",
        "y " * 130,
        "é – ",
        "(",
        "# ",
        "<think>a</think>",
        "[x] ",
    ),
]
MARKERS = [
    *(
        "Answer: ",
        "Answer: ",
        "answer is ",
        "Answers: ",
        "**Answer:** ",
        "answer:",
        "Answer - ",
        "Answer to 2, this is ",
    ),
    *("I choose ", "Choice: ", "", ""),
]
JOINERS = [", ", " and ", " or ", "; ", ", not ", " but not ", "/", "-", " (", ". "]
OPENINGS = [
    *(
        " (",
        " (",
        ", ",
        ", ",
        ". ",
        ". ",
        ". (",
        "; ",
        ", the ",
        " (the ",
        "\n",
        "\n\n",
        "(",
        ",",
        " - ",
        " ",
        ": ",
        "\n- ",
    ),
]
REMARK_WORDS = [
    *(
        "case",
        "base",
        "clear",
        "sure",
        "seen",
        "apex",
        "it",
        "there",
        "as",
        "because",
        "which",
        "is",
        "are",
        "so",
        "of",
    ),
    *(
        "not",
        "or",
        "and",
        "but",
        "only",
        "than",
        "none",
        "all",
        "one",
        "two",
        "mask",
        "point",
        "option",
        "correct",
        "my",
    ),
    *(
        "i",
        "we",
        "choose",
        "would",
        "label:",
        "yes",
        "no",
        "maybe",
        "doubt",
        "17",
        "2",
        "3rd",
        "90%",
        "isn't",
        "a",
        "the",
    ),
    *("red", "zones", "right", "left", "more", "(", ")", "[x]", "\n", "**", "é", "_", "answer"),
]
ENDS = ["", "", ")", ")", ").", ".", "!", "?", "\n3", ") or 2"]


@st.composite
def items(draw, step):
    texts = [option.text for option in step.options] + [option.id for option in step.options]
    number = draw(st.integers(0, 6))
    dresses = ["{}", "{}", "({})", "[{}]", "option {}", "{}.", "- {}", '"{}"', "not {}", "{} ("]
    said = draw(
        st.sampled_from([str(number), "none", "all", "yes", "no", "uncertain", "likely", "y", *texts])
    )
    return draw(st.sampled_from(dresses)).format(said)


@st.composite
def replies(draw):
    step = draw(st.sampled_from(STEPS))
    said = [draw(items(step))]
    while len(said) < 6 and draw(st.integers(0, 3)) == 0:
        said += [draw(st.sampled_from(JOINERS)), draw(items(step))]
    remark = [
        draw(st.sampled_from(OPENINGS)),
        " ".join(draw(st.lists(st.sampled_from(REMARK_WORDS), max_size=5))),
    ]
    head, marker, end = (draw(st.sampled_from(parts)) for parts in (HEADS, MARKERS, ENDS))
    return step, "".join([head, marker, *said, *remark, end])


@given(replies(), st.sampled_from(["stop", "max_tokens"]))
@settings(deadline=None, max_examples=1500)
def test_short_cuts_change_no_answer(reply, stop):
    step, text = reply
    is_same(step, text, stop)


@given(
    st.sampled_from(WORDINGS),
    st.sampled_from(HEADS),
    st.sampled_from(OPENINGS),
    st.lists(st.sampled_from(REMARK_WORDS), min_size=1, max_size=4),
    st.integers(0, 80),
)
@settings(deadline=None, max_examples=500)
def test_short_cuts_change_no_answer_of_any_wording(wording, head, opening, words, cut):
    step, reply = wording
    remark = opening + " ".join(words)
    for text in (
        f"{head}{reply}",
        f"{reply}{remark}",
        f"{reply[:cut]}{remark}",
        f"{reply[:cut]} {reply[cut:]}",
    ):
        is_same(step, text)


@given(st.text(alphabet="answer: 3(),.;\n*ysno\\_'é", max_size=40), st.sampled_from([K, T, YN, FINDING]))
@settings(deadline=None, max_examples=500)
def test_short_cuts_change_no_answer_of_any_signs(text, step):
    is_same(step, f"Answer: 3{text}")
    is_same(step, f"{text}nswer: yes")
