"""Open-i as XML and in the form of Kaggle."""

import csv
import io
import tarfile

import pytest
from tests.sources.files import REAL, defects, read_studies, skips, write_image

from carina.sources import SourceError, import_studies
from carina.trek import build_trek

XML = """<?xml version="1.0" encoding="utf-8"?>
<eCitation>
   <uId id="CXR{n}"/>
   <MedlineCitation><Article><Abstract>
      <AbstractText Label="COMPARISON">{comparison}</AbstractText>
      <AbstractText Label="INDICATION"/>
      <AbstractText Label="FINDINGS">{findings}</AbstractText>
      <AbstractText Label="IMPRESSION">{impression}</AbstractText>
   </Abstract></Article></MedlineCitation>
   <MeSH><major>normal</major></MeSH>
   {images}
</eCitation>"""
IMAGE = (
    '<parentImage id="{}"><figureId>F1</figureId><caption>Xray Chest PA and Lateral</caption></parentImage>'
)


def report(
    n, *images, findings="Lungs are clear. XXXX XXXX.", impression="No active disease.", comparison="None."
):
    shown = "".join(IMAGE.format(image) for image in images)
    return XML.format(n=n, comparison=comparison, findings=findings, impression=impression, images=shown)


def write_archive(path, reports):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in reports.items():
            content = text.encode()
            member = tarfile.TarInfo(f"ecgen-radiology/{name}.xml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_table(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


FIRST = ("CXR1_1_IM-0001-3001", "CXR1_1_IM-0001-4001")


def make_folder(tmp_path):
    path = tmp_path / "openi"
    write_archive(path / "NLMCXR_reports.tgz", {"1": report(1, *FIRST), "2": report(2, "CXR2_IM-0652-1001")})
    for name in (*FIRST, "CXR2_IM-0652-1001"):
        write_image(path / f"NLMCXR_png/{name}.png", 52, 42)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("openi", folder, tmp_path / "out")
    assert list(studies) == ["CXR1", "CXR2"]
    study = studies["CXR1"]
    assert (study.patient, study.source, study.order, study.indication) == ("CXR1", "openi", None, None)
    assert [(image.key, image.view, image.width, image.height) for image in study.images] == [
        (f"NLMCXR_png/{name}.png", "unknown", 52, 42) for name in FIRST
    ]
    assert [(section.name, section.text) for section in study.report.sections] == [
        ("comparison", "None."),
        ("findings", "Lungs are clear. XXXX XXXX."),
        ("impression", "No active disease."),
    ]
    assert (study.findings, study.devices, study.assessed.findings, study.assessed.text) == (
        (), (), "unknown", False,
    )  # fmt: skip
    assert (skips(imported), defects(imported), imported.counts.unmapped) == ([], {}, {"MeSH": 2})


def test_views_come_from_the_table_of_projections(folder, tmp_path):
    write_table(
        folder / "indiana_projections.csv",
        [
            ("uid", "filename", "projection"),
            (1, "1_IM-0001-3001.dcm.png", "Lateral"),
            (1, "1_IM-0001-4001.dcm.png", "Frontal"),
        ],
    )
    studies, _ = read_studies("openi", folder, tmp_path / "out")
    # The caption says that the frontal image is PA.
    assert [image.view for image in studies["CXR1"].images] == ["lateral", "PA"]
    assert studies["CXR2"].images[0].view == "unknown"


def test_unpacked_reports_give_the_same_studies(folder, tmp_path):
    packed, _ = read_studies("openi", folder, tmp_path / "packed")
    with tarfile.open(folder / "NLMCXR_reports.tgz") as archive:
        archive.extractall(folder, filter="data")
    (folder / "NLMCXR_reports.tgz").unlink()
    assert read_studies("openi", folder, tmp_path / "out")[0] == packed


def test_the_form_of_kaggle_gives_the_same_reports(tmp_path):
    path = tmp_path / "kaggle"
    path.mkdir()
    write_table(
        path / "indiana_reports.csv",
        [
            ("uid", "MeSH", "Problems", "image", "indication", "comparison", "findings", "impression"),
            (1, "normal", "normal", "Xray Chest AP", "Chest\npain", "None", "Lungs are clear.", ""),
            (2, "normal", "normal", "Xray Chest AP", "", "", "", ""),
            (3, "", "", "", "", "", "Clear.", ""),
        ],
    )
    write_table(
        path / "indiana_projections.csv",
        [
            ("uid", "filename", "projection"),
            (1, "1_IM-0001-4001.dcm.png", "Frontal"),
            (2, "2_IM-1.dcm.png", "Lateral"),
        ],
    )
    write_image(path / "images/images_normalized/1_IM-0001-4001.dcm.png", 52, 42)
    studies, imported = read_studies("openi", path, tmp_path / "out")
    study = studies["CXR1"]
    assert [(image.key, image.view) for image in study.images] == [
        ("images/images_normalized/1_IM-0001-4001.dcm.png", "AP")
    ]
    assert [(section.name, section.text) for section in study.report.sections] == [
        ("comparison", "None"),
        ("indication", "Chest\npain"),
        ("findings", "Lungs are clear."),
    ]
    assert study.indication == "Chest\npain"
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("CXR2", "no text"),
        ("CXR3", "no image"),
    ]


