"""What depends on the question of a label. The replies themselves are in the bank."""

import pytest
from tests.runs.parse.steps import make_step

from carina.runs.parse import parse
from carina.trek.wording import load_wording

PRESENCE = make_step("yes_no", "Is there a pleural effusion on this radiograph?")
NORMAL = make_step("yes_no", "Is the chest normal on this radiograph?")


def test_a_negation_is_no_answer_where_it_may_mean_yes():
    assert parse(NORMAL, "There is no abnormality.").status == "no_answer"
    assert parse(NORMAL, "Yes, there is no abnormality.").label == "yes"


def _instructions():
    wordings = load_wording().common["instruction"]
    return [*wordings["yes_no_only"], *wordings["yes_no_free"]]


@pytest.mark.parametrize("instruction", _instructions())
def test_an_instruction_does_not_change_the_topic_of_a_question(instruction):
    step = make_step("yes_no", f"Is there a pleural effusion on this radiograph? {instruction}")
    assert parse(step, "There is no pleural effusion.").label == "no"
    assert parse(step, "I see a pleural effusion.").label == "yes"
    assert parse(step, "There is a small pleural effusion but no mass.").label == "yes"
    turned = make_step("yes_no", f"Is the chest normal? {instruction}")
    assert parse(turned, "There is no abnormality.").status == "no_answer"


def test_labels_named_in_the_question_do_not_change_its_topic():
    step = make_step("yes_no", "Is there a pleural effusion, yes or no?")
    assert parse(step, "There is no pleural effusion.").label == "no"


def test_a_statement_about_the_other_side_is_no_answer():
    step = make_step("yes_no", "Is there a pleural effusion on the left?")
    assert parse(step, "There is a pleural effusion on the right.").status == "no_answer"
    assert parse(step, "There is a pleural effusion on the left.").label == "yes"
    assert parse(step, "No effusion on the right, but there is an effusion on the left.").label == "yes"
