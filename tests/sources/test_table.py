"""A table of one's own: what its columns are taken for, and what becomes of every kind of cell."""

import csv
import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.sources.files import defect_rows
from typer.testing import CliRunner

from carina.audits import AuditOptions, audit_benchmark
from carina.cases import NoCasesError, open_benchmark
from carina.cli import app
from carina.ground import build_ground
from carina.pages import show
from carina.percept import build_percept
from carina.sources import SourceError, import_source, import_studies
from carina.sources._frames import Frame, box_corners
from carina.sources.table.cells import read_boxes, read_date, read_polygons, split_labels
from carina.store.errors import CarinaError, RegionError
from carina.studies import Region, certainty_of, open_studies, write_png
from carina.studies.model import Assessed

NIH = Path(__file__).parents[3] / "shared" / "data" / "nih"


@pytest.fixture
def images(tmp_path):
    """Images a, b and c of 100 x 80 pixels, and d of 60 x 80."""
    folder = tmp_path / "images"
    for name in "abc":
        write_png(folder / f"{name}.png", np.zeros((80, 100), np.uint8))
    write_png(folder / "d.png", np.zeros((80, 60), np.uint8))
    return folder


@pytest.fixture
def read(tmp_path, images):
    """Import a table; gives the studies by id and the result of the import."""
    numbers = iter(range(100))

    def run(text, name="table.csv", folder=images, **options):
        path = tmp_path / name
        if isinstance(text, str):
            path.write_bytes(text.encode())
        out = tmp_path / f"studies-{next(numbers)}"
        imported = import_source("table", path, out, options=options, images=folder, workers=1)
        studies = {} if imported.is_empty else {study.id: study for study in imported.opened()}
        return studies, imported

    return run


def _write(path, text):
    path.write_text(text)
    return path


def defects(imported):
    return {name: count.times for name, count, _ in imported.defects}


def boxes_of(study):
    return [(f.name, a.region.bbox, a.annotator) for f in study.findings for a in f.annotations]


# ---- labels --------------------------------------------------------------------------------------------------------


def test_columns_of_findings_are_stated_and_only_filled_cells_were_looked_for(read):
    studies, imported = read(
        "image,patient,Effusion,Pneumothorax,Silicosis\n"
        "a.png,p1,1,0,\n"
        "b.png,p1,-1,,no\n"
        "c.png,p2,yes,Absent,?\n"
    )
    stated = {name: {f.name: f.certainty for f in study.findings} for name, study in studies.items()}
    assert stated == {
        "a": {"pleural effusion": "present", "pneumothorax": "absent"},
        "b": {"pleural effusion": "uncertain", "silicosis": "absent"},
        "c": {"pleural effusion": "present", "pneumothorax": "absent", "silicosis": "uncertain"},
    }
    assert studies["a"].findings[0].label == "Effusion"
    assert studies["a"].assessed.findings == "listed"
    assert studies["a"].assessed.listed == ("pleural effusion", "pneumothorax")
    assert studies["b"].assessed.listed == ("pleural effusion", "silicosis")
    assert "# finding: Silicosis is not in the vocabulary and keeps its name" in imported.plan.lines
    assert studies["a"].patient == "p1"
    assert not imported.defects


def test_an_empty_cell_is_absent_only_where_the_user_says_so(read):
    table = "image,Effusion,Mass\na.png,1,\nb.png,,1\n"
    studies, _ = read(table, blank="absent")
    assert {f.name: f.certainty for f in studies["a"].findings} == {
        "pleural effusion": "present",
        "mass": "absent",
    }
    assert studies["a"].assessed.listed == ("mass", "pleural effusion")
    studies, _ = read(table)
    assert [f.name for f in studies["a"].findings] == ["pleural effusion"]


def test_a_row_a_label_says_nothing_about_other_findings_unless_told(read):
    table = "image,label\na.png,Effusion|Mass\nb.png,Nodule;Mass\nc.png,No Finding\n"
    studies, _ = read(table)
    assert [f.name for f in studies["a"].findings] == ["pleural effusion", "mass"]
    assert [f.name for f in studies["b"].findings] == ["nodule", "mass"]
    assert studies["c"].findings == ()
    assert {study.assessed.findings for study in studies.values()} == {"unknown"}
    studies, _ = read(table, looked_for="listed")
    assert studies["c"].assessed.findings == "listed"
    assert studies["c"].assessed.listed == ("mass", "nodule", "pleural effusion")
    studies, _ = read(table, looked_for="every")
    assert studies["c"].assessed.findings == "every"
    assert studies["c"].assessed.devices == "unknown"


def test_a_column_may_say_whether_a_label_is_present(read):
    table = (
        "image,label,certainty\na.png,Mass,absent\na.png,Nodule,uncertain\na.png,Edema,\nb.png,Edema,yes\n"
    )
    studies, imported = read(table)
    # An empty cell states nothing.
    stated = {"mass": "absent", "nodule": "uncertain"}
    assert {f.name: f.certainty for f in studies["a"].findings} == stated
    assert defects(imported)["certainty"] == 1
    # Where it was looked for, what is not stated would be absent.
    studies, _ = read(table, looked_for="listed")
    assert {f.name: f.certainty for f in studies["a"].findings} == {**stated, "edema": "uncertain"}


def test_a_region_whose_certainty_is_left_open_is_uncertain(read):
    studies, imported = read("image,label,certainty,x,y,w,h\na.png,Mass,,1,2,3,4\nb.png,Mass,yes,1,2,3,4\n")
    assert [(f.name, f.certainty, len(f.annotations)) for f in studies["a"].findings] == [
        ("mass", "uncertain", 1)
    ]
    assert defects(imported)["certainty"] == 1


def test_a_device_is_a_device(read):
    studies, _ = read("image,pacemaker,Mass\na.png,1,0\n")
    assert [device.name for device in studies["a"].devices] == ["pacemaker"]
    assert (studies["a"].assessed.devices, studies["a"].assessed.listed) == ("listed", ("mass", "pacemaker"))


def test_a_column_of_no_finding_and_a_target_are_ignored_with_a_reason(read):
    studies, imported = read("image,No Finding,Target,Mass,hospital\na.png,1,1,0,north\n")
    assert [f.name for f in studies["a"].findings] == ["mass"]
    lines = "\n".join(imported.plan.lines)
    assert "# ignored: No Finding: says that nothing was found" in lines
    assert "# ignored: Target: names no finding" in lines
    assert "# ignored: hospital: not known" in lines
    assert "ignored: [No Finding, Target, hospital]" in lines


def test_a_wrong_word_skips_the_study_with_row_and_column(read):
    studies, imported = read(
        "image,Mass,Nodule\na.png,1,1\nb.png,0,maybe so\n", finding_column=("Mass", "Nodule")
    )
    assert list(studies) == ["a"]
    (skipped,) = imported.skipped
    assert (skipped.study, skipped.field, skipped.kind) == ("b", "Nodule", "label")
    assert skipped.place.endswith("row 3")
    assert "'maybe so'" in skipped.reason


def test_labels_of_a_cell_are_split():
    assert split_labels("Mass | Nodule;Mass; nan ;Normal", None) == ["Mass", "Nodule", "Normal"]
    assert split_labels("Mass, Nodule", ",") == ["Mass", "Nodule"]
    assert split_labels('["Mass", "Pleural effusion"]', None) == ["Mass", "Pleural effusion"]
    assert split_labels("[odd", None) == ["[odd"]


# ---- patients, dates and the rest ----------------------------------------------------------------------------------


def test_without_a_patient_each_study_is_its_own_and_that_is_counted(read):
    studies, imported = read("image,Mass,date\na.png,1,2020-01-01\nb.png,0,2020-01-02\n")
    assert {study.patient for study in studies.values()} == {"a", "b"}
    assert defects(imported) == {"patient": 2}
    assert studies["a"].order is None
    assert studies["a"].later is None


def test_studies_of_a_patient_are_ordered_by_date(read):
    studies, imported = read(
        "image,patient_id,study_date,age,sex,view,split,Mass\n"
        "a.png,7,2020-03-01,061Y,F,PA,train,1\n"
        "b.png,7,20200201,60,female,AP,train,0\n"
        "c.png,8,2020/01/01,414,x,swimmers,valid,0\n"
    )
    assert (studies["b"].order, studies["b"].prior, studies["b"].later) == (0, None, "a")
    assert (studies["a"].order, studies["a"].prior, studies["a"].later) == (1, "b", None)
    assert studies["a"].date == datetime.date(2020, 3, 1)
    assert (studies["a"].age, studies["a"].sex, studies["a"].split) == (61, "F", "train")
    assert [image.view for image in studies["b"].images] == ["AP"]
    assert (studies["c"].age, studies["c"].sex, studies["c"].split) == (None, None, "val")
    assert defects(imported) == {"view": 1, "age": 1, "sex": 1}


