"""TBX11K as COCO files and in the simplified form of Kaggle."""

import csv
import json

import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of
from carina.studies import certainty_of

CATEGORIES = [
    {"id": 1, "name": "ActiveTuberculosis", "supercategory": "TB"},
    {"id": 2, "name": "ObsoletePulmonaryTuberculosis", "supercategory": "TB"},
    {"id": 3, "name": "PulmonaryTuberculosis", "supercategory": "TB"},
]
KINDS = tuple(category["name"] for category in CATEGORIES)
LISTED = tuple(sorted({name_of(category["name"]) for category in CATEGORIES}))


def make_coco(tmp_path):
    path = tmp_path / "tbx"
    images = [
        {"id": 1, "file_name": "tb/tb0005.png", "width": 512, "height": 512},
        {"id": 2, "file_name": "health/h0001.png", "width": 512, "height": 512},
        {"id": 3, "file_name": "sick/s0001.png", "width": 512, "height": 512},
        {"id": 4, "file_name": "tb/tb1199.png", "width": 512, "height": 512},
    ]
    drawn = [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10.5, 20, 30, 40], "area": 1200, "iscrowd": 0},
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [100, 20, 30, 40], "area": 1200, "iscrowd": 0},
        {"id": 3, "image_id": 1, "category_id": 1, "bbox": [600, 20, 30, 40], "area": 1200, "iscrowd": 0},
    ]
    export = {"info": {}, "images": images, "categories": CATEGORIES, "annotations": drawn}
    write_json(path / "annotations/json/TBX11K_train.json", export)
    write_json(
        path / "annotations/json/TBX11K_val.json",
        {"images": [{"id": 1, "file_name": "health/h0002.png"}], "categories": CATEGORIES, "annotations": []},
    )
    for name in ("tb/tb0005", "health/h0001", "sick/s0001", "tb/tb1199", "health/h0002"):
        write_image(path / f"imgs/{name}.png", 512, 512)
    return path


coco = pytest.fixture(make_coco, name="coco")


def findings(study):
    return {f.name: (f.label, f.certainty, boxes(f)) for f in study.findings}


def test_every_field_of_a_study(coco, tmp_path):
    studies, imported = read_studies("tbx11k", coco, tmp_path / "out")
    assert list(studies) == ["tb0005", "h0001", "s0001", "tb1199", "h0002"]
    study = studies["tb0005"]
    assert (study.images[0].key, study.images[0].width) == ("imgs/tb/tb0005.png", 512)
    assert (study.patient, study.source, study.split, studies["h0002"].split) == (
        "tb0005",
        "tbx11k",
        "train",
        "val",
    )
    found = findings(study)
    assert found[name_of("ActiveTuberculosis")][1:] == (
        "present",
        [("radiologists", "box", (10, 20, 31, 40))],
    )
    assert found[name_of("ObsoletePulmonaryTuberculosis")][2] == [("radiologists", "box", (100, 20, 30, 40))]
    assert found[name_of("PulmonaryTuberculosis")] == ("tb", "present", [])
    assert (study.assessed.findings, study.assessed.listed) == ("listed", LISTED)
    assert (skips(imported), defects(imported)) == ([], {"region": 1})


def test_the_folder_tells_healthy_sick_and_tuberculosis(coco, tmp_path):
    studies, _ = read_studies("tbx11k", coco, tmp_path / "out")
    assert findings(studies["h0001"]) == {"abnormality": ("health", "absent", [])}
    assert findings(studies["s0001"]) == {"abnormality": ("sick", "present", [])}
    # An image of tuberculosis on which nothing is drawn.
    assert findings(studies["tb1199"]) == {name_of("PulmonaryTuberculosis"): ("tb", "present", [])}


def test_no_kind_is_absent_where_the_kind_of_a_tuberculosis_is_not_told(tmp_path):
    path = make_coco(tmp_path)
    file = path / "annotations/json/TBX11K_train.json"
    export = json.loads(file.read_text())
    (unknown,) = (one["id"] for one in CATEGORIES if one["name"] == "PulmonaryTuberculosis")
    export["annotations"][0]["category_id"] = unknown
    export["annotations"] = export["annotations"][:1]
    write_json(file, export)
    studies, _ = read_studies("tbx11k", path, tmp_path / "out")
    for name in ("tb0005", "tb1199"):  # one box of unknown kind; no box
        told = {kind: certainty_of(studies[name], name_of(kind)) for kind in KINDS}
        assert told == {
            "ActiveTuberculosis": None,
            "ObsoletePulmonaryTuberculosis": None,
            "PulmonaryTuberculosis": "present",
        }
    assert {certainty_of(studies["h0001"], name_of(kind)) for kind in KINDS} == {"absent"}


def test_the_simplified_form(tmp_path):
    path = tmp_path / "simple"
    path.mkdir()
    box = "{'xmin': 10, 'ymin': 20.0, 'width': 30, 'height': 40}"
    rows = [
        ("fname", "image_height", "image_width", "source", "bbox", "target", "tb_type", "image_type"),
        ("tb0005.png", 512, 512, "train", box, "tb", "active_tb", "tb"),
        ("tb0005.png", 512, 512, "train", box.replace("10", "200"), "tb", "latent_tb", "tb"),
        ("h0001.png", 512, 512, "val", "none", "no_tb", "none", "healthy"),
        ("s0001.png", 512, 512, "train", "none", "no_tb", "none", "sick_but_no_tb"),
        ("tb0006.png", 512, 512, "train", "__import__('os').getcwd()", "tb", "active_tb", "tb"),
        ("tb0007.png", 512, 512, "train", "{" * 500, "tb", "active_tb", "tb"),
    ]
    with (path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    for name in ("tb0005", "h0001", "s0001", "tb0006", "tb0007"):
        write_image(path / f"images/{name}.png", 512, 512)
    studies, imported = read_studies("tbx11k", path, tmp_path / "out")
    found = findings(studies["tb0005"])
    assert found[name_of("ActiveTuberculosis")] == (
        "active_tb",
        "present",
        [("radiologists", "box", (10, 20, 30, 40))],
    )
    assert found[name_of("ObsoletePulmonaryTuberculosis")][2] == [("radiologists", "box", (200, 20, 30, 40))]
    assert studies["tb0005"].images[0].key == "images/tb0005.png"
    assert (studies["h0001"].split, findings(studies["h0001"])) == (
        "val",
        {"abnormality": ("healthy", "absent", [])},
    )
    assert findings(studies["s0001"]) == {"abnormality": ("sick_but_no_tb", "present", [])}
    assert [(item.study, item.kind, item.field) for item in imported.skipped] == [
        ("tb0006", "box", "bbox"),
        ("tb0007", "box", "bbox"),
    ]


def test_missing_and_damaged_files_are_named(coco, tmp_path):
    with pytest.raises(
        SourceError, match=r"TBX11K_train\.json: missing; put the COCO files there, or data\.csv"
    ):
        import_studies("tbx11k", tmp_path, tmp_path.with_name("out"), workers=1)
    write_text(coco / "annotations/json/TBX11K_train.json", '{"images": [{"id": "x"}]}')
    with pytest.raises(SourceError, match=r"TBX11K_train\.json: images\[0\]"):
        import_studies("tbx11k", coco, tmp_path / "bad", workers=1)
