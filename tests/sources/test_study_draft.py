"""A study in the making."""

import math
from pathlib import Path

import pytest
from tests.sources.files import boxes, write_image

from carina.sources import Repaired, Skipped
from carina.sources._draft_images import find_image
from carina.sources._labels import assess_labels, name_of
from carina.sources._record import RecordError
from carina.sources._study_draft import StudyDraft, make_or_skip
from carina.studies import Assessed, Image, Region, Study, certainty_of
from carina.studies.assessment import is_stated_by_program


@pytest.fixture
def draft():
    made = StudyDraft("s1", patient="p1", source="mine", number=3)
    made.images.append(Image(key="a.png", view="PA", width=100, height=80))
    return made


def finished(draft, *, assessed=None, mined=()):
    """The study and its defects."""
    found = draft.finish(assessed=assessed, mined=mined)
    return (found.record, found.defects) if isinstance(found, Repaired) else (found, {})


def test_statements_of_one_finding_become_one_with_every_region(draft):
    draft.add_box("Effusion", "a.png", (10, 20, 30, 40), annotator="R1")
    draft.add_box("Pleural Effusion", "a.png", (50.2, 0, 10, 10), annotator="R2")
    draft.add_polygons("effusion", "a.png", [[(0, 0), (10, 0), (10, 10), (0, 10)]], annotator="R1")
    draft.state("Mass", "absent")
    study, defects = finished(draft)
    assert defects == {}
    effusion, mass = study.findings
    assert (effusion.id, effusion.name, effusion.label, effusion.certainty) == (
        "f1",
        "pleural effusion",
        "Effusion",
        "present",
    )
    assert boxes(effusion) == [
        ("R1", "box", (10, 20, 30, 40)),
        ("R2", "box", (50, 0, 10, 10)),
        ("R1", "polygon", (0, 0, 10, 10)),
    ]
    assert (mass.name, mass.label, mass.certainty, mass.annotations) == ("mass", "Mass", "absent", ())


@pytest.mark.parametrize(
    "box",
    [
        (math.nan, 0, 5, 5),
        (0, math.inf, 5, 5),
        (0, 0, -5, 5),
        (0, 0, 0, 5),
        (100, 0, 5, 5),
        (-6, 0, 5, 5),
        (1.6, 1.6, 0.2, 0.2),
    ],
    ids=str,
)
def test_a_box_that_cannot_be_is_counted_and_the_finding_stays(draft, box):
    draft.add_box("Mass", "a.png", box, annotator="R1")
    study, defects = finished(draft)
    assert defects == {"region": 1}
    assert [(finding.name, finding.annotations) for finding in study.findings] == [("mass", ())]


def test_a_box_across_the_border_is_cut_off(draft):
    draft.add_box("Mass", "a.png", (-10, 70, 30, 40), annotator="R1")
    study, defects = finished(draft)
    assert (defects, boxes(study.findings[0])) == ({"cut": 1}, [("R1", "box", (0, 70, 20, 10))])


def test_a_region_of_another_size_and_an_empty_one_are_counted(draft):
    draft.add_region("Mass", "a.png", Region.full(80, 99), annotator="R1")
    draft.add_region("Mass", "a.png", Region.empty(80, 100), annotator="R1")
    draft.add_anatomy("heart", "a.png", Region.full(9, 9), annotator="R1")
    draft.add_anatomy("left lung", "a.png", Region.full(80, 100), annotator="net", automatic=True)
    study, defects = finished(draft)
    assert defects == {"mask size": 2, "region": 1}
    assert study.findings[0].annotations == ()
    assert [(one.name, one.annotator, one.automatic) for one in study.anatomy] == [("left lung", "net", True)]


def test_what_equally_trusted_statements_call_present_and_absent_is_disputed(draft):
    draft.state("Mass", "absent")
    draft.add_box("MASS", "a.png", (0, 0, 5, 5), annotator="R1")
    draft.add_box("Effusion", "a.png", (0, 0, 5, 5), annotator="R1")
    draft.state("effusion", "absent")
    study, defects = finished(draft, assessed=Assessed(findings="every", disputed=("edema",)))
    assert defects == {"conflict": 2}
    # Neither the order of the statements nor a drawing decides; what was looked for is not absent either.
    assert study.findings == ()
    assert study.assessed.disputed == ("edema", "mass", "pleural effusion")
    assert certainty_of(study, "mass") is certainty_of(study, "pleural effusion") is None


def test_no_finding_beside_a_finding_in_dispute_says_nothing(draft):
    """One of two statements says that there is a mass: so nobody knows that there is no edema."""
    draft.state("Mass")
    draft.state("Mass", "absent")
    draft.state_no_finding(("Mass", "Edema"))
    study, defects = finished(draft)
    assert [certainty_of(study, name) for name in ("mass", "edema")] == [None, None]
    assert defects["conflict"] == 2


def test_no_finding_stands_beside_a_device_in_dispute(draft):
    draft.state("Pacemaker")
    draft.state("Pacemaker", "absent")
    draft.state_no_finding(("Mass",))
    study, _ = finished(draft)
    assert certainty_of(study, "mass") == "absent"


