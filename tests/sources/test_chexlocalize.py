"""CheXlocalize in its published layout, with invented ids."""

import numpy as np
import pytest
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies
from carina.studies import certainty_of, states_no_abnormality
from carina.studies.region import Region

NAME = "patient90001_study1_view1_frontal"
LABELS = "Path,No Finding,Cardiomegaly,Lung Opacity,Edema"


def rle(x, y, w, h):
    mask = np.zeros((20, 30), bool)
    mask[y : y + h, x : x + w] = True
    return Region.from_mask(mask).to_coco()


def make_folder(tmp_path):
    path = tmp_path / "chexlocalize"
    write_json(
        path / "CheXlocalize/gt_segmentations_test.json",
        {
            NAME: {
                "Airspace Opacity": rle(2, 3, 4, 5),
                "Edema": rle(0, 0, 0, 0),
                "Cardiomegaly": rle(1, 1, 9, 9),
            }
        },
    )
    write_json(
        path / "CheXlocalize/hb_segmentations_test.json",
        {NAME: {"Airspace Opacity": rle(2, 3, 5, 5)}, "patient90009_study1_view1_frontal": {}},
    )
    write_json(path / "CheXlocalize/hb_salient_pt_test.json", {NAME: {"Airspace Opacity": [[3, 4]]}})
    write_text(
        path / "CheXpert/test_labels.csv",
        LABELS,
        "test/patient90001/study1/view1_frontal.jpg,0.0,0.0,1.0,0.0",
        "test/patient90002/study1/view1_frontal.jpg,1.0,0.0,0.0,0.0",
    )
    write_image(path / "CheXpert/test/patient90001/study1/view1_frontal.jpg", 30, 20)
    write_image(path / "CheXpert/test/patient90002/study1/view1_frontal.jpg", 30, 20)
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    studies, imported = read_studies("chexlocalize", folder, tmp_path / "out")
    assert list(studies) == [NAME, "patient90002_study1_view1_frontal"]
    study = studies[NAME]
    (image,) = study.images
    assert (image.key, image.width, image.height) == (
        "CheXpert/test/patient90001/study1/view1_frontal.jpg",
        30,
        20,
    )
    assert (study.patient, study.split, study.assessed.findings) == ("patient90001", "test", "listed")
    found = {one.name: (one.certainty, boxes(one)) for one in study.findings}
    assert found == {
        "cardiomegaly": ("absent", []),
        "lung opacity": (
            "present",
            [("two radiologists", "mask", (2, 3, 4, 5)), ("human benchmark", "mask", (2, 3, 5, 5))],
        ),
        "edema": ("absent", []),
    }
    # The mask of what the labels call absent is a conflict; salient points have no place in a study.
    assert defects(imported) == {"conflict": 1}
    assert imported.counts.unmapped == {"salient points": 1}
    # An image without any mask stays. That none of the labels is present does not make it normal.
    without = studies["patient90002_study1_view1_frontal"]
    assert certainty_of(without, "edema") == "absent"
    assert states_no_abnormality(without) is None
    assert [skip[:2] for skip in skips(imported)] == [("patient90009_study1_view1_frontal", "not joined")]


def test_polygons_where_there_are_no_masks_and_sizes_where_there_are_no_images(folder, tmp_path):
    (folder / "CheXlocalize/gt_segmentations_test.json").unlink()
    (folder / "CheXpert/test_labels.csv").unlink()
    (folder / "CheXpert/test/patient90001/study1/view1_frontal.jpg").unlink()
    ring = [[2, 3], [6, 3], [6, 8], [2, 8]]
    write_json(
        folder / "CheXlocalize/gt_annotations_test.json",
        {NAME: {"img_size": [20, 30], "Airspace Opacity": [ring], "Edema": [[[1, 1]]]}},
    )
    studies, imported = read_studies("chexlocalize", folder, tmp_path / "out", missing_images="keep")
    study = studies[NAME]
    assert (study.images[0].width, study.images[0].height) == (30, 20)
    first, second = study.findings
    assert (first.label, boxes(first)[0]) == (
        "Airspace Opacity",
        ("two radiologists", "polygon", (2, 3, 4, 5)),
    )
    # What was drawn is lost; that it is present is not.
    assert (second.name, second.certainty, second.annotations) == ("edema", "present", ())
    assert defects(imported) == {"region": 1}


def test_without_labels_an_empty_mask_is_an_absent_finding(folder, tmp_path):
    (folder / "CheXpert/test_labels.csv").unlink()
    studies, _ = read_studies("chexlocalize", folder, tmp_path / "out")
    assert {one.name: one.certainty for one in studies[NAME].findings} == {
        "lung opacity": "present",
        "edema": "absent",
        "cardiomegaly": "present",
    }


def test_missing_files_are_named(folder, tmp_path):
    (folder / "CheXpert/test/patient90001/study1/view1_frontal.jpg").unlink()
    _, imported = read_studies("chexlocalize", folder, tmp_path / "out")
    assert skips(imported)[0][:2] == (NAME, "image missing")
    with pytest.raises(SourceError, match=r"gt_segmentations_test\.json: missing; put the JSON files"):
        import_studies("chexlocalize", tmp_path / "empty", tmp_path / "none", workers=1)
