"""YOLO's text files: boxes and polygons, where names and files are found, and lines that are wrong."""

import numpy as np
import pytest

from carina.sources import SourceError, import_source
from carina.sources.yolo import label_file, read_class_names
from carina.studies import write_png

BOX = "0 0.25 0.5 0.3 0.5"
"""Of an image of 100 x 80: from (10, 20), 30 x 40."""


@pytest.fixture
def read(tmp_path):
    """Import text files by name; gives the studies by id and the result of the import."""
    root = tmp_path / "set"
    write_png(root / "images" / "train" / "a.png", np.zeros((80, 100), np.uint8))
    (root / "labels" / "train").mkdir(parents=True)
    (root / "data.yaml").write_text(
        "path: ../set\ntrain: images/train\nnc: 2\nnames: [Effusion, Odd thing]\n"
    )
    numbers = iter(range(100))

    def run(text, name="labels/train/a.txt", **options):
        if text is not None:
            (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        out = tmp_path / f"studies-{next(numbers)}"
        imported = import_source("yolo", root, out, options=options, workers=1)
        return ({} if imported.is_empty else {study.id: study for study in imported.opened()}), imported

    run.root = root
    return run


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects if name != "patient"}


def test_boxes_and_polygons(read):
    polygon = "1 0.1 0.25 0.4 0.25 0.4 0.75 0.1 0.75"
    studies, imported = read(f"\ufeff{BOX}\r\n\r\n{polygon}\r\n", looked_for="listed")
    study = studies["images/train/a"]
    drawn = [(f.name, f.label, f.annotations[0].drawn, f.annotations[0].region.bbox) for f in study.findings]
    assert drawn == [
        ("pleural effusion", "Effusion", "box", (10, 20, 30, 40)),
        ("odd thing", "Odd thing", "polygon", (10, 20, 30, 40)),
    ]
    assert study.split == "train"
    assert study.assessed.listed == ("odd thing", "pleural effusion")
    assert defects(imported) == {}


def test_an_image_without_a_text_file_has_no_regions_and_is_counted(read):
    studies, imported = read(None)
    assert studies["images/train/a"].findings == ()
    assert studies["images/train/a"].assessed.findings == "unknown"
    assert defects(imported) == {"unlabelled": 1}
    _, imported = read("")
    assert defects(imported) == {}


def test_a_text_file_without_an_image_is_reported(read):
    (read.root / "labels" / "train" / "b.txt").write_text(BOX)
    (read.root / "labels" / "classes.txt").write_text("Effusion\n")
    (read.root / "README.roboflow.txt").write_text("hello")
    _, imported = read(BOX)
    assert [(item.kind, item.place.rsplit("/", 1)[1]) for item in imported.skipped] == [
        ("not joined", "b.txt")
    ]


def test_two_images_of_one_text_file_are_not_both_used(read):
    write_png(read.root / "images" / "train" / "a.tif.png", np.zeros((80, 100), np.uint8))
    write_png(read.root / "images" / "train" / "a.PNG", np.zeros((80, 100), np.uint8))
    studies, imported = read(BOX)
    assert len(imported.skipped) == 1
    assert "belongs to another image" in imported.skipped[0].reason
    assert len(studies) == 2


def test_where_text_files_lie():
    assert label_file("train/images/a.b.png") == "train/labels/a.b.txt"
    assert label_file("images/images/a.png") == "images/labels/a.txt"
    assert label_file("scans/a.png") == "scans/a.txt"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.yaml", "names: {0: Effusion, 1: Odd thing}"),
        ("data.yaml", "names:\n- Effusion\n- Odd thing\n"),
        ("classes.txt", "\ufeffEffusion\r\nOdd thing\r\n\r\n"),
    ],
    ids=["map", "list", "lines"],
)
def test_names_of_classes(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    assert read_class_names(tmp_path / name) == {0: "Effusion", 1: "Odd thing"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.yaml", "nc: 2"),
        ("data.yaml", "names: 7"),
        ("data.yaml", "names: {a: Effusion}"),
        ("data.yaml", "names: [7]"),
        ("data.yaml", "names: ["),
        ("data.yaml", "- a"),
        ("classes.txt", ""),
        ("classes.txt", "a\n\nb"),
    ],
)
def test_wrong_names_of_classes_are_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(SourceError, match=name):
        read_class_names(tmp_path / name)


