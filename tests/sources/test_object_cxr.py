"""Object-CXR in its published layout."""

import pytest
from tests.sources.files import boxes, defects, read_studies, write_image, write_text

from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of


def make_folder(tmp_path):
    path = tmp_path / "objects"
    write_text(
        path / "train.csv",
        "image_name,annotation",
        "00001.jpg,0 10 20 40 60;1 50 10 60 20;2 0 0 10 0 10 10 0 10",
        "00002.jpg,",
    )
    write_text(path / "dev.csv", "image_path,annotation", "/path/08001.jpg,0 -5 0 5 5")
    for name in ("train/00001", "train/00002", "dev/08001"):
        write_image(path / f"{name}.jpg", 100, 80)
    return path


folder = pytest.fixture(make_folder, name="folder")


def things(study):
    return [*study.findings, *study.devices]


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("object-cxr", folder, tmp_path / "out")
    assert list(studies) == ["00001", "00002", "08001"]
    study = studies["00001"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == ("train/00001.jpg", "unknown", 100, 80)
    assert (study.patient, study.source, study.split) == ("00001", "object-cxr", "train")
    (thing,) = things(study)
    assert (thing.name, thing.certainty) == (name_of("foreign object"), "present")
    assert boxes(thing) == [
        ("radiologist", "box", (10, 20, 30, 40)),
        ("radiologist", "polygon", (50, 10, 10, 10)),
        ("radiologist", "polygon", (0, 0, 10, 10)),
    ]
    # A circle of radius 5 around a corner of pixels: centres within 5 of it.
    inside = sum((x + 0.5) ** 2 + (y + 0.5) ** 2 <= 25 for x in range(-5, 5) for y in range(-5, 5))
    assert thing.annotations[1].region.area == inside
    assert name_of("foreign object") in study.assessed.listed
    assert "listed" in (study.assessed.findings, study.assessed.devices)
    assert things(studies["00002"]) == []
    # "dev" is the validation set; the path of the organisers is not followed.
    assert (studies["08001"].split, studies["08001"].images[0].key) == ("val", "dev/08001.jpg")
    assert boxes(things(studies["08001"])[0]) == [("radiologist", "box", (0, 0, 5, 5))]
    assert (imported.skipped, defects(imported)) == ([], {"cut": 1})


def test_bad_shapes(folder, tmp_path):
    write_text(
        folder / "train.csv",
        "image_name,annotation",
        "00001.jpg,1 60 10 50 20;0 nan 0 5 5;1 0 inf 5 5",
        "00002.jpg,3 0 0 5 5",
        "00003.jpg,0 0 0 5 5",
        "00001.jpg,0 0 0 5 5",
        "00004.jpg,2 0 0 5 5 9",
    )
    write_image(folder / "train/00004.jpg", 100, 80)
    studies, imported = read_studies("object-cxr", folder, tmp_path / "out")
    assert [thing.annotations for thing in things(studies["00001"])] == [()]
    assert defects(imported) == {"region": 3, "cut": 1}
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("00002.jpg", "shape"),
        ("00003.jpg", "image missing"),
        ("00001.jpg", "duplicate"),
        ("00004.jpg", "shape"),
    ]


def test_missing_tables_say_what_to_put_where(tmp_path):
    with pytest.raises(SourceError, match=r"train\.csv: missing; put train\.csv, dev\.csv or test\.csv"):
        import_studies("object-cxr", tmp_path, tmp_path.with_name("out"), workers=1)
    write_text(tmp_path / "set/train.csv", "name,annotation", "a,")
    with pytest.raises(SourceError, match=r"train\.csv: no column image_name or image_path"):
        import_studies("object-cxr", tmp_path / "set", tmp_path / "out", workers=1)
