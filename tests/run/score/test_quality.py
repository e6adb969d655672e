"""What is said of the technique of an image."""

import pytest

from carina.run.score.quality import quality_of, score_quality
from carina.trek.language import language

GOOD = {"rotation": "none", "inspiration": "adequate", "exposure": "adequate", "coverage": "complete"}


def test_every_phrase_of_the_keys_is_understood():
    phrases = language().wording.phrases[1]
    for criterion in GOOD:
        for state, spellings in phrases[criterion].items():
            for text in spellings:
                told = quality_of(text.replace("{parts}", "the right lung apex"))
                assert told == {criterion: {state}}, text


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
        ("The exposure is not adequate.", {"exposure": "poor"}),
    ],
)
def test_states_of_a_text(text, states):
    assert quality_of(text) == {name: {state} for name, state in states.items()}


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
def test_share_of_the_criteria(made, text, score):
    right = {**GOOD, "rotation": "left"}
    assert score_quality(right, text) == score
    facts = (
        ("target", "quality", "technical adequacy"),
        *(("quality", name, state) for name, state in right.items()),
    )
    scores = made.said(made.told("The patient is rotated to the left.", *facts, task="quality"), text)
    assert (scores.score, scores.correct, scores.entity_f1) == (score, None, None)


def test_without_facts_words_have_their_likeness_alone(made):
    step = made.told(
        "The clavicles lie symmetrically.", ("target", "quality", "technical adequacy"), task="quality"
    )
    scores = made.said(step, "The clavicles are symmetrical.")
    assert (scores.entity_f1, scores.attribute_f1, scores.correct) == (None, None, None)
    assert scores.score == scores.rouge == 0.5
