"""Options apart from their question in every way in which lists are written, and marked boxes in plain words."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.cases.model import Key, Option, Step
from carina.show.case_text import Asked, Piece, asked, corners_in, pieces, plain


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
def test_a_list_is_found_however_it_is_written(question: str, labels: tuple[str, ...]) -> None:
    assert asked(choice(question, "mild", "left ventricular")) == Asked(stem="Which?", labels=labels)


def test_what_follows_the_list_stays() -> None:
    step = choice("Say which.\nA. Yes\nB. No\nGive only the answer.", "Yes", "No")
    assert asked(step).stem == "Say which. Give only the answer."


def test_the_last_list_is_the_list() -> None:
    step = choice("Answer yes or no, please: is it large? Yes; No.", "Yes", "No")
    assert asked(step).stem == "Answer yes or no, please: is it large?"


def test_a_question_without_its_options_stays_whole() -> None:
    step = choice("Which of the marked ones?", "mild", "severe")
    assert asked(step) == Asked(stem="Which of the marked ones?", labels=("", ""))


def test_a_word_that_begins_like_an_option_is_none() -> None:
    step = choice("Is it a milder, severer one?", "mild", "severe")
    assert asked(step).stem == "Is it a milder, severer one?"


words = st.lists(
    st.text("abcdefgh", min_size=2, max_size=7), min_size=1, max_size=4
).map(" ".join)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    options=st.lists(words, min_size=2, max_size=6, unique=True),
    label=st.sampled_from(["{letter}. ", "{number}. ", "({number}) ", "{number}). ", ""]),
    between=st.sampled_from(["; ", ", ", ". ", "\n"]),
    around=st.sampled_from([(" ", "."), (" [", "]"), (" (", ")"), ("\n", "")]),
)
def test_any_list_of_any_style_is_taken_out(
    options: list[str], label: str, between: str, around: tuple[str, str]
) -> None:
    labels = [label.format(letter="ABCDEF"[place], number=place + 1) for place in range(len(options))]
    listed = between.join(name + text for name, text in zip(labels, options, strict=True))
    found = asked(choice(f"WHICH ONE?{around[0]}{listed}{around[1]} JUST ONE.", *options))
    assert found == Asked(stem="WHICH ONE? JUST ONE.", labels=tuple(name.strip() for name in labels))


def test_marked_boxes_are_read() -> None:
    text = "The box is <|ref|> left lung <|/ref|> <|box|>(1.50, 2), (30, 44.25)<|/box|>."
    assert pieces(text) == (
        Piece(text="The box is "),
        Piece(text="left lung", kind="name"),
        Piece(text=" "),
        Piece(text="1.50, 2 to 30, 44.25", kind="box"),
        Piece(text="."),
    )
    assert plain(text) == "The box is left lung [1.50, 2 to 30, 44.25]."


def test_an_unknown_inside_of_a_box_is_kept() -> None:
    assert plain("<|box|>(1, 2), (3)<|/box|>") == "[(1, 2), (3)]"


@given(st.text())
def test_text_without_marks_is_kept_to_the_letter(text: str) -> None:
    text = text.replace("<|", "")
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "corners"),
    [
        ("What is at (16.02, 38), (39.84, 78.91)?", (16.02, 38.0, 39.84, 78.91)),
        ("What is at (1, 2) (3, 4)?", (1.0, 2.0, 3.0, 4.0)),
        ("Compare (1, 2), (3, 4) with (5, 6), (7, 8).", None),
        ("Give x1, y1 (upper left) and x2, y2 (lower right).", None),
    ],
)
def test_the_only_box_of_a_text_is_found(text: str, corners: object) -> None:
    assert corners_in(text) == corners
