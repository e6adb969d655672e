"""Names, places and descriptions in words."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.studies import Location
from carina.studies.vocabulary import DEVICES, FINDINGS, ZONES
from carina.trek.language import Name, capitalise, load_language, make_sentence


@pytest.fixture(scope="module")
def words(made):
    return made.words


def zones(*short):
    return Location(zones=tuple(f"{zone} zone" for zone in short))


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (Location(side="right"), "on the right"),
        (Location(side="left"), "on the left"),
        (Location(side="bilateral"), "on both sides"),
        (Location(side="midline"), None),
        (Location(), None),
        (zones("right lower"), "in the right lower zone"),
        (zones("right mid", "right lower"), "in the right mid and lower zones"),
        (zones("right lower", "left lower"), "in the right lower zone and the left lower zone"),
        (
            zones("right mid", "right lower", "left lower"),
            "in the right mid and lower zones and the left lower zone",
        ),
        (zones("right upper", "right mid", "right lower"), "throughout the right lung"),
        (zones("left upper", "left mid", "left lower"), "throughout the left lung"),
        (Location(zones=ZONES), "throughout both lungs"),
        (Location(zones=tuple(reversed(ZONES)), side="bilateral"), "throughout both lungs"),
        (
            zones("right upper", "right mid", "right lower", "left upper"),
            "in the right upper, mid and lower zones and the left upper zone",
        ),
        (Location(zones=("left base",)), "in the left base"),
        (Location(zones=("left base", "right lower zone")), "in the left base and the right lower zone"),
        (Location(site="right 6th rib", side="right"), "at the right 6th rib"),
        (Location(site="in the stomach"), "in the stomach"),
        (Location(site="4.1 cm above the carina"), "4.1 cm above the carina"),
        (Location(site="Within the aorta"), "within the aorta"),
        (Location(site="Right lower lobe", side="right"), "at the right lower lobe"),
        (Location(site="T9 vertebral body"), "at the T9 vertebral body"),
        (Location(site="carina", zones=ZONES[:1]), "at the carina"),
        (Location(site="the carina"), "at the carina"),
        (Location(zones=ZONES[:1], side="right"), "in the right upper zone"),
    ],
)
def test_places_are_phrases_by_zones_sides_and_sites(words, location, said):
    assert words.at(location) == said


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.sampled_from(ZONES), min_size=1))
def test_any_set_of_zones_is_named_by_side_and_level_alone(made, held):
    said = made.words.at(Location(zones=tuple(zone for zone in ZONES if zone in held)))
    told = set()
    if said == "throughout both lungs":
        told = set(ZONES)
    elif said.startswith("throughout the "):
        told = {zone for zone in ZONES if zone.startswith(said.split()[2])}
    else:
        assert said.startswith("in the ")
        for part in said.removeprefix("in the ").split(" and the "):
            side, _, levels = part.partition(" ")
            found = {level for level in ("upper", "mid", "lower") if level in levels}
            assert levels.endswith("zones" if len(found) > 1 else "zone")
            told |= {f"{side} {level} zone" for level in found}
    assert told == held


def test_different_zones_never_read_the_same(words):
    subsets = [s for n in range(1, 7) for s in itertools.combinations(ZONES, n)]
    assert len({words.at(Location(zones=subset)) for subset in subsets}) == len(subsets) == 63


@pytest.mark.parametrize(
    ("name", "possible", "a", "the"),
    [
        ("fracture", False, "a fracture", "the fracture"),
        ("fracture", True, "a possible fracture", "the possible fracture"),
        ("pneumonia", False, "pneumonia", "the pneumonia"),
        ("pneumonia", True, "possible pneumonia", "the possible pneumonia"),
        ("edema", False, "pulmonary edema", "the pulmonary edema"),
        ("endotracheal tube", False, "an endotracheal tube", "the endotracheal tube"),
        ("endotracheal tube", True, "a possible endotracheal tube", "the possible endotracheal tube"),
        # Names that the wording does not know.
        ("azygos lobe", False, "an azygos lobe", "the azygos lobe"),
        ("Kerley line", False, "a Kerley line", "the Kerley line"),
        ("foreign body", True, "a possible foreign body", "the possible foreign body"),
        ("unilateral shadow", False, "a unilateral shadow", "the unilateral shadow"),
    ],
)
def test_names_have_a_bare_form_and_forms_with_articles(words, name, possible, a, the):
    assert words.name(name, possible=possible) == Name(name, a, the)


def test_every_name_of_the_vocabulary_has_its_forms(words):
    for name in (*FINDINGS, *DEVICES):
        known = words.name(name)
        assert known.bare == name
        assert known.the == f"the {known.a.removeprefix('a ').removeprefix('an ').removeprefix('n ')}"
        article = known.a.split(" ")[0]
        if article in ("a", "an"):
            assert article == ("an" if known.a.split(" ")[1][0] in "aeiou" else "a")


def test_the_tip_of_a_device_is_a_noun_phrase(words):
    assert words.tip("chest tube") == "the tip of the chest tube"
    assert words.tip("pacemaker") == "the pacemaker lead"
    assert words.tip("drain") == "the tip of the drain"


@pytest.mark.parametrize(
    ("items", "joined"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "a"], "a and b"),
        (["a", "a"], "a"),
    ],
)
def test_items_are_joined_with_commas_and_and(words, items, joined):
    assert words.join(items) == joined
    assert words.join(tuple(items)) == joined


def test_the_appearance_is_a_phrase_after_the_noun(words):
    assert words.phrase_appearance(()) == ""
    assert words.phrase_appearance(("patchy",)) == "of patchy appearance"
    assert words.phrase_appearance(("patchy", "calcified")) == "of patchy appearance and with calcification"
    assert words.phrase_appearance(("bizarre",)) == "described as bizarre"


@pytest.mark.parametrize(
    ("name", "possible", "attributes", "said"),
    [
        ("pneumonia", False, {}, "pneumonia"),
        ("fracture", False, {"severity": "mild"}, "a mild fracture"),
        ("endotracheal tube", False, {"severity": "mild"}, "a mild endotracheal tube"),
        ("azygos lobe", False, {}, "an azygos lobe"),
        ("pneumonia", False, {"severity": "severe", "distribution": "focal"}, "severe focal pneumonia"),
        (
            "lung opacity",
            False,
            {
                "severity": "moderate",
                "distribution": "diffuse",
                "at": "on the left",
                "appearance": ("patchy",),
            },
            "a moderate diffuse lung opacity on the left, of patchy appearance",
        ),
        ("edema", False, {"at": "throughout both lungs"}, "pulmonary edema throughout both lungs"),
        ("nodule", True, {"at": "on the left"}, "a possible nodule on the left"),
    ],
)
def test_a_description_has_severity_distribution_place_and_appearance(
    words, name, possible, attributes, said
):
    assert words.describe(words.name(name, possible=possible), **attributes) == said


def test_a_hedge_stays_in_a_description_with_all_attributes(words):
    said = words.describe(words.name("nodule", possible=True), severity="mild", distribution="focal")
    assert sorted(said.split()) == ["a", "focal", "mild", "nodule", "possible"]


@pytest.mark.parametrize(
    ("described", "hedged"),
    [
        ("mild focal pneumonia on the left", "possible mild focal pneumonia on the left"),
        ("an azygos lobe", "a possible azygos lobe"),
        ("a mild nodule", "a possible mild nodule"),
    ],
)
def test_a_hedge_goes_before_everything_else(words, described, hedged):
    assert words.hedge(described) == hedged


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("pleural effusion", "pleural effusion"),
        (" Pleural\tEFFUSION ", "pleural effusion"),
        ("Odd  Shadow", "odd shadow"),
        ("  ", ""),
    ],
)
def test_case_and_spaces_do_not_change_a_name(words, written, name):
    assert words.canonical(written) == name


def test_a_sentence_has_a_capital_and_a_full_stop():
    assert capitalise("the heart") == "The heart"
    assert capitalise("") == ""
    assert capitalise("CT of the chest") == "CT of the chest"
    assert make_sentence("it grew") == "It grew."
    assert make_sentence("It grew.") == "It grew."
    assert make_sentence("did it?") == "Did it?"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Infiltrate", "infiltration"),
        ("airspace disease", "consolidation"),
        ("PICC line", "peripherally inserted central catheter"),
        ("Swan-Ganz catheter", "pulmonary artery catheter"),
        ("surgical clip", "surgical clips"),
        ("Azygos  Lobe (variant)", "azygos lobe (variant)"),
    ],
)
def test_a_synonym_has_the_name_of_its_term(name, expected):
    assert load_language().canonical(name) == expected


def test_every_name_with_a_wording_is_the_name_of_a_term():
    names = load_language().wording.common["names"]
    assert {name: load_language().canonical(name) for name in names} == {name: name for name in names}


@pytest.mark.parametrize(
    ("text", "singular", "plural"),
    [
        ("There is {a_finding}.", "There is a nodule.", "There are surgical clips."),
        ("Is there {a_finding}?", "Is there a nodule?", "Are there surgical clips?"),
        ("{the_finding} is new.", "the nodule is new.", "the surgical clips are new."),
        ("Where is {the_finding}?", "Where is the nodule?", "Where are the surgical clips?"),
        (
            "How has {the_finding} changed?",
            "How has the nodule changed?",
            "How have the surgical clips changed?",
        ),
        (
            "The place of {the_finding} is new.",
            "The place of the nodule is new.",
            "The place of the surgical clips is new.",
        ),
        ("The patient has {a_finding}.", "The patient has a nodule.", "The patient has surgical clips."),
    ],
)
def test_verbs_agree_with_names_in_the_plural(text, singular, plural):
    words = load_language()
    for name, expected in (("nodule", singular), ("surgical clips", plural)):
        made = words.name(name)
        slots = {"finding": made.bare, "a_finding": made.a, "the_finding": made.the}
        assert words.fill(text, slots) == expected


def test_described_names_in_the_plural_are_known_as_such():
    words = load_language()
    assert words.is_plural("mild interstitial markings in the right lower zone")
    assert not words.is_plural("consolidation in both lungs")


def test_names_that_cannot_be_counted_have_no_article():
    words = load_language()
    assert words.name("bronchovascular crowding").a == "bronchovascular crowding"
    assert words.name("low lung volumes").a == "low lung volumes"
    assert words.name("lung cyst").a == "a lung cyst"
