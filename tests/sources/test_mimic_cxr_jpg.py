"""MIMIC-CXR-JPG in its published layout, with invented ids."""

import datetime
import gzip
import zipfile

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.models.served.terms import refuse_restricted
from carina.sources import SourceError, import_studies
from carina.store.errors import CarinaError
from carina.studies import certainty_of, states_no_abnormality

METADATA = (
    "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime,"
    "ProcedureCodeSequence_CodeMeaning,ViewCodeSequence_CodeMeaning,PatientOrientationCodeSequence_CodeMeaning"
)
LABELS = (
    "Atelectasis,Cardiomegaly,Consolidation,Edema,Enlarged Cardiomediastinum,Fracture,Lung Lesion,Lung Opacity,"
    "No Finding,Pleural Effusion,Pleural Other,Pneumonia,Pneumothorax,Support Devices"
)
REPORT = """                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  ___ with cough.

 FINDINGS:  There is a small left pleural effusion.  No pneumothorax.

 IMPRESSION:  Small left effusion.
"""


def write_gz(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def make_folder(tmp_path):
    path = tmp_path / "mimic"
    write_gz(
        path / "mimic-cxr-2.0.0-metadata.csv.gz",
        METADATA,
        # The higher id is the earlier study: 00:05:07 on the same day as 13:00:01.5.
        "aaaa-1,19000001,59000002,CHEST (PA AND LAT),PA,3056,2544,21800506,507.0,,,Erect",
        "aaaa-2,19000001,59000002,CHEST (PA AND LAT),LATERAL,3056,2544,21800506,507.0,,,Erect",
        "bbbb-1,19000001,59000001,CHEST (PORTABLE AP),AP,2000,2500,21800506,130001.5,,,",
        # Two studies at the same time: which of them is the prior cannot be told.
        "cccc-1,19000002,59000003,,XTABLE LATERAL,10,20,21800101,90000,,,",
        "dddd-1,19000002,59000004,,SWIMMERS,10,20,21800101,90000,,,",
    )
    write_gz(
        path / "mimic-cxr-2.0.0-split.csv.gz",
        "dicom_id,study_id,subject_id,split",
        "aaaa-1,59000002,19000001,train",
        "aaaa-2,59000002,19000001,train",
        "bbbb-1,59000001,19000001,train",
        "cccc-1,59000003,19000002,validate",
        "dddd-1,59000004,19000002,test",
    )
    write_gz(
        path / "mimic-cxr-2.0.0-chexpert.csv.gz",
        f"subject_id,study_id,{LABELS}",
        "19000001,59000002,,-1.0,,,,,,1.0,,1.0,,,0.0,",
        "19000001,59000001,,,,,,,,,1.0,,,,,1.0",
        "19000002,59000003,,,,,,,,,,,,,,",
        "19000002,59000099,,,,,,,,,,,,,,",
    )
    write_gz(
        path / "mimic-cxr-2.0.0-negbio.csv.gz",
        f"subject_id,study_id,{LABELS}",
        "19000001,59000002,1.0,0.0,,,,,,,,,,,,",
    )
    with zipfile.ZipFile(path / "mimic-cxr-reports.zip", "w") as archive:
        archive.writestr("files/p19/p19000001/s59000002.txt", REPORT)
    return path


folder = pytest.fixture(make_folder, name="folder")


def labels(study):
    return {one.name: one.certainty for one in (*study.findings, *study.devices)}


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out")
    assert list(studies) == ["s59000002", "s59000001", "s59000003", "s59000004"]
    study = studies["s59000002"]
    assert [(image.key, image.view, image.width, image.height) for image in study.images] == [
        ("files/p19/p19000001/s59000002/aaaa-1.jpg", "PA", 2544, 3056),
        ("files/p19/p19000001/s59000002/aaaa-2.jpg", "lateral", 2544, 3056),
    ]
    assert (study.patient, study.source, study.split) == ("p19000001", "mimic-cxr-jpg", "train")
    assert study.date == datetime.date(2180, 5, 6)
    assert {finding.name: (finding.label, finding.certainty) for finding in study.findings} == {
        "cardiomegaly": ("Cardiomegaly", "uncertain"),
        "lung opacity": ("Lung Opacity", "present"),
        "pleural effusion": ("Pleural Effusion", "present"),
        "pneumothorax": ("Pneumothorax", "absent"),
    }
    # Mined from text: a blank label is not absent.
    assert (study.assessed.findings, study.assessed.listed, study.assessed.text) == ("unknown", (), True)
    assert [(section.name, section.text) for section in study.report.sections] == [
        ("technique", "FINAL REPORT\nCHEST (PA AND LAT)"),
        ("indication", "___ with cough."),
        ("findings", "There is a small left pleural effusion.  No pneumothorax."),
        ("impression", "Small left effusion."),
    ]
    assert (study.indication, study.report.sentences) == ("___ with cough.", ())
    assert studies["s59000001"].report is None
    # "No Finding" covers the labels of the list, and does not make a normal image.
    none = studies["s59000001"]
    assert [certainty_of(none, name) for name in ("pneumothorax", "bone lesion")] == ["absent", None]
    assert states_no_abnormality(none) is None
    assert studies["s59000003"].split == "val"
    assert [image.view for name in ("s59000003", "s59000004") for image in studies[name].images] == [
        "lateral",
        "unknown",
    ]
    assert defects(imported) == {"no report": 3, "no label": 1}
    assert skips(imported) == [
        (
            "",
            "not joined",
            "mimic-cxr-2.0.0-chexpert.csv.gz: study_id: 1 of 4 studies have no image in the table of metadata",
        )
    ]


def test_studies_are_ordered_by_date_and_time_of_day(folder, tmp_path):
    studies, _ = read_studies("mimic-cxr-jpg", folder, tmp_path / "out")
    first, second = studies["s59000002"], studies["s59000001"]
    assert (first.order, first.prior, first.later) == (0, None, "s59000001")
    assert (second.order, second.prior, second.later) == (1, "s59000002", None)
    for name in ("s59000003", "s59000004"):
        assert (studies[name].order, studies[name].prior, studies[name].date) == (
            None,
            None,
            datetime.date(2180, 1, 1),
        )


@pytest.mark.parametrize(
    ("option", "expected", "conflicts"),
    [
        pytest.param("chexpert", (None, "uncertain"), 0, id="chexpert"),
        pytest.param("negbio", ("present", "absent"), 0, id="negbio"),
        pytest.param("both", ("present", "uncertain"), 1, id="both"),
        pytest.param("none", (None, None), 0, id="none"),
    ],
)
def test_the_labels_to_use(folder, tmp_path, option, expected, conflicts):
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out", labels=option)
    found = labels(studies["s59000002"])
    assert (found.get("atelectasis"), found.get("cardiomegaly")) == expected
    assert defects(imported).get("conflict", 0) == conflicts


def test_labels_by_a_radiologist_count_more_and_blank_ones_are_not_absent(folder, tmp_path):
    # No subject_id, "Airspace Opacity" for "Lung Opacity", and another order of columns.
    write_text(
        folder / "mimic-cxr-2.1.0-test-set-labeled.csv",
        "study_id,No Finding,Airspace Opacity,Cardiomegaly,Pleural Effusion,Support Devices",
        "59000002,,0.0,1.0,,1.0",
    )
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out")
    study = studies["s59000002"]
    found = {one.name: (one.label, one.certainty) for one in (*study.findings, *study.devices)}
    assert found["lung opacity"] == ("Airspace Opacity", "absent")
    assert found["cardiomegaly"] == ("Cardiomegaly", "present")
    assert study.assessed.findings == "listed"
    assert study.assessed.listed == ("cardiomegaly", "lung opacity", "medical device")
    assert defects(imported)["conflict"] == 2
    only, _ = read_studies("mimic-cxr-jpg", folder, tmp_path / "expert", labels="expert")
    assert list(only) == ["s59000002"]
    assert "pneumothorax" not in labels(only["s59000002"])
    assert certainty_of(only["s59000002"], "pneumothorax") is None


def test_reports_in_a_folder(folder, tmp_path):
    (folder / "mimic-cxr-reports.zip").unlink()
    write_text(tmp_path / "cxr/files/p19/p19000001/s59000001.txt", "Clear lungs.")
    studies, _ = read_studies("mimic-cxr-jpg", folder, tmp_path / "out", reports=tmp_path / "cxr")
    assert studies["s59000001"].report.text("findings") == "Clear lungs."
    assert studies["s59000002"].report is None


def test_facts_of_the_text_by_option(folder, tmp_path):
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out", facts=True)
    study = studies["s59000002"]
    effusion = next(finding for finding in study.findings if finding.name == "pleural effusion")
    assert (effusion.certainty, effusion.severity, effusion.location.side) == ("present", "mild", "left")
    assert effusion.label == "Pleural Effusion"
    assert [study.report.quote(study.report.sentences[index]) for index in effusion.evidence] == [
        "There is a small left pleural effusion.",
        "Small left effusion.",
    ]
    # A label that the text does not state, as the rules read it, stays.
    assert labels(study)["cardiomegaly"] == "uncertain"
    assert defects(imported).get("conflict", 0) == 0


def test_images_are_opened_only_when_asked(folder, tmp_path):
    write_image(folder / "files/p19/p19000002/s59000003/cccc-1.jpg", 20, 10)
    write_image(folder / "files/p19/p19000002/s59000004/dddd-1.jpg", 21, 10)
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out", open_images=True)
    assert list(studies) == ["s59000003"]
    assert [(item.study, item.kind) for item in imported.skipped[1:]] == [
        ("s59000002", "image missing"),
        ("s59000001", "image missing"),
        ("s59000004", "image"),
    ]


def test_rows_that_cannot_be_used(folder, tmp_path):
    write_gz(
        folder / "mimic-cxr-2.0.0-metadata.csv.gz",
        METADATA,
        "aaaa-1,19000001,59000002,,PA,3056,2544,21800506,507.0,,,",
        "aaaa-1,19000001,59000002,,PA,3056,2544,21800506,507.0,,,",
        "aaaa-3,19000009,59000002,,PA,3056,2544,21800506,507.0,,,",
        "aaaa-4,19000001,../5,,PA,3056,2544,21800506,507.0,,,",
        "aaaa-5,p19000001,s59000006.0,,PA,3056,2544.0,2180,nan,,,",
        "aaaa-6,19000001,59000007,,PA,nan,2544,21800506,507.0,,,",
    )
    studies, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out")
    assert list(studies) == ["s59000002", "s59000006"]
    # One study of the patient has no time, so that the order of all is unknown.
    assert [(study.order, study.date) for study in studies.values()] == [
        (None, datetime.date(2180, 5, 6)),
        (None, None),
    ]
    assert [(item.kind, item.field) for item in imported.skipped[:4]] == [
        ("duplicate", "dicom_id"),
        ("patient", "subject_id"),
        ("id", "study_id"),
        ("number", "Rows"),
    ]


def test_no_message_holds_the_text_of_a_report(folder, tmp_path):
    _, imported = read_studies("mimic-cxr-jpg", folder, tmp_path / "out")
    printed = (tmp_path / "out/import.json").read_text() + (tmp_path / "out/skipped.csv").read_text()
    assert "effusion" not in printed
    assert imported.counts.kept == 4


def test_a_wrong_label_names_its_row(folder, tmp_path):
    write_gz(folder / "mimic-cxr-2.0.0-chexpert.csv.gz", "subject_id,study_id,Edema", "1,59000002,2")
    with pytest.raises(
        SourceError, match=r"chexpert\.csv\.gz: row 2: Edema: is 2, expected 1, 0, -1 or nothing"
    ):
        import_studies("mimic-cxr-jpg", folder, tmp_path / "out", workers=1)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"mimic-cxr-2\.0\.0-metadata\.csv\.gz: missing; put the tables"):
        import_studies("mimic-cxr-jpg", tmp_path / "empty", tmp_path / "out", workers=1)


def test_the_source_is_restricted(folder, tmp_path):
    with pytest.warns(UserWarning, match="1 record skipped"):
        studies = import_studies("mimic-cxr-jpg", folder, tmp_path / "out", workers=1)
    (info,) = studies.manifest.sources
    assert info.licence == "PhysioNet Credentialed Health Data License 1.5.0"
    assert "MIMIC-CXR-JPG" in info.citation
    with pytest.raises(CarinaError, match="mimic-cxr-jpg: its terms are"):
        refuse_restricted([info], "openai/gpt-4o", base_url=None, accept_terms=False)


def test_an_image_id_that_leaves_the_folder_is_refused(tmp_path):
    write_text(
        tmp_path / "in/mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime",
        "../../secret,19000001,59000001,PA,50,60,21800101,90000",
        "aaaa-1,19000002,59000002,PA,50,60,21800101,90000",
    )
    studies, imported = read_studies("mimic-cxr-jpg", tmp_path / "in", tmp_path / "out")
    assert list(studies) == ["s59000002"]
    assert [(study, kind) for study, kind, _ in skips(imported)] == [("s59000001", "image")]
