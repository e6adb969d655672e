"""LabelMe's JSON files: every shape, where the image is found, and files that break the layout."""

import json

import numpy as np
import pytest
from tests.sources.files import defect_rows

from carina.sources import SourceError, import_source
from carina.sources.labelme import make_circle
from carina.studies import write_png
from carina.studies.assessment import states_no_abnormality

RECTANGLE = {"label": "Effusion", "points": [[10, 20], [40, 60]], "shape_type": "rectangle", "flags": {}}


def document(*shapes, **changes):
    return {
        "version": "5.4.1",
        "flags": {},
        "shapes": list(shapes),
        "imagePath": "a.png",
        "imageData": "aGVsbG8=" * 1000,
        "imageHeight": 80,
        "imageWidth": 100,
    } | changes


@pytest.fixture
def read(tmp_path):
    """Import documents by file name; gives the studies by id and the result of the import."""
    root = tmp_path / "set"
    write_png(root / "a.png", np.zeros((80, 100), np.uint8))
    numbers = iter(range(100))

    def run(images=None, options=None, **files):
        for name, content in files.items():
            path = root / f"{name.replace('__', '/')}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        out = tmp_path / f"studies-{next(numbers)}"
        imported = import_source("labelme", root, out, images=images, options=options, workers=1)
        return ({} if imported.is_empty else {study.id: study for study in imported.opened()}), imported

    return run


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects if name != "patient"}


def test_shapes_become_regions(read):
    polygon = {"label": "Mass", "points": [[10, 20], [40, 20], [40, 60], [10, 60]], "shape_type": "polygon"}
    turned = RECTANGLE | {"points": [[40, 60], [10, 20]], "label": "Nodule"}
    corners = RECTANGLE | {"points": [[10, 20], [40, 20], [40, 60], [10, 60]], "label": "Edema"}
    circle = {"label": "Fracture", "points": [[50, 40], [50, 50]], "shape_type": "circle"}
    studies, imported = read(a=document(RECTANGLE, polygon, turned, corners, circle))
    drawn = {f.name: f.annotations[0] for f in studies["a"].findings}
    assert {name: (one.drawn, one.region.bbox) for name, one in drawn.items()} == {
        "pleural effusion": ("box", (10, 20, 30, 40)),
        "mass": ("polygon", (10, 20, 30, 40)),
        "nodule": ("box", (10, 20, 30, 40)),
        "edema": ("box", (10, 20, 30, 40)),
        "fracture": ("polygon", (40, 30, 20, 20)),
    }
    assert defects(imported) == {}


def test_a_circle_has_the_pixels_whose_centre_is_within():
    # Centre on the corner of four pixels: their centres are sqrt(0.5) away, the next ones sqrt(2.5).
    assert make_circle([5, 5], [5, 6], width=10, height=10).area == 4
    assert make_circle([5, 5], [5, 6.6], width=10, height=10).area == 12
    assert make_circle([0, 0], [0, 1], width=10, height=10).area == 1


def test_a_point_or_line_keeps_its_label_and_is_counted(read):
    line = {"label": "Mass", "points": [[1, 2], [3, 4]], "shape_type": "line"}
    studies, imported = read(a=document(line, RECTANGLE))
    assert [(f.name, len(f.annotations)) for f in studies["a"].findings] == [
        ("mass", 0),
        ("pleural effusion", 1),
    ]
    assert defects(imported) == {"shape": 1}


def test_flags_of_the_image_that_are_set_are_labels(read):
    studies, _ = read(a=document(flags={"Mass": True, "Nodule": False}), options={"looked_for": "listed"})
    assert [(f.name, f.certainty) for f in studies["a"].findings] == [("mass", "present")]
    assert studies["a"].assessed.listed == ("mass", "nodule")


def test_fields_without_a_place_are_reported(read):
    _, imported = read(a=document(RECTANGLE | {"group_id": 3, "description": ""}, extra=1))
    assert imported.counts.unmapped == {"extra": 1, "shapes.group_id": 1}