def test_dates_that_begin_with_the_day_need_a_format(read):
    table = "image,patient,date,Mass\na.png,1,01/02/2020,1\n"
    studies, imported = read(table, date_column="date")
    assert studies["a"].date is None
    assert defects(imported) == {"date": 1}
    studies, _ = read(table, date_column="date", date_format="%d/%m/%Y")
    assert studies["a"].date == datetime.date(2020, 2, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-02-01", (2020, 2, 1)),
        ("20200201", (2020, 2, 1)),
        ("2020-02-01 13:45:10", (2020, 2, 1, 13, 45, 10)),
        ("2020-02-01T13:45:10.123Z", (2020, 2, 1, 13, 45, 10)),
        ("2020-02/01", None),
        ("2020-02-30", None),
        ("01.02.2020", None),
        ("9" * 5000, None),
    ],
    ids=["iso", "compact", "time", "zone", "mixed", "no such day", "day first", "long"],
)
def test_dates(text, expected):
    assert read_date(text, None) == (None if expected is None else datetime.datetime(*expected))


def test_a_study_may_have_several_images(read):
    studies, _ = read(
        "image,study,patient,view,label,x,y,w,h\n"
        "a.png,s1,p,PA,Mass,10,20,30,40\nb.png,s1,p,lateral,,,,,\nc.png,s2,p,PA,Mass,0,0,5,5\n"
    )
    assert list(studies) == ["s1", "s2"]
    assert [(image.key, image.view) for image in studies["s1"].images] == [
        ("a.png", "PA"),
        ("b.png", "lateral"),
    ]
    assert boxes_of(studies["s1"]) == [("mass", (10, 20, 30, 40), "table")]


def test_study_names_that_patients_share_get_the_patient(read):
    studies, _ = read("image,study,patient,Mass\na.png,study1,p1,1\nb.png,study1,p2,0\nc.png,study2,p2,0\n")
    assert list(studies) == ["p1/study1", "p2/study1", "study2"]


def test_an_image_of_two_patients_is_skipped(read):
    studies, imported = read("image,patient,Mass\na.png,p1,1\na.png,p2,1\nb.png,p3,0\n")
    assert list(studies) == ["b"]
    assert imported.skipped[0].kind == "patient"


def test_reports_are_kept_by_section_or_split(read):
    studies, _ = read(
        "image,findings,impression\n"
        'a.png,"The heart is of normal size, and the lungs are clear. No effusion.",Nothing acute in the chest.\n'
    )
    report = studies["a"].report
    assert [section.name for section in report.sections] == ["findings", "impression"]
    assert [report.quote(sentence) for sentence in report.sentences] == [
        "The heart is of normal size, and the lungs are clear.",
        "No effusion.",
        "Nothing acute in the chest.",
    ]
    assert studies["a"].assessed.text is False
    studies, _ = read('image,report\na.png,"FINDINGS: Small left effusion.\r\nIMPRESSION: Effusion."\n')
    assert studies["a"].report.text("findings") == "Small left effusion."
    assert studies["a"].report.text("impression") == "Effusion."


# ---- boxes ---------------------------------------------------------------------------------------------------------

BOX = [
    ("x,y,w,h", "10,20,30,40", {}),
    ("x1,y1,x2,y2", "10,20,40,60", {}),
    ("x_min,y_min,x_max,y_max", "10,20,40,60", {}),
    ("cx,cy,w,h", "25,40,30,40", {}),
    ("x,y,w,h", "0.1,0.25,0.3,0.5", {}),
    ("x,y,w,h", "10,25,30,50", {"box_frame": "percent"}),
    ("x,y,w,h", "100,250,300,500", {"box_frame": "thousandths"}),
    ("x,y,w,h", "20,40,60,80", {"box_frame": "200x160"}),
    ("x,y,w,h", "20,60,60,80", {"box_frame": "200 padded"}),
    ("x,y,w,h", "20,40,60,80", {"box_frame": "200 padded corner"}),
    ("x,y,w,h,width,height", "20,40,60,80,200,160", {}),
    ("bbox", '"[10, 20, 30, 40]"', {}),
    ("bbox", "10 20 30 40", {}),
    ("bbox", '"[[10, 20, 40, 60]]"', {"box_form": "xyxy"}),
    ("a,b,c,d", "10,20,40,60", {"box_column": ("a", "b", "c", "d"), "box_form": "xyxy"}),
]


@pytest.mark.parametrize(("columns", "cells", "options"), BOX, ids=[f"{c} {o}" for c, _, o in BOX])
def test_boxes_in_every_frame_are_the_same_box(read, columns, cells, options):
    studies, imported = read(f"image,patient,label,{columns}\na.png,p,Mass,{cells}\n", **options)
    assert boxes_of(studies["a"]) == [("mass", (10, 20, 30, 40), "table")]
    assert not imported.defects


def test_annotators_are_kept_apart(read):
    studies, _ = read("image,label,reader,x,y,w,h\na.png,Mass,R1,10,20,30,40\na.png,Mass,R2,12,22,30,40\n")
    assert boxes_of(studies["a"]) == [("mass", (10, 20, 30, 40), "R1"), ("mass", (12, 22, 30, 40), "R2")]


@pytest.mark.parametrize(
    ("cells", "defect"),
    [
        ("10,20,-5,40", "swapped corners"),
        ("200,20,30,40", "outside"),
        ("inf,20,30,40", "region"),
        ("1e400,20,30,40", "region"),
        ("10,20,30,", "region"),
        ("ten,20,30,40", "region"),
        ("80,20,40,40", "cut"),
        ("-10,20,40,40", "cut"),
    ],
    ids=[
        "negative",
        "outside",
        "infinite",
        "too large",
        "incomplete",
        "word",
        "over the right",
        "over the left",
    ],
)
def test_a_box_that_cannot_be_drawn_is_counted_and_its_label_kept(read, cells, defect):
    options = {"box_column": ("x", "y", "w", "h"), "box_form": "xywh", "box_frame": "pixels"}
    studies, imported = read(f"image,patient,label,x,y,w,h\na.png,p,Mass,{cells}\n", **options)
    assert [f.certainty for f in studies["a"].findings] == ["present"]
    assert defects(imported) == {defect: 1}
    assert len(boxes_of(studies["a"])) == (defect == "cut")


def test_a_defect_is_listed_with_its_file_and_row(read):
    # Row 1 is the header, row 4 is empty; the second finding of b is in row 5.
    _, imported = read(
        "image,label,x,y,w,h\na.png,mass,1,1,2,2\nb.png,mass,1,1,2,2\n\nb.png,nodule,1,1,-3,2\n",
        box_column=("x", "y", "w", "h"),
        box_form="xywh",
        box_frame="pixels",
    )
    rows = [row for row in defect_rows(imported) if row[0] == "swapped corners"]
    assert rows == [("swapped corners", "b", "table.csv", "5")]
    ((_, count, _),) = [one for one in imported.defects if one[0] == "swapped corners"]
    assert (count.times, count.records, count.first) == (1, 1, 5)


def test_a_reader_may_be_compared_with_the_truth(read, tmp_path):
    table = (
        "image,patient,label,reader,x,y,w,h,certainty\n"
        "a.png,p,Mass,R1,10,10,20,20,1\n"
        "a.png,p,Mass,R9,12,10,20,20,1\n"
        "a.png,p,Nodule,R9,50,10,5,5,1\n"
        "b.png,q,Mass,R1,10,10,20,20,1\n"
        "b.png,q,Mass,R9,,,,,0\n"
    )
    options = {"box_column": ("x", "y", "w", "h"), "box_form": "xywh", "box_frame": "pixels"}
    studies, imported = read(table, comparison_reader=("R9",), **options)
    (mass,) = studies["a"].findings
    assert (mass.name, mass.certainty, boxes_of(studies["a"])) == (
        "mass",
        "present",
        [("mass", (10, 10, 20, 20), "R1")],
    )
    assert [(one.annotator, one.region.bbox) for one in mass.comparisons] == [("R9", (12, 10, 20, 20))]
    # A nodule that only R9 drew says nothing of the study.
    assert defects(imported) == {"conflict": 1}
    # R9 looked at b and drew nothing.
    (missed,) = studies["b"].findings[0].comparisons
    assert (missed.annotator, missed.region.is_empty) == ("R9", True)
    assert "comparisons: [R9]" in imported.plan.lines
    columns = _write(tmp_path / "map.yaml", "\n".join(imported.plan.lines))
    again, _ = read(table, columns=columns)
    assert again == studies


def test_readers_for_comparison_need_a_column_that_names_them(read):
    with pytest.raises(SourceError, match="comparisons: no column of annotators"):
        read("image,label\na.png,Mass\n", comparison_reader=("R9",))


def test_an_empty_box_is_no_box(read):
    studies, imported = read("image,patient,label,x,y,w,h\na.png,p,Mass,1,2,3,4\nb.png,p,Mass,,nan,None,\n")
    assert boxes_of(studies["b"]) == []
    assert not imported.defects


def test_a_box_belongs_to_the_only_finding_of_its_row(read):
    studies, imported = read(
        "image,patient,Mass,Nodule,x,y,w,h\na.png,p,1,0,1,2,3,4\nb.png,p,1,1,1,2,3,4\nc.png,p,0,0,1,2,3,4\n"
    )
    assert boxes_of(studies["a"]) == [("mass", (1, 2, 3, 4), "table")]
    assert boxes_of(studies["b"]) == []
    assert {f.certainty for f in studies["b"].findings} == {"present"}
    assert defects(imported) == {"unnamed": 2}


