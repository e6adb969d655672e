"""Scores of answers in words: findings with certainty and attributes, trends, relations, advice, technique, numbers."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.score.steps import make_case, open_step, score_answer, score_in_case

from carina.cases import Fact
from carina.reports import read_quality, read_trend
from carina.reports.answers import FLAWLESS
from carina.store.errors import BenchmarkError
from carina.trek.language import load_language

STUDY = ("target", "study", "abnormalities")
EFFUSION = ("target", "finding", "pleural effusion")
GOOD = dict(FLAWLESS)

# ---- findings and devices ----


def test_findings_count_with_their_certainty():
    step = open_step("There is edema and a pleural effusion. No pneumothorax.", STUDY, form="report")
    assert score_answer(step, "Pulmonary edema, pleural effusion; there is no pneumothorax.").entity_f1 == 1.0
    # What is not there need not be denied.
    assert score_answer(step, "Edema with pleural effusion.").entity_f1 == 1.0
    less = score_answer(step, "Edema.")
    # One of two is told, and all that is told is right: recall 1/2, precision 1.
    assert less.entity_f1 == less.score == pytest.approx(2 / 3)
    # A pneumothorax that is not there: recall 1, precision 2/3.
    assert score_answer(step, "Edema, pleural effusion and a pneumothorax.").entity_f1 == pytest.approx(0.8)
    # The effusion denied: recall and precision 1/2.
    assert score_answer(step, "There is edema. There is no pleural effusion.").entity_f1 == pytest.approx(0.5)
    assert score_answer(step, "There may be edema.").entity_f1 == 0.0
    assert less.correct is None


def test_denying_what_the_key_does_not_mention_costs_nothing():
    step = open_step("There is edema.", STUDY)
    assert score_answer(step, "There is edema. No pneumothorax.").entity_f1 == 1.0
    assert score_answer(step, "There is edema. There is a pneumothorax.").entity_f1 == pytest.approx(2 / 3)


def test_none_is_right_where_nothing_is_present():
    step = open_step("No tube, line or implant can be identified.", ("target", "study", "devices"))
    assert score_answer(step, "None.").score == 1.0
    assert score_answer(step, "There is no endotracheal tube.").score == 1.0
    assert score_answer(step, "There is an endotracheal tube.").score == 0.0
    assert score_answer(step, "A chest radiograph.").score == 0.0
    there = open_step("There is a chest tube.", ("target", "study", "devices"))
    assert score_answer(there, "None.").score == 0.0


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
def test_that_nothing_is_present_can_be_said_in_any_words(listed, key):
    step = open_step(key, ("target", *listed))
    for right in ("There is nothing.", "None", "Clear.", "Nothing abnormal.", "No devices.", "Normal.", key):
        assert score_answer(step, right).score == 1.0, right
    for wrong in ("It is not normal.", "I cannot tell.", "An image.", "Edema and a chest tube. No nodule."):
        assert score_answer(step, wrong).score == 0.0, wrong


@pytest.mark.parametrize("listed", ["abnormalities and devices", "devices"])
def test_present_findings_outweigh_absent_ones(listed):
    key = "There is no abnormality, but the patient has a nasogastric tube."
    step = open_step(key, ("target", "study", listed), ("truth", "d1", "present"))
    assert score_answer(step, "Nasogastric tube only").score == 1.0
    assert score_answer(step, "No abnormality.").score == 0.0


def test_only_the_kind_that_is_asked_for_counts():
    devices = open_step("There is a chest tube.", ("target", "study", "devices"), ("truth", "d1", "present"))
    assert score_answer(devices, "A chest tube. There is also edema.").score == 1.0
    others = open_step(
        "There is also a pleural effusion.",
        ("target", "study", "others"),
        ("truth", "f2", "present"),
        question="What else is there beside pulmonary edema?",
    )
    assert score_answer(others, "Apart from the pulmonary edema, a pleural effusion.").score == 1.0
    assert score_answer(others, "Pulmonary edema.").score == 0.0


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
def test_an_attribute_of_a_finding_that_the_question_names(fact, key, right, wrong):
    step = open_step(key, EFFUSION, fact, task=fact[0], question="What of the pleural effusion?")
    scores = score_answer(step, right)
    assert (scores.entity_f1, scores.attribute_f1, scores.score) == (None, 1.0, 1.0)
    other = score_answer(step, wrong)
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
def test_denied_attributes_do_not_count(kind, value, right, wrong):
    step = open_step(
        f"It is {value}.", EFFUSION, (kind, "f1", value), task=kind, question="What of the pleural effusion?"
    )
    for answer in right:
        assert score_answer(step, answer).score == 1.0, answer
    for answer in wrong:
        assert score_answer(step, answer).score == 0.0, answer


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
def test_a_position_is_recognised_in_different_words(text, position):
    tube = ("target", "device", "nasogastric tube")
    for value, key in (("adequate", "It is properly placed."), ("malpositioned", "It is badly placed.")):
        step = open_step(
            key,
            tube,
            ("position", "d1", value),
            task="position",
            question="Is the nasogastric tube well placed?",
        )
        assert score_answer(step, text).score == float(value == position)


def test_attributes_that_were_not_asked_for_do_not_count():
    step = open_step(
        "The pleural effusion lies on the left.",
        EFFUSION,
        ("side", "f1", "on the left"),
        task="side",
        question="Which side is the pleural effusion on?",
    )
    assert score_answer(step, "A severe pleural effusion on the left.").attribute_f1 == 1.0
    # Both sides where one is right.
    assert score_answer(step, "On both sides.").attribute_f1 == 0.0


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
def test_terms_without_a_word_in_the_lexicon_are_found_literally(target, fact, right, wrong):
    step = open_step(f"It is {fact[2]}.", target, fact, task=fact[0], question=f"What of the {target[2]}?")
    for answer in right:
        assert score_answer(step, answer).score == 1.0, answer
    for answer in wrong:
        assert score_answer(step, answer).score == 0.0, answer


def test_zones_have_partial_credit():
    step = open_step(
        "In the right mid and lower zones.",
        ("target", "finding", "lung opacity"),
        ("location", "f1", "in the right mid and lower zones"),
        task="location",
        question="Where is the lung opacity?",
    )
    # Side and one of two zones: recall 2/3, precision 1.
    assert score_answer(step, "In the right lower zone.").attribute_f1 == pytest.approx(0.8)


def test_attributes_of_a_report_belong_to_their_finding():
    step = open_step("Severe edema. Small left pleural effusion.", form="report")
    full = score_answer(step, "Severe edema. Small left pleural effusion.")
    assert (full.entity_f1, full.attribute_f1) == (1.0, 1.0)
    swapped = score_answer(step, "Mild edema. Large right pleural effusion.")
    # The effusion lies on the other side: credit 0. The edema has its name, which weighs 2, and one of one attribute
    # wrong: credit 2/3. Two entities in each report.
    assert (swapped.entity_f1, swapped.attribute_f1) == (pytest.approx(1 / 3), 0.0)


def test_a_relation_has_a_direction():
    step = open_step(
        "The pneumonia is the cause of the pleural effusion.",
        ("target", "finding", "pneumonia"),
        EFFUSION,
        ("relation", "x1", "f2 causes f3"),
        task="relation",
        question="How do the pneumonia and the pleural effusion go together?",
    )
    right = score_answer(step, "The pleural effusion is secondary to the pneumonia.")
    assert (right.score, right.attribute_f1, right.entity_f1) == (1.0, 1.0, None)
    assert score_answer(step, "The pneumonia is secondary to the pleural effusion.").score == 0.0


def test_recommendations_are_compared_by_their_action():
    step = open_step(
        "Chest CT is recommended for further evaluation of the nodule.",
        ("target", "study", "advice"),
        ("recommendation", "f1", "chest CT"),
        task="advice",
    )
    assert score_answer(step, "I recommend CT of the chest.").score == 1.0
    assert score_answer(step, "A follow-up radiograph of the nodule is recommended.").score == 0.0


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
def test_a_recommendation_may_be_the_name_of_the_action_alone(advice, right, wrong):
    key = f"The lung opacity should be looked at again. {advice.capitalize()} is recommended."
    facts = (("target", "study", "advice"), ("recommendation", "f1", advice))
    step = open_step(key, *facts, task="advice")
    for answer in (*right, key):
        assert score_answer(step, answer).score == 1.0, answer
    for answer in wrong:
        assert score_answer(step, answer).score == 0.0, answer


def test_two_recommendations_count_one_by_one():
    facts = (("recommendation", "f1", "chest CT"), ("recommendation", "f2", "clinical correlation"))
    step = open_step("Recommend chest CT. Recommend clinical correlation.", *facts, task="advice")
    assert score_answer(step, "Chest CT. Clinical correlation.").score == 1.0
    # One of two, and all that is told is right.
    assert score_answer(step, "Chest CT.").score == pytest.approx(2 / 3)


def test_a_step_without_a_key_cannot_be_scored():
    step = msgspec.structs.replace(open_step("x"), key=type(open_step("x").key)())
    with pytest.raises(BenchmarkError, match="no answer"):
        score_answer(step, "Edema.")


def test_an_answer_of_ten_megabytes_is_scored():
    step = open_step("There is edema.", STUDY)
    scores = score_answer(step, "There is edema. " * 600_000)
    # 3 of 3 words, 3 of the first 2,000.
    assert (scores.rouge, scores.entity_f1) == (pytest.approx(6 / 2003), 1.0)


# ---- trends ----


def test_every_key_of_a_single_trend_is_understood():
    """All wordings of stages 5 and 6, filled with words that could be mistaken for a trend."""
    pools = load_language().wording.pools
    things = (
        "moderate pulmonary edema",
        "severe cardiomegaly, with global enlargement of the cardiac silhouette",
    )
    count = 0
    for pool in (pools[5, "trend", "open"], pools[6, "finding outlook", "open"]):
        for kind, texts in pool.answers.items():
            for text in texts:
                for thing in things:
                    said = text.format(the_finding=f"the {thing}", described=thing, before=f"mild {thing}")
                    assert read_trend(said) == kind.partition("_")[0], said
                    count += 1
    assert count > 250


def test_a_question_about_one_trend_has_a_right_answer():
    facts = (("target", "finding", "pleural effusion"), ("trend", "f1", "improved"))
    step = open_step(
        "The pleural effusion has improved.",
        *facts,
        task="trend",
        question="How has the pleural effusion changed?",
    )
    right = score_answer(step, "Smaller.")
    assert (right.correct, right.score, right.attribute_f1, right.entity_f1) == (True, 1.0, 1.0, None)
    wrong = score_answer(step, "The pleural effusion has worsened.")
    assert (wrong.correct, wrong.score, wrong.attribute_f1) == (False, 0.0, 0.0)
    assert wrong.rouge == pytest.approx(0.8)
    # An answer without a trend is wrong.
    assert score_answer(step, "There is a pleural effusion.").correct is False


def test_several_trends_are_compared_finding_by_finding():
    facts = (("target", "study", "comparison"), ("trend", "f1", "new"), ("trend", "f2", "resolved"))
    step = open_step("The edema is new. The pneumonia has resolved.", *facts, task="comparison")
    assert score_answer(step, "New edema; the pneumonia is no longer seen.").attribute_f1 == 1.0
    half = score_answer(step, "New edema. The pneumonia is unchanged.")
    assert (half.correct, half.attribute_f1, half.score) == (None, 0.5, 0.5)


# ---- relations ----


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (
            "causes",
            "The link is one of cause and effect. The examination shows moderate pneumonia in the left lower zone, and "
            "the pleural effusion follows from it: a small pleural effusion is what one finds.",
        ),
        (
            "accompanies",
            "They belong to the same picture. The reading starts with pneumonia and, looking further, meets a pleural "
            "effusion; finding the pneumonia and the pleural effusion side by side is the reason to report them.",
        ),
    ],
)
def test_the_relation_of_the_facts_is_demanded_and_no_other(kind, key):
    step = open_step(
        key,
        ("target", "finding", "pneumonia"),
        ("target", "finding", "pleural effusion"),
        ("relation", "x1", f"f2 {kind} f3"),
        task="relation",
        question="How do the pneumonia and the pleural effusion go together?",
    )
    assert score_answer(step, key).score == 1.0
    causal = score_answer(step, "The pleural effusion is caused by the pneumonia.")
    assert causal.score == causal.attribute_f1 == float(kind == "causes")
    assert score_answer(step, "They are associated.").score == float(kind == "accompanies")


def test_names_are_taken_from_other_steps_of_the_case():
    """The key's first sentence relates two things that the facts do not."""
    asked = open_step(
        "The edema and the pneumonia coexist. The pneumonia has led to the pleural effusion.",
        ("target", "relation", "findings"),
        ("relation", "x1", "f1 causes f2"),
        task="relations",
        question="How do they hang together?",
    )
    others = [
        msgspec.structs.replace(
            open_step("It is there.", ("target", "finding", name), ("truth", at, "present")), id=at
        )
        for at, name in (("f1", "pneumonia"), ("f2", "pleural effusion"))
    ]
    case = make_case(*others, asked)
    answer = "The pleural effusion is due to the pneumonia."
    assert score_in_case(case, asked, answer).score == 1.0
    assert score_in_case(case, asked, "The edema and the pneumonia coexist.").score == 0.0
    # Without them, all that the key relates is demanded: one of two.
    assert score_answer(asked, answer).score == pytest.approx(2 / 3)


