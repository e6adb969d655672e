"""Numbers in words."""

import msgspec
import pytest

from carina.cases import Fact
from carina.run.score.measures import right_measure


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0.62", True),
        ("About 0.59.", True),
        ("0.646", True),
        ("0.647", False),
        ("62%", True),
        ("62 percent", True),
        ("0,62", True),
        ("The ratio is 0.62, above the normal limit of 0.5.", True),
        ("0.62 (normal < 0.50)", True),
        ("15.5 / 25 = 0.62", True),
        ("0.60-0.65", True),
        ("0.50", False),
        ("It is above 0.6.", False),
        ("0.62 or 0.50", False),
        ("The heart is enlarged.", False),
        ("", False),
    ],
)
def test_a_cardiothoracic_ratio(text, right):
    assert right_measure("cardiothoracic ratio", 0.616, "It is 0.62.", text) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("3.5 cm", True),
        ("35 mm", True),
        ("3.5", True),
        ("3.85 centimetres", True),
        ("3.9 cm", False),
        ("35", False),
    ],
)
def test_a_length_within_a_tenth(text, right):
    assert right_measure("distance above the carina", 3.5, "It is 3.5 cm.", text) is right


def test_a_question_for_a_number_has_a_right_answer(made):
    fact = Fact(name="measure", about="f1", text="cardiothoracic ratio", value=0.616)
    step = made.told(
        "For the cardiomegaly, I get a value of 0.62 as the cardiothoracic ratio.",
        ("target", "finding", "cardiomegaly"),
        task="measure",
        question="Give the cardiothoracic ratio for the cardiomegaly.",
    )
    step = msgspec.structs.replace(step, facts=(*step.facts, fact))
    right, wrong = made.said(step, "0.61"), made.said(step, "For the cardiomegaly, I get a value of 0.45.")
    assert (right.correct, right.score, wrong.correct, wrong.score) == (True, 1.0, False, 0.0)