def test_a_finding_may_be_named_for_all_boxes(read):
    studies, _ = read("patientId,x,y,w,h\na,1,2,3,4\nb,,,,\n", finding="pneumonia", image_column="patientId")
    assert boxes_of(studies["a"]) == [("pneumonia", (1, 2, 3, 4), "table")]
    assert studies["b"].findings == ()


def test_a_stated_size_of_other_proportions_skips_the_study(read):
    studies, imported = read(
        "image,patient,label,x,y,w,h,width,height\na.png,p,Mass,1,2,3,4,100,80\nd.png,p,Mass,1,2,3,4,100,80\n"
    )
    assert list(studies) == ["a"]
    assert "the stated size is 100 x 80, the image is 60 x 80" in imported.skipped[0].reason


def test_cells_of_boxes():
    assert read_boxes("(1, 2, 3, 4)") == [[1, 2, 3, 4]]
    assert read_boxes("[[1, 2, 3, 4], [5, 6, 7, 8]]") == [[1, 2, 3, 4], [5, 6, 7, 8]]
    for wrong in ("[1, 2, 3]", "{}", "[[1, 2, 3, NaN]]", "[[1, 2], [3, 4]]", "[" * 5000, ""):
        with pytest.raises(RegionError):
            read_boxes(wrong)


def test_frames():
    assert Frame.parse("224 padded") == Frame((224, 224), "centre")
    assert Frame.parse(" 640 x 480 ") == Frame((640, 480))
    # 60 x 80 in 200 x 200: scaled by 2.5 to 150 x 200, with 25 on the left and on the right.
    points = Frame.parse("200 padded").to_pixels([(25, 0), (175, 200), (100, 100)], width=60, height=80)
    assert points.tolist() == [[0, 0], [60, 80], [30, 40]]
    assert box_corners([25, 40, 30, 40], "centre") == ((10, 20), (40, 60))
    for wrong in ("", "0", "0x5", "224 stretched", "-5", "1e3"):
        with pytest.raises(SourceError, match="expected pixels"):
            Frame.parse(wrong)


# ---- masks and polygons --------------------------------------------------------------------------------------------


@pytest.fixture
def mask(tmp_path):
    drawn = np.zeros((80, 100), bool)
    drawn[20:60, 10:40] = True
    write_png(tmp_path / "masks" / "a.png", drawn.astype(np.uint8) * 7)
    write_png(tmp_path / "masks" / "small.png", np.ones((8, 10), np.uint8))
    return Region.from_mask(drawn)


@pytest.mark.parametrize("dialect", ["coco", "coco counts", "siim", "chexmask", "path"])
def test_masks_of_every_dialect_are_the_same_mask(read, tmp_path, mask, dialect):
    cell = {
        "coco": json.dumps(mask.to_coco()).replace('"', '""'),
        "coco counts": mask.counts.replace('"', '""'),
        "siim": mask.to_siim(),
        "chexmask": mask.to_chexmask(),
        "path": "a.png",
    }[dialect]
    studies, imported = read(
        f'image,patient,label,mask\na.png,p,Mass,"{cell}"\n',
        mask_dialect=dialect.split()[0],
        mask_column="mask",
        masks=tmp_path / "masks",
    )
    (annotation,) = studies["a"].findings[0].annotations
    assert annotation.region == mask
    assert annotation.drawn == "mask"
    assert not imported.defects


def test_masks_made_for_a_larger_image_are_resized(read, mask):
    large = mask.resize(160, 200).to_siim()
    studies, _ = read(
        f"image,patient,label,rle\na.png,p,Mass,{large}\n",
        mask_column="rle",
        mask_dialect="siim",
        mask_frame="200x160",
    )
    assert studies["a"].findings[0].annotations[0].region == mask


@pytest.mark.parametrize(
    ("cell", "dialect"),
    [
        ("1 99999999", "siim"),
        ("5 3 2 1", "chexmask"),
        ('{""size"": [8, 10], ""counts"": ""PP2""}', "coco"),
        ('{""size"": [80, 100], ""counts"": [NaN]}', "coco"),
        ("\u00e9", "coco"),
    ],
    ids=[
        "siim",
        "chexmask",
        "coco size",
        "nan",
        "letters",
    ],
)
def test_a_mask_that_cannot_be_read_is_counted(read, tmp_path, mask, cell, dialect):  # noqa: ARG001
    studies, imported = read(
        f'image,patient,label,mask\na.png,p,Mass,"{cell}"\n',
        mask_column="mask",
        mask_dialect=dialect,
        masks=tmp_path / "masks",
    )
    assert defects(imported) == {"region": 1}
    assert studies["a"].findings[0].annotations == ()


def test_a_mask_stored_as_jpeg_is_not_used(read, tmp_path):
    from PIL import Image

    Image.fromarray(np.zeros((80, 100), np.uint8)).save(tmp_path / "images" / "mask.jpg")
    _, imported = read("image,patient,label,mask\na.png,p,Mass,mask.jpg\n")
    assert defects(imported) == {"region": 1}


def test_run_lengths_without_a_dialect_are_not_guessed(read):
    _, imported = read("image,patient,label,rle\na.png,p,Mass,1 5\n")
    assert any("# ignored: rle: holds neither paths" in line for line in imported.plan.lines)
    with pytest.raises(CarinaError, match="--mask-dialect"):
        read("image,patient,label,rle\na.png,p,Mass,1 5\n", mask_column="rle")


@pytest.mark.parametrize(
    "cell",
    ["[[10,20],[40,20],[40,60],[10,60]]", "[10,20,40,20,40,60,10,60]", "[[[10,20],[40,20],[40,60],[10,60]]]",
     "[[10,20,40,20,40,60,10,60]]"],
)  # fmt: skip
def test_polygons(read, cell):
    studies, imported = read(f'image,patient,label,polygon\na.png,p,Mass,"{cell}"\n')
    (annotation,) = studies["a"].findings[0].annotations
    assert annotation.region == Region.from_polygons(
        [[(10, 20), (40, 20), (40, 60), (10, 60)]], height=80, width=100
    )
    assert annotation.drawn == "polygon"
    assert not imported.defects


def test_wrong_polygons():
    for wrong in ("[]", "[1,2,3]", "[[1,2],[3]]", "[[1,NaN]]", "{}", "[[[]]]", "7", '["a","b"]'):
        with pytest.raises(RegionError):
            read_polygons(wrong)


# ---- images --------------------------------------------------------------------------------------------------------


def test_images_are_found_by_path_name_or_id(read, tmp_path):
    write_png(tmp_path / "images" / "deep" / "e.png", np.zeros((8, 8), np.uint8))
    studies, imported = read("file,Mass\ndeep/e.png,1\n./a.png,0\n")
    assert list(studies) == ["deep/e", "a"]
    studies, imported = read("file,Mass\n/data/elsewhere/e.png,1\nC:\\scans\\a.png,0\n")
    assert list(studies) == ["deep/e", "a"]
    assert "image_by: name" in imported.plan.lines
    studies, imported = read("image_id,Mass\ne,1\na,0\nmissing,1\n")
    assert list(studies) == ["deep/e", "a"]
    assert "image_by: id" in imported.plan.lines
    assert imported.skipped[0].message.endswith("image: no image file is called 'missing'")


def test_a_name_of_two_files_is_skipped(read, tmp_path):
    write_png(tmp_path / "images" / "deep" / "a.png", np.zeros((8, 8), np.uint8))
    studies, imported = read("image,Mass\na.png,1\nb.png,1\n", image_by="name")
    assert list(studies) == ["b"]
    assert "2 image files are called 'a.png': a.png, deep/a.png" in imported.skipped[0].reason


def test_an_absolute_path_below_the_folder_is_used_and_another_is_refused(read, tmp_path, images):
    other = tmp_path / "other" / "a.png"
    write_png(other, np.zeros((8, 8), np.uint8))
    studies, imported = read(f"image_path,Mass\n{images / 'a.png'},1\n{other},1\n")
    assert [study.images[0].key for study in studies.values()] == ["a.png"]
    # The file that the cell names is not replaced by another one of its name.
    assert [item.study for item in imported.skipped] == [""]
    assert str(images) in imported.skipped[0].reason
    assert "--images" in imported.skipped[0].reason


def test_a_path_whose_folder_is_not_there_is_used_by_name_with_a_notice(read):
    studies, imported = read("image_path,Mass\nelsewhere/a.png,1\nelsewhere/b.png,0\n")
    assert list(studies) == ["a", "b"]
    notice = next(line for line in imported.plan.lines if "--images" in line)
    assert "'elsewhere/a.png'" in notice
    assert "so a.png is used" in notice
    assert not any("--images" in line for line in read("image,Mass\na.png,1\n")[1].plan.lines)


def test_names_that_all_occur_twice_are_refused_with_both_places(read, tmp_path):
    for folder in ("one", "two"):
        write_png(tmp_path / "scans" / folder / "e.png", np.zeros((8, 8), np.uint8))
    _, imported = read("image_path,Mass\nelsewhere/e.png,1\n", folder=tmp_path / "scans")
    assert imported.is_empty
    assert "2 image files are called 'e.png': one/e.png, two/e.png" in imported.skipped[0].reason


