"""VinDr-CXR in the forms of PhysioNet and of Kaggle."""

import pytest
from tests.sources.files import boxes, defect_rows, defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_source, import_studies
from carina.sources._labels import name_of
from carina.sources.vindr_cxr import COMPETITION_LABELS, LOCAL_LABELS
from carina.studies import certainty_of

BOXES = "image_id,rad_id,class_name,x_min,y_min,x_max,y_max"
LABELS = "image_id,rad_id,Atelectasis,Pneumonia,Other diseases,No finding"


def make_physionet(tmp_path):
    path = tmp_path / "vindr"
    notes = path / "annotations"
    write_text(
        notes / "annotations_train.csv",
        BOXES,
        "a,R10,Atelectasis,10.5,20,40.5,60",
        "a,R9,Atelectasis,12,20,42,60",
        "a,R9,Atelectasis,60,20,70,30",
        "a,R8,Cardiomegaly,5,50,90,80",
        "b,R8,No finding,,,,",
        "b,R9,No finding,,,,",
        "b,R10,No finding,,,,",
    )
    write_text(
        notes / "image_labels_train.csv",
        LABELS,
        "a,R10,1,1,0,0",
        "a,R9,1,0,0,0",
        "a,R8,0,0,1,0",
        *(f"b,{reader},0,0,0,1" for reader in ("R8", "R9", "R10")),
    )
    write_text(
        notes / "annotations_test.csv",
        "image_id,class_name,x_min,y_min,x_max,y_max",
        "c,Pleural effusion,1,2,11,22",
    )
    write_text(
        notes / "image_labels_test.csv",
        "image_id,Pleural effusion,Other disease,No finding",
        "c,1.0,1,0",
        "d,0,0,1",
    )
    for name in ("train/a", "train/b", "test/c"):
        write_image(path / f"{name}.png", 100, 90)
    return path


physionet = pytest.fixture(make_physionet, name="physionet")


