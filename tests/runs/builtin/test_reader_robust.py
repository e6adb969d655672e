"""Whatever picture and question it gets, the reader gives an answer that can be read, and the same one again."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.runs.builtin.chests import answer_text, chest, make_options, png, step, tint_mask

from carina.runs.builtin.reader import Reader
from carina.runs.parse import parse

YES_NO = make_options("Yes", "No")
POINTS = make_options("red point", "blue point", "None")
QUESTIONS = (
    step("detection", "choice", "Is a pleural effusion visible?", YES_NO, stage=1),
    step("contour evaluation", "choice", "A contour of the edema: major revision?", YES_NO, stage=2),
    step("contour evaluation", "choice", "A contour of the enlarged heart: major revision?", YES_NO, stage=2),
    step("expansion", "choice", "Expand the opacity where?", POINTS, multiple=True),
    step("contraction", "choice", "Contract the opacity where?", POINTS, multiple=True),
    step(
        "revision", "choice", "Which?", make_options("1st mask", "2nd mask", views=("v1", "v2")), uses=("v1",)
    ),
    step("distribution", "choice", "How many zones?", make_options("1 zone", "4 zones or more"), stage=4),
    step(
        "location",
        "choice",
        "Which regions hold the effusion?",
        make_options("right costophrenic angle", "periphery of the left mid zone", "None of the above"),
        stage=4,
        multiple=True,
    ),
    step(
        "severity",
        "choice",
        "How much of the left lung?",
        make_options("2/3 or more", "less than 1/3"),
        stage=4,
    ),
    step(
        "comparison", "choice", "Sides?", make_options("similar in both lungs", "in one lung only"), stage=4
    ),
    step("view", "choice", "Which view?", make_options("AP", "lateral"), stage=1),
    step("something new", "choice", "Which?", make_options("this", "that")),
    step("presence", "choice", "What is there?", make_options("a mass", "edema"), multiple=True),
    step("presence", "yes_no", "Is there a pneumothorax in the left upper zone?"),
    step("any device", "yes_no", "Is there a device?"),
    step("region content", "yes_no", "Is the left lower zone abnormal?"),
    step("severity", "yes_no", "Is the edema severe?"),
    step("region box", "boxes", "Box the spine in percent."),
    step("region box", "boxes", "Box the posterior lung, from 0 to 1000."),
    step("finding box", "boxes", "Box the atelectasis in pixels."),
    step("finding box", "boxes", "Box it."),
    step("trend", "open", "How has the edema changed?", uses=("v1", "v2")),
    step("description", "open", "Describe the consolidation."),
    step("something new", "open", "What now?"),
    step("full report", "report", "Write the report."),
)
SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))
PICTURES = st.one_of(
    arrays.arrays(np.uint8, SHAPES),
    arrays.arrays(np.uint8, SHAPES.map(lambda shape: (*shape, 3))),
    st.builds(
        lambda height, width, grey: np.full((height, width), grey, np.uint8),
        st.integers(1, 300),
        st.integers(1, 300),
        st.integers(0, 255),
    ),
)


def read(asked, words, width=40, height=40):
    return parse(asked, words, images={"a.png": (width, height)})


@settings(max_examples=60)
@given(st.sampled_from(QUESTIONS), PICTURES, PICTURES)
def test_any_image_gets_an_answer_that_can_be_parsed(asked, one, other):
    words = answer_text(Reader(), asked, v1=png(one), v2=png(other))
    height, width = one.shape[:2] if asked.uses == ("v1",) else (300, 300)
    assert read(asked, words, width, height).status == "ok"


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: f"{asked.task}-{asked.format}")
def test_a_uniform_image_gets_a_neutral_answer(asked):
    card = np.full((256, 256), 128, np.uint8)
    words = answer_text(Reader(), asked, v1=png(card), v2=png(card))
    found = read(asked, words, 256, 256)
    assert found.status == "ok"
    if asked.format == "yes_no":
        assert found.label == "no"
    elif set(asked.options) == set(YES_NO):
        assert words == "Answer: 2"
    elif asked.options == POINTS:
        assert words == "Answer: 3"
    elif asked.format in ("report", "open") and asked.task != "trend":
        assert "severe" not in words


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: f"{asked.task}-{asked.format}")
def test_answers_do_not_depend_on_images_read_before(asked):
    chosen = chest()
    shown = tint_mask(chosen, np.roll(chosen, 9, axis=0) > 180)
    pictures = {"v1": png(chosen), "v2": png(shown)}
    fresh, used = Reader(), Reader()
    for size in (64, 300):
        answer_text(used, asked, v1=png(cv2.resize(chosen, (size, size))), v2=png(chosen))
    assert (
        answer_text(fresh, asked, **pictures)
        == answer_text(used, asked, **pictures)
        == answer_text(used, asked, **pictures)
    )


def test_turns_are_answered_in_order_and_each_image_is_decoded_once():
    reader = Reader()
    asked = [QUESTIONS[0], QUESTIONS[13], QUESTIONS[17]]
    alone = [answer_text(Reader(), one, v1=png(chest())) for one in asked]
    assert [answer_text(reader, one, v1=png(chest())) for one in asked] == alone
    assert len(reader._readings) == 1


def test_the_number_of_cached_readings_is_limited():
    reader = Reader()
    for grey in range(80):
        answer_text(reader, QUESTIONS[0], v1=png(np.full((16, 16), grey, np.uint8)))
    assert len(reader._readings) == 64
