"""CheXpert and CheXpert Plus in their published layouts, with invented ids."""

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_studies
from carina.studies import certainty_of, states_no_abnormality

LABELS = (
    "No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,Edema,Consolidation,Pneumonia,"
    "Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture,Support Devices"
)
TRAIN = f"Path,Sex,Age,Frontal/Lateral,AP/PA,{LABELS}"
PLUS = (
    "path_to_image,path_to_dcm,frontal_lateral,ap_pa,deid_patient_id,patient_report_date_order,report,"
    "section_narrative,section_clinical_history,section_history,section_comparison,section_technique,"
    "section_procedure_comments,section_findings,section_impression,section_end_of_impression,section_summary,"
    "section_accession_number,age,sex,race,ethnicity,interpreter_needed,insurance_type,recent_bmi,deceased,split"
)
FIRST, SECOND, OTHER = "patient90001/study1", "patient90001/study2", "patient90002/study1"


def make_folder(tmp_path):
    path = tmp_path / "chexpert"
    small = "CheXpert-v1.0-small/train"
    write_text(
        path / "train.csv",
        TRAIN,
        f"{small}/{FIRST}/view1_frontal.jpg,Female,68,Frontal,AP,,,-1.0,1.0,,,,,,0.0,,,,1.0",
        f"{small}/{FIRST}/view2_lateral.jpg,Female,68,Lateral,,,,-1.0,1.0,,,,,,0.0,,,,1.0",
        f"{small}/{SECOND}/view1_frontal.jpg,Female,69,Frontal,PA,1.0,,,,,,,,,,,,,",
    )
    write_text(
        path / "valid.csv",
        TRAIN,
        "CheXpert-v1.0/valid/patient90002/study1/view1_frontal.jpg,Male,40,Frontal,PA,0.0,0.0,1.0,0.0,0.0,0.0,0.0,0.0,"
        "0.0,0.0,0.0,0.0,0.0,0.0",
    )
    write_text(
        path / "test_labels.csv", f"Path,{LABELS}", "test/patient90003/study1/view1_frontal.jpg" + ",0.0" * 14
    )
    for name in (
        f"train/{FIRST}/view1_frontal",
        f"train/{FIRST}/view2_lateral",
        f"train/{SECOND}/view1_frontal",
    ):
        write_image(path / f"{name}.jpg", 30, 20)
    write_image(path / f"valid/{OTHER}/view1_frontal.png", 40, 50)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("chexpert", folder, tmp_path / "out")
    assert list(studies) == ["patient90001_study1", "patient90001_study2", "patient90002_study1"]
    study = studies["patient90001_study1"]
    assert [(image.key, image.view, image.width, image.height) for image in study.images] == [
        (f"train/{FIRST}/view1_frontal.jpg", "AP", 30, 20),
        (f"train/{FIRST}/view2_lateral.jpg", "lateral", 30, 20),
    ]
    assert (study.patient, study.age, study.sex, study.split) == ("patient90001", 68, "F", "train")
    found = {one.label or one.name: one.certainty for one in (*study.findings, *study.devices)}
    assert found == {
        "Cardiomegaly": "uncertain",
        "Lung Opacity": "present",
        "Pneumothorax": "absent",
        "Support Devices": "present",
    }
    assert (study.assessed.findings, study.assessed.text, study.order) == ("unknown", True, None)
    # "No Finding" covers the labels of the list, and does not make a normal image.
    none = studies["patient90001_study2"]
    assert (none.findings, none.assessed.text, states_no_abnormality(none)) == ((), True, None)
    assert [certainty_of(none, name) for name in ("pneumothorax", "medical device")] == ["absent", None]
    # A program states what is mined from reports.
    assert study.assessed.by_program == ("cardiomegaly", "lung opacity", "medical device", "pneumothorax")
    assert none.assessed.by_program == none.assessed.listed
    assert studies["patient90002_study1"].assessed.by_program == ()
    # By radiologists, in the PNG tree of CheXpert Plus.
    expert = studies["patient90002_study1"]
    assert (expert.split, expert.images[0].key) == ("val", f"valid/{OTHER}/view1_frontal.png")
    assert (expert.assessed.findings, expert.assessed.text, expert.sex) == ("listed", False, "M")
    assert {one.certainty for one in expert.findings if one.name != "cardiomegaly"} == {"absent"}
    assert defects(imported) == {}
    assert skips(imported) == [("patient90003_study1", "image missing", "view1_frontal.jpg is missing")]