def test_folders_that_carina_wrote_hold_no_images_of_a_table(read, tmp_path, images):
    show(import_source("table", _write(tmp_path / "b.csv", "image,Mass\nb.png,1\n"), tmp_path / "set",
                       images=images, copy_images=True, workers=1).opened(), images / "pages")  # fmt: skip
    (tmp_path / "set").rename(images / "set")
    names = {path.name for path in (images / "pages").rglob("*.png")}
    assert "b.png" in {path.name for path in (images / "set").rglob("*.png")}
    assert names
    (images / "b.png").unlink()
    _, imported = read(
        "image,Mass\n" + "".join(f"{name},1\n" for name in ("b.png", *sorted(names))), image_by="name"
    )
    assert imported.is_empty
    assert {item.kind for item in imported.skipped} == {"image missing"}


def test_paths_that_leave_the_folder_are_skipped(read, tmp_path):
    secret = tmp_path / "secret.png"
    write_png(secret, np.zeros((8, 8), np.uint8))
    (tmp_path / "images" / "link.png").symlink_to(secret)
    studies, imported = read(
        f"image,Mass\na.png,1\n../secret.png,1\n{secret},1\nlink.png,1\n,1\nmissing.png,1\n", image_by="path"
    )
    assert list(studies) == ["a"]
    reasons = [item.reason for item in imported.skipped]
    assert "leads out of the folder of images" in reasons[0]
    assert "is not a path below the folder of images" in reasons[1]
    assert reasons[2] == "is empty"
    assert "leads out of the image root" in reasons[3]
    assert reasons[4] == "'missing.png' is missing"


def test_images_lie_beside_the_table_by_default(read):
    studies, _ = read("image,Mass\nimages/a.png,1\n", folder=None)
    assert list(studies) == ["images/a"]


def test_two_images_that_differ_in_their_ending_keep_it(read, tmp_path):
    write_png(tmp_path / "images" / "a.PNG", np.zeros((8, 8), np.uint8))
    studies, _ = read("image,Mass\na.png,1\na.PNG,1\nb.png,0\n")
    assert list(studies) == ["a.png", "a.PNG", "b"]


# ---- files ---------------------------------------------------------------------------------------------------------


def test_parquet_with_lists_is_read_as_csv_is(read, tmp_path):
    table = pa.table(
        {
            "image": ["a.png", "b.png", "c.png"],
            "patient": [1, 2, 2],
            "date": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)],
            "labels": [["Mass"], ["Mass", "Nodule"], []],
            "boxes": [[[10.0, 20.0, 30.0, 40.0]], None, None],
            "age": [60.0, float("nan"), None],
        }
    )
    pq.write_table(table, tmp_path / "table.parquet")
    studies, imported = read(None, "table.parquet")
    assert boxes_of(studies["a"]) == [("mass", (10, 20, 30, 40), "table")]
    assert [f.name for f in studies["b"].findings] == ["mass", "nodule"]
    assert (studies["a"].patient, studies["a"].age, studies["b"].age) == ("1", 60, None)
    assert (studies["c"].prior, studies["c"].date) == ("b", datetime.date(2020, 1, 3))
    assert not imported.defects


def test_excel_is_read_or_the_extra_is_named(read, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in (["image", "patient", "date", "Mass"], ["a.png", 7, datetime.date(2020, 1, 1), 1],
                ["b.png", 7, datetime.date(2020, 1, 2), None]):  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "table.xlsx")
    studies, _ = read(None, "table.xlsx")
    assert [f.name for f in studies["a"].findings] == ["mass"]
    assert (studies["b"].prior, studies["b"].patient, studies["b"].findings) == ("a", "7", ())


def test_excel_that_is_none_is_refused(read):
    with pytest.raises(SourceError, match="Excel"):
        read("not a workbook", "table.xlsx")


@pytest.mark.parametrize("sign", [";", "\t"], ids=["semicolon", "tab"])
def test_other_delimiters_bom_and_line_ends(read, sign):
    text = f'\ufeffimage{sign}Mass{sign}note\r\n\r\na.png{sign}1{sign}"x,y\r\nz"\r\nb.png{sign}0\r\n'
    studies, _ = read(text)
    assert list(studies) == ["a", "b"]
    assert studies["a"].images[0].key == "a.png"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "t.csv", "no columns"),
        ("image,Mass,image\na.png,1,2\n", "t.csv", "several columns are called 'image'"),
        ("x,y\n1,2\n", "t.csv", "--image-column"),
        ("image,Mass\n", "t.csv", "--image-column|holds no record"),
        ("damaged", "t.parquet", "cannot be read as Parquet"),
        ("damaged", "t.json", "name ends in one of"),
        ("damaged", "t.csv.gz", "cannot be read"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(read, text, name, message):
    with pytest.raises(SourceError, match=message):
        read(text, name)


def test_a_row_with_too_many_or_too_few_fields_is_skipped(read):
    studies, imported = read("image,Mass\na.png,1\nb.png,1,7\nc.png\n")
    assert list(studies) == ["a"]
    assert sorted(item.reason for item in imported.skipped) == [
        "3 fields, expected 2",
        "is missing: the row ends before it",
    ]


def test_a_huge_field_is_read(read):
    studies, _ = read(f"image,Mass,note\na.png,1,{'x' * 3_000_000}\n")
    assert list(studies) == ["a"]


def test_rows_of_an_image_need_not_stand_together(read):
    studies, _ = read("image,label\na.png,Mass\nb.png,Mass\na.png,Nodule\n")
    assert [f.name for f in studies["a"].findings] == ["mass", "nodule"]
    assert len(studies) == 2


# ---- the map of columns --------------------------------------------------------------------------------------------


def test_the_map_is_written_and_gives_the_same_studies_when_given_back(read):
    table = "image,Patient ID,Mass,label,x,y,w,h,report,site\na.png,p,1,Mass,.1,.2,.3,.4,The lungs are clear.,north\n"
    first, imported = read(table)
    written = imported.path / "columns.yaml"
    assert written.read_text().splitlines() == list(imported.plan.lines)
    assert yaml.safe_load(written.read_text()) == {
        "image": "image",
        "patient": "Patient ID",
        "findings": {"Mass": "Mass"},
        "label": "label",
        "box": {"columns": ["x", "y", "w", "h"], "form": "xywh", "frame": "unit"},
        "report": {"text": "report"},
        "ignored": ["site"],
    }
    second, again = read(table, columns=written)
    assert second == first
    assert (again.path / "columns.yaml").read_text().splitlines()[1] == "# ignored: site: not in columns.yaml"


def test_an_edited_map_decides(read, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "image: file\nfindings: {target: pneumonia}\nbox: {columns: [a, b, c, d], form: xyxy, frame: percent}\n"
    )
    studies, imported = read(
        "file,target,a,b,c,d,Mass\na.png,1,10,25,40,75,1\n", columns=tmp_path / "mine.yaml"
    )
    assert boxes_of(studies["a"]) == [("pneumonia", (10, 20, 30, 40), "table")]
    assert studies["a"].findings[0].label is None
    assert studies["a"].assessed.listed == ("pneumonia",)
    assert "ignored: [Mass]" in imported.plan.lines


def test_names_of_columns_that_yaml_would_misread_come_back(read):
    table = 'image,yes,"a: b",#c,- d,007\na.png,1,1,1,1,1\n'
    first, imported = read(table)
    second, _ = read(table, columns=imported.path / "columns.yaml")
    assert first == second
    assert [f.label or f.name for f in first["a"].findings] == ["yes", "a: b", "#c", "- d", "007"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image: file\nboxes: {}\n", "boxes"),
        ("findings: {}\n", "image"),
        ("image: nowhere\n", "no column 'nowhere'"),
        ("image: file\nbox: {columns: [x, y]}\n", "no column 'x'|2 columns"),
        ("image: file\nbox: {columns: [Mass], frame: furlongs}\n", "frame 'furlongs'"),
        ("image: file\nbox: {columns: [Mass], frame: size}\n", "needs the columns"),
        ("image: file\nmask: {column: Mass, frame: 224 padded}\n", "mask: frame"),
        ("image: file\nmask: {column: Mass, dialect: morse}\n", "morse"),
        ("image: file\nreport: {prose: Mass}\n", "prose"),
        ("image: [\n", "not YAML"),
        ("a: &x [1]\nb: *x\n", "alias"),
    ],
)
def test_a_wrong_map_is_refused_with_its_field(read, tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(SourceError, match=message):
        read("file,Mass\na.png,1\n", columns=tmp_path / "mine.yaml")


def test_an_option_that_names_no_column_is_refused(read):
    with pytest.raises(SourceError, match="no column 'who'"):
        read("image,Mass\na.png,1\n", patient_column="who")


def test_options_count_more_than_a_guess(read):
    studies, _ = read("image,other,patient,Mass\na.png,q,p,1\n", patient_column="other")
    assert studies["a"].patient == "q"


# ---- two commands --------------------------------------------------------------------------------------------------


def run_command(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def test_a_table_and_a_folder_of_phantoms_become_a_ground_benchmark(tmp_path):
    run_command("phantom", "-o", tmp_path / "phantoms", "-n", "6", "--seed", "3", "--workers", "1")
    phantoms = open_studies(tmp_path / "phantoms")
    names = sorted({finding.name for study in phantoms for finding in study.findings if finding.annotations})
    expected = 0
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "patient", "view", "label", "certainty", "x1", "y1", "x2", "y2"])
        for study in phantoms:
            drawn = [(f, a) for f in study.findings if f.certainty == "present" for a in f.annotations]
            expected += len({(finding.name, annotation.image) for finding, annotation in drawn})
            for image in study.images:
                table.writerow([image.key, study.patient, image.view, "", "", "", "", "", ""])
            for finding, annotation in drawn:
                x, y, w, h = annotation.region.bbox
                view = study.image(annotation.image).view
                table.writerow(
                    [annotation.image, study.patient, view, finding.name, "present", x, y, x + w, y + h]
                )
    result = run_command(
        "import", "table", tmp_path / "labels.csv", "--images", tmp_path / "phantoms" / "images",
        "-o", tmp_path / "studies", "--workers", "1",
    )  # fmt: skip
    assert "box: {columns: [x1, y1, x2, y2], form: xyxy, frame: pixels}" in result.stderr
    run_command("check", tmp_path / "studies")
    run_command(
        "build", "ground", tmp_path / "studies", "-o", tmp_path / "bench", "--workers", "1", "--lateral"
    )
    cases = list(open_benchmark(tmp_path / "bench"))
    assert {case.target for case in cases} <= set(names)
    assert len(cases) == expected
    run_command("check", tmp_path / "bench")


