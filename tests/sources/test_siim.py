"""SIIM-ACR in its published layout."""

import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_text

from carina.sources import SourceError, import_studies
from carina.studies import Region

HEADER = "ImageId, EncodedPixels"
"""With the space of the published file."""


def make_folder(tmp_path):
    path = tmp_path / "siim"
    write_text(
        path / "train-rle.csv",
        HEADER,
        # Two columns: rows 100 to 109 of column 2; the next run starts 1014 after the end of the first.
        "1.2.3, 2148 10 1014 5",
        "1.2.4, -1",
        "1.2.3, 512000 8",
        "1.2.5,-1",
    )
    for name in ("1.2.3", "1.2.4", "1.2.5"):
        write_image(path / f"dicom-images-train/{name}.png", 1024, 1024)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("siim", folder, tmp_path / "out")
    assert list(studies) == ["1.2.3", "1.2.4", "1.2.5"]
    study = studies["1.2.3"]
    (image,) = study.images
    assert (image.key, image.view) == ("dicom-images-train/1.2.3.png", "unknown")
    assert (study.patient, study.source) == ("1.2.3", "siim")
    (finding,) = study.findings
    assert (finding.name, finding.label, finding.certainty) == ("pneumothorax", "Pneumothorax", "present")
    # The rows of an image are one mask: column 2, rows 100 to 109; column 3, rows 100 to 104; column 500, rows 0 to 7.
    assert boxes(finding) == [("radiologist", "mask", (2, 0, 499, 110))]
    region = finding.annotations[0].region
    assert region.area == 10 + 5 + 8
    expected = Region.from_box(2, 100, 1, 10, height=1024, width=1024).union(
        Region.from_box(3, 100, 1, 5, height=1024, width=1024),
        Region.from_box(500, 0, 1, 8, height=1024, width=1024),
    )
    assert region == expected
    for name in ("1.2.4", "1.2.5"):
        assert [(f.name, f.certainty) for f in studies[name].findings] == [("pneumothorax", "absent")]
    assert (study.assessed.findings, study.assessed.listed) == ("listed", ("pneumothorax",))
    assert (skips(imported), defects(imported)) == ([], {})


def test_masks_follow_a_smaller_copy_of_the_image(folder, tmp_path):
    for name in ("1.2.3", "1.2.4", "1.2.5"):
        write_image(tmp_path / f"small/{name}.png", 256, 256)
    studies, _ = read_studies("siim", folder, tmp_path / "out", images=tmp_path / "small")
    region = studies["1.2.3"].findings[0].annotations[0].region
    assert (region.width, region.height) == (256, 256)
    # A pixel of the copy takes the original pixel under its centre: of column 2, rows 102 and 106; of the others, none.
    assert region.bbox == (0, 25, 1, 2)


def test_bad_masks_are_counted_and_bad_rows_skipped(folder, tmp_path):
    write_text(
        folder / "train-rle.csv",
        HEADER,
        "1.2.3,0 10 x",
        "1.2.4,1048570 100",
        "1.2.4, -1",
        "1.2.5,",
        "1.2.6,0 5",
    )
    studies, imported = read_studies("siim", folder, tmp_path / "out")
    for name in ("1.2.3", "1.2.4"):
        assert [(f.certainty, f.annotations) for f in studies[name].findings] == [("present", ())]
    assert defects(imported) == {"region": 2, "conflict": 1}
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("1.2.5", "empty"),
        ("1.2.6", "image missing"),
    ]
    kept, _ = read_studies("siim", folder, tmp_path / "kept", missing_images="keep")
    assert kept["1.2.6"].findings[0].annotations[0].region.area == 5


def test_a_missing_table_says_what_to_put_where(tmp_path):
    with pytest.raises(SourceError, match=r"train-rle\.csv: missing; put train-rle\.csv"):
        import_studies("siim", tmp_path, tmp_path.with_name("out"), workers=1)
