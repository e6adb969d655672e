"""Pascal VOC's XML files: boxes from 1, where images are found, and XML that is refused."""

import numpy as np
import pytest

from carina.sources import RecordError, SourceError, import_source
from carina.sources._xml import parse_xml
from carina.studies import write_png


def item(name="Effusion", box=(11, 21, 40, 60), more="<pose>Unspecified</pose><difficult>0</difficult>"):
    sides = "".join(
        f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    return f"<object><name>{name}</name>{more}<bndbox>{sides}</bndbox></object>"


def document(
    *objects, file="a.png", size="<size><width>100</width><height>80</height><depth>1</depth></size>"
):
    return f"<annotation><folder>VOC</folder><filename>{file}</filename>{size}{''.join(objects)}</annotation>"


@pytest.fixture
def read(tmp_path):
    """Import XML files by name; gives the studies by id and the result of the import."""
    root = tmp_path / "set"
    write_png(root / "JPEGImages" / "a.png", np.zeros((80, 100), np.uint8))
    numbers = iter(range(100))

    def run(images=None, options=None, **files):
        for name, text in files.items():
            path = root / "Annotations" / f"{name}.xml"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        out = tmp_path / f"studies-{next(numbers)}"
        imported = import_source("voc", root, out, images=images, options=options, workers=1)
        return ({} if imported.is_empty else {study.id: study for study in imported.opened()}), imported

    return run


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects if name != "patient"}


def bbox(study):
    return study.findings[0].annotations[0].region.bbox


def test_boxes_count_pixels_from_1_and_include_the_last(read):
    studies, imported = read(a=document(item(), item("Odd thing", (1, 1, 100, 80))))
    study = studies["Annotations/a"]
    assert [(f.name, f.annotations[0].region.bbox) for f in study.findings] == [
        ("pleural effusion", (10, 20, 30, 40)),
        ("odd thing", (0, 0, 100, 80)),
    ]
    assert study.images[0].key == "JPEGImages/a.png"
    assert defects(imported) == {}
    assert imported.counts.unmapped == {}


def test_boxes_of_other_tools_are_points_from_0(read):
    studies, _ = read(a=document(item(box=(10, 20, 40, 60))), options={"corners": "points"})
    assert bbox(studies["Annotations/a"]) == (10, 20, 30, 40)


def test_fields_without_a_place_are_reported(read):
    _, imported = read(a=document(item(more="<difficult>1</difficult><part><name>x</name></part>")))
    assert imported.counts.unmapped == {"object.difficult": 1, "object.part": 1}


def test_images_are_found_by_name_without_ending_and_in_other_folders(read, tmp_path):
    studies, _ = read(a=document(item(), file="a", size=""))
    assert studies["Annotations/a"].images[0].key == "JPEGImages/a.png"
    studies, _ = read(
        a=document(item(), file=r"C:\scans\a.png", size="<size><width>0</width><height>0</height></size>")
    )
    assert studies["Annotations/a"].images[0].key == "JPEGImages/a.png"
    write_png(tmp_path / "elsewhere" / "a.png", np.zeros((80, 100), np.uint8))
    studies, _ = read(images=tmp_path / "elsewhere", a=document(item()))
    assert studies["Annotations/a"].images[0].key == "a.png"
    write_png(tmp_path / "set" / "Annotations" / "beside.png", np.zeros((80, 100), np.uint8))
    studies, _ = read(a=document(item(), file="beside.png"))
    assert studies["Annotations/a"].images[0].key == "Annotations/beside.png"


def test_what_was_looked_for_may_be_all_names_of_the_set(read):
    studies, _ = read(
        a=document(item()), b=document(item("Mass")), c=document(), options={"looked_for": "listed"}
    )
    assert studies["Annotations/c"].assessed.listed == ("mass", "pleural effusion")


LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;">]>
<annotation><filename>&b;</filename></annotation>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>
<annotation><filename>&e;</filename></annotation>"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LAUGHS, "xml"),
        (LAUGHS.replace('"1.0"', '"1.0" encoding="utf-16"').encode("utf-16"), "xml"),
        (OUTSIDE, "xml"),
        ("<annotation>", "xml"),
        ("", "xml"),
        ("<other/>", "xml"),
        (b'<?xml version="1.0" encoding="nonsense"?><annotation/>', "xml"),
        ("<a>" * 100_000, "xml"),
        (b"<annotation>\0</annotation>", "xml"),
        (document(item(), file="missing.png"), "image missing"),
        (document(item(), file="../../secret.png"), "image missing"),
        (document(item(), file="link.png"), "image"),
        (document(item(), size="<size><width>99</width><height>80</height></size>"), "image"),
        (document(item(), size="<size><width>-9</width><height>80</height></size>"), "size"),
        (document(item(name=" ")), "label"),
    ],
    ids=["entities", "entities in UTF-16", "external entity", "truncated", "empty", "another root", "encoding", "depth",
         "NUL", "missing image", "path out of the folder", "link out of the folder", "another size", "negative size",
         "empty name"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_skipped_with_a_reason(read, tmp_path, text, kind):
    write_png(tmp_path / "secret.png", np.zeros((80, 100), np.uint8))
    (tmp_path / "set" / "JPEGImages" / "link.png").symlink_to(tmp_path / "secret.png")
    studies, imported = read(a=text, b=document(item()))
    assert list(studies) == ["Annotations/b"]
    (skipped,) = imported.skipped
    assert (skipped.kind, skipped.place) == (kind, str(tmp_path / "set" / "Annotations" / "a.xml"))


@pytest.mark.parametrize(
    ("box", "defect"),
    [
        ((40, 21, 11, 60), "swapped corners"),
        (("nan", 21, 40, 60), "region"),
        (("", 21, 40, 60), "region"),
        (("left", 21, 40, 60), "region"),
        (("1e999", 21, "1e999", 60), "region"),
        ((500, 500, 600, 600), "outside"),
        ((-20, 21, 40, 60), "cut"),
        ((11, 21, 400, 60), "cut"),
    ],
)
def test_a_box_that_cannot_be_drawn_is_counted_and_its_label_kept(read, box, defect):
    studies, imported = read(a=document(item(box=box)))
    assert [f.name for f in studies["Annotations/a"].findings] == ["pleural effusion"]
    assert defects(imported) == {defect: 1}


def test_an_object_without_a_box_is_a_label(read):
    studies, imported = read(a=document("<object><name>Mass</name></object>"))
    assert [(f.name, f.annotations) for f in studies["Annotations/a"].findings] == [("mass", ())]
    assert defects(imported) == {}


def test_a_byte_order_mark_and_windows_line_ends_are_read(read):
    studies, _ = read(a=b"\xef\xbb\xbf" + document(item()).replace("><", ">\r\n<").encode())
    assert bbox(studies["Annotations/a"]) == (10, 20, 30, 40)


def test_a_folder_without_files_is_refused(tmp_path):
    (tmp_path / "set").mkdir()
    with pytest.raises(SourceError, match="no XML file"):
        import_source("voc", tmp_path / "set", tmp_path / "out")


def test_text_of_an_element_may_come_in_pieces():
    root = parse_xml("<a>one&amp;two<b/>three</a>".encode("utf-16"))
    assert (root.text, root[0].tail) == ("one&two", "three")
    with pytest.raises(RecordError, match="not XML"):
        parse_xml(b"<a></b>")