def test_names_must_be_there(tmp_path):
    write_png(tmp_path / "set" / "images" / "a.png", np.zeros((8, 8), np.uint8))
    with pytest.raises(SourceError, match=r"data\.yaml: missing; put the names"):
        import_source("yolo", tmp_path / "set", tmp_path / "out")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("0 0.25 0.5 0.3", "line"),
        ("0 0.25 0.5 0.3 0.5 0.9", "line"),
        ("nan 0.25 0.5 0.3 0.5", "category"),
        ("Effusion 0.25 0.5 0.3 0.5", "line"),
        ("7 0.25 0.5 0.3 0.5", "category"),
        ("0.5 0.25 0.5 0.3 0.5", "category"),
        ("-1 0.25 0.5 0.3 0.5", "category"),
        ("x" * 100_000, "line"),
    ],
    ids=["short", "confidence", "nan", "name", "class", "half", "negative", "huge"],
)
def test_a_wrong_line_skips_the_image_with_the_line(read, line, kind):
    studies, imported = read(f"{BOX}\n{line}\n")
    assert studies == {}
    (skipped,) = imported.skipped
    assert (skipped.kind, skipped.field) == (kind, "line 2")
    assert skipped.place.endswith("labels/train/a.txt")
    assert len(skipped.message) < 1000


@pytest.mark.parametrize(
    ("line", "defect"),
    [
        ("0 0.25 0.5 -0.3 0.5", "swapped corners"),
        ("0 0.25 0.5 0 0", "no area"),
        ("0 7 7 0.1 0.1", "outside"),
        ("0 nan 0.5 0.3 0.5", "region"),
        ("0 inf 0.5 0.3 0.5", "region"),
        ("0 1e400 0.5 0.3 0.5", "region"),
        ("0 0.1 0.1 0.1 nan 0.2 0.2", "region"),
        ("0 0.05 0.5 0.3 0.5", "cut"),
        ("0 0.1 0.1 0.1 0.1 0.1 0.1", "no area"),
    ],
    ids=[
        "negative",
        "empty",
        "outside",
        "nan",
        "infinite",
        "large",
        "polygon",
        "over the border",
        "one point",
    ],
)
def test_a_region_that_cannot_be_drawn_is_counted(read, line, defect):
    studies, imported = read(line)
    assert [f.name for f in studies["images/train/a"].findings] == ["pleural effusion"]
    assert defects(imported) == {defect: 1}


def test_links_out_of_the_folder_are_refused(read, tmp_path):
    (tmp_path / "secret.txt").write_text(BOX)
    write_png(tmp_path / "secret.png", np.zeros((80, 100), np.uint8))
    (read.root / "labels" / "train" / "a.txt").symlink_to(tmp_path / "secret.txt")
    (read.root / "images" / "train" / "b.png").symlink_to(tmp_path / "secret.png")
    studies, imported = read(None)
    assert studies == {}
    assert len(imported.skipped) == 2
    assert all("leads out" in item.reason for item in imported.skipped)


def test_categories_are_mapped(read, tmp_path):
    (tmp_path / "map.yaml").write_text("Effusion: Mass\n")
    studies, _ = read(BOX, categories=tmp_path / "map.yaml", patient_pattern="/([^/]+)[.]png")
    study = studies["images/train/a"]
    assert [(f.name, f.label) for f in study.findings] == [("mass", "Effusion")]
    assert study.patient == "a"
