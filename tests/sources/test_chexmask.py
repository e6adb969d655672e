"""CheXmask in its published layout, with invented ids."""

import numpy as np
import pytest
from tests.sources.files import defect_rows, defects, read_studies, skips, write_text

from carina.sources import SOURCES, SourceError, import_source, import_studies
from carina.studies.region import Region

HEADER = "{},Dice RCA (Mean),Dice RCA (Max),Landmarks,Left Lung,Right Lung,Heart,Height,Width"


def runs(x, y, w, h, *, width=30):
    """Row-major runs with starts that count from 1, written out by hand."""
    return " ".join(f"{row * width + x + 1} {w}" for row in range(y, y + h))


def row(name, quality="0.9", *, right=(2, 3, 4, 5), left=(20, 3, 4, 5), heart=(10, 8, 5, 5), size=(20, 30)):
    masks = (runs(*box, width=size[1]) for box in (left, right, heart))
    return f'{name},{quality},0.95,"1,2,3,4",{",".join(masks)},{size[0]},{size[1]}'


def make_table(tmp_path):
    return write_text(
        tmp_path / "in/MIMIC-CXR-JPG.csv", HEADER.format("dicom_id"), row("aaaa-1"), row("bbbb-1", "0.69")
    )


def test_every_field_of_a_study(tmp_path):
    table = make_table(tmp_path)
    studies, imported = read_studies("chexmask", table, tmp_path / "out")
    study = studies["aaaa-1"]
    assert (study.images[0].width, study.images[0].height) == (30, 20)
    assert [(a.name, a.region.bbox, a.annotator, a.automatic) for a in study.anatomy] == [
        ("right lung", (2, 3, 4, 5), "CheXmask", True),
        ("left lung", (20, 3, 4, 5), "CheXmask", True),
        ("heart", (10, 8, 5, 5), "CheXmask", True),
    ]
    assert {a.quality for a in study.anatomy} == {0.9}
    assert (study.findings, study.assessed.findings) == ((), "unknown")
    assert skips(imported) == [
        ("bbbb-1", "quality", "MIMIC-CXR-JPG.csv: row 3: Dice RCA (Mean): is 0.69, below 0.7")
    ]
    both, _ = read_studies("chexmask", table, tmp_path / "both", min_quality=0.5)
    assert list(both) == ["aaaa-1", "bbbb-1"]


@pytest.mark.parametrize(
    ("column", "name", "study"),
    [
        pytest.param("ImageID", "x_1.png", "x_1", id="PadChest"),
        pytest.param("Image Index", "00000001_000.png", "00000001_000", id="NIH"),
        pytest.param("image_id", "abc", "abc", id="VinDr"),
        pytest.param(
            "Path",
            "CheXpert-v1.0/train/patient90001/study1/view1_frontal.jpg",
            "train_patient90001_study1_view1_frontal",
            id="CheXpert",
        ),
    ],
)
def test_the_column_of_the_id_differs(tmp_path, column, name, study):
    table = write_text(tmp_path / "in/x.csv", HEADER.format(column), row(name))
    studies, _ = read_studies("chexmask", table, tmp_path / "out")
    assert list(studies) == [study]


def test_what_cannot_be_true_is_left_out(tmp_path):
    table = write_text(
        tmp_path / "in/x.csv",
        HEADER.format("dicom_id"),
        row("swapped", right=(20, 3, 4, 5), left=(2, 3, 4, 5)),
        'broken,0.9,0.9,"1,2",590 99,1 2,x,20,30',
        "short,0.9",
        row("percent", "93"),
    )
    studies, imported = read_studies("chexmask", table, tmp_path / "out")
    assert [len(study.anatomy) for study in studies.values()] == [0, 1]
    assert defects(imported) == {"region": 2, "sides": 1}
    assert [(item.study, item.kind) for item in imported.skipped] == [("short", "row"), ("", "number")]
    assert "Dice RCA (Mean): is 93, expected 0 to 1" in imported.skipped[1].message


