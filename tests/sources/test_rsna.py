"""RSNA in the forms of Kaggle and of MD.ai."""

import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies

LABELS = "patientId,x,y,width,height,Target"


def make_kaggle(tmp_path):
    path = tmp_path / "kaggle"
    write_text(
        path / "stage_2_train_labels.csv",
        LABELS,
        "a,,,,,0",
        "b,264.0,152.0,213.0,379.0,1",
        "b,562.0,152.0,256.0,453.0,1",
        "c,,,,,0",
    )
    write_text(
        path / "stage_2_detailed_class_info.csv",
        "patientId,class",
        "a,No Lung Opacity / Not Normal",
        "b,Lung Opacity",
        "b,Lung Opacity",
        "c,Normal",
    )
    for name in "abc":
        write_image(path / f"stage_2_train_images/{name}.png", 1024, 1024)
    return path


kaggle = pytest.fixture(make_kaggle, name="kaggle")


def test_every_field_of_a_study(kaggle, tmp_path):
    studies, imported = read_studies("rsna", kaggle, tmp_path / "out")
    assert list(studies) == ["a", "b", "c"]
    study = studies["b"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == (
        "stage_2_train_images/b.png",
        "unknown",
        1024,
        1024,
    )
    assert (study.patient, study.source, study.split) == ("b", "rsna", None)
    (opacity,) = study.findings
    assert (opacity.name, opacity.label, opacity.certainty) == ("lung opacity", "Lung Opacity", "present")
    assert boxes(opacity) == [
        ("consensus", "box", (264, 152, 213, 379)),
        ("consensus", "box", (562, 152, 256, 453)),
    ]
    assert (study.assessed.findings, study.assessed.listed) == ("listed", ("lung opacity",))
    assert (skips(imported), defects(imported)) == ([], {})


def test_images_without_opacity_are_normal_or_not(kaggle, tmp_path):
    studies, _ = read_studies("rsna", kaggle, tmp_path / "out")
    found = {name: [(f.name, f.label, f.certainty) for f in studies[name].findings] for name in "ac"}
    assert found == {
        "a": [("abnormality", "No Lung Opacity / Not Normal", "present")],
        "c": [("abnormality", "Normal", "absent")],
    }


def test_boxes_follow_a_smaller_copy_of_the_image(kaggle, tmp_path):
    for name in "abc":
        write_image(tmp_path / f"small/{name}.jpg", 512, 512)
    write_image(tmp_path / "small/c.jpg", 512, 300)
    studies, imported = read_studies("rsna", kaggle, tmp_path / "out", images=tmp_path / "small")
    assert studies["b"].images[0].key == "b.jpg"
    # 132 to 238.5 holds the centres 132.5 to 238.5: both edges count.
    assert boxes(studies["b"].findings[0])[0] == ("consensus", "box", (132, 76, 107, 190))
    assert [(item.study, item.kind) for item in imported.skipped] == [("c", "image")]


def test_dicom_files_must_be_converted_and_tables_alone_are_kept_on_request(kaggle, tmp_path):
    (kaggle / "stage_2_train_images/b.png").rename(kaggle / "stage_2_train_images/b.dcm")
    _, imported = read_studies("rsna", kaggle, tmp_path / "out")
    (item,) = imported.skipped
    assert (item.study, item.kind) == ("b", "image missing")
    assert "convert the DICOM files to PNG" in item.reason
    assert "--images" in item.reason
    studies, _ = read_studies("rsna", kaggle, tmp_path / "kept", missing_images="keep")
    assert len(studies["b"].findings[0].annotations) == 2


def test_bad_rows(kaggle, tmp_path):
    write_text(
        kaggle / "stage_2_train_labels.csv",
        LABELS,
        "a,nan,152.0,213.0,379.0,1",
        "a,0,0,10,10,1",
        "b,0,0,-10,10,1",
        "c,,,,,2",
        "d,1,2,3,4,1,extra",
    )
    studies, imported = read_studies("rsna", kaggle, tmp_path / "out")
    assert boxes(studies["a"].findings[0]) == [("consensus", "box", (0, 0, 10, 10))]
    assert (studies["b"].findings[0].name, studies["b"].findings[0].annotations) == ("lung opacity", ())
    # The class of a contradicts its boxes, which count.
    assert defects(imported) == {"region": 2, "conflict": 1}
    assert [(item.study, item.kind) for item in imported.skipped] == [("c", "value"), ("d", "row")]


def annotation(label, study, *, image=True, data=None, side=1024):
    found = {
        "labelId": label,
        "StudyInstanceUID": study,
        "data": data,
        "height": side,
        "width": side,
        "id": "A_1",
    }
    return found | ({"SeriesInstanceUID": "9", "SOPInstanceUID": f"{study}.1"} if image else {})


def test_the_form_of_md_ai(tmp_path):
    groups = [
        {"id": "G_0", "name": "Reader", "labels": [{"id": "L_x", "name": "Lung Opacity"}]},
        {
            "id": "G_1",
            "name": "Calculated",
            "labels": [
                {"id": "L_o8w", "name": "Normal"},
                {"id": "L_yd0", "name": "No Lung Opacity / Not Normal"},
                {"id": "L_v8n", "name": "Lung Opacity"},
            ],
        },
    ]
    box = {"x": 10, "y": 20.5, "width": 30, "height": 40}
    drawn = [
        annotation("L_v8n", "1.1", data=box),
        annotation("L_v8n", "1.1", data={**box, "x": 500}),
        annotation("L_x", "1.1", data={**box, "x": 0}),
        annotation("L_o8w", "1.2"),
        annotation("L_yd0", "1.3", image=False),
        # Drawn on another size than that of the published images.
        annotation("L_v8n", "1.4", data={"x": 20, "y": 41, "width": 60, "height": 80}, side=2048),
    ]
    path = tmp_path / "mdai"
    name = "pneumonia-challenge-annotations-adjudicated-kaggle_2018.json"
    write_json(path / name, {"labelGroups": groups, "datasets": [{"name": "x", "annotations": drawn}]})
    for study in ("1.1", "1.2", "1.4"):
        write_image(path / f"{study}/9/{study}.1.png", 1024, 1024)
    studies, imported = read_studies("rsna", path, tmp_path / "out")
    assert studies["1.1"].images[0].key == "1.1/9/1.1.1.png"
    assert boxes(studies["1.1"].findings[0]) == [
        ("consensus", "box", (10, 20, 30, 41)),
        ("consensus", "box", (500, 20, 30, 41)),
    ]
    assert boxes(studies["1.4"].findings[0]) == [("consensus", "box", (10, 20, 30, 41))]
    assert [(f.name, f.certainty) for f in studies["1.2"].findings] == [("abnormality", "absent")]
    assert [(item.study, item.kind) for item in imported.skipped] == [("1.3", "no image")]
    write_text(path / name, '{"labelGroups": []')
    with pytest.raises(SourceError, match=f"{name}: "):
        import_studies("rsna", path, tmp_path / "bad", workers=1)


def test_a_missing_table_says_what_to_put_where(tmp_path):
    with pytest.raises(
        SourceError, match=r"stage_2_train_labels\.csv: missing; put stage_2_train_labels\.csv of"
    ):
        import_studies("rsna", tmp_path, tmp_path.with_name("out"), workers=1)
