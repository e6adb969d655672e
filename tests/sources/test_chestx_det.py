"""ChestX-Det and ChestX-Det10 in their published layouts."""

import json

import pytest
from tests.sources.files import REAL, boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of
from carina.sources.chestx_det import LABELS, LABELS_OF_TEN

RING = [[100, 200], [100, 200], [140, 200], [140, 260], [100, 260]]
"""A ring as the authors write it: the first point comes twice."""


def record(name, *instances):
    labels, drawn, polygons = zip(*instances, strict=True) if instances else ((), (), ())
    return {"file_name": name, "syms": labels, "boxes": drawn, "polygons": polygons}


def make_folder(tmp_path):
    path = tmp_path / "set"
    instances = [
        ("Effusion", [100, 200, 140, 260], RING),
        ("Effusion", [500, 500, 510, 520], [[500, 500], [510, 500], [510, 520], [500, 520]]),
        ("Diffuse Nodule", [0, 0, 20, 10], [[0, 0], [20, 0], [20, 10], [0, 10]]),
    ]
    write_json(path / "ChestX_Det_train.json", [record("36302.png", *instances), record("36199.png")])
    write_json(path / "ChestX_Det_test.json", [record("40000.png")])
    write_image(path / "train_data/36302.png", 1024, 1024)
    write_image(path / "train_data/36199.png", 1024, 1024)
    write_image(path / "test_data/40000.png", 1024, 1024)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("chestx-det", folder, tmp_path / "out")
    assert list(studies) == ["36302", "36199", "40000"]
    study = studies["36302"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == (
        "train_data/36302.png",
        "unknown",
        1024,
        1024,
    )
    assert (study.patient, study.source, study.split, study.order) == ("36302", "chestx-det", "train", None)
    effusion, nodules = study.findings
    assert (effusion.name, effusion.label, effusion.certainty) == ("pleural effusion", "Effusion", "present")
    assert boxes(effusion) == [
        ("three radiologists", "polygon", (100, 200, 40, 60)),
        ("three radiologists", "polygon", (500, 500, 10, 20)),
    ]
    assert [one.region.area for one in effusion.annotations] == [2400, 200]
    assert (nodules.name, len(nodules.annotations)) == (name_of("Diffuse Nodule"), 1)
    assert (study.assessed.findings, study.assessed.devices) == ("listed", "unknown")
    assert study.assessed.listed == tuple(sorted(name_of(label) for label in LABELS))
    assert (studies["36199"].findings, studies["40000"].split) == ((), "test")
    assert (skips(imported), defects(imported)) == ([], {})
    stored = json.loads((tmp_path / "out/studies.json").read_text())
    assert "Apache-2.0" in stored["sources"][0]["licence"]
    assert "Lian J" in stored["sources"][0]["citation"]
    assert {"train", "test"} <= set(stored["options"])


def test_annotations_alone_are_kept_on_request(folder, tmp_path):
    (folder / "train_data/36302.png").unlink()
    _, imported = read_studies("chestx-det", folder, tmp_path / "out")
    assert skips(imported) == [("", "image missing", "36302.png' is missing")]
    studies, _ = read_studies("chestx-det", folder, tmp_path / "kept", missing_images="keep")
    assert len(studies) == 3
    assert len(studies["36302"].findings[0].annotations) == 2


def test_images_may_lie_elsewhere(folder, tmp_path):
    (folder / "train_data").rename(tmp_path / "pictures")
    studies, _ = read_studies("chestx-det", folder, tmp_path / "out", images=tmp_path / "pictures")
    assert studies["36302"].images[0].key == "36302.png"


def test_the_set_of_ten_labels_has_boxes_only(tmp_path):
    ten = {"file_name": "1.png", "syms": ["Mass"], "boxes": [[10, 20, 40, 80]]}
    write_json(tmp_path / "set/train.json", [ten])
    studies, _ = read_studies("chestx-det", tmp_path / "set", tmp_path / "out", missing_images="keep")
    assert boxes(studies["1"].findings[0]) == [("three radiologists", "box", (10, 20, 30, 60))]
    assert studies["1"].assessed.listed == tuple(sorted(name_of(label) for label in LABELS_OF_TEN))


def test_bad_records_are_skipped_and_bad_drawings_counted(tmp_path):
    good = json.dumps(
        record(
            "1.png",
            ("Mass", [0, 0, 9, 9], [[0, 0], [5, 5], [0, 0]]),
            ("Nodule", [0, 0, 9, 9], [[0, 0], [5, 5], [9, 9]]),
            ("Odd", [9, 9, 5, 5], []),
        )
    )
    uneven = json.dumps({"file_name": "2.png", "syms": ["Mass"], "boxes": [], "polygons": []})
    wrong = json.dumps({"file_name": "3.png", "syms": ["Mass"], "boxes": [[0, 0, 1]], "polygons": [[]]})
    not_json = '{"file_name": "4.png", "syms": ["Mass"], "boxes": [[0, 0, 1, NaN]], "polygons": [[]]}'
    outside = json.dumps(record("../5.png"))
    write_text(
        tmp_path / "set/ChestX_Det_test.json",
        "[" + ",".join((good, uneven, wrong, not_json, outside, "{}")) + "]",
    )
    studies, imported = read_studies("chestx-det", tmp_path / "set", tmp_path / "out", missing_images="keep")
    assert list(studies) == ["1"]
    # The box stands in for a ring of two points; a ring without area is lost, as is a box of negative sides.
    assert [(one.name, boxes(one)) for one in studies["1"].findings] == [
        ("mass", [("three radiologists", "box", (0, 0, 9, 9))]),
        ("nodule", []),
        ("odd", []),
    ]
    assert defects(imported) == {"region": 2}
    assert [(item.kind, item.field) for item in imported.skipped] == [
        ("json", "boxes"),
        ("json", "boxes[0]"),
        ("json", "record"),
        ("image", "image"),
        ("json", ""),
    ]
    assert all(f"record {n}" in item.place for n, item in enumerate(imported.skipped, start=2))


def test_a_second_record_of_an_image_gets_a_number(tmp_path):
    write_json(tmp_path / "set/ChestX_Det_test.json", [record("1.png"), record("2.png"), record("1.png")])
    studies, imported = read_studies("chestx-det", tmp_path / "set", tmp_path / "out", missing_images="keep")
    assert list(studies) == ["1", "2", "1-2"]
    assert [(name, count.times, count.first) for name, count, _ in imported.defects] == [
        ("second record", 1, 3)
    ]


def test_a_missing_file_says_what_to_put_where(tmp_path):
    with pytest.raises(SourceError, match=r"ChestX_Det_train\.json: missing; put ChestX_Det_train\.json and"):
        import_studies("chestx-det", tmp_path, tmp_path.with_name("out"), workers=1)


@pytest.mark.skipif(not (REAL / "chestx-det").exists(), reason="needs the real annotations beside the clone")
def test_the_real_annotations(tmp_path):
    studies, imported = read_studies(
        "chestx-det", REAL / "chestx-det", tmp_path / "out", missing_images="keep"
    )
    assert (len(studies), skips(imported), defects(imported)) == (3025 + 553, [], {"duplicate": 1})
    drawn = [one for study in studies.values() for finding in study.findings for one in finding.annotations]
    assert len(drawn) == 7905 + 1734 - 1  # one polygon is there twice
    assert {one.drawn for one in drawn} == {"polygon"}
    assert sum(not study.findings for study in studies.values()) == 611
