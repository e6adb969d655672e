"""How things go together, in many words."""

import pytest

from carina.run.score.relations import link, links_in

PAIR = ("pneumonia", "pleural effusion")
FORWARD = {("pneumonia", "causes", "pleural effusion")}
TOGETHER = {("pleural effusion", "accompanies", "pneumonia")}


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
def test_links_of_a_text(text, links):
    assert links_in(text, PAIR, PAIR) == links


def test_what_accompanies_has_no_direction():
    assert link("b", "accompanies", "a") == link("a", "accompanies", "b") == ("a", "accompanies", "b")
    assert link("b", "causes", "a") == ("b", "causes", "a")


def test_a_pair_has_to_be_given_to_be_left_out():
    assert links_in("The pneumonia occurs together with a pleural effusion.", PAIR) == TOGETHER
    assert links_in("They go together.", PAIR) == frozenset()


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
def test_the_relation_of_the_facts_is_demanded_and_no_other(made, kind, key):
    step = made.told(
        key,
        ("target", "finding", "pneumonia"),
        ("target", "finding", "pleural effusion"),
        ("relation", "x1", f"f2 {kind} f3"),
        task="relation",
        question="How do the pneumonia and the pleural effusion go together?",
    )
    assert made.said(step, key).score == 1.0
    causal = made.said(step, "The pleural effusion is caused by the pneumonia.")
    assert causal.score == causal.attribute_f1 == float(kind == "causes")
    assert made.said(step, "They are associated.").score == float(kind == "accompanies")


def test_names_are_taken_from_other_steps_of_the_case(made):
    """The key's first sentence relates two things that the facts do not."""
    asked = made.told(
        "The edema and the pneumonia coexist. The pneumonia has led to the pleural effusion.",
        ("target", "relation", "findings"),
        ("relation", "x1", "f1 causes f2"),
        task="relations",
        question="How do they hang together?",
    )
    others = [
        made.replace(made.told("It is there.", ("target", "finding", name), ("truth", at, "present")), id=at)
        for at, name in (("f1", "pneumonia"), ("f2", "pleural effusion"))
    ]
    case = made.case(*others, asked)
    answer = "The pleural effusion is due to the pneumonia."
    assert made.scored_in(case, asked, answer).score == 1.0
    assert made.scored_in(case, asked, "The edema and the pneumonia coexist.").score == 0.0
    # Without them, all that the key relates is demanded: one of two.
    assert made.said(asked, answer).score == pytest.approx(2 / 3)
