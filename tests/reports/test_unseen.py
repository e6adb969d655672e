"""Sentences that speak of what the images at hand do not show."""

import pytest

from carina.reports import read_report
from carina.reports.unseen import find_unseen, is_seen_elsewhere

EARLIER, OTHER, VIEW = "an earlier study", "another examination", "a view that is not shown"


@pytest.mark.parametrize(
    ("sentence", "unseen"),
    [
        ("Stable cardiomegaly.", EARLIER),
        ("Heart size remains normal.", EARLIER),
        ("No change since the previous chest radiograph.", EARLIER),
        ("The aorta is tortuous, similar to the prior study.", EARLIER),
        ("Interval removal of the endotracheal tube.", EARLIER),
        ("No residual pneumothorax.", EARLIER),
        ("The nodule was first seen on 3/4/2012.", EARLIER),
        ("A calcified granuloma is again seen.", EARLIER),
        ("Interval left subclavian pacemaker placed in satisfactory position.", EARLIER),
        ("No acute disease or significant interval change.", EARLIER),
        ("Central vascularity is again accentuated.", EARLIER),
        ("There continues to be some opacity at the left base.", EARLIER),
        ("The lungs now appear clear.", EARLIER),
        ("Pulmonary vasculature is persistently enlarged.", EARLIER),
        ("Recurrent right pneumothorax.", EARLIER),
        ("The right effusion is slightly increased in size.", EARLIER),
        ("Marked increase in heart size.", EARLIER),
        ("Increased.", EARLIER),
        ("Opacity at the left base, not visualized on prior.", EARLIER),
        ("Recommend short interval followup radiograph.", None),
        ("Sequelae of prior granulomatous disease.", None),
        ("Right apical scarring, as noted on CT.", OTHER),
        ("The opacity is only seen on the lateral view.", VIEW),
        ("PA and lateral views of the chest were obtained.", VIEW),
        ("Blunting is seen on the lateral.", VIEW),
        ("The lungs are clear bilaterally.", None),
        ("There is blunting of the lateral costophrenic angle.", None),
        ("The frontal view shows clear lungs.", None),
        ("Increased interstitial markings.", None),
        ("Decreased lung volumes with crowding.", None),
        ("Bilateral effusions, right worse than left.", None),
        ("Without a comparison study, the age of this fracture is unknown.", None),
        ("No prior studies are available.", None),
        ("Comparison with an old radiograph would be helpful.", None),
        ("If clinically indicated, chest CT should be considered.", None),
        ("It remains doubtful whether there is a nodule.", None),
        ("", None),
    ],
)
def test_a_sentence_speaks_of_what_one_frontal_image_does_not_show(sentence, unseen):
    assert find_unseen(sentence, views=("PA",), has_prior=False) == unseen


def test_what_is_shown_can_be_spoken_of():
    assert find_unseen("Stable cardiomegaly.", views=("PA",), has_prior=True) is None
    assert find_unseen("Seen only on the lateral view.", views=("PA", "lateral"), has_prior=False) is None
    assert find_unseen("The AP view is rotated.", views=("lateral",), has_prior=False) == VIEW
    assert find_unseen("The lateral view is normal.", views=("unknown",), has_prior=False) == VIEW
    assert find_unseen("As on the previous CT scan.", views=("PA",), has_prior=True) == OTHER


def test_a_word_of_appearance_is_a_comparison_where_a_change_is_stated():
    sentence = "Increased opacity at the left base."
    assert find_unseen(sentence, views=("PA",), has_prior=False) is None
    assert find_unseen(sentence, views=("PA",), has_prior=False, states_change=True) == EARLIER
    assert find_unseen(sentence, views=("PA",), has_prior=True, states_change=True) is None
    advice = "Increased opacity at the left base, for which chest CT is recommended."
    assert find_unseen(advice, views=("PA",), has_prior=False) is None
    assert find_unseen(advice, views=("PA",), has_prior=False, states_change=True) == EARLIER


@pytest.mark.parametrize(
    ("text", "trend"),
    [
        ("Bilateral effusions, right worse than left.", None),
        ("Bibasilar opacities, left more prominent than right.", None),
        ("Interstitial opacities, worse in the right lung base.", None),
        ("Small effusion, larger on the left than the right.", None),
        ("Airspace opacities are better seen on the lateral view.", None),
        ("The effusion is worse than on the prior study.", "worse"),
        ("The effusion is larger than previously.", "worse"),
        ("The right effusion is now larger.", "worse"),
        ("Slightly more prominent opacity at the left base compared to the prior study.", "worse"),
        ("The edema is better.", "improved"),
    ],
)
def test_comparing_two_sides_or_views_is_no_change(text, trend):
    facts = read_report(text)
    assert [thing.trend for thing in facts.things] == [trend]
    assert facts.compares == (trend is not None)


@pytest.mark.parametrize("word", ["doubtful", "uncertain", "unclear"])
def test_what_remains_doubtful_is_neither_present_nor_unchanged(word):
    for text in (f"It remains {word} whether there is a nodule.", f"A nodule remains {word}."):
        (nodule,) = read_report(text).findings
        assert (nodule.certainty, nodule.trend) == ("uncertain", None)


def test_the_place_of_a_tip_ends_before_the_change_of_its_position():
    (line,) = read_report("PICC with its tip in the right atrium in stable position.").devices
    assert line.site == "in the right atrium"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The nodule is only seen on the lateral view.", True),
        ("A nodule is seen on CT.", True),
        ("PA and lateral views show a nodule.", False),
        ("Frontal (on two cassettes) and lateral views show a nodule.", False),
        ("The nodule is unchanged since the prior CT.", False),
        ("Nodule, for which chest CT is recommended.", False),
        ("There is a nodule.", False),
    ],
)
def test_what_was_perhaps_seen_on_another_view_alone_is_recognised(sentence, expected):
    assert is_seen_elsewhere(sentence, views=("PA",)) is expected
    assert not is_seen_elsewhere(sentence, views=("PA", "lateral")) or "CT" in sentence


def test_both_views_are_one_of_which_the_projection_is_not_known():
    assert not is_seen_elsewhere("PA and lateral views show a nodule.", views=("unknown",))
    assert is_seen_elsewhere("The lateral view shows a nodule.", views=("unknown",))
