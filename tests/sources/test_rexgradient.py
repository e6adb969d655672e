"""ReXGradient-160K in its published layout, with invented ids."""

import datetime

import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_studies

FILE = "metadata/test_metadata_view_position.json"


def make_folder(tmp_path):
    path = tmp_path / "rex"
    write_text(
        path / FILE,
        '{"P1_A1": {"PatientID": "P1", "AccessionNumber": "A1", "StudyInstanceUid": "1.2", "StudyDate": "20200102",',
        '"PatientSex": "M", "PatientAge": "036Y", "EthnicGroup": NaN, "Indication": "Cough.", "Comparison": "None",',
        '"Findings": "Clear lungs.", "Impression": NaN,',
        '"ImagePath": ["../deid_png/P1/A1/a.png", "../deid_png/P1/A1/b.png"],',
        '"ImageViewPosition": ["POSTERO_ANTERIOR", null], "ImageShape": [[40, 30], [40, 30]],',
        '"ImageModality": ["DX", "DX"]},',
        '"P1_A0": {"PatientID": "P1", "StudyDate": "20190102", "PatientAge": "002D", "Impression": "Normal.",',
        '"ImagePath": ["../deid_png/P1/A0/c.png"], "ImageViewPosition": ["LL"], "ImageShape": [[40, 30]]},',
        '"P2_A2": {"PatientID": "P2", "ImagePath": ["../../secret.png"], "ImageViewPosition": ["PA"]},',
        '"P3_A3": {"PatientID": "P3", "ImagePath": ["../deid_png/x.png"], "ImageViewPosition": ["PA", "LL"]}}',
    )
    for name in ("A1/a", "A1/b", "A0/c"):
        write_image(path / f"deid_png/P1/{name}.png", 30, 40)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("rexgradient", folder, tmp_path / "out")
    assert list(studies) == ["P1_A1", "P1_A0"]
    study = studies["P1_A1"]
    assert [(image.key, image.view, image.width, image.height) for image in study.images] == [
        ("deid_png/P1/A1/a.png", "PA", 30, 40),
        ("deid_png/P1/A1/b.png", "unknown", 30, 40),
    ]
    assert (study.patient, study.split, study.sex, study.age) == ("P1", "test", "M", 36)
    assert (study.date, study.order, study.prior) == (datetime.date(2020, 1, 2), 1, "P1_A0")
    assert [(section.name, section.text) for section in study.report.sections] == [
        ("indication", "Cough."),
        ("findings", "Clear lungs."),
    ]
    assert study.indication == "Cough."
    assert (studies["P1_A0"].age, studies["P1_A0"].images[0].view) == (0, "lateral")
    assert [(study, kind) for study, kind, _ in skips(imported)] == [("P2_A2", "image"), ("P3_A3", "json")]
    assert defects(imported) == {}


def test_studies_without_images_are_kept_by_option(folder, tmp_path):
    (folder / "deid_png/P1/A0/c.png").unlink()
    studies, imported = read_studies("rexgradient", folder, tmp_path / "out", missing_images="keep")
    assert (studies["P1_A0"].images[0].width, studies["P1_A0"].images[0].height) == (30, 40)
    assert defects(imported) == {"image missing": 1}
    _, imported = read_studies("rexgradient", folder, tmp_path / "skip")
    assert ("P1_A0", "image missing") in [(study, kind) for study, kind, _ in skips(imported)]


def test_missing_files_are_named(tmp_path):
    with pytest.raises(SourceError, match=r"test_metadata_view_position\.json: missing; put the JSON files"):
        import_studies("rexgradient", tmp_path / "empty", tmp_path / "out", workers=1)
