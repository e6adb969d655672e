"""Short answers and statements about technique: what they state, in many words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.reports import (
    denies_findings,
    names_in,
    read_actions,
    read_attributes,
    read_measurements,
    read_position,
    read_quality,
    read_relations,
    read_trend,
    read_trends,
    read_views,
    relation_name,
    states_findings,
)
from carina.reports.answers import FLAWLESS, is_near, is_near_ratio, states_term

PAIR = ("pneumonia", "pleural effusion")
FORWARD = {("pneumonia", "causes", "pleural effusion")}
TOGETHER = {("pleural effusion", "accompanies", "pneumonia")}
GOOD = dict(FLAWLESS)

TRENDS = {
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


@pytest.mark.parametrize(("trend", "text"), [(trend, text) for trend in TRENDS for text in TRENDS[trend]])
def test_the_trend_of_an_answer_about_one_thing_is_read(trend, text):
    assert read_trend(text) == trend


def test_trends_go_with_the_findings_of_their_sentence():
    text = "New edema. The pneumonia is no longer seen; the effusion is unchanged. A chest tube."
    assert read_trends(text) == {
        ("edema", "new"),
        ("pneumonia", "resolved"),
        ("pleural effusion", "unchanged"),
    }


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
def test_the_position_of_a_device_is_read(text, position):
    assert read_position(text) == position


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("moderate", {("severity", "moderate")}),
        ("Not on the right but on the left", {("side", "left")}),
        ("On the left, sparing the right lung.", {("side", "left")}),
        ("On both sides.", {("side", "bilateral")}),
        ("Focal, not diffuse.", {("distribution", "focal")}),
        ("right base", {("side", "right"), ("location", "right lower zone")}),
        ("Meniscus without layering", {("appearance", "meniscus")}),
        ("Mild or severe", {("severity", "mild"), ("severity", "severe")}),
        ("An image.", set()),
    ],
)
def test_attributes_of_an_answer_about_one_thing_are_read(text, attributes):
    assert read_attributes(text) == attributes


def test_terms_are_found_in_a_row_and_not_where_they_are_denied():
    assert states_term("Its tip lies in the stomach.", "in the stomach")
    assert not states_term("It is not in the stomach.", "in the stomach")
    assert not states_term("The distal esophagus, not far from the stomach", "in the distal stomach")
    # A length within a tenth.
    assert states_term("34 mm above the carina", "3.5 cm above the carina")
    assert not states_term("5 cm above the carina", "3.5 cm above the carina")


@pytest.mark.parametrize(
    ("text", "denies"),
    [
        ("None.", True),
        ("There is no pneumothorax.", True),
        ("It doesn't show anything.", True),
        ("The lungs are clear.", True),
        ("Our list is complete.", True),
        ("It is not normal.", False),
        ("I cannot see the image.", False),
        ("No idea.", False),
        ("A chest radiograph.", False),
    ],
)
def test_a_general_denial_is_recognised(text, denies):
    assert denies_findings(text) is denies


def test_that_a_list_is_complete_states_no_finding():
    assert not states_findings("Our list is complete.")
    assert states_findings("None.")
    assert states_findings("Edema.")


def test_names_are_those_of_the_lexicon():
    assert names_in("Is there fluid in the pleural space, an ETT, or cardiac enlargement?") >= {
        "cardiomegaly"
    }
    assert names_in("No effusion.") == {"pleural effusion"}


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("Chest CT.", {"chest CT"}),
        ("CT is not necessary.", set()),
        ("No CT.", set()),
        ("Repeat X-ray", {"follow-up radiograph"}),
        ("I would recommend a chest CT. No follow-up radiograph is needed.", {"chest CT"}),
    ],
)
def test_actions_of_an_answer_are_read(text, actions):
    assert read_actions(text) == actions


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("The pneumonia causes the pleural effusion.", FORWARD),
        ("The pleural effusion is secondary to the pneumonia.", FORWARD),
        ("The pleural effusion has arisen as a result of the pneumonia", FORWARD),
        ("The arrow runs from the pneumonia to the pleural effusion.", FORWARD),
        ("There is pneumonia, and as a result of it a pleural effusion.", FORWARD),
        ("There is pneumonia, and the pleural effusion follows from it.", FORWARD),
        ("Pneumonia with associated effusion; the effusion is due to the pneumonia.", FORWARD),
        ("The pneumonia is due to the pleural effusion.", {("pleural effusion", "causes", "pneumonia")}),
        ("The pneumonia and the pleural effusion coexist.", TOGETHER),
        ("The pleural effusion goes hand in hand with the pneumonia.", TOGETHER),
        ("The pneumonia occurs together with the pleural effusion.", TOGETHER),
        ("The pneumonia is associated with the pleural effusion.", TOGETHER),
        ("They go together.", TOGETHER),
        ("The pneumonia isn't due to the pleural effusion.", set()),
        ("The pneumonia suggests the pleural effusion.", {("pneumonia", "suggests", "pleural effusion")}),
        ("The pneumonia. It causes fever.", set()),
        ("Both are seen.", set()),
    ],
)
def test_relations_of_an_answer_about_a_pair_are_read(text, links):
    assert read_relations(text, PAIR, PAIR) == {relation_name(*link) for link in links}


def test_what_accompanies_has_no_direction():
    assert (
        relation_name("b", "accompanies", "a") == relation_name("a", "accompanies", "b") == "a accompanies b"
    )
    assert relation_name("b", "causes", "a") == "b causes a"


def test_only_a_given_pair_may_be_left_unnamed():
    together = {relation_name(*link) for link in TOGETHER}
    assert read_relations("The pneumonia occurs together with a pleural effusion.", PAIR) == together
    assert read_relations("They go together.", PAIR) == frozenset()


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("Adequate.", GOOD),
        ("Good quality", GOOD),
        ("Good quality, but rotated to the left.", {**GOOD, "rotation": "left"}),
        ("Adequate apart from poor inspiration.", {**GOOD, "inspiration": "poor"}),
        ("Poor quality.", {}),
        ("It is not adequate.", {}),
        ("The patient isn't rotated.", {"rotation": "none"}),
        (
            "Low lung volumes; the left costophrenic angle is cut off.",
            {"inspiration": "poor", "coverage": "cut_off"},
        ),
        ("Underexposed and rotated to the right", {"exposure": "under", "rotation": "right"}),
        ("The exposure is not adequate.", {"exposure": "unspecified"}),
    ],
)
def test_image_quality_is_read(text, states):
    assert {(entity.name, entity.value) for entity in read_quality(text)} == set(states.items())


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("PA", "PA"),
        ("This is a postero-anterior view.", "PA"),
        ("posteroanterior", "PA"),
        ("Posterior-anterior (P.A.) chest radiograph", "PA"),
        ("A frontal AP view, portable.", "AP"),
        ("antero posterior", "AP"),
        ("The beam passed from front to back.", "AP"),
        ("front-to-back", "AP"),
        ("LL", "lateral"),
        ("A side view.", "lateral"),
        ("lat", "lateral"),
        ("PA and lateral views", "PA lateral"),
        ("Two images: postero-anterior and side views.", "PA lateral"),
        ("A frontal view", "frontal"),
        ("PA, not AP.", "PA"),
        ("This is an AP rather than a PA projection", "AP"),
        ("A PA view without a lateral", "PA"),
        ("not only a PA view but also a lateral one", "PA lateral"),
        ("The apical zones of the patient", ""),
        ("A-P", "AP"),
        ("P-A", "PA"),
        ("It isn't AP but PA", "PA"),
        ("AP view; the lateral border is cut", "AP"),
        ("PA and lateral.", "PA lateral"),
        ("PA and lateral chest radiographs", "PA lateral"),
    ],
)
def test_projections_are_read(text, views):
    assert read_views(text) == frozenset(views.split())


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
def test_a_cardiothoracic_ratio_within_0_03_is_near(text, right):
    assert is_near_ratio(0.616, text) is right


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
def test_a_length_within_a_tenth_is_near(text, right):
    assert is_near(3.5, "cm", text) is right


def test_measurements_have_a_number_and_a_unit():
    found = read_measurements("4.1 cm above the carina, about 12 to 14 mm wide, ratio 52 percent")
    assert {(entity.value, entity.unit) for entity in found} == {(4.1, "cm"), (13.0, "mm"), (52.0, "%")}


@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    assert read_trend(text) in {*TRENDS}
    assert read_position(text) in {"adequate", "malpositioned", None}
    read_attributes(text), read_actions(text), read_quality(text), read_views(text), read_measurements(text)
    read_relations(text, PAIR, PAIR)


def test_long_texts_without_a_full_stop_are_read_without_deep_recursion():
    text = "not expect not call nothing clavicles " * 3000
    assert read_trend(text) is None
    assert read_quality(text) == frozenset()
