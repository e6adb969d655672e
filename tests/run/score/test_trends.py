"""The course that an answer tells: in our own words, and in those of others."""

import pytest

from carina.run.score.trends import trend_of
from carina.trek.language import language

OTHERS = {
    "new": [
        "There is a new effusion.",
        "It was not present on the prior study.",
        "Interval development: it has developed since the prior.",
        "The opacity wasn't visible on the previous radiograph.",
        "Newly placed since the last film.",
    ],
    "worse": [
        "Worsening.",
        "The effusion is larger now.",
        "It has progressed.",
        "more extensive than before",
        "Denser than before",
    ],
    "improved": [
        "Improved.",
        "It is smaller than on the prior.",
        "Less prominent.",
        "partially resolved",
        "The effusion is resolving.",
        "Almost completely resolved",
        "Improved, although not completely resolved.",
        "It has not resolved completely.",
    ],
    "unchanged": [
        "Stable.",
        "No significant interval change.",
        "It hasn't changed.",
        "no change",
        "Unchanged compared with the prior; no new finding.",
        "It is neither better nor worse.",
        "similar to prior",
        "No interval worsening or improvement",
        "It shows neither improvement nor worsening.",
        "Same as before",
        "As before",
        "It has remained about the same.",
    ],
    "resolved": [
        "It has resolved.",
        "It has completely resolved.",
        "No longer seen.",
        "The effusion is gone.",
        "not seen on the current image",
    ],
    None: [
        "",
        "There is a moderate effusion.",
        "It is better on the left and worse on the right.",
        "not improved",
        "The film does not show any progression.",
    ],
}


@pytest.mark.parametrize(("course", "text"), [(course, text) for course in OTHERS for text in OTHERS[course]])
def test_in_the_words_of_others(course, text):
    assert trend_of(text) == course


def test_every_key_of_a_single_course_is_understood():
    """All wordings of stages 5 and 6, filled with words that a course could be mistaken for."""
    pools = language().wording.pools
    things = (
        "moderate pulmonary edema",
        "severe cardiomegaly, with global enlargement of the cardiac silhouette",
    )
    told = 0
    for pool in (pools[5, "trend", "open"], pools[6, "finding outlook", "open"]):
        for kind, texts in pool.answers.items():
            for text in texts:
                for thing in things:
                    said = text.format(the_finding=f"the {thing}", described=thing, before=f"mild {thing}")
                    assert trend_of(said) == kind.partition("_")[0], said
                    told += 1
    assert told > 250


def test_a_question_about_one_course_has_a_right_answer(made):
    facts = (("target", "finding", "pleural effusion"), ("trend", "f1", "improved"))
    step = made.told(
        "The pleural effusion has improved.",
        *facts,
        task="trend",
        question="How has the pleural effusion changed?",
    )
    right = made.said(step, "Smaller.")
    assert (right.correct, right.score, right.attribute_f1, right.entity_f1) == (True, 1.0, 1.0, None)
    wrong = made.said(step, "The pleural effusion has worsened.")
    assert (wrong.correct, wrong.score, wrong.attribute_f1) == (False, 0.0, 0.0)
    assert wrong.rouge == pytest.approx(0.8)
    # What tells no course is wrong.
    assert made.said(step, "There is a pleural effusion.").correct is False


def test_several_courses_are_compared_thing_by_thing(made):
    facts = (("target", "study", "comparison"), ("trend", "f1", "new"), ("trend", "f2", "resolved"))
    step = made.told("The edema is new. The pneumonia has resolved.", *facts, task="comparison")
    assert made.said(step, "New edema; the pneumonia is no longer seen.").attribute_f1 == 1.0
    half = made.said(step, "New edema. The pneumonia is unchanged.")
    assert (half.correct, half.attribute_f1, half.score) == (None, 0.5, 0.5)
