"""The COVID-19 Image Data Collection in its published layout."""

import csv

import cv2
import numpy as np
import pytest
from tests.sources.files import REAL, boxes, defects, read_studies, skips, write_image

from carina.sources import SourceError, import_studies
from carina.sources._labels import name_of
from carina.studies import write_png

COLUMNS = (
    "patientid", "offset", "sex", "age", "finding", "RT_PCR_positive", "survival", "view", "modality", "date",
    "location", "folder", "filename", "doi", "url", "license", "clinical_notes", "other_notes", "",
)  # fmt: skip
SEGMENTS = (
    "#", "Taxonomy", "Class", "Template Name", "File Folder", "Filename", "Image", "Tag", "Mask", "Resolution",
    "Top", "Left", "Width", "Height",
)  # fmt: skip
VIRAL = "Pneumonia/Viral/COVID-19"


def write_table(path, columns, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def row(name, **more):
    usual = {
        "patientid": "7", "view": "PA", "modality": "X-ray", "folder": "images", "filename": name,
        "license": "CC BY 4.0", "finding": "todo",
    }  # fmt: skip
    return usual | more


def write_mask(path, mask):
    """A PNG, whatever the ending of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", mask)[1].tobytes())


def lungs(width=60, height=40):
    mask = np.zeros((height, width), np.uint8)
    mask[5:35, 5:25] = 255
    mask[5:30, 35:55] = 255
    mask[30:35, 35:55] = 127
    return mask


def make_folder(tmp_path):
    path = tmp_path / "covid"
    write_table(
        path / "metadata.csv",
        COLUMNS,
        row(
            "b.jpg",
            offset="5",
            sex="M",
            age="51",
            finding=VIRAL,
            view="AP Supine",
            clinical_notes="two\nlines",
        ),
        row("a.jpg", offset="-2", finding="No Finding", license="CC BY 3.0"),
        row("c.png", patientid="8", offset="0", license=""),
        row("ct.png", patientid="9", modality="CT", view="Axial"),
        row("a.jpg", patientid="10"),
    )
    for name in ("a.jpg", "b.jpg", "c.png"):
        write_image(path / "images" / name, 60, 40)
    write_mask(path / "semantic_masks_v7labs_lungs/b.jpg", lungs())
    write_table(
        path / "segmentations/structure.csv",
        SEGMENTS,
        {
            "Template Name": "Consolidation",
            "Filename": "b.jpg",
            "Mask": "masks/1.png",
            "Top": "3",
            "Left": "10",
        },
        {"Template Name": "Right Lung", "Filename": "b.jpg", "Mask": "masks/1.png", "Top": "0", "Left": "0"},
        {"Template Name": "Mass", "Filename": "b.jpg", "Mask": "masks/1.png", "Top": "38", "Left": "0"},
        {"Template Name": "Mass", "Filename": "b.jpg", "Mask": "../../1.png", "Top": "0", "Left": "0"},
        {"Template Name": "Mass", "Filename": "z.jpg", "Mask": "masks/1.png", "Top": "0", "Left": "0"},
    )
    colours = np.zeros((4, 6, 4), np.uint8)
    colours[..., 3] = 255
    colours[1:3, 2:6, :3] = (1, 0, 0)
    write_mask(path / "segmentations/masks/1.png", colours)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("covid", folder, tmp_path / "out")
    assert list(studies) == ["b", "a", "c"]
    study = studies["b"]
    (image,) = study.images
    assert (image.key, image.view, image.width, image.height) == ("images/b.jpg", "AP", 60, 40)
    assert (study.patient, study.source, study.age, study.sex) == ("7", "covid", 51, "M")
    # Days may be negative; the file names say nothing.
    assert (study.order, study.prior, study.later) == (1, "a", None)
    assert (studies["a"].order, studies["a"].later) == (0, "b")
    diagnosis, consolidation, mass = study.findings
    assert diagnosis.label == VIRAL
    assert diagnosis.name in ("pneumonia", name_of("COVID-19"), name_of(VIRAL))
    assert (consolidation.name, boxes(consolidation)) == (
        "consolidation",
        [("General Blockchain", "mask", (12, 4, 4, 2))],
    )
    assert (mass.name, mass.annotations) == ("mass", ())
    assert (study.assessed.findings, study.assessed.devices, study.assessed.text) == (
        "unknown",
        "unknown",
        False,
    )
    assert [(one.name, one.annotator, one.region.bbox, one.automatic) for one in study.anatomy] == [
        ("right lung", "V7", (5, 5, 20, 30), False),
        ("left lung", "V7", (35, 5, 20, 25), False),
        ("right lung", "General Blockchain", (2, 1, 4, 2), False),
    ]
    assert defects(imported) == {"region": 2, "licence": 1}


def test_todo_is_no_label_and_no_finding_is_a_normal_image(folder, tmp_path):
    studies, _ = read_studies("covid", folder, tmp_path / "out")
    assert studies["c"].findings == ()
    assert [(one.name, one.label, one.certainty) for one in studies["a"].findings] == [
        ("abnormality", "No Finding", "absent")
    ]


def test_what_is_no_radiograph_or_does_not_join_is_counted(folder, tmp_path):
    _, imported = read_studies("covid", folder, tmp_path / "out")
    assert [(item.study, item.kind) for item in imported.skipped] == [
        ("ct", "modality"),
        ("a", "duplicate"),
        ("z", "not joined"),
    ]


def test_images_are_selected_by_their_licence(folder, tmp_path):
    studies, imported = read_studies("covid", folder, tmp_path / "out", licence=("CC BY 4.0",))
    assert list(studies) == ["b"]
    assert [item.study for item in imported.skipped if item.kind == "licence"] == ["a", "c"]


@pytest.mark.parametrize(
    ("change", "names", "counted"),
    [
        ("specks", ["right lung", "left lung"], {}),
        ("one lung", [], {"lungs": 1}),
        ("joined", [], {"lungs": 1}),
        ("other size", [], {"mask size": 2}),
        ("no image", [], {"region": 1}),
    ],
)
def test_lungs_are_split_or_left_out(folder, tmp_path, change, names, counted):
    mask = lungs()
    if change == "specks":
        mask[0, 0] = mask[39, 59] = 255
    elif change == "one lung":
        mask[:, 30:] = 0
    elif change == "joined":
        mask[6:8, 5:55] = 255
    elif change == "other size":
        mask = lungs(59, 40)
    file = folder / "semantic_masks_v7labs_lungs/b.jpg"
    write_mask(file, mask)
    if change == "no image":
        file.write_bytes(b"no image")
    (folder / "segmentations/structure.csv").unlink()
    studies, imported = read_studies("covid", folder, tmp_path / "out")
    assert [one.name for one in studies["b"].anatomy] == names
    assert defects(imported) == counted | {"licence": 1}


def test_a_lateral_image_has_no_two_lungs(folder, tmp_path):
    write_table(folder / "metadata.csv", COLUMNS, row("b.jpg", view="L"))
    studies, _ = read_studies("covid", folder, tmp_path / "out")
    assert studies["b"].images[0].view == "lateral"
    assert [one.annotator for one in studies["b"].anatomy] == ["General Blockchain"]


def test_a_missing_table_is_named(tmp_path):
    write_png(tmp_path / "a.png", np.zeros((2, 2), np.uint8))
    with pytest.raises(SourceError, match=r"metadata\.csv: missing, expected a table"):
        import_studies("covid", tmp_path, tmp_path.with_name("out"), workers=1)


@pytest.mark.skipif(not (REAL / "covid").exists(), reason="needs the real images beside the clone")
def test_the_real_images(tmp_path):
    studies, imported = read_studies("covid", REAL / "covid", tmp_path / "out")
    assert (len(studies), skips(imported), defects(imported)) == (59, [], {})
    drawn = [one for study in studies.values() for one in study.anatomy]
    assert sum(one.annotator == "V7" for one in drawn) == 2 * 39
    for study in studies.values():
        names = [one.name for one in study.anatomy if one.annotator == "V7"]
        assert names in ([], ["right lung", "left lung"])
        right, left = study.anatomy_on(study.images[0].key), None
        if names:
            left, right = right["left lung"], right["right lung"]
            assert right.centroid[0] < left.centroid[0]
    assert sum(study.prior is not None for study in studies.values()) >= 10
    cyst = studies["X-ray_of_cyst_in_pneumocystis_pneumonia_1"]
    (glass,) = (finding for finding in cyst.findings if finding.annotations)
    assert (glass.label, glass.annotations[0].region.bbox) == ("Ground Glass Opacities", (47, 38, 851, 627))
