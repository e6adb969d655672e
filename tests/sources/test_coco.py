"""COCO instances: every form of a region, and files that break the layout."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.files import defect_rows

from carina.sources import SourceError, import_source
from carina.sources._image_sets import gather, name_studies
from carina.studies import Region, write_png

RLE = Region.from_box(10, 20, 30, 40, height=80, width=100)
IMAGE = {"id": 1, "file_name": "a.png", "width": 100, "height": 80}
CATEGORIES = [{"id": 1, "name": "Effusion"}, {"id": 2, "name": "Odd thing"}, {"id": 3, "name": "pacemaker"}]


def box(**changes):
    return {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "bbox": [10, 20, 30, 40],
        "area": 1200,
        "iscrowd": 0,
    } | changes


@pytest.fixture
def read(tmp_path):
    """Import a document; gives the studies by id and the result of the import."""
    for name in ("a", "b", "train/c"):
        write_png(tmp_path / "images" / f"{name}.png", np.zeros((80, 100), np.uint8))
    numbers = iter(range(100))

    def run(content, images="images", **options):
        path = tmp_path / "instances.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        out = tmp_path / f"studies-{next(numbers)}"
        folder = tmp_path / images if images else None
        imported = import_source("coco", path, out, options=options, images=folder, workers=1)
        return ({} if imported.is_empty else {study.id: study for study in imported.opened()}), imported

    return run


def document(*annotations, images=(IMAGE,), categories=CATEGORIES):
    return {"info": {}, "images": list(images), "annotations": list(annotations), "categories": categories}


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects}


REGIONS = {
    "box": (box(), "box"),
    "polygon": (box(segmentation=[[10, 20, 40, 20, 40, 60, 10, 60]]), "polygon"),
    "compressed": (box(segmentation=RLE.to_coco()), "mask"),
    # Column-major: 10 columns of 80 and 20 pixels of the eleventh, then 40 marked and 40 not, 30 times.
    "uncompressed": (
        box(segmentation={"size": [80, 100], "counts": [820, *[40, 40] * 29, 40, 4820]}, iscrowd=1),
        "mask",
    ),
    "empty segmentation": (box(segmentation=[]), "box"),
}


@pytest.mark.parametrize("form", REGIONS)
def test_every_form_of_a_region(read, form):
    annotation, drawn = REGIONS[form]
    studies, imported = read(document(annotation))
    (finding,) = studies["a"].findings
    assert (finding.name, finding.label, finding.certainty) == ("pleural effusion", "Effusion", "present")
    (drawing,) = finding.annotations
    assert drawing.drawn == drawn
    assert drawing.region.bbox == (10, 20, 30, 40)
    assert drawing.region.area == 1200
    assert defects(imported) == {"patient": 1} | ({"crowd": 1} if form == "uncompressed" else {})
    assert studies["a"].assessed.findings == "unknown"


def test_images_without_annotations_and_annotations_in_any_order(read):
    images = [
        IMAGE,
        IMAGE | {"id": "two", "file_name": "b.png"},
        IMAGE | {"id": 3, "file_name": "train/c.png"},
    ]
    studies, imported = read(
        document(
            box(image_id="two"),
            box(id=2, category_id=2),
            box(id=3, image_id="two", category_id=3),
            images=images,
        )
    )
    assert list(studies) == ["train/c", "a", "b"]
    assert studies["train/c"].split == "train"
    assert [f.name for f in studies["a"].findings] == ["odd thing"]
    assert [device.name for device in studies["b"].devices] == ["pacemaker"]
    assert imported.skipped == []


def test_categories_are_mapped_left_out_or_kept(read, tmp_path):
    (tmp_path / "map.yaml").write_text('Effusion: null\n"Odd thing": Mass\n')
    studies, imported = read(
        document(box(), box(id=2, category_id=2), box(id=3, category_id=3)),
        categories=tmp_path / "map.yaml",
        looked_for="listed",
    )
    assert [(f.name, f.label) for f in studies["a"].findings] == [("mass", "Odd thing")]
    assert defects(imported) == {"category": 1, "patient": 1}
    assert studies["a"].assessed.listed == ("mass", "pacemaker")
    assert (studies["a"].assessed.findings, studies["a"].assessed.devices) == ("listed", "listed")


@pytest.mark.parametrize(
    "text",
    ["[1]", "Effusion: 7", "7: Mass", "Effusion: ''", "a: [", ""],
    ids=["list", "number", "key", "empty", "yaml", "no"],
)
def test_a_wrong_category_map_is_refused(read, tmp_path, text):
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(SourceError, match=r"map\.yaml"):
        read(document(box()), categories=tmp_path / "map.yaml")


def test_patients_are_found_in_paths(read):
    images = [IMAGE, IMAGE | {"id": 2, "file_name": "train/c.png"}]
    studies, imported = read(document(images=images), patient_pattern=r"^([a-z])\.png")
    assert studies["a"].patient == "a"
    assert [item.kind for item in imported.skipped] == ["patient"]
    for wrong in ("(", "abc", "(a)(b)"):
        with pytest.raises(SourceError, match="patient pattern"):
            read(document(), patient_pattern=wrong)


def test_images_lie_beside_the_file_by_default(read, tmp_path):
    write_png(tmp_path / "beside.png", np.zeros((8, 10), np.uint8))
    studies, _ = read(document(images=[{"id": 1, "file_name": "beside.png"}]), images=None)
    assert (studies["beside"].images[0].width, studies["beside"].images[0].height) == (10, 8)


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"bbox": [-10, 20, 30, 40]}, "cut"),
        ({"bbox": [90, 70, 30, 40]}, "cut"),
        ({"bbox": [200, 20, 30, 40]}, "outside"),
        ({"bbox": [10, 20, -30, 40]}, "swapped corners"),
        ({"bbox": [10, 20, 30]}, "region"),
        ({"bbox": [10, 20, "30", 40]}, "region"),
        ({"bbox": [10, 20, True, 40]}, "region"),
        ({"bbox": [10, 20, 10**400, 40]}, "region"),
        ({"bbox": {"x": 1}}, "region"),
        ({"segmentation": [[10, 20, 40]]}, "region"),
        ({"segmentation": [[10, 20, 40, 20]]}, "no area"),
        ({"segmentation": ["abc"]}, "region"),
        ({"segmentation": [[1e8, 20, 40, 20, 3, 4]]}, "region"),
        ({"segmentation": {"size": [8, 10], "counts": [80]}}, "mask size"),
        ({"segmentation": {"size": [80, 100], "counts": [1, 2]}}, "region"),
        ({"segmentation": {"size": [80, 100], "counts": "\u00e9"}}, "region"),
        ({"segmentation": {"size": [10**9, 10**9], "counts": "a"}}, "region"),
        ({"segmentation": {}}, "region"),
    ],
)
def test_a_region_that_cannot_be_drawn_is_counted_and_its_label_kept(read, changes, defect):
    studies, imported = read(document(box(**changes)))
    (finding,) = studies["a"].findings
    assert finding.certainty == "present"
    assert len(finding.annotations) == (defect == "cut")
    assert defects(imported) == {"patient": 1, defect: 1}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (document(box(), images=[IMAGE | {"file_name": "../a.png"}]), "image"),
        (document(box(), images=[IMAGE | {"file_name": "/etc/passwd"}]), "image"),
        (document(box(), images=[IMAGE | {"file_name": "C:\\a.png"}]), "image"),
        (document(box(), images=[IMAGE | {"file_name": "missing.png"}]), "image missing"),
        (document(box(), images=[IMAGE | {"file_name": 7}]), "image"),
        (document(box(), images=[IMAGE | {"file_name": "link.png"}]), "image"),
        (document(box(), images=[IMAGE | {"width": 99}]), "image"),
        (document(box(), images=[IMAGE | {"width": -1}]), "size"),
        (document(box(), images=[IMAGE | {"width": "100"}]), "size"),
        (document(box(category_id=9)), "category"),
        (document(box(), box()), "id"),
        (document(images=[{"file_name": "a.png"}]), "id"),
        (document(images=[7]), "json"),
    ],
)
def test_an_image_that_cannot_be_used_is_skipped_with_a_reason(read, tmp_path, changed, kind):
    write_png(tmp_path / "outside.png", np.zeros((80, 100), np.uint8))
    if not (tmp_path / "images" / "link.png").is_symlink():
        (tmp_path / "images" / "link.png").symlink_to(tmp_path / "outside.png")
    studies, imported = read(changed)
    assert studies == {}
    assert kind in {item.kind for item in imported.skipped}
    assert all(item.place.startswith(str(tmp_path / "instances.json")) for item in imported.skipped)


def test_a_bad_record_does_not_stop_the_others(read):
    good = document(box(), box(id=2, image_id=77), images=[IMAGE, IMAGE, IMAGE | {"id": 5}])
    text = json.dumps(good).replace('"annotations": [', '"annotations": [{"id": 9, "image_id": NaN}, 7, ')
    studies, imported = read(b"\xef\xbb\xbf" + text.replace(", ", ",\r\n").encode())
    assert [f.name for f in studies["a"].findings] == ["pleural effusion"]
    found = [(item.kind, item.field) for item in imported.skipped]
    assert found == [
        ("id", "id"),
        ("image", "file_name"),
        ("json", "record"),
        ("json", ""),
        ("not joined", "image_id"),
    ]


def test_fields_without_a_place_are_reported(read):
    _, imported = read(document(box(score=0.3, attributes={})))
    assert imported.counts.unmapped == {"annotations.score": 1, "annotations.attributes": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected one JSON object"),
        (b"[]", "expected one JSON object"),
        (b"{}", "no images"),
        (b'{"images": [{"id": 1', "does not end"),
        (b'{"images": [{"id": 1} {"id": 2}]}', "expected a comma"),
        (b'{"images": []} x', "text after"),
        (b'{"images": [], "categories": [{"id": 1}]}', "categories: record 1: name"),
        (b'{"images": [], "categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]}', "given twice"),
    ],
)
def test_a_file_that_is_no_coco_is_refused(read, content, message):
    with pytest.raises(SourceError, match=message):
        read(content)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(SourceError, match="name the JSON file"):
        import_source("coco", tmp_path, tmp_path.parent / "out")


# ---- helpers that all sources of images share ----------------------------------------------------------------------


@given(st.lists(st.sampled_from(["a", "b", "c"])))
@settings(max_examples=50)
def test_groups_are_complete_and_lose_nothing(names):
    sizes = {name: names.count(name) for name in names}
    groups = dict(gather(((name, number) for number, name in enumerate(names)), sizes))
    assert groups == {name: [n for n, other in enumerate(names) if other == name] for name in set(names)}


@given(st.lists(st.text(alphabet="ab./", min_size=1)))
@settings(max_examples=100)
def test_ids_of_studies_are_unique(keys):
    named = name_studies(keys)
    assert len(set(named.values())) == len(named) == len(set(keys))


def test_a_category_of_no_finding_is_never_a_finding(read):
    categories = [{"id": 1, "name": "No finding"}, {"id": 2, "name": "Nodule"}]
    studies, imported = read(document(box(bbox=[0, 0, 1, 1]), categories=categories), looked_for="listed")
    assert studies["a"].findings == ()
    assert studies["a"].assessed.listed == ("nodule",)
    assert defects(imported) == {"nothing": 1, "patient": 1}


def test_annotations_are_counted_from_1_in_both_tables(read, tmp_path):
    images = (IMAGE, IMAGE | {"id": 2, "file_name": "b.png"})
    outside, unknown = box(id=2, bbox=[200, 20, 30, 40]), box(id=3, image_id=2, category_id=9)
    _, imported = read(document(box(), outside, unknown, images=images))
    assert [row[2:] for row in defect_rows(imported)] == [
        ("instances.json: images", "1"),  # the patient is unknown
        ("instances.json: annotations", "2"),
    ]
    assert [item.place for item in imported.skipped] == [
        f"{tmp_path / 'instances.json'}: annotations: record 3"
    ]