def test_no_finding_beside_a_positive_label_is_a_conflict(folder, tmp_path):
    table = folder / "train.csv"
    row = f"{SECOND}/view1_frontal.jpg,Female,69,Frontal,PA,1.0,"
    text = table.read_text()
    assert row + "," in text
    table.write_text(text.replace(row + ",", row + "1.0,"))  # and "Enlarged Cardiomediastinum"
    studies, imported = read_studies("chexpert", folder, tmp_path / "out")
    study = studies["patient90001_study2"]
    assert [finding.label for finding in study.findings] == ["Enlarged Cardiomediastinum"]
    assert certainty_of(study, "pneumothorax") is None
    assert defects(imported) == {"conflict": 1}


def test_studies_without_images_are_kept_by_option(folder, tmp_path):
    studies, imported = read_studies("chexpert", folder, tmp_path / "out", missing_images="keep")
    (image,) = studies["patient90003_study1"].images
    assert (image.key, image.width, image.view) == (
        "test/patient90003/study1/view1_frontal.jpg",
        0,
        "unknown",
    )
    assert defects(imported) == {"image missing": 1}


def test_reports_and_order_of_chexpert_plus(folder, tmp_path):
    def row(study, order, *, report="", history="", findings="", impression=""):
        before = (
            f"train/{study}/view1_frontal.jpg,x.dcm,Frontal,AP,p,{order},{report},,{history},,,,,{findings}"
        )
        return f"{before},{impression},,,,68.0,Female,,,,,,,train"

    plus = write_text(
        tmp_path / "df_chexpert_plus_240401.csv",
        PLUS,
        # The first study by its number is the second in time; a quoted line break and the two characters \n.
        row(
            FIRST, 2, history="Cough\\nand fever", findings='"Clear\nlungs, no\\neffusion"', impression="nan"
        ),
        row(SECOND, 1, report="IMPRESSION:\\n1. Normal."),
        row("patient99999/study1", 1, report="x"),
    )
    studies, imported = read_studies("chexpert", folder, tmp_path / "out", plus=plus)
    first, second = studies["patient90001_study1"], studies["patient90001_study2"]
    assert [(section.name, section.text) for section in first.report.sections] == [
        ("indication", "Cough\nand fever"),
        ("findings", "Clear\nlungs, no\neffusion"),
    ]
    assert first.indication == "Cough\nand fever"
    assert [(section.name, section.text) for section in second.report.sections] == [
        ("impression", "1. Normal.")
    ]
    assert (first.order, first.prior, first.later) == (1, "patient90001_study2", None)
    assert (second.order, second.prior, second.later) == (0, None, "patient90001_study1")
    assert defects(imported) == {"no report": 1}
    assert skips(imported)[0][1:] == (
        "not joined",
        "df_chexpert_plus_240401.csv: path_to_image: 1 of 3 studies are in none of the tables of labels",
    )


def test_rows_that_cannot_be_used(folder, tmp_path):
    (folder / "valid.csv").unlink()
    (folder / "test_labels.csv").unlink()
    good = f"train/{FIRST}/view1_frontal.jpg,Female,68,Frontal,AP,,,1.0,,,,,,,,,,,"
    write_text(
        folder / "train.csv",
        TRAIN,
        good,
        good,
        f"train/{FIRST}/view2_lateral.jpg,Female,68,Lateral,,,,0.0,,,,,,,,,,,",
        "../../etc/passwd,Female,68,Frontal,AP,,,1.0,,,,,,,,,,,",
        f"train/{SECOND}/view1_frontal.jpg,Female,68,Frontal,AP,,,3,,,,,,,,,,,",
    )
    studies, imported = read_studies("chexpert", folder, tmp_path / "out")
    assert list(studies) == ["patient90001_study1"]
    assert [(item.kind, item.field) for item in imported.skipped] == [
        ("duplicate", "Path"),
        ("label", "labels"),
        ("path", "Path"),
        ("label", "Cardiomegaly"),
    ]


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(
        SourceError, match=r"train\.csv: missing; put train\.csv, valid\.csv or test_labels\.csv there"
    ):
        import_studies("chexpert", tmp_path / "empty", tmp_path / "out", workers=1)