@pytest.mark.skipif(not NIH.is_dir(), reason=f"no real images: {NIH} is absent")
def test_a_table_and_a_folder_of_real_images_become_a_ground_benchmark(tmp_path):
    with (NIH / "BBox_List_2017.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "patient", "finding", "x", "y", "w", "h"])
        table.writerows([row[0], row[0].split("_")[0], *row[1:6]] for row in rows)
    run_command(
        "import", "table", tmp_path / "labels.csv", "--images", NIH / "images", "-o", tmp_path / "studies",
        "--workers", "1",
    )  # fmt: skip
    studies = open_studies(tmp_path / "studies")
    assert len(studies) == 39
    drawn = [a for study in studies for f in study.findings for a in f.annotations]
    assert len(drawn) == 44
    first = studies["00000808_002"]
    # 558.1, 384.3, 227.8 x 167.05: pixels whose centre lies in the box.
    assert first.findings[0].annotations[0].region.bbox == (558, 384, 228, 167)
    run_command("build", "ground", tmp_path / "studies", "-o", tmp_path / "bench", "--workers", "1")
    bench = open_benchmark(tmp_path / "bench")
    counted = {item.target: item.present for item in bench.build_report.targets}
    assert counted == {
        "atelectasis": 9, "cardiomegaly": 5, "infiltration": 5, "mass": 2, "pleural effusion": 2, "pneumonia": 20,
        "pneumothorax": 1,
    }  # fmt: skip


# ---- words of doubt and denial ---------------------------------------------------------------------------------------


def test_a_label_may_say_itself_that_something_is_uncertain_or_absent(read):
    table = "image,patient,label\na.png,p1,Nodule\nb.png,p2,possible pneumothorax\nc.png,p3,no pneumothorax\n"
    studies, imported = read(table, looked_for="listed")
    assert {name: certainty_of(study, "pneumothorax") for name, study in studies.items()} == {
        "a": "absent",
        "b": "uncertain",
        "c": "absent",
    }
    assert studies["a"].assessed.listed == ("nodule", "pneumothorax")
    assert defects(imported) == {"wording": 2}
    assert imported.unknown_names == []


def test_an_unknown_name_is_counted_in_the_studies_that_have_it(read):
    _, imported = read("image,label\na.png,dragon\nb.png,Nodule\nc.png,Nodule\n", looked_for="listed")
    assert [one.message for one in imported.unknown_names] == [
        "finding 'dragon' in 1 study: not a known name"
    ]


# ---- encodings -------------------------------------------------------------------------------------------------------


def test_a_table_of_another_encoding_keeps_its_ids_apart_and_says_so(read, tmp_path):
    text = "image,study,patient,finding\na.png,M\u00fcller1,M\u00fcller,Nodule\nb.png,M\u00e4ller1,M\u00e4ller,Mass\n"
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("cp1252"))
    studies, imported = read(None)
    assert sorted(studies) == ["M\u00e4ller1", "M\u00fcller1"]
    assert "# table.csv: not UTF-8, and read as Windows-1252 (cp1252); say otherwise with --encoding" in (
        imported.plan.lines
    )
    studies, imported = read(None, encoding="cp1250")
    assert sorted(studies) == ["M\u00e4ller1", "M\u00fcller1"]
    assert "Windows" not in "".join(imported.plan.lines)
    path.write_bytes(text.replace(",", "\t").encode("utf-16"))  # as Excel saves "Unicode text"
    studies, _ = read(None)
    assert sorted(studies) == ["M\u00e4ller1", "M\u00fcller1"]
    with pytest.raises(SourceError, match="encoding 'klingon': not known"):
        read(None, encoding="klingon")


# ---- readers ---------------------------------------------------------------------------------------------------------


def opinions(study):
    return {f.name: (f.certainty, f.stated_by) for f in study.findings}


def test_a_reader_who_finds_nothing_counts_as_a_reader(read):
    studies, imported = read(
        "image,patient,finding,reader,x,y,w,h\n"
        "a.png,p1,Nodule,R1,10,10,20,20\na.png,p1,No Finding,R2,,,,\na.png,p1,No Finding,R3,,,,\n"
        "b.png,p2,Nodule,R1,10,10,20,20\nb.png,p2,nodules,R2,10,10,20,20\nb.png,p2,Normal,R3,,,,\n"
        "c.png,p3,Normal,R1,,,,\nc.png,p3,Normal,R2,,,,\n"
    )
    assert {study.assessed.readers for study in studies.values()} == {("R1", "R2", "R3"), ("R1", "R2")}
    assert opinions(studies["a"]) == {"nodule": ("uncertain", ("R1",))}
    assert opinions(studies["b"]) == {"nodule": ("present", ("R1", "R2"))}
    assert opinions(studies["c"]) == {"abnormality": ("absent", ())}
    assert [drawn.annotator for drawn in studies["b"].findings[0].annotations] == ["R1", "R2"]
    assert defects(imported) == {}


def test_columns_of_findings_are_votes_of_their_reader(read):
    table = "image,patient,reader,Nodule,Mass\na.png,p1,R1,0,0\na.png,p1,R2,1,0\na.png,p1,R3,0,0\n"
    studies, imported = read(table + "b.png,p2,R1,0,\nb.png,p2,R2,1,\n")
    assert opinions(studies["a"]) == {"nodule": ("uncertain", ("R2",)), "mass": ("absent", ())}
    # Whichever row comes first: one of two readers is half of them.
    assert opinions(studies["b"]) == {"nodule": ("present", ("R2",))}
    assert studies["b"].assessed.listed == ("nodule",)
    assert defects(imported) == {}


def test_readers_of_different_images_of_a_study_do_not_outvote_each_other(read):
    studies, _ = read(
        "study,image,patient,reader,finding\n"
        "s,a.png,p1,R1,Nodule\ns,b.png,p1,R2,No finding\ns,b.png,p1,R3,No finding\n"
    )
    assert opinions(studies["s"]) == {"nodule": ("present", ("R1",))}


def test_one_reader_does_not_vote(read):
    studies, _ = read("image,patient,reader,Nodule\na.png,p1,R1,1\nb.png,p2,R2,1\n")
    assert [study.assessed.readers for study in studies.values()] == [(), ()]
    assert opinions(studies["a"]) == {"nodule": ("present", ())}


# ---- decimal commas --------------------------------------------------------------------------------------------------

COMMAS = "file;patient;finding;x;y;w;h\na.png;p1;Nodule;10,5;10;20,25;20\nb.png;p2;Nodule;10;10;20;20\n"


def test_decimal_commas_are_read_where_commas_are_no_delimiter(read):
    studies, imported = read(COMMAS)
    points = COMMAS.replace(",", ".").replace(";", ",")
    expected, _ = read(points)
    assert boxes_of(studies["a"]) == boxes_of(expected["a"]) != []
    assert "decimal: ','" in imported.plan.lines
    assert (
        "# decimal: x has numbers with a decimal comma; say otherwise with --decimal" in imported.plan.lines
    )


def test_a_column_with_points_has_no_decimal_commas(read):
    mixed = COMMAS.replace("b.png;p2;Nodule;10;", "b.png;p2;Nodule;1.024,5;")
    studies, imported = read(mixed.replace("20,25", "20"))
    assert boxes_of(studies["a"]) == []
    assert "decimal: ','" not in imported.plan.lines


def test_a_decimal_comma_in_quotes_is_asked_about(read):
    table = 'file,patient,finding,x,y,w,h\na.png,p1,Nodule,"10,5",10,20,20\n'
    studies, imported = read(table)
    assert boxes_of(studies["a"]) == []
    assert "# ignored: x: has numbers with a comma; if that is the decimal sign, say so with --decimal ," in (
        imported.plan.lines
    )
    studies, _ = read(table, decimal=",")
    assert len(boxes_of(studies["a"])) == 1