def test_a_statement_of_lower_rank_does_not_dispute_one_of_a_higher(draft):
    draft.state("Mass", "absent")
    draft.rank = 1
    draft.state("mass", "present")
    study, defects = finished(draft)
    assert defects == {"conflict": 1}
    assert [(one.name, one.certainty) for one in study.findings] == [("mass", "absent")]
    assert study.assessed.disputed == ()


def test_uncertainty_that_contradicts_is_counted_and_the_first_statement_counts(draft):
    draft.state("Nodule", "uncertain")
    draft.add_box("Nodule", "a.png", (0, 0, 5, 5), annotator="R1")
    study, defects = finished(draft)
    assert defects == {"conflict": 1}
    # What is uncertain may be drawn.
    (nodule,) = study.findings
    assert (nodule.certainty, len(nodule.annotations)) == ("uncertain", 1)


def test_unknown_labels_keep_their_own_name_and_devices_are_apart(draft):
    draft.state("Odd_Thing  here")
    draft.state("Pacemaker")
    study, _ = finished(draft)
    assert [(one.name, one.label) for one in study.findings] == [("odd thing here", "Odd_Thing  here")]
    assert [(one.id, one.name, one.label) for one in study.devices] == [("d1", "pacemaker", "Pacemaker")]
    assert name_of("Odd_Thing  here") == "odd thing here"


def test_a_normal_image_is_one_without_any_abnormality(draft):
    draft.state_normal("No finding")
    study, _ = finished(draft)
    assert [(one.name, one.label, one.certainty) for one in study.findings] == [
        ("abnormality", "No finding", "absent")
    ]


def test_an_empty_label_is_refused(draft):
    with pytest.raises(RecordError, match="label: is empty"):
        draft.state(" ")


def test_a_closed_list_says_whether_devices_are_on_it():
    findings = assess_labels(("Mass", "Effusion", "Odd_one"), text=True)
    assert (findings.findings, findings.devices, findings.text) == ("listed", "unknown", True)
    assert findings.listed == ("mass", "odd one", "pleural effusion")
    both = assess_labels(("Mass", "Pacemaker"))
    assert (both.findings, both.devices, both.text) == ("listed", "listed", False)
    devices = assess_labels(("Pacemaker",))
    assert (devices.findings, devices.devices) == ("unknown", "listed")


def test_images_are_described_by_their_file_or_by_their_stated_size(tmp_path):
    write_image(tmp_path / "x/a.png", 30, 20)
    draft = StudyDraft("s1", patient="p1", source="mine", number=1)
    assert draft.add_image(tmp_path, "x/a.png", "AP", size=(30, 20), spacing_mm=(0.2, 0.3)) == Image(
        key="x/a.png", view="AP", width=30, height=20, bits=8, spacing_mm=(0.2, 0.3)
    )
    kept = draft.add_image(tmp_path, "x/b.png", "PA", size=(9, 8), missing="keep")
    assert (kept.width, kept.height) == (9, 8)
    (tmp_path / "bad.png").write_bytes(b"no image")
    for key, size, kind, part in [
        ("x/c.png", (9, 8), "image missing", "is missing"),
        ("x/a.png", (9, 8), "image", "is 30 x 20, the source states 9 x 8"),
        ("../a.png", (9, 8), "image", "not a plain relative path"),
        ("/etc/passwd", None, "image", "not a plain relative path"),
        ("bad.png", None, "image", "bad.png"),
        ("n" * 300, None, "image", "300 bytes"),
    ]:
        with pytest.raises(RecordError, match=part) as raised:
            draft.add_image(tmp_path, key, "PA", size=size)
        assert raised.value.kind == kind
    assert [image.key for image in draft.images] == ["x/a.png", "x/b.png"]


def test_an_image_outside_the_root_is_refused_even_through_a_link(tmp_path):
    write_image(tmp_path / "out/a.png", 3, 2)
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "out")
    draft = StudyDraft("s1", patient="p1", source="mine", number=1)
    with pytest.raises(RecordError, match="leads out"):
        draft.add_image(tmp_path / "root", "link/a.png", "PA")
    assert find_image(tmp_path / "root", ("link/a.png", "n" * 300, "a\0b", "../out/a.png")) is None
    assert find_image(tmp_path, ("root/a.png", "out/a.png")) == "out/a.png"


def test_a_record_that_cannot_be_used_is_skipped_with_its_place():
    def make(name):
        if not name:
            raise RecordError("id", "is empty", kind="empty")
        return Study(id=name, patient="p", source="mine", images=())

    assert make_or_skip(make, "a.csv: row 1", "a", "a") == [make("a")]
    assert make_or_skip(make, "a.csv: row 2", "b", "") == [
        Skipped(place="a.csv: row 2", field="id", reason="is empty", kind="empty", study="b")
    ]


@pytest.mark.parametrize("key", ["../a.png", "/a.png", "", "a\0b.png"])
def test_an_image_that_is_only_described_needs_a_key_below_the_root(draft, key):
    with pytest.raises(RecordError, match="is not a plain relative path"):
        draft.describe_image(key, "PA", (4, 4))
    with pytest.raises(RecordError, match="is not a plain relative path"):
        draft.find_image(Path("nowhere"), (key,), "PA", "keep")