# ---- technique and measurements ----


def test_every_phrase_about_quality_in_keys_is_understood():
    phrases = load_language().wording.phrases[1]
    for criterion in GOOD:
        for state, spellings in phrases[criterion].items():
            for text in spellings:
                stated = read_quality(text.replace("{parts}", "the right lung apex"))
                assert {(entity.name, entity.value) for entity in stated} == {(criterion, state)}, text


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Rotated to the left; otherwise good.", 1.0),
        ("Rotated to the left.", 0.25),
        # Three are right and one is wrong.
        ("Adequate.", 0.5),
        ("Rotated. Good inspiration.", 0.375),
        ("Rotated to the right. Good inspiration.", 0.0),
        # Both at once is wrong.
        ("Rotated to the left. Not rotated. Good inspiration. Good exposure.", 0.25),
        ("A chest.", 0.0),
    ],
)
def test_quality_is_the_share_of_right_criteria_less_wrong_ones(text, score):
    right = {**GOOD, "rotation": "left"}
    facts = (
        ("target", "quality", "technical adequacy"),
        *(("quality", name, state) for name, state in right.items()),
    )
    scores = score_answer(open_step("The patient is rotated to the left.", *facts, task="quality"), text)
    assert (scores.score, scores.correct, scores.entity_f1) == (score, None, None)