def test_a_column_of_dates_that_begin_with_the_day_names_its_option(read):
    table = "image,patient,date\na.png,p1,01.02.2020\nb.png,p1,02.02.2020\n"
    _, imported = read(table)
    (line,) = (line for line in imported.plan.lines if line.startswith("# ignored: date"))
    assert "'01.02.2020'" in line
    assert "--date-format" in line
    studies, _ = read(table, date_format="%d.%m.%Y")
    assert [str(study.date) for study in studies.values()] == ["2020-02-01", "2020-02-02"]


# ---- cells and columns that are wrong --------------------------------------------------------------------------------


def test_one_wrong_cell_loses_one_box(read):
    rows = "".join(
        f"{name}.png,Mass,{left},10,20,30\n" for name, left in zip("abc", (10, "abc", 30), strict=True)
    )
    studies, imported = read(f"image,finding,left,top,width,height\n{rows}")
    assert [len(boxes_of(study)) for study in studies.values()] == [1, 0, 1]
    assert defects(imported)["region"] == 1


def test_one_wrong_cell_loses_one_stated_size_mask_or_polygon(read, tmp_path):
    _, imported = read(
        "image,finding,x,y,w,h,image_width,image_height\na.png,Mass,1,1,9,9,50,40\nb.png,Mass,1,1,9,9,abc,40\n"
        "c.png,Mass,1,1,9,9,50,40\n"
    )
    assert "size: [image_width, image_height]" in imported.plan.lines
    assert [item.field for item in imported.skipped] == ["image_width"]
    write_png(tmp_path / "images" / "mask.png", np.full((80, 100), 255, np.uint8))
    for column, cell in (("mask", "mask.png"), ("polygon", '"[[1, 1], [9, 1], [9, 9]]"')):
        studies, _ = read(
            f"image,finding,{column}\na.png,Mass,none given\nb.png,Mass,{cell}\nc.png,Mass,{cell}\n"
        )
        assert [len(boxes_of(study)) for study in studies.values()] == [0, 1, 1]


def test_a_wrong_cell_in_a_column_of_a_finding_is_named(read):
    _, imported = read("image,Effusion,Mass\na.png,1,0\nb.png,2,0\nc.png,0,1\n")
    (line,) = (line for line in imported.plan.lines if line.startswith("# ignored: Effusion"))
    assert "'2'" in line
    assert "--finding-column" in line


@pytest.mark.parametrize("lost", ["left", "top", "width", "height"])
def test_a_box_without_its_fourth_column_is_named(read, lost):
    columns = [name for name in ("left", "top", "width", "height") if name != lost]
    _, imported = read(f"image,finding,{','.join(columns)}\na.png,Mass,1,2,3\n")
    assert not any(line.startswith("size:") for line in imported.plan.lines)
    (line,) = (line for line in imported.plan.lines if line.startswith(f"# ignored: {columns[0]}"))
    assert f"no {lost} with numbers" in line
    assert "--box-column" in line


@pytest.mark.parametrize("cell", ["masks/a.png", "../../a.png", "/etc/passwd.png"])
def test_a_missing_mask_is_named_with_the_folders_where_it_was_looked_for(read, tmp_path, images, cell):
    studies, imported = read(f"image,patient,label,mask\na.png,p,Mass,{cell}\n")
    assert defects(imported) == {"mask missing": 1}
    assert [(f.name, f.annotations) for f in studies["a"].findings] == [("mass", ())]
    (notice,) = (line for line in imported.plan.lines if "--masks" in line)
    assert f"'{cell}'" in notice
    assert f"{images} and {tmp_path}" in notice


def test_masks_are_also_looked_for_beside_the_table(read, tmp_path):
    write_png(tmp_path / "masks" / "a.png", np.full((80, 100), 255, np.uint8))
    studies, imported = read("image,patient,label,mask\na.png,p,Mass,masks/a.png\n")
    assert len(boxes_of(studies["a"])) == 1
    assert not imported.defects


@pytest.mark.parametrize("column", ["finding_name", "what"])
def test_a_column_of_findings_is_known_by_its_name_or_its_values(read, column):
    cells = "a.png,left lung,Mass,1,2,3,4\nb.png,right lung,Effusion;Nodule?,,,,\nc.png,,Mops,1,2,3,4\n"
    studies, imported = read(f"image,where,{column},x,y,w,h\n{cells}")
    assert f"label: {column}" in imported.plan.lines
    assert [f.name for study in studies.values() for f in study.findings] == [
        "mass", "pleural effusion", "nodule", "mops",
    ]  # fmt: skip


def test_regions_without_a_name_say_which_option_names_them(read):
    _, imported = read("image,patient,x,y,w,h\na.png,p,1,2,3,4\n")
    ((name, _, done),) = imported.defects
    assert name == "unnamed"
    assert "--label-column or --finding" in done


# ---- regions that are lost or misread --------------------------------------------------------------------------------


def test_the_last_line_says_that_no_region_was_read(tmp_path, images):
    table = _write(tmp_path / "t.csv", "image,finding,left,top,width\na.png,Mass,1,2,3\n")
    result = run_command("import", "table", table, "--images", images, "-o", tmp_path / "out")
    assert "No region was read" in result.output.splitlines()[-1]
    assert "left, top" in result.output.splitlines()[-1]
    table = _write(tmp_path / "t.csv", "image,finding,left,top,width,height\na.png,Mass,1,2,3,4\n")
    assert (
        "No region"
        not in run_command("import", "table", table, "--images", images, "-o", tmp_path / "out-2").output
    )


def test_boxes_within_0_to_100_of_large_images_may_be_percent(read, tmp_path):
    write_png(tmp_path / "images" / "large.png", np.zeros((500, 600), np.uint8))
    table = "image,finding,x,y,w,h\nlarge.png,Mass,10,20,30,40\n"
    assert any("--box-frame percent" in notice for notice in read(table)[1].plan.notices)
    assert read(table, box_frame="percent")[1].plan.notices == ()
    assert read(table, box_frame="pixels")[1].plan.notices == ()
    assert read(table + "large.png,Mass,10,20,300,40\n")[1].plan.notices == ()
    assert read("image,finding,x,y,w,h\na.png,Mass,10,20,30,40\n")[1].plan.notices == ()


@pytest.mark.parametrize("form", ["xywh", "xyxy"])
def test_boxes_in_another_form_are_suspected(read, form):
    rows = {"xywh": "a.png,Mass,60,50,90,75\n", "xyxy": "a.png,Mass,60,50,20,20\n"}
    # The numbers are corners and taken for a corner and a size, or the other way round.
    _, imported = read(f"image,finding,bbox_x,bbox_y,bbox_w,bbox_h\n{rows[form]}", box_form=form)
    notice = imported.notices[-1]
    assert "--box-form" in notice
    _, imported = read(
        "image,finding,x,y,w,h\n"
        + "".join(f"a.png,Mass,{n},2,3,4\n" for n in (1, 2, 3))
        + "a.png,Mass,90,2,30,4\n"
    )
    assert defects(imported)["cut"] == 1
    assert imported.notices == ()


def test_python_warns_once_of_regions_that_are_lost(tmp_path, images):
    table = _write(tmp_path / "t.csv", "image,patient,finding,mask\na.png,p,Mass,m.png\nb.png,p,Mass,n.png\n")
    with pytest.warns(UserWarning, match="2 mask missing") as caught:
        import_studies("table", table, tmp_path / "out", images=images, workers=1)
    (warning,) = caught
    assert "--masks" in str(warning.message)
    assert "defects.csv" in str(warning.message)
    assert warning.filename == __file__


def test_a_benchmark_without_a_probe_is_an_error_in_python_and_names_the_remedy_on_the_command_line(
    tmp_path, images
):
    table = _write(tmp_path / "t.csv", "image,patient,finding\na.png,p,Mass\n")
    import_studies("table", table, tmp_path / "labels", images=images, workers=1)
    with pytest.raises(NoCasesError, match="none of 1 study has a region") as caught:
        build_ground(tmp_path / "labels", tmp_path / "none", workers=1)
    assert caught.value.benchmark.build_report.studies == 1
    with pytest.raises(NoCasesError, match="none of 1 study can be asked about"):
        build_percept(tmp_path / "labels", tmp_path / "no-lesion", targets=["edema"], workers=1)
    result = CliRunner().invoke(
        app, ["build", "ground", str(tmp_path / "labels"), "-o", str(tmp_path / "none-2")]
    )
    assert result.exit_code == 1
    assert "none of 1 study has a region" in result.output
    table = _write(tmp_path / "t.csv", "image,patient,finding,x,y,w,h\na.png,p,Mass,1,2,3,4\nb.png,q,,,,,\n")
    import_studies("table", table, tmp_path / "boxes", images=images, workers=1)
    result = run_command("build", "ground", tmp_path / "boxes", "-o", tmp_path / "one")
    assert "nobody looked for it; state it with --looked-for at import" in result.output


# ---- readers for comparison ------------------------------------------------------------------------------------------


