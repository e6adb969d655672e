"""What answers in words say: things, certainty, attributes, relations, advice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.errors import BenchmarkError

STUDY = ("target", "study", "abnormalities")
EFFUSION = ("target", "finding", "pleural effusion")


def test_things_count_with_their_certainty(made):
    step = made.told("There is edema and a pleural effusion. No pneumothorax.", STUDY, form="report")
    assert made.said(step, "Pulmonary edema, pleural effusion; there is no pneumothorax.").entity_f1 == 1.0
    # Two of three are told, and all that is told is right: recall 2/3, precision 1.
    less = made.said(step, "Edema with pleural effusion.")
    assert less.entity_f1 == less.score == pytest.approx(0.8)
    # A pneumothorax that is there instead: two of three right on both sides.
    assert made.said(step, "Edema, pleural effusion and a pneumothorax.").entity_f1 == pytest.approx(2 / 3)
    assert made.said(step, "There may be edema.").entity_f1 == 0.0
    assert less.correct is None


def test_denying_what_the_key_does_not_mention_costs_nothing(made):
    step = made.told("There is edema.", STUDY)
    assert made.said(step, "There is edema. No pneumothorax.").entity_f1 == 1.0
    assert made.said(step, "There is edema. There is a pneumothorax.").entity_f1 == pytest.approx(2 / 3)


def test_nothing_is_an_answer_where_it_is_asked_what_there_is(made):
    step = made.told("No tube, line or implant can be identified.", ("target", "study", "devices"))
    assert made.said(step, "None.").score == 1.0
    assert made.said(step, "There is no endotracheal tube.").score == 1.0
    assert made.said(step, "There is an endotracheal tube.").score == 0.0
    assert made.said(step, "A chest radiograph.").score == 0.0
    there = made.told("There is a chest tube.", ("target", "study", "devices"))
    assert made.said(there, "None.").score == 0.0


def test_words_that_name_nothing_have_their_likeness_alone(made):
    step = made.told(
        "The clavicles lie symmetrically.", ("target", "quality", "technical adequacy"), task="quality"
    )
    scores = made.said(step, "The clavicles are symmetrical.")
    assert (scores.entity_f1, scores.attribute_f1, scores.correct) == (None, None, None)
    assert scores.score == scores.rouge == 0.5


@pytest.mark.parametrize(
    ("fact", "key", "right", "wrong"),
    [
        (("side", "f1", "on the left"), "It lies on the left.", "Left.", "Right."),
        (
            ("severity", "f1", "moderate"),
            "It is graded as moderate.",
            "moderate",
            "A severe pleural effusion.",
        ),
        (
            ("location", "f1", "in the left lower zone"),
            "In the left lower zone.",
            "left lower zone",
            "right base",
        ),
        (("distribution", "f1", "focal"), "It is focal.", "Focal", "diffuse"),
        (("appearance", "f1", "meniscus"), "It shows a meniscus.", "with a meniscus", "layering"),
    ],
)
def test_one_attribute_of_a_thing_that_the_question_names(made, fact, key, right, wrong):
    step = made.told(key, EFFUSION, fact, task=fact[0], question="What of the pleural effusion?")
    scores = made.said(step, right)
    assert (scores.entity_f1, scores.attribute_f1, scores.score) == (None, 1.0, 1.0)
    other = made.said(step, wrong)
    assert (other.attribute_f1, other.score) == (0.0, 0.0)


def test_attributes_that_were_not_asked_for_do_not_count(made):
    step = made.told(
        "The pleural effusion lies on the left.",
        EFFUSION,
        ("side", "f1", "on the left"),
        task="side",
        question="Which side is the pleural effusion on?",
    )
    assert made.said(step, "A severe pleural effusion on the left.").attribute_f1 == 1.0
    # Both sides where one is right.
    assert made.said(step, "On both sides.").attribute_f1 == 0.0


def test_zones_have_partial_credit(made):
    step = made.told(
        "In the right mid and lower zones.",
        ("target", "finding", "lung opacity"),
        ("location", "f1", "in the right mid and lower zones"),
        task="location",
        question="Where is the lung opacity?",
    )
    # Side and one of two zones: recall 2/3, precision 1.
    assert made.said(step, "In the right lower zone.").attribute_f1 == pytest.approx(0.8)


def test_attributes_of_a_report_go_with_their_thing(made):
    step = made.told("Severe edema. Small left pleural effusion.", form="report")
    full = made.said(step, "Severe edema. Small left pleural effusion.")
    assert (full.entity_f1, full.attribute_f1) == (1.0, 1.0)
    swapped = made.said(step, "Mild edema. Large right pleural effusion.")
    assert (swapped.entity_f1, swapped.attribute_f1) == (1.0, 0.0)


def test_a_relation_has_a_direction(made):
    step = made.told(
        "The pneumonia is the cause of the pleural effusion.",
        ("target", "finding", "pneumonia"),
        EFFUSION,
        ("relation", "x1", "f2 causes f3"),
        task="relation",
        question="How do the pneumonia and the pleural effusion go together?",
    )
    right = made.said(step, "The pleural effusion is secondary to the pneumonia.")
    assert (right.score, right.attribute_f1, right.entity_f1) == (1.0, 1.0, None)
    assert made.said(step, "The pneumonia is secondary to the pleural effusion.").score == 0.0


def test_advice_is_what_should_be_done(made):
    step = made.told(
        "Chest CT is recommended for further evaluation of the nodule.",
        ("target", "study", "advice"),
        ("recommendation", "f1", "chest CT"),
        task="advice",
    )
    assert made.said(step, "I recommend CT of the chest.").score == 1.0
    assert made.said(step, "A follow-up radiograph of the nodule is recommended.").score == 0.0


def test_a_step_without_a_key_cannot_be_scored(made):
    step = made.replace(made.told("x"), key=type(made.told("x").key)())
    with pytest.raises(BenchmarkError, match="no answer"):
        made.said(step, "Edema.")


def test_an_answer_of_ten_megabytes_is_scored(made):
    step = made.told("There is edema.", STUDY)
    scores = made.said(step, "There is edema. " * 600_000)
    # 3 of 3 words, 3 of the first 2,000.
    assert (scores.rouge, scores.entity_f1) == (pytest.approx(6 / 2003), 1.0)


SAYINGS = st.lists(
    st.sampled_from(
        [
            "no",
            "edema",
            "effusion",
            "pneumothorax",
            "mild",
            "severe",
            "left",
            "right",
            "lower",
            "zone",
            "new",
            "worse",
            "improved",
            ".",
            ",",
            "tube",
            "is",
            "may",
        ]
    ),
    max_size=30,
).map(" ".join)


@settings(max_examples=60)
@given(key=SAYINGS.filter(lambda text: any(map(str.isalpha, text))), answer=SAYINGS | st.text(max_size=60))
def test_whatever_is_said_figures_are_bounded_and_the_key_is_perfect(made, key, answer):
    for facts in ((STUDY,), (EFFUSION, ("side", "f1", "left")), (STUDY, ("trend", "f1", "new")), ()):
        step = made.told(key, *facts, question="What of the pleural effusion?")
        scores = made.said(step, answer)
        for figure in (scores.score, scores.rouge, scores.entity_f1, scores.attribute_f1):
            assert figure is None or 0 <= figure <= 1
        perfect = made.said(step, key)
        assert (perfect.score, perfect.rouge) == (1.0, 1.0)
        assert {perfect.entity_f1, perfect.attribute_f1} <= {None, 1.0}
