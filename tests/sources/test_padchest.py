"""PadChest in its published layout, with invented ids."""

import datetime

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_studies

TABLE = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
HEADER = (
    ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,ViewPosition_DICOM,Projection,"
    "MethodProjection,Pediatric,Modality_DICOM,Manufacturer_DICOM,PhotometricInterpretation_DICOM,"
    "PixelRepresentation_DICOM,PixelAspectRatio_DICOM,SpatialResolution_DICOM,BitsStored_DICOM,WindowCenter_DICOM,"
    "WindowWidth_DICOM,Rows_DICOM,Columns_DICOM,XRayTubeCurrent_DICOM,Exposure_DICOM,ExposureInuAs_DICOM,ExposureTime,"
    "RelativeXRayExposure_DICOM,ReportID,Report,MethodLabel,Labels,Localizations,LabelsLocalizationsBySentence,"
    "labelCUIS,LocalizationsCUIS"
)


def row(image, study, labels, *, date="20140915", patient="P1", view="PA", method="Physician", report="x"):
    return (
        f"0,{image},0,{date},{study},{patient},1950.0,F,POSTEROANTERIOR,{view},Manual,No,CR,x,MONOCHROME2,0,,0.1,12,,,"
        f'40,30,,,,,,7,"{report}",{method},"{labels}",[],[],[],[]'
    )


def make_folder(tmp_path):
    path = tmp_path / "padchest"
    write_text(
        path / TABLE,
        HEADER,
        # A quoted line break, a label with a space before it, and two views of one study.
        row("a.png", "S1", "['pleural effusion', ' cardiomegaly']", report="derram\npleural"),
        row("b.png", "S1", "['pleural effusion', ' cardiomegaly']", view="L"),
        row("c.png", "S2", "['normal']", date="20130101", method="RNN"),
        row("d.png", "S3", "['exclude']", patient="P2"),
        row("e.png", "S4", "nan", patient="P3", view="AP_horizontal"),
    )
    for name in "abcde":
        write_image(path / f"0/{name}.png", 30, 40)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("padchest", folder, tmp_path / "out")
    assert list(studies) == ["S1", "S2", "S4"]
    study = studies["S1"]
    assert [(image.key, image.view, image.width, image.height) for image in study.images] == [
        ("0/a.png", "PA", 30, 40),
        ("0/b.png", "lateral", 30, 40),
    ]
    assert (study.patient, study.sex, study.age, study.date) == ("P1", "F", 64, datetime.date(2014, 9, 15))
    assert (study.order, study.prior) == (1, "S2")
    assert {f.name: f.certainty for f in study.findings} == {
        "pleural effusion": "present",
        "cardiomegaly": "present",
    }
    assert (study.assessed.findings, study.assessed.text, study.report) == ("unknown", True, None)
    assert [(f.name, f.certainty) for f in studies["S2"].findings] == [("abnormality", "absent")]
    assert (studies["S4"].findings, studies["S4"].images[0].view) == ((), "AP")
    assert defects(imported) == {"labels": 1}
    assert skips(imported) == [
        ("S3", "exclude", f"{TABLE}: row 5: Labels: 'exclude' means that the study is not to be used")
    ]


def test_a_row_without_a_date_does_not_hide_that_of_another_row(tmp_path):
    path = tmp_path / "padchest"
    write_text(
        path / TABLE,
        HEADER,
        row("a.png", "S1", "['nodule']", date=""),
        row("b.png", "S1", "['nodule']", view="L"),
        row("c.png", "S2", "['nodule']", date="20130101"),
    )
    for name in "abc":
        write_image(path / f"0/{name}.png", 30, 40)
    studies, _ = read_studies("padchest", path, tmp_path / "out")
    assert (studies["S1"].date, studies["S1"].prior) == (datetime.date(2014, 9, 15), "S2")


def test_words_that_mean_no_value_are_no_findings(tmp_path):
    path = tmp_path / "padchest"
    write_text(path / TABLE, HEADER, row("a.png", "S1", "['None', 'nan', 'NaN', '', 'unchanged', 'nodule']"))
    write_image(path / "0/a.png", 30, 40)
    studies, imported = read_studies("padchest", path, tmp_path / "out")
    assert [(one.name, one.certainty) for one in studies["S1"].findings] == [("nodule", "present")]
    assert defects(imported) == {}


def test_options(folder, tmp_path):
    studies, imported = read_studies(
        "padchest", folder, tmp_path / "out", method="physician", keep_unusable=True
    )
    assert list(studies) == ["S1", "S3", "S4"]
    assert [(item.study, item.kind) for item in imported.skipped] == [("S2", "method")]
    (folder / "0/e.png").unlink()
    kept, imported = read_studies("padchest", folder, tmp_path / "kept", missing_images="keep")
    assert (kept["S4"].images[0].width, kept["S4"].images[0].height) == (30, 40)
    assert defects(imported) == {"labels": 1, "image missing": 1}


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"PADCHEST.*missing; put the table of labels"):
        import_studies("padchest", tmp_path / "empty", tmp_path / "out", workers=1)