def compared(finding):
    """Reader of every comparison of a finding, and whether the reader drew something."""
    return [(one.annotator, not one.region.is_empty) for one in finding.comparisons]


@pytest.mark.parametrize(
    "options", [{"looked_for": "listed"}, {"looked_for": "every"}, {"blank": "absent"}, {}], ids=str
)
@pytest.mark.parametrize(
    "table",
    [
        "image,patient,label,reader,x,y,w,h\na.png,p,Mass,R1,10,10,20,20\nb.png,q,Mass,R9,10,10,20,20\n",
        "image,patient,reader,Mass,Nodule,x,y,w,h\na.png,p,R1,1,0,10,10,20,20\nb.png,q,R9,1,,10,10,20,20\n",
    ],
    ids=["label", "finding columns"],
)
def test_an_image_that_only_a_reader_for_comparison_read_is_no_negative(read, table, options):
    studies, _ = read(table, comparison_reader=("R9",), box_form="xywh", box_frame="pixels", **options)
    assert studies["b"].findings == ()
    assert studies["b"].assessed == Assessed()


def test_a_reader_for_comparison_who_says_no_finding_has_missed_what_is_there(read):
    studies, _ = read(
        "image,patient,label,reader,x,y,w,h\n"
        "a.png,p,Mass,R1,10,10,20,20\n"
        "a.png,p,Mass,R9,12,10,20,20\n"
        "a.png,p,No finding,R9,,,,\n"
        "b.png,q,Mass,R1,10,10,20,20\n"
        "b.png,q,Nodule,R1,50,50,20,20\n"
        "b.png,q,No finding,R9,,,,\n"
        "b.png,q,Normal,R8,,,,\n"
        "c.png,r,Mass,R1,10,10,20,20\n"
        "c.png,r,no mass,R9,,,,\n"
        "c.png,r,Nodule,R8,10,10,20,20\n",
        comparison_reader=("R9", "R8"),
        looked_for="listed",
        box_form="xywh",
        box_frame="pixels",
    )
    # Who drew a mass has not missed it.
    assert compared(studies["a"].findings[0]) == [("R9", True)]
    for finding in studies["b"].findings:
        assert compared(finding) == [("R9", False), ("R8", False)]
    # R8 named something else, and does not say whether there is a mass.
    assert compared(studies["c"].findings[0]) == [("R9", False)]


@pytest.mark.parametrize(("cell", "blank"), [("0", "unknown"), ("no", "unknown"), ("", "absent")])
def test_a_denying_cell_of_a_reader_for_comparison_is_a_miss(read, cell, blank):
    studies, _ = read(
        "image,patient,reader,Mass,Nodule,x,y,w,h\n"
        "a.png,p,R1,1,0,10,10,20,20\n"
        f"a.png,p,R9,{cell},1,10,10,20,20\n"
        f"a.png,p,R9,{cell},1,10,10,20,20\n"
        "b.png,q,R1,1,1,,,,\n"
        f"b.png,q,R9,1,{cell},10,10,20,20\n"
        f"b.png,q,R9,{cell},1,50,50,20,20\n",
        comparison_reader=("R9",),
        blank=blank,
        box_form="xywh",
        box_frame="pixels",
    )
    assert [compared(finding) for finding in studies["a"].findings] == [[("R9", False)], []]
    assert [compared(finding) for finding in studies["b"].findings] == [[("R9", True)], [("R9", True)]]


def test_an_empty_cell_of_a_reader_for_comparison_says_nothing(read):
    studies, _ = read(
        "image,patient,reader,Mass\na.png,p,R1,1\na.png,p,R9,\n", comparison_reader=("R9",), blank="unknown"
    )
    assert compared(studies["a"].findings[0]) == []


def test_a_reader_for_comparison_must_be_in_the_column_of_annotators(read):
    table = "image,patient,label,reader\na.png,p,Mass,R1\na.png,p,Mass,R9\n"
    with pytest.raises(SourceError, match=r"comparisons: no reader 'r9' in the column 'reader'.*R1, R9"):
        read(table, comparison_reader=("r9",))


def test_defects_name_the_row_that_has_them(read):
    _, imported = read(
        "image,patient,view,label,reader,certainty,age\n"
        "a.png,p,PA,Mass?,R1,present,50\n"
        "a.png,p,PA,Nodule,R2,present,51\n"
        "a.png,p,PA,Nodule,R2,absent,old\n"
        "a.png,p,PA,Nodule,R1,absent,50\n"
        "b.png,q,sideways,Mass,R1,present,\n"
        "b.png,q,,Mass,R1,present,\n"
        "c.png,r,PA,Mass,R1,present,\n"
        "c.png,s,PA,Mass,R1,present,\n"
        "c.png,r,PA,Mass,R1,present,\n"
    )
    rows = {(defect, record, row) for defect, record, _, row in defect_rows(imported)}
    assert rows == {
        ("wording", "a", "2"),
        ("conflict", "a", "4"),  # the nodule of R2
        ("conflict", "a", "3"),  # the age
        ("age", "a", "4"),
        ("view", "b", "6"),
    }
    assert [item.place.rsplit("/", 1)[-1] for item in imported.skipped] == ["table.csv: row 9"]


def test_normal_beside_a_finding_is_left_out_as_a_conflict(read):
    studies, imported = read(
        "image,patient,label,x,y,w,h\n"
        "a.png,p,Normal,,,,\n"
        "a.png,p,Mass,10,10,20,20\n"
        "b.png,q,Mass,10,10,20,20\n"
        "b.png,q,No finding,,,,\n"
        "c.png,r,Normal,,,,\n"
        "c.png,r,pacemaker,,,,\n"
        "c.png,r,no mass,,,,\n",
        box_form="xywh",
        box_frame="pixels",
    )
    for name in "ab":
        assert [(one.name, one.certainty) for one in studies[name].findings] == [("mass", "present")]
    # A device is no finding, and what is absent contradicts nothing.
    assert certainty_of(studies["c"], "abnormality") == "absent"
    assert [row for row in defect_rows(imported) if row[0] == "conflict"] == [
        ("conflict", "a", defect_rows(imported)[0][2], "2"),
        ("conflict", "b", defect_rows(imported)[0][2], "5"),
    ]


def test_regions_of_readers_for_comparison_count_as_regions(read):
    _, imported = read(
        "image,patient,label,reader,x,y,w,h\n"
        "a.png,p,Mass,R1,200,10,20,20\n"
        "a.png,p,Mass,R9,90,10,20,20\n"
        "a.png,p,Mass,R9,90,40,20,20\n"
        "a.png,p,Nodule,R9,90,40,20,20\n",
        comparison_reader=("R9",),
        box_form="xywh",
        box_frame="pixels",
    )
    # The nodule is no part of the study: that it is cut off is no matter.
    assert defects(imported) == {"outside": 1, "cut": 2, "conflict": 1}
    assert imported.counts.regions == 2
    assert any("2 of 3 regions are cut off" in notice for notice in imported.notices)


def test_anatomy_of_a_reader_for_comparison_is_left_out(read):
    studies, imported = read(
        "image,patient,label,reader,x,y,w,h\na.png,p,Mass,R1,10,10,20,20\na.png,p,left lung,R9,50,10,40,60\n",
        comparison_reader=("R9",),
        box_form="xywh",
        box_frame="pixels",
    )
    assert studies["a"].anatomy == ()
    assert defects(imported) == {"compared anatomy": 1}


def test_a_mask_of_another_size_says_so(read, images):
    write_png(images / "mask.png", np.full((40, 50), 255, np.uint8))
    write_png(images / "empty.png", np.zeros((80, 100), np.uint8))
    studies, imported = read("image,patient,label,mask\na.png,p,Mass,mask.png\nb.png,q,Mass,empty.png\n")
    assert certainty_of(studies["a"], "mass") == "present"
    assert boxes_of(studies["a"]) == []
    assert defects(imported) == {"mask size": 1, "region": 1}
    sentence = "masks of another size than their image are left out, 1 of 2 regions"
    assert any(sentence in notice for notice in imported.notices)
    assert not any("--box-form" in notice for notice in imported.notices)


# ---- names that are not known --------------------------------------------------------------------------------------

MISSPELT = (
    "image,patient,label,x,y,w,h\n"
    "a.png,p1,Pneumona,1,2,30,40\n"
    "b.png,p2,Pneumonia,1,2,30,40\n"
    "c.png,p3,Erguß,1,2,30,40\n"
)


@pytest.mark.parametrize("looked_for", ["listed", "every"])
def test_a_known_name_is_not_absent_where_a_misspelt_one_is_recorded(read, looked_for):
    studies, imported = read(MISSPELT, looked_for=looked_for)
    # What pneumonia is a kind of is not absent either; "erguß" is close to no known name.
    known = {name: certainty_of(study, "pneumonia") for name, study in studies.items()}
    assert known == {"a": None, "b": "present", "c": "absent"}
    assert "pneumonia" in studies["a"].assessed.disputed
    assert certainty_of(studies["a"], "erguß") == "absent"
    assert [row[1::2] for row in defect_rows(imported) if row[0] == "near name"] == [("a", "2")]