def test_masks_are_joined_to_images_of_another_set(tmp_path):
    """Original size for one image, the padded square of 1024 for another."""
    folder = tmp_path / "mimic"
    write_text(
        folder / "mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime",
        "aaaa-1,19000001,59000001,PA,20,30,21800101,90000",
        "bbbb-1,19000001,59000001,PA,2048,1024,21800101,90000",
        "cccc-1,19000001,59000001,LATERAL,20,30,21800101,90000",
    )
    # The image of 1024 x 2048 was padded by 512 columns on either side, then halved.
    square = row(
        "bbbb-1",
        right=(300, 100, 50, 60),
        left=(600, 100, 50, 60),
        heart=(500, 300, 30, 30),
        size=(1024, 1024),
    )
    table = write_text(
        tmp_path / "MIMIC-CXR-JPG.csv",
        HEADER.format("dicom_id"),
        row("aaaa-1"),
        square,
        row("zzzz-1"),
        row("low", "0.1"),
    )
    studies = import_studies("mimic-cxr-jpg", folder, tmp_path / "out", joins={"chexmask": table}, workers=1)
    (study,) = studies
    first, second, lateral = study.images
    assert {a.name: a.region.bbox for a in study.anatomy if a.image == first.key} == {
        "right lung": (2, 3, 4, 5),
        "left lung": (20, 3, 4, 5),
        "heart": (10, 8, 5, 5),
    }
    assert {a.name: a.region.bbox for a in study.anatomy if a.image == second.key} == {
        "right lung": (88, 200, 100, 120),
        "left lung": (688, 200, 100, 120),
        "heart": (488, 600, 60, 60),
    }
    assert not [a for a in study.anatomy if a.image == lateral.key]
    assert all(a.automatic for a in study.anatomy)
    assert {info.name for info in studies.manifest.sources} == {"mimic-cxr-jpg", "chexmask"}


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(SourceError, match="give one CSV file of CheXmask"):
        import_studies("chexmask", tmp_path / "no", tmp_path / "out", workers=1)


def test_runs_are_those_of_an_independent_mask():
    mask = np.zeros((20, 30), bool)
    mask[3:8, 2:6] = True
    assert Region.from_chexmask(runs(2, 3, 4, 5), height=20, width=30) == Region.from_mask(mask)


def test_a_mean_above_the_largest_estimate_is_swapped_with_it(tmp_path):
    """As in the published file of CANDID-PTX; the estimate that `row` writes as the largest is 0.95."""
    table = write_text(
        tmp_path / "in/CANDID-PTX.csv", HEADER.format("ImageID"), row("a", "0.99"), row("b", "0.9")
    )
    studies, _ = read_studies("chexmask", table, tmp_path / "out")
    assert [study.anatomy[0].quality for study in studies.values()] == [0.95, 0.9]


def test_defects_of_a_joined_set_name_its_row(tmp_path):
    folder = tmp_path / "mimic"
    write_text(
        folder / "mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime",
        "aaaa-1,19000001,59000001,PA,20,30,21800101,90000",
    )
    swapped = row("aaaa-1", right=(20, 3, 4, 5), left=(2, 3, 4, 5))
    table = write_text(tmp_path / "x.csv", HEADER.format("dicom_id"), row("zzzz-1"), swapped)
    joined = {"chexmask": table}
    imported = import_source("mimic-cxr-jpg", folder, tmp_path / "out", joins=joined, workers=1)
    assert {name: count.first for name, count, _ in imported.defects} == {"chexmask: sides": 3}
    assert defect_rows(imported) == [("chexmask: sides", "s59000001", str(table), "3")]


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(SourceError, match=r"MIMIC-CXR-JPG\.csv: .*missing"):
        import_source("chexmask", tmp_path / "MIMIC-CXR-JPG.csv", tmp_path / "out", workers=1)


def test_the_description_shows_the_columns_and_a_row():
    shown = SOURCES["chexmask"].tree
    for column in (
        "Dice RCA (Mean)",
        "Right Lung",
        "Left Lung",
        "Heart",
        "Height",
        "Width",
        "dicom_id",
        "Path",
    ):
        assert column in shown
