"""A study as trek sees it: what is there, what is clearly not, where, and in which words."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.studies import Assessed, Location, Measure
from carina.studies.lookalikes import LOOKS_LIKE, MAY_BE_CALLED
from carina.studies.vocabulary import DEVICES, FINDINGS, ZONES
from carina.trek.subject import select_images, trend_between, zones_with_borders

KNOWN = (*(("finding", name) for name in FINDINGS), *(("device", name) for name in DEVICES))


def absent(subject, kind="finding"):
    return {missing.name: missing for missing in getattr(subject, f"absent_{kind}s")}


# ---- what is not there -----------------------------------------------------------------------------------------------


def test_a_recorded_absence_is_a_negative_with_its_sentences(made):
    read = made.subject(made.study(made.finding("fracture", "absent", evidence=(3, 4))))
    (missing,) = read.absent_findings
    assert (missing.id, missing.kind, missing.name, missing.origin, missing.evidence) == (
        "f-fracture",
        "finding",
        "fracture",
        "stated",
        (3, 4),
    )
    assert read.findings == []


def test_what_is_absent_on_one_side_is_no_negative(made):
    left = made.finding("pleural effusion", "absent", side="left")
    right = made.finding("pleural effusion", "absent", side="right", number="f2")
    assert absent(made.subject(made.study(left, assessed=Assessed()))) == {}
    assert set(absent(made.subject(made.study(left, right, assessed=Assessed())))) == {"pleural effusion"}


def test_negatives_are_stated_or_looked_for_beside_something_or_neither(made):
    study = made.study(
        made.finding("pleural effusion"),
        made.finding("fracture", "absent", evidence=(1,)),
        made.finding("atelectasis", "absent"),
        made.finding("mass", "absent"),
        made.device("pacemaker", "absent"),
    )
    origins = {name: missing.origin for name, missing in absent(made.subject(study)).items()}
    # Atelectasis goes with an effusion; a mass does not.
    assert origins == {"fracture": "stated", "atelectasis": "sibling", "mass": "sampled"}
    assert absent(made.subject(study), "device")["pacemaker"].origin == "sampled"


def test_names_that_only_the_set_knows_are_negatives_without_a_record(made):
    read = made.subject(
        made.study(made.finding("fracture")),
        known=(*KNOWN, ("finding", "odd shadow"), ("device", "odd tube")),
    )
    missing = absent(read)["odd shadow"]
    assert (missing.id, missing.origin, missing.evidence) == ("", "sampled", ())
    assert set(absent(read, "device")) == {*DEVICES, "odd tube"}
    assert "fracture" not in absent(read)
    # A recorded one is not added a second time.
    twice = made.subject(made.study(made.finding("mass", "absent", evidence=(1,))), known=KNOWN)
    assert [m.id for m in twice.absent_findings if m.name == "mass"] == ["f-mass"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(FINDINGS), st.sampled_from(["present", "uncertain", "absent"])))
def test_a_name_that_fits_a_present_finding_is_no_negative(made, states):
    study = made.study(*(made.finding(name, certainty) for name, certainty in states.items()))
    read = made.subject(study, known=KNOWN)
    noticed = {name for name, certainty in states.items() if certainty != "absent"}
    expected = {
        name
        for name in FINDINGS
        if name not in noticed
        and not (LOOKS_LIKE.get(name, frozenset()) | MAY_BE_CALLED.get(name, frozenset())) & noticed
    }
    assert set(absent(read)) == expected
    assert {thing.name for thing in read.findings} == noticed


def test_a_resolved_finding_is_no_negative_and_is_recorded_as_resolved(made):
    gone = made.finding("pneumothorax", "absent", trend="resolved", evidence=(2,))
    tube = made.device("chest tube", "absent", trend="resolved")
    read = made.subject(made.study(gone, tube, made.finding("mass", "absent")), known=KNOWN)
    assert "pneumothorax" not in absent(read)
    assert "chest tube" not in absent(read, "device")
    assert "mass" in absent(read)
    assert list(read.resolved) == ["pneumothorax", "chest tube"]


def test_a_finding_that_resolved_on_one_side_only_has_not_resolved(made):
    gone = made.finding("pneumothorax", "absent", number="f1", trend="resolved")
    there = made.finding("pneumothorax", number="f2", side="left")
    for order in ((gone, there), (there, gone)):
        read = made.subject(made.study(*order), known=KNOWN)
        assert read.resolved == {}
        assert [thing.id for thing in read.findings] == ["f2"]
        assert "pneumothorax" not in absent(read)


# ---- what is there ---------------------------------------------------------------------------------------------------


def test_attributes_are_phrases(made):
    found = made.finding(
        "pneumonia",
        zones=("right mid", "right lower"),
        side="right",
        severity="moderate",
        distribution="focal",
        appearance=("patchy", "air bronchograms"),
        measures=(Measure(name="extent", value=0.5, unit="1"),),
        evidence=(1, 5),
        trend="worse",
    )
    (thing,) = made.subject(made.study(found)).findings
    assert thing.values == {
        "side": "on the right",
        "location": "in the right mid and lower zones",
        "severity": "moderate",
        "distribution": "focal",
        "appearance": "patchy, air bronchograms",
    }
    assert thing.described == thing.plain
    assert thing.described == (
        "moderate focal pneumonia in the right mid and lower zones, of patchy appearance and with air bronchograms"
    )
    assert (thing.a, thing.the, thing.bare) == ("pneumonia", "the pneumonia", "pneumonia")
    assert thing.measure is None  # nobody can take the extent from the picture
    assert (thing.evidence, thing.trend, thing.kind) == ((1, 5), "worse", "finding")
    assert thing.zones == thing.place == {"right mid zone", "right lower zone"}
    assert thing.means("severity") == {"moderate"}
    assert thing.means("appearance") == {"patchy", "air bronchograms"}
    assert thing.means("location") == thing.place | {"right upper border", "right lower border"}


def test_a_measure_that_a_reader_can_take_is_kept(made):
    ratio = Measure(name="cardiothoracic ratio", value=0.57, unit="1")
    (thing,) = made.subject(
        made.study(made.finding("cardiomegaly", side="midline", measures=(ratio,)))
    ).findings
    assert thing.measure == ratio
    assert thing.values == {}
    assert thing.zones == frozenset()


def test_a_place_that_is_only_a_side_is_a_side(made):
    one, both, site = made.subject(
        made.study(
            made.finding("pneumothorax", side="left"),
            made.finding("pleural effusion", side="bilateral"),
            made.finding("fracture", side="right", site="right 6th rib"),
        )
    ).findings
    assert one.values == {"side": "on the left"}
    assert one.zones is None
    assert one.place == {"left upper zone", "left mid zone", "left lower zone"}
    assert both.values == {"side": "on both sides"}
    assert len(both.place) == 6
    assert site.values == {"side": "on the right", "location": "at the right 6th rib"}
    assert site.zones is None
    assert site.place == {"right 6th rib"}


def test_names_of_uncertain_findings_have_a_hedge(made):
    (thing,) = made.subject(made.study(made.finding("nodule", "uncertain", side="left"))).findings
    assert not thing.is_present
    assert (thing.a, thing.the) == ("a possible nodule", "the possible nodule")
    assert thing.described == "a possible nodule on the left"
    assert thing.plain == "a nodule on the left"
    assert thing.bare == "nodule"


def test_a_hedge_goes_before_grade_and_distribution(made):
    mild = {"severity": "mild", "distribution": "focal", "zones": ("left lower",)}
    uncounted, counted = made.subject(
        made.study(
            made.finding("pneumonia", "uncertain", **mild), made.finding("nodule", "uncertain", **mild)
        )
    ).findings
    assert uncounted.described == "possible mild focal pneumonia in the left lower zone"
    assert uncounted.plain == "mild focal pneumonia in the left lower zone"
    assert counted.described == "a possible mild focal nodule in the left lower zone"
    assert counted.plain == "a mild focal nodule in the left lower zone"


@pytest.mark.parametrize("name", ["pleural effusion", "pneumothorax"])
@pytest.mark.parametrize(
    ("side", "sides", "said"),
    [
        ("right", ("right",), "on the right"),
        ("left", ("left",), "on the left"),
        ("bilateral", ("right", "left"), "on both sides"),
    ],
)
def test_pleural_findings_never_lie_throughout_the_lungs(made, name, side, sides, said):
    zones = tuple(f"{one} {level}" for one in sides for level in ("upper", "mid", "lower"))
    beside, within = made.subject(
        made.study(made.finding(name, zones=zones, side=side), made.finding("edema", zones=zones, side=side))
    ).findings
    assert beside.values == {"side": said}
    assert beside.described == f"a {name} {said}"
    assert within.values["location"].startswith("throughout ")
    # Where it lies is known all the same.
    assert beside.zones == {f"{zone} zone" for zone in zones}


def test_names_have_one_spelling_and_what_has_none_is_skipped(made):
    read = made.subject(
        made.study(
            made.finding("  Pleural   EFFUSION ", number="f1"),
            made.finding("pleural effusion", number="f2"),
            made.finding("Odd Shadow", number="f3"),
            made.finding(" ", number="f4"),
            made.finding("", "absent", number="f5"),
            made.finding("Mass", "absent", number="f6"),
            made.device("Chest  Tube", number="d1"),
            made.device("", number="d2"),
        ),
        known=(("finding", "mass"), ("device", "pacemaker")),
    )
    assert [(thing.id, thing.name, thing.alone) for thing in read.things] == [
        ("f1", "pleural effusion", False),
        ("f2", "pleural effusion", False),
        ("f3", "odd shadow", True),
        ("d1", "chest tube", True),
    ]
    assert [(missing.id, missing.name) for missing in read.absent_findings] == [("f6", "mass")]
    assert [(missing.id, missing.name) for missing in read.absent_devices] == [("", "pacemaker")]


def test_a_name_is_unambiguous_only_where_one_finding_has_it(made):
    read = made.subject(
        made.study(
            made.finding("nodule", number="f1"),
            made.finding("nodule", "uncertain", number="f2"),
            made.finding("mass"),
            made.finding("mass", "absent", number="f9"),
            made.device("chest tube", number="d1"),
            made.device("chest tube", number="d2"),
            made.device("pacemaker"),
        )
    )
    assert {thing.id: thing.alone for thing in read.things} == {
        "f1": False,
        "f2": False,
        "f-mass": True,
        "d1": False,
        "d2": False,
        "d-pacemaker": True,
    }
    assert set(read.by_id) == {thing.id for thing in read.things}


def test_devices_have_a_tip_that_has_a_place(made):
    read = made.subject(
        made.study(
            made.device(
                "endotracheal tube", site="4 cm above the carina", position="adequate", evidence=(2,)
            ),
            made.device("pacemaker", "uncertain"),
            made.device("chest tube", "absent"),
        )
    )
    tube, pacemaker = read.devices
    assert tube.values == {"location": "4 cm above the carina", "position": "adequate"}
    assert tube.tip == "the tip of the endotracheal tube"
    assert tube.described == "an endotracheal tube with its tip 4 cm above the carina"
    assert (tube.kind, tube.zones, tube.evidence) == ("device", None, (2,))
    assert pacemaker.values == {}
    assert pacemaker.described == "a possible pacemaker"
    assert [missing.name for missing in read.absent_devices] == ["chest tube"]


# ---- zones -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("things", "held"),
    [
        (lambda _: (), set()),
        (lambda m: (m.finding("mass", "absent"),), set()),
        (lambda m: (m.finding("mass", zones=("left upper",)),), {"left upper zone"}),
        (
            lambda m: (
                m.finding("mass", zones=("left upper",)),
                m.finding("edema", "uncertain", zones=("right mid",)),
            ),
            {"left upper zone", "right mid zone"},
        ),
        (lambda m: (m.finding("cardiomegaly", side="midline"),), set()),
        (lambda m: (m.finding("mass", zones=("left upper",)), m.finding("edema")), None),
        (lambda m: (m.finding("fracture", site="right 6th rib"),), None),
        (lambda m: (m.finding("pneumothorax", side="left"),), None),
        (lambda m: (m.finding("mass", zones=("left upper",)), m.device("pacemaker")), None),
        (lambda m: (m.device("pacemaker", "absent"),), set()),
    ],
)
def test_affected_zones_are_known_for_all_zones_or_none(made, things, held):
    read = made.subject(made.study(*things(made)))
    assert read.held_zones() == held


@pytest.mark.parametrize(
    ("held", "clear"),
    [
        (("left upper",), {"right upper", "right mid", "right lower", "left lower"}),
        (("left mid",), {"right upper", "right mid", "right lower"}),
        (("right lower", "left lower"), {"right upper", "left upper"}),
        (("right mid", "left mid"), set()),
    ],
)
def test_a_zone_next_to_an_affected_one_is_not_surely_clear(made, held, clear):
    read = made.subject(made.study(made.finding("mass", zones=held)))
    assert read.clear_zones() == [f"{zone} zone" for zone in made.zones if zone in clear]


def test_without_a_place_no_zone_is_surely_clear(made):
    assert made.subject(made.study(made.finding("mass"))).clear_zones() == []
    assert len(made.subject(made.study()).clear_zones()) == 6


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("right upper", "right mid", True),
        ("right mid", "right lower", True),
        ("right upper", "right lower", False),
        ("right mid", "left mid", False),
        ("left upper", "left upper", True),
    ],
)
def test_zones_that_touch_have_a_border_in_common(one, other, share):
    assert (
        bool(
            zones_with_borders(frozenset({f"{one} zone"})) & zones_with_borders(frozenset({f"{other} zone"}))
        )
        == share
    )


def test_zones_of_another_vocabulary_may_be_any(made):
    foreign = Location(side="left", zones=("left base", "left upper zone"))
    thing = made.replace(made.finding("mass"), location=foreign)
    read = made.subject(made.study(thing))
    assert read.findings[0].zones is None
    assert read.findings[0].means("location") == zones_with_borders(frozenset(ZONES))
    assert read.held_zones() is None
    assert read.clear_zones() == []


def test_a_site_may_lie_in_any_zone_and_of_two_distances_none_is_surely_wrong(made):
    read = made.subject(
        made.study(
            made.finding("fracture", side="right", site="right 6th rib"),
            made.device("endotracheal tube", site="4 cm above the carina"),
            made.device("chest tube", site="in the left pleural space"),
        )
    )
    assert [thing.means("location") for thing in read.things] == [
        zones_with_borders(frozenset(ZONES)),
        {"measured"},
        {"in the left pleural space"},
    ]


@pytest.mark.parametrize("view", ["lateral", "unknown"])
def test_only_a_frontal_image_has_zones(made, view):
    study = made.study(made.finding("mass", zones=("left upper",)), views=(view,))
    assert made.subject(study).held_zones() is None


# ---- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("views", "most", "shown"),
    [
        (("PA",), 2, ("PA",)),
        (("lateral", "PA"), 2, ("PA", "lateral")),
        (("lateral", "unknown", "AP"), 2, ("AP", "lateral")),
        (("lateral", "PA"), 1, ("PA",)),
        # Two of a projection could not be told apart by name.
        (("PA", "AP", "lateral", "lateral"), 9, ("PA", "lateral")),
        (("unknown", "unknown"), 2, ("unknown",)),
        (("unknown", "lateral"), 2, ("lateral",)),
    ],
)
def test_frontal_images_come_first_and_only_so_many(made, views, most, shown):
    study = made.study(views=views)
    assert tuple(image.view for image in select_images(study, most)) == shown
    read = made.subject(study, most_images=most)
    assert read.stratum == "+".join(shown)
    assert len({image.key for image in read.images}) == len(shown)


# ---- change ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "trend"),
    [
        (("present", "mild"), ("present", "moderate"), "worse"),
        (("present", "severe"), ("present", "mild"), "improved"),
        (("present", "mild"), ("present", "mild"), "unchanged"),
        (("present", None), ("present", "mild"), None),
        (("present", "mild"), ("present", None), None),
        (("uncertain", "mild"), ("present", "severe"), None),
        (("present", "mild"), ("uncertain", "severe"), None),
        (None, ("present", "mild"), "new"),
        (None, ("uncertain", "mild"), None),
        (("present", "mild"), None, "resolved"),
        (("uncertain", None), None, None),
        (None, None, None),
    ],
)
def test_a_trend_follows_from_presence_and_grade(made, before, now, trend):
    def thing(state):
        if state is None:
            return None
        return made.subject(made.study(made.finding("mass", state[0], severity=state[1]))).findings[0]

    assert trend_between(thing(now), thing(before)) == trend


def test_a_place_of_which_a_word_was_removed_is_not_known(made):
    line = made.device("central venous line", site="in the superior vena XXXX")
    mass = made.finding("mass", site="near the XXXX")
    read = made.subject(made.study(line, mass))
    assert all("location" not in thing.values for thing in read.things)