def test_a_misspelt_name_is_not_absent_where_the_known_one_is_recorded(read):
    studies, _ = read(MISSPELT, looked_for="listed")
    known = {name: certainty_of(study, "pneumona") for name, study in studies.items()}
    assert known == {"a": "present", "b": None, "c": "absent"}


@pytest.mark.parametrize("looked_for", ["listed", "every"])
def test_no_negative_probe_asks_for_a_name_close_to_what_is_recorded(read, tmp_path, looked_for):
    _, imported = read(MISSPELT, looked_for=looked_for)
    bench = build_ground(imported.out, tmp_path / "bench", workers=1)
    asked = {(case.study, case.target) for case in bench if case.path == "absent"}
    assert not asked & {("a", "pneumonia"), ("b", "pneumona")}
    assert asked & {("c", "pneumonia"), ("c", "pneumona")}


def test_the_first_row_of_a_near_name_is_named_where_readers_vote(read):
    _, imported = read(
        "image,annotator,label\na.png,R1,Mass\na.png,R2,Pneumona\na.png,R1,Pneumona\n", looked_for="listed"
    )
    assert [row[1::2] for row in defect_rows(imported) if row[0] == "near name"] == [("a", "3")]


def test_labels_are_mapped_by_a_file_or_by_the_map_of_columns(read, tmp_path):
    names = {"Pneumona": "pneumonia", "Erguß": "pleural effusion"}
    file = _write(tmp_path / "names.yaml", yaml.safe_dump(names))
    columns = _write(
        tmp_path / "columns.yaml",
        yaml.safe_dump(
            {
                "image": "image",
                "label": "label",
                "box": {"columns": ["x", "y", "w", "h"]},
                "names": names,
                "looked_for": "listed",
            }
        ),
    )
    for options in ({"categories": file, "looked_for": "listed"}, {"columns": columns}):
        studies, imported = read(MISSPELT, **options)
        found = {name: [(f.name, f.label) for f in study.findings] for name, study in studies.items()}
        assert found == {
            "a": [("pneumonia", "Pneumona")],
            "b": [("pneumonia", "Pneumonia")],
            "c": [("pleural effusion", "Erguß")],
        }
        assert studies["a"].assessed.listed == ("pleural effusion", "pneumonia")
        assert not imported.unknown_names
        assert "near name" not in defects(imported)


def test_the_file_of_names_is_written_into_the_map_of_columns(read, tmp_path):
    file = _write(tmp_path / "names.yaml", "Pneumona: pneumonia\n")
    _, imported = read(MISSPELT, categories=file)
    again, _ = read(MISSPELT, columns=imported.out / "columns.yaml")
    assert [f.name for f in again["a"].findings] == ["pneumonia"]


def test_a_name_that_the_user_confirms_is_meant_as_it_is(read, tmp_path):
    file = _write(tmp_path / "names.yaml", "Pneumona: pneumona\n")
    studies, imported = read(MISSPELT, categories=file, looked_for="listed")
    assert certainty_of(studies["a"], "pneumonia") == "absent"
    assert [unknown.name for unknown in imported.unknown_names] == ["erguß"]
    assert open_studies(imported.out).manifest.options["confirmed_names"] == ["pneumona"]


def test_a_label_that_the_map_leaves_out_is_no_vote_and_no_finding(read, tmp_path):
    file = _write(tmp_path / "names.yaml", "Marker: null\n")
    for table in (
        "image,label\na.png,Marker|Mass\n",
        "image,annotator,label\na.png,R1,Marker\na.png,R2,Mass\na.png,R1,Mass\n",
    ):
        studies, _ = read(table, categories=file, looked_for="listed")
        assert [f.name for f in studies["a"].findings] == ["mass"]
        assert studies["a"].assessed.listed == ("mass",)


def test_an_unknown_field_of_the_map_names_the_known_ones(read, tmp_path):
    columns = _write(tmp_path / "columns.yaml", "image: image\ncategories: {A: b}\n")
    with pytest.raises(SourceError, match=r"categories.*names"):
        read(MISSPELT, columns=columns)


def test_the_command_line_names_the_option_that_maps_names(tmp_path, images):
    table = _write(tmp_path / "table.csv", MISSPELT)
    arguments = ["import", "table", str(table), "--images", str(images), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert "did you mean 'pneumonia'" in result.stderr
    assert "--categories" in result.stderr


def test_build_and_audit_name_targets_that_are_not_known(read, tmp_path):
    _, imported = read(MISSPELT, looked_for="listed")
    result = CliRunner().invoke(app, ["build", "ground", str(imported.out), "-o", str(tmp_path / "bench")])
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("Notice: pneumona:"))
    assert "did you mean 'pneumonia'" in line
    assert open_benchmark(tmp_path / "bench").build_report.unknown_targets == {
        "erguß": None,
        "pneumona": "pneumonia",
    }
    gate = audit_benchmark(tmp_path / "bench", AuditOptions(gates=("known-targets",))).gates[0]
    assert (gate.status, gate.count, gate.n) == ("warn", 2, 3)


def test_build_and_audit_accept_names_that_the_user_has_confirmed(read, tmp_path):
    file = _write(tmp_path / "names.yaml", "{Pneumona: pneumona, Erguß: pleural effusion}\n")
    _, imported = read(MISSPELT, categories=file, looked_for="listed")
    bench = build_ground(imported.out, tmp_path / "bench", workers=1)
    assert bench.build_report.unknown_targets == {}
    gate = audit_benchmark(tmp_path / "bench", AuditOptions(gates=("known-targets",))).gates[0]
    assert (gate.status, gate.count) == ("pass", 0)


# ---- regions that cannot be used -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("corners", "defect"),
    [
        ("60,10,20,50", "swapped corners"),
        ("20,50,60,10", "swapped corners"),
        ("110,10,130,50", "outside"),
        ("-30,10,-2,50", "outside"),
        ("20,10,20,50", "no area"),
        ("20,10,nan,50", "region"),
    ],
)
def test_a_box_that_cannot_be_used_says_why(read, tmp_path, corners, defect):
    studies, imported = read(
        f"image,patient,label,x1,y1,x2,y2\na.png,p1,Mass,{corners}\nb.png,p2,Mass,1,2,3,4\n"
    )
    assert boxes_of(studies["a"]) == []
    assert [f.name for f in studies["a"].findings] == ["mass"]
    assert [(row[0], row[3]) for row in defect_rows(imported)] == [(defect, "2")]
    bench = build_ground(imported.out, tmp_path / "bench", workers=1)
    (reason,) = bench.build_report.targets[0].left_out
    assert "defects.csv" in reason


def test_a_region_that_was_drawn_twice_alike_is_used_once(read):
    table = (
        "image,annotator,label,x,y,w,h\n"
        "a.png,R1,Mass,1,2,30,40\na.png,R1,Mass,1,2,30,40\na.png,R2,Mass,1,2,30,40\na.png,R1,Mass,5,2,30,40\n"
    )
    studies, imported = read(table)
    assert [(box, reader) for _, box, reader in boxes_of(studies["a"])] == [
        ((1, 2, 30, 40), "R1"),
        ((1, 2, 30, 40), "R2"),
        ((5, 2, 30, 40), "R1"),
    ]
    assert [(row[0], row[3]) for row in defect_rows(imported) if row[0] == "duplicate"] == [
        ("duplicate", "3")
    ]


# ---- what is said about it -----------------------------------------------------------------------------------------


def test_python_warns_once_of_all_that_the_command_line_prints(tmp_path, images):
    table = tmp_path / "t.csv"
    text = (
        "image;patient;label;x;y;w;h\n"
        "a.png;p;Pneumona;1,5;2;3;4\na.png;p;Erguß;90;2;-3;4\nb.png;p;Mass;190;2;30;4\nx.png;p;Mass;1;2;3;4\n"
    )
    table.write_bytes(text.encode("cp1252"))
    with pytest.warns(UserWarning, match="table:") as caught:
        import_studies("table", table, tmp_path / "out", images=images, workers=1)
    (warning,) = caught
    for part in (
        "cp1252", "--decimal", "1 record skipped", "x.png", "2 regions left out", "'pneumona'", "'pneumonia'",
    ):  # fmt: skip
        assert part in str(warning.message)


def test_labels_of_no_finding_that_are_used_for_nothing_name_the_option(read):
    table = "image,label\na.png,No Finding\nb.png,Mass\nc.png,Normal\nd.png,No Finding\n"
    _, imported = read(table)
    ((_, count, done),) = [one for one in imported.defects if one[0] == "no finding unused"]
    assert (count.times, count.first) == (2, 2)
    assert "--looked-for" in done
    _, imported = read(table, looked_for="listed")
    assert "no finding unused" not in defects(imported)


def test_findings_that_nobody_looked_for_are_one_line(read, tmp_path):
    _, imported = read(
        "image,label,x,y,w,h\na.png,Mass,1,2,30,40\nb.png,Nodule,1,2,30,40\nc.png,Edema,1,2,30,40\n"
    )
    result = CliRunner().invoke(app, ["build", "ground", str(imported.out), "-o", str(tmp_path / "bench")])
    (line,) = (line for line in result.stderr.splitlines() if "nobody looked for it" in line)
    assert line.startswith("3 findings without negative probes from")
    assert "--looked-for" in line