def test_every_field_of_a_study(physionet, tmp_path):
    studies, imported = read_studies("vindr-cxr", physionet, tmp_path / "out")
    assert list(studies) == ["a", "b", "c"]
    study = studies["a"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == ("train/a.png", "unknown", 100, 90)
    assert (study.patient, study.source, study.split) == ("a", "vindr-cxr", "train")
    found = {f.name: (f.label, f.certainty, boxes(f)) for f in study.findings}
    # Readers stay apart. Two of three state atelectasis; one of three each of the others.
    assert found == {
        "atelectasis": (
            "Atelectasis",
            "present",
            [
                ("R10", "box", (10, 20, 31, 40)),
                ("R9", "box", (12, 20, 30, 40)),
                ("R9", "box", (60, 20, 10, 10)),
            ],
        ),
        "pneumonia": ("Pneumonia", "uncertain", []),
        name_of("Other disease"): ("Other diseases", "uncertain", []),
        "cardiomegaly": ("Cardiomegaly", "uncertain", [("R8", "box", (5, 50, 85, 30))]),
    }
    assert study.assessed.readers == ("R10", "R8", "R9")
    assert {f.name: f.stated_by for f in study.findings} == {
        "atelectasis": ("R10", "R9"),
        "pneumonia": ("R10",),
        name_of("Other disease"): ("R8",),
        "cardiomegaly": ("R8",),
    }
    assert study.assessed.findings == "listed"
    # The classes of the boxes, and the columns of the table of labels: it has none for tuberculosis.
    columns = ("Atelectasis", "Pneumonia", "Other disease")
    assert study.assessed.listed == tuple(sorted({name_of(label) for label in (*LOCAL_LABELS, *columns)}))
    assert certainty_of(study, "tuberculosis") is None
    assert certainty_of(study, "pneumothorax") == "absent"
    assert defects(imported) == {}
    assert [(item.study, item.kind) for item in imported.skipped] == [("d", "not joined")]


def test_an_image_that_all_readers_call_normal(physionet, tmp_path):
    studies, _ = read_studies("vindr-cxr", physionet, tmp_path / "out")
    assert [(f.name, f.label, f.certainty) for f in studies["b"].findings] == [
        ("abnormality", "No finding", "absent")
    ]
    assert studies["b"].assessed.readers == ("R10", "R8", "R9")


def test_the_test_images_are_a_consensus(physionet, tmp_path):
    studies, _ = read_studies("vindr-cxr", physionet, tmp_path / "out")
    study = studies["c"]
    assert study.split == "test"
    assert study.assessed.readers == ()  # one consensus is no set of readers
    found = {f.name: (f.label, f.certainty, boxes(f)) for f in study.findings}
    assert found["pleural effusion"] == (
        "Pleural effusion",
        "present",
        [("consensus", "box", (1, 2, 10, 20))],
    )
    # The test images say "Other disease" where the training images say "Other diseases".
    assert found[name_of("Other disease")][1] == "present"


def make_kaggle(tmp_path):
    path = tmp_path / "kaggle"
    write_text(
        path / "train.csv",
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max",
        "a,Nodule/Mass,8,R1,100,200,300,400",
        "a,No finding,14,R2,,,,",
        "a,No finding,14,R3,,,,",
        "b,Cardiomegaly,3,R1,nan,200,300,400",
        "b,Cardiomegaly,3,R2,100,200,50,400",
        "b,Cardiomegaly,3,R3,,,,",
    )
    return path


kaggle = pytest.fixture(make_kaggle, name="kaggle")


def test_the_form_of_the_competition_with_smaller_images_and_a_table_of_sizes(kaggle, tmp_path):
    for name in "ab":
        write_image(tmp_path / f"png/{name}.png", 256, 320)
    sizes = write_text(tmp_path / "train_meta.csv", "image_id,dim0,dim1", "a,1280,1024", "b,1280,1024")
    studies, imported = read_studies(
        "vindr-cxr", kaggle, tmp_path / "out", images=tmp_path / "png", sizes=sizes
    )
    (mass,) = studies["a"].findings
    assert (mass.label, mass.certainty) == ("Nodule/Mass", "uncertain")
    assert boxes(mass) == [("R1", "box", (25, 50, 50, 50))]
    assert studies["a"].assessed.listed == tuple(sorted(name_of(label) for label in COMPETITION_LABELS))
    assert [(f.certainty, f.annotations) for f in studies["b"].findings] == [("present", ())]
    assert (skips(imported), defects(imported)) == ([], {"region": 3})


def test_images_are_needed_or_their_sizes(kaggle, tmp_path):
    _, imported = read_studies("vindr-cxr", kaggle, tmp_path / "out", missing_images="keep")
    assert imported.is_empty
    assert all("--sizes" in item.reason for item in imported.skipped)
    sizes = write_text(tmp_path / "s.csv", "image_id,width,height", "a,1024,1280")
    studies, _ = read_studies("vindr-cxr", kaggle, tmp_path / "kept", missing_images="keep", sizes=sizes)
    assert list(studies) == ["a"]
    assert (studies["a"].images[0].width, studies["a"].images[0].height) == (1024, 1280)
    assert boxes(studies["a"].findings[0]) == [("R1", "box", (100, 200, 200, 200))]
    write_text(sizes, "image_id,w,h", "a,1,2")
    with pytest.raises(SourceError, match=r"s\.csv: row 2: expected the columns width and height"):
        import_studies("vindr-cxr", kaggle, tmp_path / "no", options={"sizes": sizes}, workers=1)


def test_missing_annotations_say_what_to_put_where(tmp_path):
    with pytest.raises(SourceError, match=r"annotations_train\.csv: missing; put annotations/ of PhysioNet"):
        import_studies("vindr-cxr", tmp_path, tmp_path.with_name("out"), workers=1)


def test_a_table_that_is_not_utf_8_is_named(tmp_path):
    text = "image_id,class_name,rad_id,x_min,y_min,x_max,y_max\na,Nodule/Mass,M\u00fcller,1,2,3,4\n"
    (tmp_path / "in").mkdir()
    (tmp_path / "in/train.csv").write_bytes(text.encode("cp1252"))
    write_image(tmp_path / "in/train/a.png", 20, 20)
    imported = import_source("vindr-cxr", tmp_path / "in", tmp_path / "out", workers=1)
    assert imported.plan.lines == ("Notice: train.csv: not UTF-8, and read as Windows-1252 (cp1252)",)


def test_a_box_that_cannot_be_drawn_is_listed_with_its_row(tmp_path):
    path = tmp_path / "vindr"
    table = path / "annotations" / "annotations_train.csv"
    write_text(
        table,
        BOXES,
        "a,R1,Atelectasis,10,20,40,60",
        "b,R1,Atelectasis,10,20,40,60",
        "a,R2,Atelectasis,50,60,40,30",
    )
    write_text(path / "annotations" / "image_labels_train.csv", LABELS)
    for name in ("a", "b"):
        write_image(path / "train" / f"{name}.png", 100, 90)
    _, imported = read_studies("vindr-cxr", path, tmp_path / "out")
    assert defect_rows(imported) == [("region", "a", "annotations/annotations_train.csv", "4")]


def test_boxes_on_images_that_were_made_smaller_are_noticed(physionet, tmp_path):
    for name in ("train/a", "train/b", "test/c"):
        write_image(physionet / f"{name}.png", 50, 45)
    imported = import_source("vindr-cxr", physionet, tmp_path / "out", workers=1)
    # Of five boxes, that from (60, 20) lies outside, and so does that from (5, 50); two reach over the border.
    assert defects(imported) == {"region": 2, "cut": 2}
    assert any("2 of 5 regions are cut off" in notice and "--sizes" in notice for notice in imported.notices)