def test_quality_without_facts_is_scored_by_rouge():
    step = open_step(
        "The clavicles lie symmetrically.", ("target", "quality", "technical adequacy"), task="quality"
    )
    scores = score_answer(step, "The clavicles are symmetrical.")
    assert (scores.entity_f1, scores.attribute_f1, scores.correct) == (None, None, None)
    assert scores.score == scores.rouge == 0.5


@pytest.mark.parametrize(
    ("key", "answer", "question", "same"),
    [
        ("PA", "PA", "Which projection?", True),
        ("PA", "AP", "Which projection?", False),
        ("PA", "frontal", "Which projection?", False),
        ("PA lateral", "PA", "Which projection?", False),
        ("PA lateral", "lateral PA", "Which projection?", True),
        ("PA", "", "Which projection?", False),
        # Who asks for no more gets no more; who says more must be right.
        ("PA", "frontal", "Is it a frontal view, a lateral view or both?", True),
        ("PA", "AP", "Is it a frontal view, a lateral view or both?", False),
        ("PA", "lateral", "Is it a frontal view, a lateral view or both?", False),
        ("PA", "frontal", "Frontal or lateral, and if frontal, PA or AP?", False),
        ("frontal", "AP", "Which view?", True),
        ("frontal", "lateral", "Which view?", False),
    ],
)
def test_frontal_is_enough_where_no_more_is_asked(key, answer, question, same):
    step = open_step(
        key.replace(" ", ", "), ("view", "", key.replace(" ", ", ")), task="view", question=question
    )
    assert score_answer(step, answer.replace(" ", ", ")).correct is same


