"""PadChest-GR in its published layout, with invented ids."""

import datetime

import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies

TABLE = (
    "StudyID,ImageID,label,boxes_count,extra_boxes_count,locations,prior_study,progression_status,prior_imageID,"
    "sentence_en,sentence_es,study_is_benchmark,study_is_validation,split,PatientID,patient_is_benchmark,PatientBirth,"
    "PatientSex_DICOM,StudyDate_DICOM,StudyDate,PatientAge,label_group,Year"
)
RECORD = {
    "StudyID": "S2",
    "ImageID": "i2.png",
    "PreviousStudyID": "S1",
    "PreviousImageID": "i1.png",
    "findings": [
        {"sentence_en": "No pneumothorax.", "sentence_es": "Sin neumotorax.", "abnormal": False},
        {
            "sentence_en": "Cardiomegaly.",
            "sentence_es": "Cardiomegalia.",
            "abnormal": True,
            "boxes": [[0.1, 0.2, 0.5, 0.6]],
            "extra_boxes": [[0.1, 0.2, 0.6, 0.6], [0.5, 0.5, 1.2, 0.9]],
            "labels": ["cardiomegaly", "vascular hilar enlargement"],
            "locations": ["cardiac"],
            "progression": "worsened",
        },
        {"sentence_en": "Normal hila.", "abnormal": False, "labels": ["Normal"], "boxes": []},
    ],
}


def make_folder(tmp_path):
    path = tmp_path / "gr"
    write_json(path / "grounded_reports_20240819.json", [RECORD, {**RECORD, "StudyID": "S9", "findings": []}])
    write_text(
        path / "master_table.csv",
        TABLE,
        "S2,i2.png,cardiomegaly,1,2,cardiac,S1,worsened,i1.png,x,y,True,False,test,P1,True,1950,F,20140915,x,64,c,2014",
        "S2,i2.png,other,1,2,cardiac,S1,worsened,i1.png,x,y,True,False,test,P1,True,1950,F,20140915,x,64,c,2014",
    )
    write_image(path / "Padchest_GR_files/PadChest_GR/i2.png", 100, 50)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("padchest-gr", folder, tmp_path / "out")
    assert list(studies) == ["S2", "S9"]
    study = studies["S2"]
    assert (study.patient, study.split, study.sex, study.age) == ("P1", "test", "F", 64)
    assert (study.date, study.prior, study.order) == (datetime.date(2014, 9, 15), "S1", 0)
    (image,) = study.images
    assert (image.key, image.width, image.height) == ("Padchest_GR_files/PadChest_GR/i2.png", 100, 50)
    heart, hilar = study.findings
    drawn = [("reader 1", "box", (10, 10, 40, 20)), ("reader 2", "box", (10, 10, 50, 20))]
    assert (heart.name, heart.certainty, heart.trend, boxes(heart)) == (
        "cardiomegaly",
        "present",
        "worse",
        drawn,
    )
    assert (hilar.name, boxes(hilar)) == ("vascular hilar enlargement", drawn)
    sentences = study.report.sentences
    assert [study.report.quote(sentence) for sentence in sentences] == [
        "No pneumothorax.",
        "Cardiomegaly.",
        "Normal hila.",
    ]
    assert [[state.about for state in sentence.states] for sentence in sentences] == [[], ["f1", "f2"], []]
    assert [state.trend for state in sentences[1].states] == ["worse", "worse"]
    assert (heart.evidence, hilar.evidence) == ((1,), (1,))
    assert (study.assessed.findings, study.assessed.text) == ("unknown", True)
    # What is not documented is not guessed; a share beyond 1 is none.
    assert defects(imported) == {"region": 1, "patient": 1, "negative label": 1}


def test_what_cannot_be_used(folder, tmp_path):
    write_json(
        folder / "grounded_reports_20240819.json",
        [{**RECORD, "ImageID": "../i2.png"}, {"StudyID": "S3"}, {**RECORD, "findings": [{"sentence_en": 4}]}],
    )
    _, imported = read_studies("padchest-gr", folder, tmp_path / "out")
    assert [(study, kind) for study, kind, _ in skips(imported)] == [
        ("S2", "image"),
        ("", "json"),
        ("", "json"),
    ]
    with pytest.raises(SourceError, match=r"grounded_reports_20240819\.json: missing; put"):
        import_studies("padchest-gr", tmp_path / "empty", tmp_path / "none", workers=1)
