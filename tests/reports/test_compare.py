"""Entity F1 between two reports: what matches, contradicts, is missed and is invented."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from carina.reports import Entity, compare_entities, compare_reports, read_report

PROBES = yaml.safe_load((Path(__file__).parents[2] / "benchmarks" / "report_probes.yaml").read_text("utf-8"))
CORRUPTIONS = ("flipped negation", "swapped side", "invented prior", "omitted finding")


def pairs(*kinds):
    return [pytest.param(*row, id=f"{kind} {n}") for kind in kinds for n, row in enumerate(PROBES[kind])]


def test_there_are_enough_probes_of_each_kind():
    assert all(len(PROBES[kind]) >= 10 for kind in CORRUPTIONS)
    assert len(PROBES["paraphrase"]) >= 20


@pytest.mark.parametrize(("reference", "candidate"), pairs(*CORRUPTIONS))
def test_a_corrupted_report_scores_at_most_0_3(reference, candidate):
    assert compare_reports(candidate, reference).f1 <= 0.3
    assert compare_reports(reference, reference).f1 == 1.0


@pytest.mark.parametrize(("reference", "candidate"), pairs("paraphrase"))
def test_a_paraphrase_scores_at_least_0_9(reference, candidate):
    assert compare_reports(candidate, reference).f1 >= 0.9
    assert compare_reports(reference, candidate).f1 >= 0.9


@pytest.mark.parametrize(("reference", "candidate", "expected"), pairs("graded"))
def test_one_wrong_finding_among_several_costs_its_share(reference, candidate, expected):
    assert compare_reports(candidate, reference).f1 == pytest.approx(expected, abs=5e-4)


def test_a_person_sees_what_was_matched_missed_and_invented():
    score = compare_reports(
        "Small right pleural effusion. Mild cardiomegaly. Pneumothorax.",
        "Small left pleural effusion. Mild cardiomegaly. Left lower lobe nodule. No pneumothorax.",
    )
    assert [match.candidate.name for match in score.matched] == ["cardiomegaly"]
    (contradicted,) = score.contradicted
    assert (contradicted.candidate.side, contradicted.reference.side) == ("right", "left")
    assert contradicted.differences == ("side",)
    assert [entity.name for entity in score.missed] == ["nodule"]
    assert [entity.name for entity in score.invented] == ["pneumothorax"]
    # One of three in each report.
    assert score.precision == score.recall == score.f1 == pytest.approx(1 / 3)
    assert "contradicted  mild right pleural effusion for mild left pleural effusion (side)" in str(score)


@pytest.mark.parametrize(
    ("candidate", "credit", "differences"),
    [
        # The name weighs 2, side, severity and place 1 each.
        ("Moderate left lower lobe consolidation.", 1, ()),
        ("Consolidation in the left lower lobe.", 4 / 5, ("severity",)),
        ("Severe left lower lobe consolidation.", 4 / 5, ("severity",)),
        ("Left consolidation.", 3 / 5, ("severity", "place")),
        ("Consolidation.", 2 / 5, ("side", "severity", "place")),
        # One zone of the two that are named is right: 2 * 1 / (1 + 2) of the place.
        ("Moderate consolidation in the left mid and lower zones.", (4 + 2 / 3) / 5, ("place",)),
    ],
)
def test_attributes_that_differ_or_are_left_out_lower_the_credit(candidate, credit, differences):
    (match,) = compare_reports(candidate, "Moderate left lower lobe consolidation.").matched
    assert match.credit == pytest.approx(credit)
    assert match.differences == differences


@pytest.mark.parametrize(
    ("candidate", "reference", "difference"),
    [
        ("Possible edema.", "Edema.", "certainty"),
        ("No edema.", "Edema.", "certainty"),
        ("Left pneumothorax.", "Right pneumothorax.", "side"),
        ("Right upper lobe opacity.", "Right lower lobe opacity.", "place"),
        ("Worsening edema.", "Improving edema.", "trend"),
        ("The endotracheal tube is malpositioned.", "The endotracheal tube is well positioned.", "position"),
        ("Stable edema.", "Edema.", "prior study"),
    ],
)
def test_contradictions_have_no_credit(candidate, reference, difference):
    score = compare_reports(candidate, reference)
    assert score.f1 == 0.0
    assert difference in score.contradicted[0].differences


def test_what_the_reference_does_not_say_costs_nothing():
    assert compare_reports("Severe left pneumothorax. No edema.", "Pneumothorax.").f1 == 1.0


def test_a_comparison_is_right_where_there_is_a_prior_study():
    reference = "Small left pleural effusion."
    candidate = "Small left pleural effusion, unchanged since the prior study."
    assert compare_reports(candidate, reference).f1 == 0.0
    assert compare_reports(candidate, reference, has_prior=True).f1 == 1.0
    # The reference speaks of one, in another sentence.
    assert compare_reports(candidate, f"{reference} The heart is unchanged since the prior study.").f1 == 1.0


def test_a_bilateral_finding_is_one_on_each_side():
    both = "Bilateral pleural effusions."
    assert compare_reports("Right pleural effusion. Left pleural effusion.", both).f1 == 1.0
    assert compare_reports("Left pleural effusion.", both).recall == pytest.approx(0.5)
    # A side that is not stated is left out, not wrong.
    assert compare_reports("Pleural effusions.", both).f1 == pytest.approx(2 / 3)


def test_a_normal_report_is_normal_in_any_words():
    reference = "The lungs are clear. The heart is normal in size. No pleural effusion or pneumothorax."
    for candidate in (
        "Normal chest.",
        "No acute cardiopulmonary process.",
        "No pneumothorax.",
        "Nothing abnormal.",
    ):
        assert compare_reports(candidate, reference).f1 == 1.0, candidate
    for candidate in ("A chest radiograph.", "Edema.", ""):
        assert compare_reports(candidate, reference).f1 == 0.0, candidate


def test_recommendations_and_relations_count_where_they_are_asked_for():
    reference = "Nodule. Recommend chest CT."
    assert compare_reports("Nodule.", reference).f1 == 1.0
    kinds = ("finding", "recommendation")
    assert compare_reports("Nodule.", reference, kinds=kinds).recall == pytest.approx(0.5)
    caused = "Effusion due to pneumonia."
    assert compare_reports("Pneumonia due to effusion.", caused, kinds=("relation",)).f1 == 0.0
    assert compare_reports("The pneumonia causes the effusion.", caused, kinds=("relation",)).f1 == 1.0


def test_a_reference_without_entities_cannot_be_compared():
    score = compare_reports("Edema.", "PA and lateral views were obtained.")
    assert (score.f1, score.precision, score.recall) == (None, None, None)
    assert str(score).startswith("no entities to compare")


def test_facts_that_were_read_before_are_taken_as_they_are():
    facts = read_report("Small left pleural effusion.")
    assert compare_reports(facts, facts) == compare_reports(*["Small left pleural effusion."] * 2)


def test_entities_of_the_same_name_are_paired_so_that_the_credit_is_highest():
    left = Entity(kind="finding", name="nodule", side="left")
    right = Entity(kind="finding", name="nodule", side="right")
    assert compare_entities([right, left], [left, right]).f1 == 1.0


WORDS = [
    "no",
    "edema",
    "left",
    "right",
    "effusion",
    "lower",
    "zone",
    "new",
    "stable",
    "mild",
    "possible",
    "tube",
    ".",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)


@given(one=TEXTS | st.text(max_size=80), other=TEXTS)
def test_scores_are_bounded_and_a_report_agrees_with_itself(one, other):
    score = compare_reports(one, other)
    assert score.f1 is None or 0 <= score.f1 <= 1
    assert compare_reports(other, other).f1 in (1.0, None)
    assert (score.f1 is None) == (not compare_reports(other, other).matched)


def test_a_denial_of_the_other_side_is_neither_invented_nor_contradicted():
    text = "Left pleural effusion. No right pleural effusion."
    assert compare_reports(text, text).f1 == 1.0
    (contradicted,) = compare_reports("No left pleural effusion.", text).contradicted
    assert contradicted.differences[0] == "certainty"
