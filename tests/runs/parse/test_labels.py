"""Yes, no and uncertain in the words of models."""

import pytest
from tests.runs.parse.steps import make_step

from carina.runs.parse import parse
from carina.trek.wording import load_wording

PRESENCE = make_step("yes_no", "Is there a pleural effusion on this radiograph?")
NORMAL = make_step("yes_no", "Is the chest normal on this radiograph?")

REPLIES = [
    ("Yes", "yes"),
    ("yes.", "yes"),
    ("**Yes**, there is a small effusion on the left.", "yes"),
    ("Yes, an effusion is present. No pneumothorax.", "yes"),
    ("Answer: Yes", "yes"),
    ("The answer is yes.", "yes"),
    ("Final answer: **yes**", "yes"),
    ("\\boxed{yes}", "yes"),
    ("<answer>yes</answer>", "yes"),
    ('{"answer": "yes"}', "yes"),
    ('{"answer": true, "reason": "blunting"}', "yes"),
    ('```json\n{"label": "yes"}\n```', "yes"),
    ("<think>no, hm</think>Yes.", "yes"),
    ("The left angle is blunted.\n\nYes.", "yes"),
    ("The left angle is blunted. Yes, there is an effusion.", "yes"),
    ("Probably yes.", "yes"),
    ("There is a small pleural effusion on the left.", "yes"),
    ("A left pleural effusion is present.", "yes"),
    ("No", "no"),
    ("No, there is no effusion.", "no"),
    ("no - both angles are sharp", "no"),
    ("Answer: no pleural effusion", "no"),
    ("No pleural effusion is seen.", "no"),
    ("There is no evidence of pleural effusion.", "no"),
    ("It is unlikely.", "no"),
    ("Unlikely", "no"),
    ("Probably not.", "no"),
    ('{"present": false}', "no"),
    ("Ｎｏ．", "no"),
    ("Uncertain", "uncertain"),
    ("Possibly", "uncertain"),
    ("Possibly, a small effusion cannot be excluded.", "uncertain"),
    ("Perhaps.", "uncertain"),
    ("Maybe", "uncertain"),
    ("Equivocal, since an effusion is suspected and not proven.", "uncertain"),
    ("Cannot be determined from the image.", "uncertain"),
    ("It cannot be determined from this image.", "uncertain"),
    ("I cannot tell.", "uncertain"),
    ("I am not sure.", "uncertain"),
    ("It is unclear.", "uncertain"),
    ("Answer: uncertain", "uncertain"),
    ("An effusion cannot be ruled out.", "uncertain"),
    ("There may be a small effusion.", "uncertain"),
    ("Likely.", "uncertain"),
    ('{"answer": "uncertain"}', "uncertain"),
    ("Yes and no.", "ambiguous"),
    ("Answer: yes or no", "ambiguous"),
    ("Yes, it is there. No, it is not.", "ambiguous"),
    ("I'm sorry, but I can't interpret medical images.", "refusal"),
    ("As an AI, I cannot provide a diagnosis.", "refusal"),
    ("I am unable to analyze medical images. Please consult a radiologist.", "refusal"),
    ("<think>yes", "truncated"),
    ("", "no_answer"),
    ("The heart is of normal size.", "no_answer"),
    ('{"finding": "effusion"}', "no_answer"),
]


@pytest.mark.parametrize(("reply", "expected"), REPLIES, ids=[reply[:50] for reply, _ in REPLIES])
def test_a_reply_gives_the_label_that_it_states(reply, expected):
    parsed = parse(PRESENCE, reply)
    assert (parsed.label or parsed.status) == expected
    assert (parsed.status == "ok") == (parsed.label is not None)


def test_a_negation_is_no_answer_where_it_may_mean_yes():
    assert parse(NORMAL, "There is no abnormality.").status == "no_answer"
    assert parse(NORMAL, "Yes, there is no abnormality.").label == "yes"


def test_a_reply_cut_off_before_its_label_is_truncated():
    assert parse(PRESENCE, "Yes, since the", stop="max_tokens").label == "yes"
    assert parse(PRESENCE, "The left angle is", stop="max_tokens").status == "truncated"


ONLY = make_step(
    "yes_no",
    "Is there a pleural effusion on this chest film? Give only the word yes, no or uncertain.",
)
SENTENCES = [
    ("There is no pleural effusion.", "no"),
    ("No effusion.", "no"),
    ("Absent", "no"),
    ("Absent. Both angles are sharp.", "no"),
    ("Present", "yes"),
    ("Absolutely not.", "no"),
    ("Answer: absolutely not", "no"),
    ("Not at all.", "no"),
    ("I see a pleural effusion.", "yes"),
    ("There is a pleural effusion but no pneumothorax.", "yes"),
    ("There is a pleural effusion, no pneumothorax.", "yes"),
    ("There is a pleural effusion and no pneumothorax.", "yes"),
    ("There is no pneumothorax but there is a pleural effusion.", "yes"),
    ("There is no pneumothorax but a small pleural effusion.", "yes"),
    ("There is no pleural thickening, but I see a pleural effusion.", "yes"),
    ("There is cardiomegaly but no pleural effusion.", "no"),
    ("There is no consolidation, pneumothorax or pleural effusion.", "no"),
    ("No consolidation, effusion or pneumothorax is seen.", "no"),
    ("No pneumothorax, consolidation, or effusion is seen.", "no"),
    ("There is no pneumothorax, consolidation or effusion that I can see.", "no"),
    ("There is consolidation, cardiomegaly and an effusion.", "yes"),
    ("An effusion and a consolidation are present.", "yes"),
    ("An effusion and a consolidation are not seen.", "no"),
    ("There may be an effusion but no pneumothorax.", "uncertain"),
    ("There is a nodule, and no pneumothorax.", "no_answer"),
    ("There is a pleural effusion on the right. No effusion on the left.", "yes"),
    ("Evidence of a pleural effusion is lacking.", "no"),
    ("The chest is not normal.", "no_answer"),
    ("The possible effusion is not seen.", "no"),
    ("Possible effusion.", "uncertain"),
    ("Whether there is an effusion is not clear.", "uncertain"),
    ("I cannot see a pleural effusion on this image.", "no"),
    ("I cannot see any image.", "refusal"),
    ("I can't see the attached chest x-ray.", "refusal"),
    ("Effusion: yes", "yes"),
    ("Effusion: no", "no"),
    ("Pleural effusion: present", "yes"),
    ("Pneumothorax: no\nPleural effusion: yes", "yes"),
    ("Pneumothorax: yes", "no_answer"),
    ("Y", "yes"),
    ("N", "no"),
    ("Answer: Y", "yes"),
    ("n.", "no"),
    ("N/A", "no_answer"),
    ("Correct.", "yes"),
    ("That is correct.", "yes"),
    ("Incorrect.", "no"),
    ("The correct answer is no.", "no"),
]


@pytest.mark.parametrize(("reply", "expected"), SENTENCES, ids=[reply[:50] for reply, _ in SENTENCES])
def test_a_sentence_is_labelled_where_a_single_word_was_asked_for(reply, expected):
    for step in (PRESENCE, ONLY):
        parsed = parse(step, reply)
        assert (parsed.label or parsed.status) == expected


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
