"""Yes, no and uncertain in the words of models."""

import pytest
from tests.run.parse.steps import asked

from carina.run.parse import parse

PRESENCE = asked("yes_no", "Is there a pleural effusion on this radiograph?")
NORMAL = asked("yes_no", "Is the chest normal on this radiograph?")

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
def test_labels(reply, expected):
    parsed = parse(PRESENCE, reply)
    assert (parsed.label or parsed.status) == expected
    assert (parsed.status == "ok") == (parsed.label is not None)


def test_a_denial_is_no_answer_where_it_may_mean_yes():
    assert parse(NORMAL, "There is no abnormality.").status == "no_answer"
    assert parse(NORMAL, "Yes, there is no abnormality.").label == "yes"


def test_a_reply_that_ended_by_length():
    assert parse(PRESENCE, "Yes, since the", stop="max_tokens").label == "yes"
    assert parse(PRESENCE, "The left angle is", stop="max_tokens").status == "truncated"