def test_the_image_is_relative_to_the_file_or_in_a_folder_of_images(read, tmp_path):
    studies, _ = read(train__b=document(RECTANGLE, imagePath="..\\a.png"))
    assert studies["train/b"].images[0].key == "a.png"
    write_png(tmp_path / "elsewhere" / "a.png", np.zeros((80, 100), np.uint8))
    studies, _ = read(images=tmp_path / "elsewhere", train__b=document(imagePath="/data/elsewhere/a.png"))
    assert studies["train/b"].images[0].key == "a.png"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (document(imagePath="../a.png"), "image"),
        (document(imagePath="/etc/passwd"), "image"),
        (document(imagePath="missing.png"), "image missing"),
        (document(imagePath=None), "image"),
        (document(imagePath="link.png"), "image"),
        (document(imageWidth=99), "image"),
        (document(imageWidth="100"), "size"),
        (document(imageWidth=-5), "size"),
        (document(shapes=None), "json"),
        (document(7), "json"),
        (document({"label": " ", "points": []}), "label"),
        (document(flags=[1]), "json"),
        ([], "json"),
        (b"{", "json"),
        (b'{"shapes": NaN}', "json"),
        (b"\xff\xfe", "json"),
        (b"", "json"),
        (b"[" * 100_000, "json"),
    ],
    ids=["path out of the folder", "absolute path", "missing image", "no path", "link out of the folder",
         "another size", "size in text", "negative size", "no shapes", "a number as shape", "empty label",
         "list of flags", "a list", "truncated", "NaN", "not UTF-8", "empty", "depth"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_skipped_with_a_reason(read, tmp_path, content, kind):
    write_png(tmp_path / "outside.png", np.zeros((80, 100), np.uint8))
    (tmp_path / "set" / "link.png").symlink_to(tmp_path / "outside.png")
    studies, imported = read(a=content, b=document(RECTANGLE))
    assert list(studies) == ["b"]
    (skipped,) = imported.skipped
    assert (skipped.kind, skipped.place) == (kind, str(tmp_path / "set" / "a.json"))


def test_a_link_to_a_file_outside_is_skipped(read, tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps(document(RECTANGLE)))
    (tmp_path / "set" / "c.json").symlink_to(tmp_path / "secret.json")
    studies, imported = read(b=document(RECTANGLE))
    assert list(studies) == ["b"]
    assert "leads out" in imported.skipped[0].reason


def test_a_byte_order_mark_and_windows_line_ends_are_read(read):
    text = json.dumps(document(RECTANGLE), indent=1).replace("\n", "\r\n")
    studies, _ = read(a=b"\xef\xbb\xbf" + text.encode())
    assert len(studies["a"].findings) == 1


@pytest.mark.parametrize(
    ("points", "defect"),
    [
        ([[10, 20]], "region"),
        ([], "region"),
        ([[10, 20], [10, 20]], "no area"),
        ([[10, "20"], [40, 60]], "region"),
        ([[200, 20], [240, 60]], "outside"),
        ([[-10, 20], [40, 60]], "cut"),
        (None, "region"),
    ],
)
def test_a_shape_that_cannot_be_drawn_is_counted_and_its_label_kept(read, points, defect):
    studies, imported = read(a=document(RECTANGLE | {"points": points}))
    assert [f.name for f in studies["a"].findings] == ["pleural effusion"]
    assert defects(imported) == {defect: 1}


def test_a_folder_without_files_is_refused(tmp_path):
    (tmp_path / "set").mkdir()
    with pytest.raises(SourceError, match="no JSON file"):
        import_source("labelme", tmp_path / "set", tmp_path / "out")
    with pytest.raises(SourceError, match="no such folder"):
        import_source("labelme", tmp_path / "nowhere", tmp_path / "out")


def test_a_flag_or_shape_may_call_the_image_normal(read):
    studies, _ = read(a=document(flags={"Normal": True, "No finding": True, "Nodule": False}))
    assert states_no_abnormality(studies["a"]) is True
    studies, imported = read(a=document(RECTANGLE | {"label": "normal"}))
    assert states_no_abnormality(studies["a"]) is True
    assert defects(imported) == {"nothing": 1}


def test_a_normal_flag_beside_a_drawn_finding_is_a_conflict(read):
    studies, imported = read(a=document(RECTANGLE, flags={"normal": True}))
    assert [(one.name, one.certainty) for one in studies["a"].findings] == [("pleural effusion", "present")]
    assert not states_no_abnormality(studies["a"])
    assert defects(imported) == {"conflict": 1}


def test_shapes_are_counted_from_1_in_both_tables(read):
    outside = RECTANGLE | {"points": [[200, 20], [240, 60]]}
    _, imported = read(a=document(RECTANGLE, outside), b=document(RECTANGLE, {"label": ""}))
    assert [row[2:] for row in defect_rows(imported) if row[0] == "outside"] == [("a.json: shapes", "2")]
    assert imported.skipped[0].field == "shapes: record 2.label"
