"""CheXlocalize in its published layout, with invented ids."""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.sources.files import boxes, defects, read_studies, skips, write_image, write_json, write_text

from carina.ground import build_ground
from carina.ground.facts import GroundCaseFacts
from carina.percept.lesions import LESIONS
from carina.percept.truth import FusedMasks, masks_as_drawn
from carina.sources import SourceError, import_studies
from carina.studies import (
    Provenance,
    SalientPoint,
    certainty_of,
    open_studies,
    states_no_abnormality,
    write_studies,
)
from carina.studies.readers import FusionRule
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
    write_json(
        path / "CheXlocalize/hb_salient_pt_test.json", {NAME: {"Airspace Opacity": [[3, 4], [6.5, 5]]}}
    )
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
        "lung opacity": (
            "present",
            [("two radiologists", "mask", (2, 3, 4, 5))],
        ),
        "edema": ("absent", []),
    }
    # The table has three columns of findings: nothing else was looked for.
    assert study.assessed.listed == ("cardiomegaly", "edema", "lung opacity")
    # The human benchmark is no truth: its mask and its point are kept beside it.
    (opacity,) = (one for one in study.findings if one.name == "lung opacity")
    (compared,) = opacity.comparisons
    assert (compared.annotator, compared.drawn, compared.region.bbox) == (
        "human benchmark",
        "mask",
        (2, 3, 5, 5),
    )
    assert opacity.points == (
        SalientPoint(image=image.key, x=3, y=4, annotator="human benchmark"),
        SalientPoint(image=image.key, x=6.5, y=5, annotator="human benchmark"),
    )
    # Experts drew a mask of what the labels of experts call absent: nothing is known of it.
    assert defects(imported) == {"conflict": 1}
    assert study.assessed.disputed == ("cardiomegaly",)
    assert certainty_of(study, "cardiomegaly") is None
    assert imported.counts.unmapped == {}
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
    assert defects(imported) == {"mask size": 1}


def test_without_labels_an_empty_mask_is_an_absent_finding(folder, tmp_path):
    (folder / "CheXpert/test_labels.csv").unlink()
    studies, _ = read_studies("chexlocalize", folder, tmp_path / "out")
    assert {one.name: one.certainty for one in studies[NAME].findings} == {
        "lung opacity": "present",
        "edema": "absent",
        "cardiomegaly": "present",
    }


def test_a_drawing_of_the_human_benchmark_alone_states_nothing(folder, tmp_path):
    (folder / "CheXlocalize/gt_segmentations_test.json").unlink()
    (folder / "CheXlocalize/hb_segmentations_test.json").unlink()
    (folder / "CheXpert/test_labels.csv").unlink()
    ring = [[2, 3], [6, 3], [6, 8], [2, 8]]
    head = {"img_size": [20, 30]}
    write_json(
        folder / "CheXlocalize/gt_annotations_test.json",
        {NAME: {**head, "Edema": [ring], "Consolidation": [ring]}},
    )
    write_json(
        folder / "CheXlocalize/hb_annotations_test.json",
        {NAME: {**head, "Edema": [ring], "Pneumothorax": [ring]}},
    )
    write_json(
        folder / "CheXlocalize/hb_salient_pt_test.json",
        {NAME: {"Edema": [[30.5, 1], "?"], "Cardiomegaly": [[1, 1]]}},
    )
    studies, imported = read_studies("chexlocalize", folder, tmp_path / "out")
    study = studies[NAME]
    # Polygons name only what was drawn, so the benchmark looked for the consolidation and drew nothing.
    assert {
        one.name: (one.certainty, [c.region.bbox for c in one.comparisons]) for one in study.findings
    } == {
        "edema": ("present", [(2, 3, 4, 5)]),
        "consolidation": ("present", [None]),
    }
    # Of the pneumothorax and the cardiomegaly the truth knows nothing; two points lie nowhere.
    assert defects(imported) == {"conflict": 2, "region": 2}
    assert certainty_of(study, "pneumothorax") == "absent"


def test_what_was_looked_for_is_what_the_table_of_labels_says_anything_about(folder, tmp_path):
    write_text(
        folder / "CheXpert/test_labels.csv",
        "Path,Edema,Cardiomegaly,Fracture",
        "test/patient90001/study1/view1_frontal.jpg,0,1,",
        "test/patient90002/study1/view1_frontal.jpg,0,0,0",
    )
    studies, _ = read_studies("chexlocalize", folder, tmp_path / "out")
    # The column of the fracture is blank for one image, and there is none for a pneumothorax.
    first, second = studies.values()
    assert first.assessed.listed == ("cardiomegaly", "edema")
    assert second.assessed.listed == ("cardiomegaly", "edema", "fracture")
    assert certainty_of(first, "fracture") is None
    assert certainty_of(second, "pneumothorax") is None


def test_an_empty_mask_of_what_the_labels_leave_out_is_an_absent_finding(folder, tmp_path):
    write_text(
        folder / "CheXpert/test_labels.csv",
        "Path,Cardiomegaly",
        "test/patient90001/study1/view1_frontal.jpg,1",
    )
    studies, _ = read_studies("chexlocalize", folder, tmp_path / "out")
    assert {one.name: one.certainty for one in studies[NAME].findings} == {
        "cardiomegaly": "present",
        "lung opacity": "present",
        "edema": "absent",
    }


@pytest.mark.parametrize("readers", ["union", "consensus", "intersection", "first"])
def test_the_truth_of_a_benchmark_is_that_of_the_experts(folder, tmp_path, readers):
    read_studies("chexlocalize", folder, tmp_path / "out")
    with_ap = [
        replace(study, images=tuple(replace(image, view="AP") for image in study.images))
        for study in open_studies(tmp_path / "out")
    ]
    write_studies(tmp_path / "frontal", with_ap, Provenance(command="made"))
    bench = build_ground(tmp_path / "frontal", tmp_path / "bench", readers=readers, workers=1)
    (case,) = (case for case in bench if case.path == "present")
    facts = GroundCaseFacts.of(case)
    truth = case.region(facts.region("truth")).region
    assert (truth.bbox, facts.annotators, facts.fusion) == ((2, 3, 4, 5), 1, "one annotator")
    # The benchmark drew one column more than the 4 of the experts.
    assert facts.readers["human benchmark"].iou == pytest.approx(4 / 5)
    study = with_ap[0]
    mask = masks_as_drawn if readers == "first" else FusedMasks(FusionRule(fusion=readers))
    drawn = mask(study, study.images[0], LESIONS["opacity"])
    assert (Region.from_mask(drawn.mask), drawn.provenance) == (truth, "drawn by two radiologists")


def test_missing_files_are_named(folder, tmp_path):
    (folder / "CheXpert/test/patient90001/study1/view1_frontal.jpg").unlink()
    _, imported = read_studies("chexlocalize", folder, tmp_path / "out")
    assert skips(imported)[0][:2] == (NAME, "image missing")
    with pytest.raises(SourceError, match=r"gt_segmentations_test\.json: missing; put the JSON files"):
        import_studies("chexlocalize", tmp_path / "empty", tmp_path / "none", workers=1)
