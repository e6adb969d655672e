"""What answers in words say: things, certainty, attributes, relations, advice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.errors import BenchmarkError
from carina.run.score.positions import position_of

STUDY = ("target", "study", "abnormalities")
EFFUSION = ("target", "finding", "pleural effusion")


def test_things_count_with_their_certainty(made):
    step = made.told("There is edema and a pleural effusion. No pneumothorax.", STUDY, form="report")
    assert made.said(step, "Pulmonary edema, pleural effusion; there is no pneumothorax.").entity_f1 == 1.0
    # What is not there need not be denied.
    assert made.said(step, "Edema with pleural effusion.").entity_f1 == 1.0
    less = made.said(step, "Edema.")
    # One of two is told, and all that is told is right: recall 1/2, precision 1.
    assert less.entity_f1 == less.score == pytest.approx(2 / 3)
    # A pneumothorax that is not there: recall 1, precision 2/3.
    assert made.said(step, "Edema, pleural effusion and a pneumothorax.").entity_f1 == pytest.approx(0.8)
    # The effusion denied: recall and precision 1/2.
    assert made.said(step, "There is edema. There is no pleural effusion.").entity_f1 == pytest.approx(0.5)
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


@pytest.mark.parametrize(
    ("listed", "key"),
    [
        (("study", "devices"), "There is nothing but the patient's own anatomy."),
        (("study", "abnormalities"), "The chest looks normal."),
        (("study", "abnormalities"), "None, this is a normal examination."),
        (("study", "abnormalities and devices"), "Findings: none. Devices: none."),
        (("study", "others"), "Our list is complete."),
        (("study", "others"), "The rest of the chest is unremarkable."),
        (("region", "left upper zone"), "The left upper zone is clear."),
        (("region", "left upper zone"), "I see nothing to report in the left upper zone."),
    ],
)
def test_that_there_is_nothing_can_be_said_in_any_words(made, listed, key):
    step = made.told(key, ("target", *listed))
    for right in ("There is nothing.", "None", "Clear.", "Nothing abnormal.", "No devices.", "Normal.", key):
        assert made.said(step, right).score == 1.0, right
    for wrong in ("It is not normal.", "I cannot tell.", "An image.", "Edema and a chest tube. No nodule."):
        assert made.said(step, wrong).score == 0.0, wrong


@pytest.mark.parametrize("listed", ["abnormalities and devices", "devices"])
def test_what_is_there_outweighs_what_is_not(made, listed):
    key = "There is no abnormality, but the patient has a nasogastric tube."
    step = made.told(key, ("target", "study", listed), ("truth", "d1", "present"))
    assert made.said(step, "Nasogastric tube only").score == 1.0
    assert made.said(step, "No abnormality.").score == 0.0


def test_only_what_is_asked_for_is_listed(made):
    devices = made.told("There is a chest tube.", ("target", "study", "devices"), ("truth", "d1", "present"))
    assert made.said(devices, "A chest tube. There is also edema.").score == 1.0
    others = made.told(
        "There is also a pleural effusion.",
        ("target", "study", "others"),
        ("truth", "f2", "present"),
        question="What else is there beside pulmonary edema?",
    )
    assert made.said(others, "Apart from the pulmonary edema, a pleural effusion.").score == 1.0
    assert made.said(others, "Pulmonary edema.").score == 0.0


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


@pytest.mark.parametrize(
    ("kind", "value", "right", "wrong"),
    [
        (
            "side",
            "on the left",
            (
                "Not on the right but on the left",
                "The left lung is affected; the right lung is clear.",
                "The left lung is affected and the right lung is normal.",
                "On the left rather than on the right.",
                "On the left, sparing the right lung.",
                "It isn't on the right, but on the left.",
            ),
            ("It is not on the left.", "It isn't on the left.", "On the right; the left lung is clear."),
        ),
        (
            "severity",
            "moderate",
            ("Moderate (not severe).", "Neither mild nor severe but moderate."),
            ("It is not moderate.",),
        ),
        ("distribution", "focal", ("Focal, not diffuse.",), ("not focal",)),
        ("appearance", "meniscus", ("Meniscus without layering",), ("no meniscus",)),
    ],
)
def test_what_is_denied_is_not_said(made, kind, value, right, wrong):
    step = made.told(
        f"It is {value}.", EFFUSION, (kind, "f1", value), task=kind, question="What of the pleural effusion?"
    )
    for answer in right:
        assert made.said(step, answer).score == 1.0, answer
    for answer in wrong:
        assert made.said(step, answer).score == 0.0, answer


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("It is well placed.", "adequate"),
        ("no malposition", "adequate"),
        ("There is no need for a correction.", "adequate"),
        ("It does not need to be moved.", "adequate"),
        ("It lies where it should be.", "adequate"),
        ("It is not well placed.", "malpositioned"),
        ("It isn't in a satisfactory position.", "malpositioned"),
        ("It is where it should not be.", "malpositioned"),
        ("It should be pulled back.", "malpositioned"),
        ("A correction is needed.", "malpositioned"),
        ("Too deep, though well placed before.", None),
        ("In the stomach.", None),
    ],
)
def test_positions_in_many_words(made, text, position):
    assert position_of(text) == position
    tube = ("target", "device", "nasogastric tube")
    for value, key in (("adequate", "It is properly placed."), ("malpositioned", "It is badly placed.")):
        step = made.told(
            key,
            tube,
            ("position", "d1", value),
            task="position",
            question="Is the nasogastric tube well placed?",
        )
        assert made.said(step, text).score == float(value == position)


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


@pytest.mark.parametrize(
    ("target", "fact", "right", "wrong"),
    [
        (
            ("target", "device", "nasogastric tube"),
            ("location", "d1", "in the stomach"),
            ("Stomach.", "Its tip is not in the esophagus but in the stomach."),
            ("The tip of the nasogastric tube is in the distal esophagus.", "It is not in the stomach."),
        ),
        (
            ("target", "device", "endotracheal tube"),
            ("location", "d1", "3.5 cm above the carina"),
            ("3.5 cm above the carina", "Its tip is 34 mm above the carina."),
            ("5 cm above the carina", "3.5 cm below the carina", "Above the carina."),
        ),
        (
            ("target", "finding", "cardiomegaly"),
            ("appearance", "f1", "left ventricular"),
            ("left ventricular", "A left ventricular shape."),
            ("Global.", "Not left ventricular."),
        ),
    ],
)
def test_terms_that_the_reader_does_not_know(made, target, fact, right, wrong):
    step = made.told(f"It is {fact[2]}.", target, fact, task=fact[0], question=f"What of the {target[2]}?")
    for answer in right:
        assert made.said(step, answer).score == 1.0, answer
    for answer in wrong:
        assert made.said(step, answer).score == 0.0, answer


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


@pytest.mark.parametrize(
    ("advice", "right", "wrong"),
    [
        (
            "chest CT",
            ("Chest CT.", "CT of the chest to evaluate the opacity", "The next step is a chest CT."),
            ("Follow-up radiograph.", "CT is not necessary.", "No CT.", "Nothing."),
        ),
        (
            "follow-up radiograph",
            ("Follow-up radiograph.", "Follow-up chest X-ray in 6 weeks", "Repeat X-ray"),
            ("Chest CT.", "No follow-up is needed.", "Follow-up radiograph is not needed."),
        ),
    ],
)
def test_advice_may_be_the_action_alone(made, advice, right, wrong):
    key = f"The lung opacity should be looked at again. {advice.capitalize()} is recommended."
    facts = (("target", "study", "advice"), ("recommendation", "f1", advice))
    step = made.told(key, *facts, task="advice")
    for answer in (*right, key):
        assert made.said(step, answer).score == 1.0, answer
    for answer in wrong:
        assert made.said(step, answer).score == 0.0, answer


def test_two_pieces_of_advice_count_one_by_one(made):
    facts = (("recommendation", "f1", "chest CT"), ("recommendation", "f2", "clinical correlation"))
    step = made.told("Recommend chest CT. Recommend clinical correlation.", *facts, task="advice")
    assert made.said(step, "Chest CT. Clinical correlation.").score == 1.0
    # One of two, and all that is told is right.
    assert made.said(step, "Chest CT.").score == pytest.approx(2 / 3)


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
