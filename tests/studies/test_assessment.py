"""What is known of a study, by what was looked for in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.studies import (
    Assessed,
    Device,
    Finding,
    Study,
    certainty_of,
    states_no_abnormality,
    states_no_device,
)
from carina.studies.assessment import UNNAMED, is_complete, is_looked_for

EVERY = Assessed(findings="every", devices="every")
CLOSED = Assessed(findings="listed", listed=("mass", "nodule"))
NAMES = ("mass", "nodule", "fracture", "abnormality")
DEVICE_NAMES = ("pacemaker", "chest tube", "device")


def study(*things, assessed=None):
    return Study(
        id="s",
        patient="p",
        source="test",
        images=(),
        assessed=assessed or Assessed(),
        findings=tuple(thing for thing in things if isinstance(thing, Finding)),
        devices=tuple(thing for thing in things if isinstance(thing, Device)),
    )


def finding(name, certainty="present"):
    return Finding(id=f"f-{name}-{certainty}", name=name, certainty=certainty)


def device(name, certainty="present"):
    return Device(id=f"d-{name}-{certainty}", name=name, certainty=certainty)


@pytest.mark.parametrize("certainty", ["present", "absent", "uncertain"])
@pytest.mark.parametrize("assessed", [Assessed(), EVERY, CLOSED], ids=["unknown", "every", "listed"])
def test_a_recorded_certainty_counts_whatever_was_looked_for(certainty, assessed):
    assert certainty_of(study(finding("mass", certainty), assessed=assessed), "mass") == certainty
    assert certainty_of(study(device("pacemaker", certainty), assessed=assessed), "pacemaker") == certainty


@pytest.mark.parametrize(
    ("assessed", "name", "certainty"),
    [
        pytest.param(Assessed(), "mass", None, id="nobody says"),
        pytest.param(EVERY, "mass", "absent", id="every finding"),
        pytest.param(EVERY, "pacemaker", "absent", id="every device"),
        pytest.param(Assessed(findings="every"), "pacemaker", None, id="findings alone, device asked"),
        pytest.param(Assessed(devices="every"), "mass", None, id="devices alone, finding asked"),
        pytest.param(CLOSED, "mass", "absent", id="on the list"),
        pytest.param(CLOSED, "fracture", None, id="not on the list"),
        pytest.param(
            Assessed(findings="listed", listed=("mass", "pacemaker")),
            "pacemaker",
            None,
            id="list of findings",
        ),
        pytest.param(
            Assessed(devices="listed", listed=("mass", "pacemaker")),
            "pacemaker",
            "absent",
            id="list of devices",
        ),
        pytest.param(
            Assessed(devices="listed", listed=("mass",)), "mass", None, id="listed for devices alone"
        ),
    ],
)
def test_what_is_not_recorded_is_absent_only_if_it_was_looked_for(assessed, name, certainty):
    assert certainty_of(study(assessed=assessed), name) == certainty


def test_a_name_is_a_device_where_the_vocabulary_or_the_study_says_so():
    with_devices = Assessed(devices="every")
    assert certainty_of(study(assessed=with_devices), "port") is None
    assert certainty_of(study(assessed=with_devices), "port", kind="device") == "absent"
    assert certainty_of(study(device("port"), assessed=with_devices), "port") == "present"
    assert certainty_of(study(assessed=with_devices), "device") == "absent"


def test_of_several_records_present_comes_before_uncertain_and_uncertain_before_absent():
    both = study(finding("mass", "absent"), finding("mass", "uncertain"))
    assert certainty_of(both, "mass") == "uncertain"
    all_three = study(finding("mass", "absent"), finding("mass", "uncertain"), finding("mass", "present"))
    assert certainty_of(all_three, "mass") == "present"


@pytest.mark.parametrize(
    ("things", "assessed", "no_abnormality"),
    [
        pytest.param((), EVERY, True, id="looked through, nothing recorded"),
        pytest.param((), Assessed(findings="every"), True, id="nobody looked for devices"),
        pytest.param((), Assessed(), None, id="nobody says"),
        pytest.param((), CLOSED, None, id="closed list, nothing recorded"),
        pytest.param(
            (finding("mass", "absent"), finding("nodule", "absent")), CLOSED, None, id="list absent"
        ),
        pytest.param((finding("mass", "absent"),), EVERY, True, id="only absent"),
        pytest.param((finding("mass"),), Assessed(), False, id="present"),
        pytest.param((finding("mass", "uncertain"),), EVERY, None, id="uncertain"),
        pytest.param((device("pacemaker"),), EVERY, None, id="a device and nothing else"),
        pytest.param((device("pacemaker", "absent"),), EVERY, True, id="a device that is absent"),
        pytest.param((finding("abnormality", "absent"),), Assessed(), True, id="stated"),
        pytest.param(
            (finding("abnormality", "absent"), finding("mass")), Assessed(), False, id="contradicted"
        ),
        pytest.param((finding("abnormality"),), Assessed(), False, id="abnormal, without a name"),
        pytest.param(
            (), Assessed(findings="listed", listed=("abnormality",)), True, id="a list of normal or abnormal"
        ),
    ],
)
def test_an_image_is_normal_only_where_everything_was_looked_for_or_the_source_says_so(
    things, assessed, no_abnormality
):
    assert states_no_abnormality(study(*things, assessed=assessed)) is no_abnormality


@pytest.mark.parametrize(
    ("things", "assessed", "no_device"),
    [
        pytest.param((), EVERY, True, id="looked through"),
        pytest.param((), Assessed(findings="every"), None, id="only findings were looked for"),
        pytest.param((finding("mass"),), Assessed(devices="every"), True, id="a finding is no device"),
        pytest.param((), Assessed(devices="listed", listed=("pacemaker",)), None, id="closed list"),
        pytest.param((), Assessed(devices="listed", listed=("device",)), True, id="list with any device"),
        pytest.param((device("device", "absent"),), Assessed(), True, id="stated"),
        pytest.param((device("device"),), Assessed(), False, id="a device without a name"),
        pytest.param((device("pacemaker"),), Assessed(), False, id="a device with a name"),
        pytest.param((device("pacemaker", "absent"),), Assessed(), None, id="one of many absent"),
        pytest.param((device("pacemaker", "uncertain"),), EVERY, None, id="uncertain"),
        pytest.param((device("pacemaker", "uncertain"),), Assessed(), None, id="uncertain, others unknown"),
    ],
)
def test_no_device_is_known_only_where_devices_were_looked_for_or_the_source_says_so(
    things, assessed, no_device
):
    assert states_no_device(study(*things, assessed=assessed)) is no_device


def test_a_normal_image_has_no_finding_of_any_name():
    normal = study(finding("abnormality", "absent"))
    assert certainty_of(normal, "mass") == "absent"
    assert certainty_of(normal, "pacemaker") is None


def test_records_are_complete_only_where_nothing_can_be_missing():
    assert is_complete(study(finding("mass"), assessed=EVERY), "finding")
    assert not is_complete(study(finding("mass"), assessed=CLOSED), "finding")
    assert not is_complete(study(), "device")
    # A device without a name is not among the names.
    assert not is_complete(study(device("device"), assessed=EVERY), "device")
    assert is_complete(study(device("device", "absent")), "device")
    listed = Assessed(findings="listed", listed=("abnormality", "mass"))
    assert is_complete(study(assessed=listed), "finding")
    assert not is_complete(study(finding("mass"), assessed=listed), "finding")


CERTAINTIES = st.sampled_from(["present", "absent", "uncertain"])
SCOPES = st.sampled_from(["every", "listed", "unknown"])


@st.composite
def studies(draw):
    things = [
        finding(name, certainty)
        for name, certainty in draw(st.lists(st.tuples(st.sampled_from(NAMES), CERTAINTIES), max_size=4))
    ]
    things += [
        device(name, certainty)
        for name, certainty in draw(
            st.lists(st.tuples(st.sampled_from(DEVICE_NAMES), CERTAINTIES), max_size=3)
        )
    ]
    listed = draw(st.lists(st.sampled_from((*NAMES, *DEVICE_NAMES)), unique=True))
    assessed = Assessed(findings=draw(SCOPES), devices=draw(SCOPES), listed=tuple(listed))
    return study(*things, assessed=assessed)


ANY_NAME = st.sampled_from(
    (*((name, "finding") for name in NAMES), *((name, "device") for name in DEVICE_NAMES))
)


@given(studies(), ANY_NAME)
def test_present_and_uncertain_are_never_guessed(one, asked):
    name, kind = asked
    records = one.findings if kind == "finding" else one.devices
    recorded = {record.certainty for record in records if record.name == name or name == UNNAMED[kind]}
    known = certainty_of(one, name, kind=kind)
    assert known in (None, "absent") or known in recorded
    assert known != "absent" or not {"present", "uncertain"} & recorded
    assert known is not None or "present" not in recorded


@given(studies(), ANY_NAME)
def test_nothing_is_absent_that_nobody_looked_for(one, asked):
    name, kind = asked
    records = one.findings if kind == "finding" else one.devices
    stated = any(record.name in (name, UNNAMED[kind]) and record.certainty == "absent" for record in records)
    if certainty_of(one, name, kind=kind) == "absent":
        assert stated or is_looked_for(one, name, kind=kind)
    scope = one.assessed.findings if kind == "finding" else one.assessed.devices
    if scope == "unknown" and not stated:
        assert certainty_of(one, name, kind=kind) != "absent"


@given(studies(), ANY_NAME)
def test_looking_for_more_never_takes_back_what_is_known(one, asked):
    name, kind = asked
    before = certainty_of(one, name, kind=kind)
    more = study(*one.findings, *one.devices, assessed=EVERY)
    assert before in (None, certainty_of(more, name, kind=kind))
    assert certainty_of(more, name, kind=kind) is not None


@given(studies())
def test_a_normal_image_and_an_abnormal_finding_exclude_each_other(one):
    normal, no_device = states_no_abnormality(one), states_no_device(one)
    present = any(thing.certainty == "present" for thing in one.findings)
    assert (normal is False) == present
    assert (no_device is False) == any(thing.certainty == "present" for thing in one.devices)
    if normal:
        assert all(thing.certainty == "absent" for thing in (*one.findings, *one.devices))
        assert is_complete(one, "finding")


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({"laminar atelectasis": "present"}, "present"),
        ({"laminar atelectasis": "uncertain"}, "uncertain"),
        ({"laminar atelectasis": "absent"}, "absent"),
        ({"laminar atelectasis": "present", "atelectasis": "absent"}, None),
        ({"laminar atelectasis": "present", "atelectasis": "uncertain"}, "present"),
        ({"nodule": "present"}, "absent"),
    ],
)
def test_what_a_kind_of_it_is_recorded_as_counts(recorded, expected):
    findings = tuple(
        Finding(id=f"f{number}", name=name, certainty=certainty)
        for number, (name, certainty) in enumerate(recorded.items())
    )
    looked_for = Assessed(findings="listed", listed=("atelectasis", "laminar atelectasis", "nodule"))
    study = Study(id="s1", patient="p1", source="mine", images=(), findings=findings, assessed=looked_for)
    assert certainty_of(study, "atelectasis") == expected
    assert is_looked_for(study, "atelectasis", kind="finding") == (expected == "absent")
