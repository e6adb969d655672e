"""MS-CXR in its published layouts, with invented ids."""

import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.ground import build_ground
from carina.sources import SourceError, import_studies

OLD = "dicom_id,category_name,label_text,x,y,w,h,image_width,image_height"
NEW = "dicom_id,category_name,label_text,path,x,y,w,h,image_width,image_height,split"
PATH = "files/p19/p19000001/s59000001/aaaa-1.jpg"


def make_folder(tmp_path):
    path = tmp_path / "ms-cxr"
    write_text(
        path / "MS_CXR_Local_Alignment_v1.1.0.csv",
        NEW,
        f"aaaa-1,Pneumonia,Left basilar  opacity,{PATH},10,20,5,6,60,50,test",
        f"aaaa-1,Pneumonia,left basilar opacity,{PATH},30,20,5,6,60,50,test",
        f'aaaa-1,Pleural Effusion,"small, left effusion",{PATH},1,2,3,4,60,50,test',
        "bbbb-1,Edema,edema,files/p19/p19000002/s59000002/bbbb-1.jpg,90,90,3,4,60,50,val",
    )
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("ms-cxr", folder, tmp_path / "out", missing_images="keep")
    assert list(studies) == ["s59000001", "s59000002"]
    study = studies["s59000001"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == (PATH, "unknown", 60, 50)
    assert (study.patient, study.split, study.source) == ("p19000001", "test", "ms-cxr")
    pneumonia, effusion = study.findings
    who = "radiologists of MS-CXR"
    assert (pneumonia.name, pneumonia.label, boxes(pneumonia)) == (
        "pneumonia",
        "Pneumonia",
        [(who, "box", (10, 20, 5, 6)), (who, "box", (30, 20, 5, 6))],
    )
    assert boxes(effusion) == [(who, "box", (1, 2, 3, 4))]
    sentences = study.report.sentences
    assert [study.report.quote(sentence) for sentence in sentences] == [
        "Left basilar  opacity",
        "small, left effusion",
    ]
    assert [[state.about for state in sentence.states] for sentence in sentences] == [["f1"], ["f2"]]
    assert (pneumonia.evidence, effusion.evidence) == ((0,), (1,))
    assert (study.assessed.findings, study.assessed.text) == ("unknown", False)
    # A box outside its image is lost; that the phrase names the finding is not.
    assert (studies["s59000002"].findings[0].name, studies["s59000002"].split) == ("edema", "val")
    assert defects(imported) == {"region": 1}


def test_both_forms_give_the_same_studies(folder, tmp_path):
    text, _ = read_studies("ms-cxr", folder, tmp_path / "text", missing_images="keep")
    (folder / "MS_CXR_Local_Alignment_v1.1.0.csv").unlink()
    rows = [
        (1, 7, [10, 20, 5, 6], "Left basilar  opacity"),
        (1, 7, [30, 20, 5, 6], "left basilar opacity"),
        (1, 8, [1, 2, 3, 4], "small, left effusion"),
        (2, 9, [90, 90, 3, 4], "edema"),
    ]
    write_json(
        folder / "MS_CXR_Local_Alignment_v1.1.0.json",
        {
            "info": {},
            "images": [
                {"id": 1, "file_name": "aaaa-1.jpg", "path": PATH, "split": "test"},
                {
                    "id": 2,
                    "file_name": "bbbb-1.jpg",
                    "path": "files/p19/p19000002/s59000002/bbbb-1.jpg",
                    "split": "val",
                },
            ],
            "annotations": [
                {
                    "id": n,
                    "image_id": i,
                    "category_id": c,
                    "bbox": b,
                    "label_text": t,
                    "width": 60,
                    "height": 50,
                }
                for n, (i, c, b, t) in enumerate(rows)
            ],
            "categories": [
                {"id": 7, "name": "Pneumonia"},
                {"id": 8, "name": "Pleural Effusion"},
                {"id": 9, "name": "Edema"},
            ],
        },
    )
    json, _ = read_studies("ms-cxr", folder, tmp_path / "json", missing_images="keep")
    assert json == text


def test_release_1_0_names_no_patient(tmp_path):
    table = write_text(
        tmp_path / "in/MS_CXR_Local_Alignment_v1.0.0.csv", OLD, "aaaa-1,Edema,edema,1,2,3,4,60,50"
    )
    studies, imported = read_studies("ms-cxr", table, tmp_path / "out", missing_images="keep")
    study = studies["aaaa-1"]
    assert (study.patient, study.split, study.images[0].key) == ("aaaa-1", None, "aaaa-1.jpg")
    assert defects(imported) == {"patient": 1}


def test_ground_asks_for_the_phrases(folder, tmp_path):
    write_image(folder / PATH, 60, 50)
    with pytest.warns(UserWarning, match="1 record skipped"):
        studies = import_studies("ms-cxr", folder, tmp_path / "out", workers=1)
    bench = build_ground(studies, tmp_path / "bench", ask="phrase", absent=0, workers=1)
    asked = {case.target: case.steps[0].question for case in bench}
    assert asked.keys() == {"pneumonia", "pleural effusion"}
    assert "“small, left effusion”" in asked["pleural effusion"]


def test_rows_that_cannot_be_used(folder, tmp_path):
    write_text(
        folder / "MS_CXR_Local_Alignment_v1.1.0.csv",
        NEW,
        f"aaaa-1,Pneumonia,opacity,{PATH},x,20,5,6,60,50,test",
        f"aaaa-1,Pneumonia,,{PATH},1,20,5,6,60,50,test",
        f"aaaa-1,Pneumonia,opacity,{PATH},1,20,5,6,60,50,perhaps",
    )
    _, imported = read_studies("ms-cxr", folder, tmp_path / "out")
    assert [(kind, message) for _, kind, message in skips(imported)] == [
        ("number", "MS_CXR_Local_Alignment_v1.1.0.csv: row 2: x: is 'x', expected a number"),
        ("empty", "MS_CXR_Local_Alignment_v1.1.0.csv: row 3: label_text: is empty"),
        (
            "split",
            "MS_CXR_Local_Alignment_v1.1.0.csv: row 4: split: is 'perhaps', expected train, val or test",
        ),
    ]
    with pytest.raises(SourceError, match=r"missing; put MS_CXR_Local_Alignment_v1\.1\.0\.csv"):
        import_studies("ms-cxr", tmp_path / "empty", tmp_path / "none", workers=1)