@pytest.mark.parametrize(
    ("label", "expected"),
    [("No finding", []), ("no_findings", []), ("Normal", [("abnormality", "absent")]), ("negative", [])],
)
def test_a_label_that_says_that_there_is_nothing_is_never_a_finding(draft, label, expected):
    draft.add_box(label, "a.png", (0, 0, 1, 1), annotator="R1")
    study, defects = finished(draft)
    assert [(one.name, one.certainty) for one in study.findings] == expected
    assert not study.devices
    assert not any(one.annotations for one in study.findings)
    assert defects["nothing"] == 1


def test_a_label_that_the_map_calls_normal_is_no_finding():
    draft = StudyDraft("s", patient="p", source="mine", number=1, names={"healthy_lung": "normal"})
    draft.state("healthy_lung")
    study, _ = finished(draft)
    assert [(one.name, one.label, one.certainty) for one in study.findings] == [
        ("abnormality", "healthy_lung", "absent")
    ]


def test_words_of_doubt_and_denial_in_a_label_count_and_are_counted(draft):
    draft.state("Nodule?")
    draft.state("no effusion")
    draft.state("possible mass", "absent")
    draft.state("no edema", "absent")  # nobody knows what that means
    draft.add_box("Atelectasis?", "a.png", (0, 0, 5, 5), annotator="R1")
    draft.add_box("no fracture", "a.png", (0, 0, 5, 5), annotator="R1")
    study, defects = finished(draft)
    assert {one.name: (one.label, one.certainty, len(one.annotations)) for one in study.findings} == {
        "nodule": ("Nodule?", "uncertain", 0),
        "pleural effusion": ("no effusion", "absent", 0),
        "mass": ("possible mass", "absent", 0),
        "atelectasis": ("Atelectasis?", "uncertain", 1),
        "fracture": ("no fracture", "absent", 0),
    }
    assert defects == {"wording": 4, "nameless": 1, "nothing": 1}


def test_a_closed_list_has_names_without_doubt_and_nothing_else():
    listed = assess_labels(("Mass?", "no effusion", "No finding", "Normal", "Edema")).listed
    assert listed == ("edema", "mass", "pleural effusion")


def test_no_finding_covers_its_labels_unless_a_finding_contradicts_it(draft):
    draft.state("Support Devices")
    draft.state_no_finding(["Mass", "Nodule"])
    study, defects = finished(draft, assessed=Assessed(text=True))
    assert (study.assessed.findings, study.assessed.listed, defects) == ("listed", ("mass", "nodule"), {})
    assert certainty_of(study, "mass") == "absent"


@pytest.mark.parametrize("certainty", ["present", "uncertain"])
def test_no_finding_beside_a_finding_is_a_conflict_and_nothing_is_absent_for_it(draft, certainty):
    draft.state_no_finding(["Mass", "Nodule"])
    draft.state("Pneumonia", certainty)
    study, defects = finished(draft, assessed=assess_labels(["Fracture"]))
    assert defects == {"conflict": 1}
    assert [certainty_of(study, name) for name in ("mass", "fracture")] == [None, "absent"]


def test_a_name_close_to_a_known_one_disputes_it_in_every_source(draft):
    draft.state("Pneumona")
    study, defects = finished(draft, assessed=assess_labels(["Pneumonia", "Mass"]))
    assert defects == {"near name": 1}
    assert [certainty_of(study, name) for name in ("pneumonia", "mass")] == [None, "absent"]


def test_a_region_that_its_annotator_drew_twice_is_used_once(draft):
    for annotator in ("R1", "R1", "R2"):
        draft.add_box("Effusion", "a.png", (10, 20, 30, 40), annotator=annotator)
    study, defects = finished(draft)
    assert [one.annotator for one in study.findings[0].annotations] == ["R1", "R2"]
    assert defects == {"duplicate": 1}


def test_what_only_a_program_states_is_named(draft):
    draft.add_box("Nodule", "a.png", (10, 20, 30, 40), annotator="radiologist")
    draft.state("Fracture", "absent")
    draft.is_by_program = True
    for label in ("Nodule", "Effusion", "Fracture"):
        draft.state(label, "absent" if label == "Fracture" else "present")
    draft.add_box("Mass", "a.png", (1, 1, 5, 5), annotator="a model", automatic=True)
    study, _ = finished(draft, assessed=assess_labels(["Edema", "Nodule"]), mined=["Edema", "Nodule"])
    assert study.assessed.by_program == ("edema", "mass", "pleural effusion")
    told = {name: is_stated_by_program(study, name) for name in ("edema", "nodule", "fracture", "mass")}
    assert told == {"edema": True, "nodule": False, "fracture": False, "mass": True}


def test_a_contradicted_no_finding_of_a_program_names_nothing(draft):
    draft.is_by_program = True
    draft.state_no_finding(["Mass"])
    draft.state("Effusion")
    assert finished(draft)[0].assessed.by_program == ("pleural effusion",)
