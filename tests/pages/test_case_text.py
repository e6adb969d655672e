"""Questions without their lists of options, in every style of list, and answers without markup."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.cases.model import Key, Option, Step
from carina.pages.case_text import (
    AnswerPiece,
    QuestionText,
    find_corners,
    plain_answer,
    split_answer,
    split_question,
)


def choice(question: str, *options: str) -> Step:
    return Step(
        id="t1",
        stage=1,
        task="view",
        format="choice",
        question=question,
        options=tuple(Option(id=f"o{place}", text=text) for place, text in enumerate(options)),
        key=Key(options=("o0",)),
    )


@pytest.mark.parametrize(
    ("question", "labels"),
    [
        ("Which?\nOptions:\n(1) mild\n(2) left ventricular", ("(1)", "(2)")),
        ("Which? A. mild; B. left ventricular.", ("A.", "B.")),
        ("Which? [A. mild. B. left ventricular]", ("A.", "B.")),
        ("Which? (A. mild, or B. left ventricular).", ("A.", "B.")),
        ("Which?\n1). mild\n2). left ventricular", ("1).", "2).")),
        ("Which?\nmild\nleft ventricular", ("", "")),
        ("Which? mild or left ventricular.", ("", "")),
    ],
)
def test_list_of_any_style_is_removed(question: str, labels: tuple[str, ...]) -> None:
    assert split_question(choice(question, "mild", "left ventricular")) == QuestionText(
        stem="Which?", labels=labels
    )


def test_text_after_the_list_is_kept() -> None:
    step = choice("Say which.\nA. Yes\nB. No\nGive only the answer.", "Yes", "No")
    assert split_question(step).stem == "Say which. Give only the answer."


def test_last_list_is_removed() -> None:
    step = choice("Answer yes or no, please: is it large? Yes; No.", "Yes", "No")
    assert split_question(step).stem == "Answer yes or no, please: is it large?"


def test_question_without_a_list_is_unchanged() -> None:
    step = choice("Which of the marked ones?", "mild", "severe")
    assert split_question(step) == QuestionText(stem="Which of the marked ones?", labels=("", ""))


def test_longer_word_is_not_taken_for_an_option() -> None:
    step = choice("Is it a milder, severer one?", "mild", "severe")
    assert split_question(step).stem == "Is it a milder, severer one?"


words = st.lists(
    st.text("abcdefgh", min_size=2, max_size=7), min_size=1, max_size=4
).map(" ".join)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    options=st.lists(words, min_size=2, max_size=6, unique=True),
    label=st.sampled_from(["{letter}. ", "{number}. ", "({number}) ", "{number}). ", ""]),
    between=st.sampled_from(["; ", ", ", ". ", "\n"]),
    around=st.sampled_from([(" ", "."), (" [", "]"), (" (", ")"), ("\n", "")]),
)
def test_any_options_in_any_style_are_removed(
    options: list[str], label: str, between: str, around: tuple[str, str]
) -> None:
    labels = [label.format(letter="ABCDEF"[place], number=place + 1) for place in range(len(options))]
    listed = between.join(name + text for name, text in zip(labels, options, strict=True))
    found = split_question(choice(f"WHICH ONE?{around[0]}{listed}{around[1]} JUST ONE.", *options))
    assert found == QuestionText(stem="WHICH ONE? JUST ONE.", labels=tuple(name.strip() for name in labels))


def test_markup_of_names_and_boxes_is_parsed() -> None:
    text = "The box is <|ref|> left lung <|/ref|> <|box|>(1.50, 2), (30, 44.25)<|/box|>."
    assert split_answer(text) == (
        AnswerPiece(text="The box is "),
        AnswerPiece(text="left lung", kind="name"),
        AnswerPiece(text=" "),
        AnswerPiece(text="1.50, 2 to 30, 44.25", kind="box"),
        AnswerPiece(text="."),
    )
    assert plain_answer(text) == "The box is left lung [1.50, 2 to 30, 44.25]."


def test_box_with_unexpected_content_is_kept() -> None:
    assert plain_answer("<|box|>(1, 2), (3)<|/box|>") == "[(1, 2), (3)]"


@given(st.text())
def test_text_without_markup_is_unchanged(text: str) -> None:
    text = text.replace("<|", "")
    assert plain_answer(text) == text


@pytest.mark.parametrize(
    ("text", "corners"),
    [
        ("What is at (16.02, 38), (39.84, 78.91)?", (16.02, 38.0, 39.84, 78.91)),
        ("What is at (1, 2) (3, 4)?", (1.0, 2.0, 3.0, 4.0)),
        ("Compare (1, 2), (3, 4) with (5, 6), (7, 8).", None),
        ("Give x1, y1 (upper left) and x2, y2 (lower right).", None),
    ],
)
def test_corners_of_the_only_box_are_found(text: str, corners: object) -> None:
    assert find_corners(text) == corners
