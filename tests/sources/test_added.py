"""What is added to a study that is already made."""

from carina.reports.sections import split_sections
from carina.sources._added import AddedFinding, Addition, add_report_facts, add_to_study, unwrap
from carina.sources._defects import DefectCounts
from carina.sources._source import Repaired
from carina.studies.assessment import certainty_of
from carina.studies.faults import faults
from carina.studies.model import Annotation, Device, Finding, Image, Study
from carina.studies.region import Region

IMAGE = Image(key="a.png", view="PA", width=20, height=10)
BOX = Annotation(
    image="a.png", region=Region.from_box(1, 2, 3, 4, height=10, width=20), drawn="box", annotator="R1"
)


def make_study(*findings, report=None, devices=()):
    report = None if report is None else split_sections(report)
    return Study(
        id="s1", patient="p1", source="x", images=(IMAGE,), findings=findings, devices=devices, report=report
    )


def finding(number, name, certainty="present"):
    return Finding(id=f"f{number}", name=name, certainty=certainty, label=name.upper())


def test_several_that_are_added_stay_apart_and_the_first_joins_the_label():
    added = tuple(AddedFinding(label="Edema", phrase=text, annotations=(BOX,)) for text in ("One.", "Two."))
    defects = DefectCounts()
    study = add_to_study(make_study(finding(1, "edema")), Addition(findings=added), defects)
    assert [(one.id, one.label, len(one.annotations), one.evidence) for one in study.findings] == [
        ("f1", "EDEMA", 1, (0,)),
        ("f2", "Edema", 1, (1,)),
    ]
    assert [study.report.quote(sentence) for sentence in study.report.sentences] == ["One.", "Two."]
    assert (list(faults(study)), defects.total()) == ([], 0)


def test_a_phrase_within_another_has_its_own_place():
    added = tuple(
        AddedFinding(label=label, phrase=text) for label, text in (("Edema", "no edema"), ("Mass", "edema"))
    )
    study = add_to_study(make_study(), Addition(findings=added), DefectCounts())
    assert [(sentence.start, sentence.end) for sentence in study.report.sentences] == [(0, 8), (9, 14)]


def test_phrases_without_their_report_are_excerpts_and_complete_sentences_are_not():
    added = (AddedFinding(label="Edema", phrase="mild edema"),)
    study = add_to_study(make_study(), Addition(findings=added), DefectCounts())
    assert study.report.is_excerpt
    # The phrases of a second image are added to those of the first.
    defects = DefectCounts()
    more = (AddedFinding(label="Mass", phrase="a mass"),)
    study = add_to_study(study, Addition(findings=more), defects)
    assert (study.report.text("findings"), defects.total()) == ("mild edema\na mass", 0)
    sentences = Addition(findings=added, phrases=("mild edema", "the heart is normal"))
    assert not add_to_study(make_study(), sentences, DefectCounts()).report.is_excerpt


def test_a_denial_of_one_side_is_neither_joined_nor_a_conflict():
    read = add_report_facts(
        make_study(finding(1, "pleural effusion", "present"), report="FINDINGS: No left pleural effusion."),
        trusted=(),
        number=1,
    )
    study, defects = unwrap(read)
    assert certainty_of(study, "pleural effusion") == "present"
    assert defects.total() == 0
    defects = DefectCounts()
    denied = unwrap(
        add_report_facts(make_study(report="FINDINGS: No left pleural effusion."), trusted=(), number=1)
    )[0]
    drawn = add_to_study(denied, Addition(findings=(AddedFinding(label="Pleural Effusion"),)), defects)
    assert [one.certainty for one in drawn.findings] == ["absent", "present"]
    assert defects.total() == 0


def test_text_counts_more_than_mined_labels_and_less_than_those_of_experts():
    report = "FINDINGS: Small left pleural effusion. No pneumothorax."
    labels = (
        finding(1, "pleural effusion", "absent"),
        finding(2, "pneumothorax", "absent"),
        finding(3, "edema", "uncertain"),
    )
    for trusted, certainty in (((), "present"), (("Pleural Effusion",), "absent")):
        item = add_report_facts(make_study(*labels, report=report), trusted=trusted, number=7)
        assert isinstance(item, Repaired)
        assert (item.number, item.defects) == (7, {"conflict": 1})
        found = {one.name: one.certainty for one in item.record.findings}
        assert found == {"pleural effusion": certainty, "pneumothorax": "absent", "edema": "uncertain"}
        assert item.record.assessed.text
        assert list(faults(item.record)) == []


def test_devices_of_labels_and_text_have_ids_of_their_own():
    device = Device(id="d1", name="chest tube", certainty="present")
    study = make_study(report="FINDINGS: An endotracheal tube is in place.", devices=(device,))
    item = add_report_facts(study, trusted=(), number=1)
    assert isinstance(item, Study)
    assert {one.name for one in item.devices} == {"endotracheal tube", "chest tube"}
    assert list(faults(item)) == []