def test_reports_without_image_files_are_skipped_or_kept_without_a_size(folder, tmp_path):
    for name in (*FIRST[1:], "CXR2_IM-0652-1001"):
        (folder / f"NLMCXR_png/{name}.png").unlink()
    studies, imported = read_studies("openi", folder, tmp_path / "out")
    assert [image.key for image in studies["CXR1"].images] == [f"NLMCXR_png/{FIRST[0]}.png"]
    assert [(item.study, item.kind) for item in imported.skipped] == [("CXR2", "image missing")]
    assert "unpack NLMCXR_png.tgz" in imported.skipped[0].reason
    assert defects(imported) == {"image missing": 1}
    studies, imported = read_studies("openi", folder, tmp_path / "kept", missing_images="keep")
    sizes = {image.key: (image.width, image.height) for study in studies.values() for image in study.images}
    assert sorted(sizes.values()) == [(0, 0), (0, 0), (52, 42)]
    assert defects(imported) == {"image missing": 2}


def test_bad_documents_are_skipped_with_their_place(tmp_path):
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><eCitation><uId id="&a;"/></eCitation>'
    write_archive(
        tmp_path / "set/NLMCXR_reports.tgz",
        {
            "1": report(1, "CXR1_IM-1"),
            "2": report(2),
            "3": report(3, "CXR3_IM-1", findings="", impression="", comparison=""),
            "4": "<eCitation><uId",
            "5": bomb,
            "6": "<eCitation/>",
            "7": report(7, "../../CXR7"),
            "8": report(8, "CXR8_IM-1", findings="x" * (1 << 20)),
        },
    )
    studies, imported = read_studies("openi", tmp_path / "set", tmp_path / "out", missing_images="keep")
    assert list(studies) == ["CXR1"]
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("CXR2", "no image"),
        ("CXR3", "no text"),
        ("CXR4", "xml"),
        ("CXR5", "xml"),
        ("CXR6", "xml"),
        ("CXR7", "image"),
        ("CXR8", "xml"),
    ]
    assert all(f"ecgen-radiology/{item.study[3:]}.xml" in item.place for item in imported.skipped)


def test_missing_and_damaged_files_are_named(folder, tmp_path):
    with pytest.raises(
        SourceError, match=r"NLMCXR_reports\.tgz: missing; put NLMCXR_reports\.tgz, ecgen-radiology/"
    ):
        import_studies("openi", tmp_path, tmp_path.with_name("out"), workers=1)
    archive = folder / "NLMCXR_reports.tgz"
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(SourceError, match=r"NLMCXR_reports\.tgz: cannot be read"):
        import_studies("openi", folder, tmp_path / "cut", workers=1)


@pytest.mark.skipif(not (REAL / "openi").exists(), reason="needs the real reports beside the clone")
def test_the_real_reports_become_conversations(tmp_path):
    studies, imported = read_studies("openi", REAL / "openi", tmp_path / "out", missing_images="keep")
    # 48 reports name no image, 15 others have no text.
    assert (len(studies), len(imported.skipped)) == (1872, 63)
    assert sum(item.kind == "no image" for item in imported.skipped) == 48
    assert sum(study.report.text("findings") is not None for study in studies.values()) <= 1680
    assert all(section.text for study in studies.values() for section in study.report.sections)
    with pytest.warns(UserWarning, match="skipped"):
        few = import_studies(
            "openi", REAL / "openi", tmp_path / "few", options={"missing_images": "keep"}, limit=60, workers=1
        )
    assert build_trek(few, tmp_path / "bench", workers=1).build_report.conversations > 30
