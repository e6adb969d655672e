"""What a set holds on the whole."""

import pickle

import pytest

from carina.trek.facts import ATTRIBUTES
from carina.trek.survey import count_studies, survey_from_counts


def test_names_values_descriptions_and_zones_are_counted(made):
    studies = [
        made.study(
            made.finding("mass", zones=("right upper",), side="right", severity="mild"),
            made.finding("fracture", "absent"),
            name="a",
        ),
        made.study(made.finding("mass", zones=("right upper",), side="right", severity="severe"), name="b"),
        made.study(
            made.finding("mass", zones=("left mid", "left lower"), side="left"),
            made.finding("edema", "uncertain", severity="mild"),
            made.device("pacemaker"),
            name="c",
        ),
        made.study(made.finding("mass", zones=("left mid",), side="left", severity="mild"), name="d"),
    ]
    found = made.survey(studies)
    assert found.studies == 4
    assert found.known == (
        ("device", "pacemaker"),
        ("finding", "edema"),
        ("finding", "fracture"),
        ("finding", "mass"),
    )
    assert found.descriptions["mass"] == (
        "a mass in the left mid and lower zones",
        "a mild mass in the left mid zone",
        "a mild mass in the right upper zone",
        "a severe mass in the right upper zone",
    )
    assert "fracture" not in found.descriptions
    assert "edema" not in found.descriptions
    assert found.descriptions["pacemaker"] == ("a pacemaker",)
    # The third study has a device, so nothing is sure of its zones.
    assert found.zones == {
        "right upper zone": pytest.approx(2 / 3),
        "right mid zone": 0,
        "right lower zone": 0,
        "left upper zone": 0,
        "left mid zone": pytest.approx(1 / 3),
        "left lower zone": 0,
    }
    assert set(found.wrong) == {("mass", "severity"), ("mass", "location"), ("mass", "side")}
    places = found.wrong["mass", "location"]
    assert dict(zip(places.values, places.shares, strict=True)) == {
        "in the right upper zone": 0.5,
        "in the left mid zone": 0.25,
        "in the left mid and lower zones": 0.25,
    }
    # The left mid zone is within the left mid and lower zones.
    weights = dict(zip(places.values, places.weights["in the left mid zone"], strict=True))
    assert weights["in the right upper zone"] > 0
    assert weights["in the left mid and lower zones"] == weights["in the left mid zone"] == 0
    assert set(found.balance["finding"].asked) == {"edema", "fracture", "mass"}
    assert set(found.balance["device"].asked) == {"pacemaker"}


def test_the_order_of_the_studies_does_not_matter(made):
    studies = made.crowd(60)
    one, other = made.survey(studies), made.survey(studies[::-1])
    assert one.known == other.known
    assert one.wrong == other.wrong
    assert one.descriptions == other.descriptions
    for kind in ("finding", "device"):
        for field in ("asked", "negative", "frequency_among_several"):
            assert getattr(one.balance[kind], field) == pytest.approx(
                getattr(other.balance[kind], field), rel=1e-6
            )


def test_studies_may_be_an_iterator(made):
    studies = made.crowd(30)
    assert made.survey(iter(studies)) == made.survey(studies)


@pytest.mark.parametrize("size", [1, 7, 40])
def test_counts_of_separate_workers_give_the_same_survey(made, size):
    studies = made.crowd(40)
    apart = [
        count_studies(studies[first : first + size], made.words, most_images=2)
        for first in range(0, 40, size)
    ]
    # As they come from another process.
    sent = [pickle.loads(pickle.dumps(counts)) for counts in apart]  # noqa: S301 - our own
    again, at_once = survey_from_counts(sent, choices=0.25), made.survey(studies, choices=0.25)
    assert again == at_once
    # Ties are broken by the order in which things were met.
    assert list(again.wrong) == list(at_once.wrong)
    assert list(again.descriptions) == list(at_once.descriptions)


def test_a_survey_of_no_studies_is_empty(made):
    empty = made.survey([])
    assert (empty.studies, empty.known, dict(empty.wrong), dict(empty.descriptions)) == (0, (), {}, {})
    bare = made.survey([made.study(), made.study(name="b")])
    assert bare.known == ()
    assert bare.balance["device"].opening["PA"].any_probability == {True: 0.0, False: 0.0}


def test_a_single_value_of_an_attribute_has_no_wrong_values(made):
    found = made.survey([made.study(made.finding("mass", severity="mild"), made.device("pacemaker"))] * 3)
    assert dict(found.wrong) == {}


def test_values_are_those_of_the_attributes(made, phantoms):
    found = made.survey(phantoms)
    assert {attribute for _, attribute in found.wrong} <= set(ATTRIBUTES)
    assert {("pneumonia", "location"), ("pneumonia", "severity"), ("pleural effusion", "side")} <= set(
        found.wrong
    )
    for wrong in found.wrong.values():
        assert len(wrong.values) == len(set(wrong.values)) > 1
        assert set(wrong.weights) == set(wrong.asked) == set(wrong.values)
        for number, value in enumerate(wrong.values):
            assert wrong.weights[value][number] == 0


def test_names_are_counted_by_source(made):
    found = made.survey(
        [
            made.study(made.finding("Mass"), made.device("pacemaker", "absent"), name="a", source="one"),
            made.study(made.finding("mass", "absent"), name="b", source="one"),
            made.study(made.finding("edema"), name="c", source="other"),
        ]
    )
    assert found.by_source == {
        "one": (("device", "pacemaker"), ("finding", "mass")),
        "other": (("finding", "edema"),),
    }
    assert found.known == (("device", "pacemaker"), ("finding", "edema"), ("finding", "mass"))


def test_descriptions_are_stored_with_their_place_and_grade(made):
    found = made.survey(
        [
            made.study(made.finding("mass", zones=("right upper",), severity="mild"), name="a"),
            made.study(made.finding("mass"), made.finding("edema", "uncertain"), name="b"),
        ]
    )
    assert found.stated_locations == {
        "a mild mass in the right upper zone": ({"right upper zone", "right upper border"}, "mild"),
        "a mass": (set(), None),
    }


def test_zones_that_touch_are_not_wrong_for_each_other(made):
    studies = [made.study(made.finding("mass", zones=(zone,)), name=zone) for zone in made.zones]
    places = made.survey(studies).wrong["mass", "location"]
    weights = dict(zip(places.values, places.weights["in the right upper zone"], strict=True))
    assert {value for value, weight in weights.items() if weight > 0} == {
        "in the right lower zone",
        "in the left upper zone",
        "in the left mid zone",
        "in the left lower zone",
    }
