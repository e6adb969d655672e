"""NIH ChestX-ray14 in its published layout."""

import pytest
from tests.sources.files import REAL, boxes, defects, read_studies, skips, write_image, write_text
from typer.testing import CliRunner

from carina.cli import app
from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of
from carina.sources.nih import LABELS
from carina.studies import certainty_of, states_no_abnormality

NEW = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)
OLD = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)
BOXES = "Image Index,Finding Label,Bbox [x,y,w,h],,,"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "nih"
    write_text(
        path / "Data_Entry_2017_v2020.csv",
        NEW,
        "00000808_007.png,Effusion|Infiltration,1,808,58,F,PA,2048,2560,0.2,0.1",
        "00000808_000.png,No Finding,11,808,61,F,AP,2500,2048,0.168,0.168",
        "00000009_000.png,Pleural_Thickening|Hernia,0,9,414,M,PA,2500,2048,0.168,0.168",
    )
    write_text(
        path / "BBox_List_2017.csv",
        BOXES,
        "00000808_007.png,Infiltrate,200.5,100.25,300,50.5,,,",
        "00000808_007.png,Pneumonia,0,0,10,10,,,",
        "00000001_000.png,Mass,0,0,10,10,,,",
    )
    for name in ("00000808_007.png", "00000808_000.png", "00000009_000.png"):
        write_image(path / "images" / name, 1024, 1024)
    return path


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("nih", folder, tmp_path / "out")
    assert list(studies) == ["00000808_007", "00000808_000", "00000009_000"]
    study = studies["00000808_007"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == ("images/00000808_007.png", "PA", 1024, 1024)
    # Rows: 0.1 mm of 2560 rows over 1024; columns: 0.2 mm of 2048 columns over 1024.
    assert image.spacing_mm == pytest.approx((0.25, 0.4))
    assert (study.patient, study.source, study.age, study.sex, study.split) == (
        "00000808",
        "nih",
        58,
        "F",
        None,
    )
    found = {finding.name: (finding.label, finding.certainty, boxes(finding)) for finding in study.findings}
    assert found == {
        "infiltration": ("Infiltrate", "present", [("radiologist", "box", (200, 100, 301, 51))]),
        "pneumonia": ("Pneumonia", "present", [("radiologist", "box", (0, 0, 10, 10))]),
        "pleural effusion": ("Effusion", "present", []),
    }
    # What the miner did not find in a report is not known, except where it says that there is nothing.
    assert (study.assessed.findings, study.assessed.listed) == ("unknown", ())
    assert (study.assessed.devices, study.assessed.text) == ("unknown", True)
    # Radiologists drew the others.
    assert study.assessed.by_program == ("pleural effusion",)
    normal = studies["00000808_000"]
    assert (normal.findings, normal.assessed.findings) == ((), "listed")
    assert normal.assessed.by_program == normal.assessed.listed  # mined from the report
    assert normal.assessed.listed == tuple(sorted(name_of(label) for label in LABELS))
    assert states_no_abnormality(normal) is None
    assert defects(imported) == {"unlisted box": 1}
    assert skips(imported) == [
        (
            "00000001_000.png",
            "not joined",
            "BBox_List_2017.csv: row 4: Image Index: has boxes but no row in Data_Entry_2017_v2020.csv",
        )
    ]


def test_labels_that_are_not_listed_are_absent_by_option(folder, tmp_path):
    studies, _ = read_studies("nih", folder, tmp_path / "out", unlisted="absent")
    listed = tuple(sorted(name_of(label) for label in LABELS))
    assert {study.assessed.listed for study in studies.values()} == {listed}


def test_no_finding_beside_a_box_says_nothing_of_the_rest(folder, tmp_path):
    with (folder / "BBox_List_2017.csv").open("a") as file:
        file.write("00000808_000.png,Mass,5,5,10,10,,,\n")
    studies, imported = read_studies("nih", folder, tmp_path / "out")
    study = studies["00000808_000"]
    assert [finding.name for finding in study.findings] == ["mass"]
    assert study.assessed.findings == "unknown"
    assert defects(imported) == {"unlisted box": 2, "conflict": 1}


def test_no_finding_beside_a_label_is_a_conflict(folder, tmp_path):
    write_text(
        folder / "Data_Entry_2017_v2020.csv",
        NEW,
        "00000009_000.png,No Finding|Effusion,0,9,41,M,PA,2500,2048,0.168,0.168",
    )
    studies, imported = read_studies("nih", folder, tmp_path / "out")
    study = studies["00000009_000"]
    assert [(one.name, one.certainty) for one in study.findings] == [("pleural effusion", "present")]
    assert study.assessed.listed == ()
    assert defects(imported)["conflict"] == 1


def test_the_order_is_that_of_the_release_of_2020_not_of_the_file_names(folder, tmp_path):
    studies, _ = read_studies("nih", folder, tmp_path / "out")
    first, last, only = (studies[name] for name in ("00000808_007", "00000808_000", "00000009_000"))
    assert (first.order, first.prior, first.later) == (0, None, "00000808_000")
    assert (last.order, last.prior, last.later) == (1, "00000808_007", None)
    # The data set holds an age of 414 years.
    assert (only.order, only.age) == (0, None)


def test_the_first_release_has_no_order_and_other_conventions(folder, tmp_path):
    (folder / "Data_Entry_2017_v2020.csv").unlink()
    write_text(
        folder / "Data_Entry_2017.csv",
        OLD,
        "00000808_007.png,Effusion,007,00000808,058Y,F,PA,2048,2560,0.2,0.1",
        "00000808_000.png,No Finding,000,00000808,061Y,F,AP,2500,2048,0.168,0.168",
        end="\r\n",
    )
    studies, _ = read_studies("nih", folder, tmp_path / "out")
    study = studies["00000808_007"]
    assert (study.patient, study.age, study.order, study.later) == ("00000808", 58, None, None)


def test_the_reread_counts_more_than_labels_and_boxes(folder, tmp_path):
    google = write_text(
        tmp_path / "google.csv",
        "Image Index,Patient ID,Set Id,Fracture,Pneumothorax,Airspace opacity,Nodule or mass",
        "00000808_007.png,808,Test,YES,NO,YES,NO",
    )
    studies, _ = read_studies("nih", folder, tmp_path / "out", google=google)
    study = studies["00000808_007"]
    found = {finding.name: finding.certainty for finding in study.findings}
    assert found["fracture"] == "present"
    assert found["pneumothorax"] == "absent"
    assert "fracture" in study.assessed.listed
    assert "fracture" not in studies["00000808_000"].assessed.listed


def reread(folder, tmp_path, labels, answers, **options):
    """One image with mined labels, and what the re-read answers: fracture, pneumothorax, opacity, nodule or mass."""
    (folder / "BBox_List_2017.csv").unlink()
    write_text(
        folder / "Data_Entry_2017_v2020.csv",
        NEW,
        f"00000808_007.png,{labels},0,808,58,F,PA,2048,2560,0.2,0.1",
    )
    google = write_text(
        tmp_path / "google.csv",
        "Image Index,Patient ID,Set Id,Fracture,Pneumothorax,Airspace opacity,Nodule or mass",
        f"00000808_007.png,808,Test,{answers}",
    )
    studies, imported = read_studies("nih", folder, tmp_path / "out", google=google, **options)
    return studies["00000808_007"], defects(imported)


@pytest.mark.parametrize(
    ("labels", "answers", "expected"),
    [
        ("Nodule|Mass|Consolidation|Effusion", "NO,NO,NO,NO", ({"pleural effusion"}, 3)),
        ("Nodule|Consolidation", "NO,NO,YES,NO", ({"consolidation", "lung opacity"}, 1)),
        ("Nodule|Consolidation", "NO,NO,NO,YES", ({"nodule", "nodule or mass"}, 1)),
        ("Infiltration|Edema|Atelectasis|Pneumonia", "NO,NO,NO,NO", (set(), 4)),
        ("Pneumothorax", "NO,NO,NO,NO", (set(), 1)),
        ("Fibrosis|Emphysema|Cardiomegaly", "NO,NO,NO,NO", ({"fibrosis", "emphysema", "cardiomegaly"}, 0)),
    ],
)
def test_the_reread_counts_more_than_labels_of_a_narrower_name(labels, answers, expected, folder, tmp_path):
    study, counted = reread(folder, tmp_path, labels, answers)
    present = {finding.name for finding in study.findings if finding.certainty == "present"}
    assert (present, counted.get("conflict", 0)) == expected


@pytest.mark.parametrize(("label", "answer"), [("Pneumothorax", "NO"), ("Fibrosis", "YES")])
def test_the_reread_counts_more_than_a_label_of_the_same_name(label, answer, folder, tmp_path):
    study, _ = reread(folder, tmp_path, label, f"NO,{answer},NO,NO")
    assert certainty_of(study, "pneumothorax") == ("present" if answer == "YES" else "absent")
    assert study.assessed.disputed == ()


def test_a_box_of_what_the_reread_denies_is_left_out_and_counted(folder, tmp_path):
    google = write_text(
        tmp_path / "google.csv",
        "Image Index,Patient ID,Set Id,Fracture,Pneumothorax,Airspace opacity,Nodule or mass",
        "00000808_007.png,808,Test,NO,NO,NO,NO",
    )
    without, _ = read_studies("nih", folder, tmp_path / "without")
    assert any(one.annotations for one in without["00000808_007"].findings if one.name == "infiltration")
    studies, imported = read_studies("nih", folder, tmp_path / "out", google=google)
    assert "infiltration" not in {finding.name for finding in studies["00000808_007"].findings}
    assert defects(imported)["conflict"] >= 1


@pytest.mark.parametrize("unlisted", ["unknown", "absent"])
def test_a_nodule_or_mass_of_the_reread_leaves_open_which_it_is(unlisted, folder, tmp_path):
    study, _ = reread(folder, tmp_path, "No Finding", "NO,NO,NO,YES", unlisted=unlisted)
    assert certainty_of(study, "nodule or mass") == "present"
    assert (certainty_of(study, "nodule"), certainty_of(study, "mass")) == (None, None)
    assert certainty_of(study, "cardiomegaly") == (None if unlisted == "unknown" else "absent")


def test_images_lie_in_one_folder_or_in_twelve(folder, tmp_path):
    (folder / "images_002/images").mkdir(parents=True)
    (folder / "images/00000808_000.png").rename(folder / "images_002/images/00000808_000.png")
    studies, _ = read_studies("nih", folder, tmp_path / "out")
    assert studies["00000808_000"].images[0].key == "images_002/images/00000808_000.png"


def test_bad_rows_are_skipped_with_their_place(folder, tmp_path):
    write_text(
        folder / "Data_Entry_2017_v2020.csv",
        NEW,
        "00000808_007.png,Effusion,0,808,58,F,PA,2048,2560,0.2,0.1",
        "00000808_007.png,Mass,1,808,58,F,PA,2048,2560,0.2,0.1",
        "../../secret.png,Mass,0,5,58,F,PA,2048,2560,0.2,0.1",
        "00000004_000.png,Mass,0,4,58,F,PA,2048,2560,0.2,0.1",
        "00000003_000.png,Mass,0,x,58,F,PA,2048,2560,0.2,0.1",
        ",Mass,0,2,58,F,PA,2048,2560,0.2,0.1",
        "00000002_000.png,,0,2,58,F,PA,2048,2560,0.2,0.1",
    )
    (folder / "BBox_List_2017.csv").unlink()
    studies, imported = read_studies("nih", folder, tmp_path / "out")
    assert list(studies) == ["00000808_007"]
    assert [(item.kind, item.field) for item in imported.skipped] == [
        ("duplicate", "Image Index"),
        ("image", "image"),
        ("image missing", "image"),
        ("number", "Patient ID"),
        ("empty", "Image Index"),
        ("image missing", "image"),
    ]
    kept, _ = read_studies("nih", folder, tmp_path / "kept", missing_images="keep")
    assert set(kept) == {"00000808_007", "00000004_000"}


def test_a_missing_table_says_what_to_put_where(tmp_path):
    with pytest.raises(
        SourceError, match=r"Data_Entry_2017_v2020\.csv: missing; put the table of labels beside"
    ):
        import_studies("nih", tmp_path, tmp_path.with_name("out"), workers=1)


@pytest.mark.skipif(not (REAL / "nih").exists(), reason="needs the real images beside the clone")
def test_the_real_images(tmp_path):
    studies, imported = read_studies("nih", REAL / "nih", tmp_path / "out")
    assert (len(studies), imported.skipped) == (105, [])
    drawn = [one for study in studies.values() for finding in study.findings for one in finding.annotations]
    assert len(drawn) == 44
    assert sum(bool(s.prior) for s in studies.values()) >= 20
    follow_up = studies["00000808_007"]
    assert follow_up.order is not None
    assert follow_up.order < studies["00000808_000"].order


def test_a_set_without_its_images_names_the_option_and_exits_with_1(folder, tmp_path):
    for image in (folder / "images").iterdir():
        image.unlink()
    command = ["import", "nih", str(folder), "-o", str(tmp_path / "out"), "--workers", "1"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "--missing-images keep" in result.stderr.splitlines()[-1]
    result = CliRunner().invoke(app, [*command, "--missing-images", "keep"])
    assert result.exit_code == 0
    assert "--missing-images" not in result.stderr
