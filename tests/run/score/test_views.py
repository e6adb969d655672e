"""Names and spellings of projections."""

import pytest

from carina.run.score.views import same_views, views_of


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
def test_views_of_a_text(text, views):
    assert views_of(text) == frozenset(views.split())


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
def test_what_counts_as_the_same(key, answer, question, same):
    assert same_views(frozenset(key.split()), frozenset(answer.split()), question) is same


def test_a_question_about_the_view_has_a_right_answer(made):
    facts = (("target", "view", "PA, lateral"), ("view", "", "PA, lateral"))
    step = made.told("These are PA and side views.", *facts, task="view", question="Which views?")
    right = made.said(step, "Postero-anterior and LL.")
    assert (right.correct, right.score) == (True, 1.0)
    assert right.rouge < 0.5
    wrong = made.said(step, "These are AP and side views.")
    assert (wrong.correct, wrong.score) == (False, 0.0)
    # Without facts the key's own words tell.
    assert made.said(made.told("An AP view.", task="view"), "antero-posterior").correct is True
    # Words that name no view cannot be judged.
    assert made.said(made.told("Adequate.", task="view"), "Adequate.").correct is None