def test_a_question_about_the_view_has_a_right_answer():
    facts = (("target", "view", "PA, lateral"), ("view", "", "PA, lateral"))
    step = open_step("These are PA and side views.", *facts, task="view", question="Which views?")
    right = score_answer(step, "Postero-anterior and LL.")
    assert (right.correct, right.score) == (True, 1.0)
    assert right.rouge < 0.5
    wrong = score_answer(step, "These are AP and side views.")
    assert (wrong.correct, wrong.score) == (False, 0.0)
    # Without facts the key's own words tell.
    assert score_answer(open_step("An AP view.", task="view"), "antero-posterior").correct is True
    # Words that name no view cannot be judged.
    assert score_answer(open_step("Adequate.", task="view"), "Adequate.").correct is None


def test_a_question_for_a_number_has_a_right_answer():
    fact = Fact(name="measure", about="f1", text="cardiothoracic ratio", value=0.616)
    step = open_step(
        "For the cardiomegaly, I get a value of 0.62 as the cardiothoracic ratio.",
        ("target", "finding", "cardiomegaly"),
        task="measure",
        question="Give the cardiothoracic ratio for the cardiomegaly.",
    )
    step = msgspec.structs.replace(step, facts=(*step.facts, fact))
    right, wrong = (
        score_answer(step, "0.61"),
        score_answer(step, "For the cardiomegaly, I get a value of 0.45."),
    )
    assert (right.correct, right.score, wrong.correct, wrong.score) == (True, 1.0, False, 0.0)


# ---- any text ----

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
def test_scores_of_any_answer_are_bounded_and_the_key_scores_1(key, answer):
    for facts in ((STUDY,), (EFFUSION, ("side", "f1", "left")), (STUDY, ("trend", "f1", "new")), ()):
        step = open_step(key, *facts, question="What of the pleural effusion?")
        scores = score_answer(step, answer)
        for figure in (scores.score, scores.rouge, scores.entity_f1, scores.attribute_f1):
            assert figure is None or 0 <= figure <= 1
        perfect = score_answer(step, key)
        assert (perfect.score, perfect.rouge) == (1.0, 1.0)
        assert {perfect.entity_f1, perfect.attribute_f1} <= {None, 1.0}
