"""MIMIC-ILS in its published layout, with invented ids."""

import numpy as np
import pytest
from tests.sources.files import defects, read_studies, skips, write_image, write_json, write_text

from carina.sources import SourceError, import_studies
from carina.studies import write_png

FILE = "mimic_ils_instruction_answer.json"
PROGRAM = "MIMIC-ILS, by program"


def pair(target, number=0, *, kind="global", mask=True, study="s59000001", place=("right lower lung zone",)):
    """A positive pair; `mask` names the number of its mask."""
    return {
        "pair_id": f"{study}_positive_{number}", "instruction": f"Segment the {target}, {kind}.", "answer": "Sure.",
        "type": kind, "target": target, "location": list(place), "sent_idx": "0", "seg": True,
        "seg_mask_path": f"lesion_mask/{study}/{study}_{target}_{number}.png" if mask else None,
    }  # fmt: skip


def negative(target, kind="global"):
    return {
        "pair_id": "s59000001_negative_0", "instruction": f"Segment the {target}.", "answer": "There is none.",
        "type": kind, "target": target, "location": [], "seg": False, "seg_mask_path": None,
    }  # fmt: skip


def record(positive=(), negatives=(), *, study="s59000001", patient="p19000001"):
    return {
        "subject_id": patient, "dicom_id": "aaaa-1", "image_path": f"p19/{patient}/{study}/aaaa-1.jpg",
        "section_name": "findings", "section_content": "There is an opacity. No effusion.",
        "instruction_answer_pairs": {"positive_pairs": list(positive), "negative_pairs": list(negatives)},
    }  # fmt: skip


def write_mask(folder, name, box, side=512):
    x, y, width, height = box
    mask = np.zeros((side, side), np.uint8)
    mask[y : y + height, x : x + width] = 255
    path = folder / f"lesion_mask/{name.split('_', maxsplit=1)[0]}/{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_png(path, mask)


def make_folder(tmp_path):
    path = tmp_path / "ils"
    write_mask(path, "s59000001_opacity_0", (64, 256, 128, 128))
    write_mask(path, "s59000001_opacity_1", (64, 256, 64, 64))
    write_mask(path, "s59000001_effusion_2", (0, 480, 64, 32))
    first = record(
        [
            pair("opacity"),
            pair("opacity", kind="lesion_inference"),
            pair("opacity", 1, kind="basic"),
            pair("effusion", 2, kind="basic", place=("right costophrenic angle",)),
            pair("cardiomegaly", 3, place=()),
        ],
        [negative("edema"), negative("atelectasis", "basic"), negative("effusion")],
    )
    second = record([pair("opacity", mask=False)], study="s59000002", patient="p19000002")
    write_json(path / FILE, {"train": {"s59000001": first}, "val": {}, "test": {"s59000002": second}})
    return path


folder = pytest.fixture(make_folder, name="folder")


def test_every_field_of_a_study(folder, tmp_path):
    write_image(tmp_path / "images/aaaa-1.png", 1024, 1024)
    studies, imported = read_studies("mimic-ils", folder, tmp_path / "out", images=tmp_path / "images")
    assert [(one.id, one.patient, one.split) for one in studies.values()] == [
        ("s59000001", "p19000001", "train"),
        ("s59000002", "p19000002", "test"),
    ]
    study = studies["s59000001"]
    (image,) = study.images
    assert (image.key, image.view, image.width) == ("aaaa-1.png", "unknown", 1024)
    found = {
        one.label or one.name: (
            one.name,
            one.certainty,
            [
                (drawn.region.bbox, drawn.drawn, drawn.annotator, drawn.automatic, drawn.instruction)
                for drawn in one.annotations
            ],
        )
        for one in study.findings
    }
    assert found == {
        # The mask of the whole, once; not that of a part.
        "opacity": (
            "lung opacity",
            "present",
            [((128, 512, 256, 256), "mask", PROGRAM, True, "Segment the opacity, global.")],
        ),
        "effusion": (
            "pleural effusion",
            "present",
            [((0, 960, 128, 64), "mask", PROGRAM, True, "Segment the effusion, basic.")],
        ),
        "cardiomegaly": ("cardiomegaly", "present", []),
        "edema": ("edema", "absent", []),
    }
    places = {one.name: one.location for one in study.findings}
    assert (places["lung opacity"].side, places["lung opacity"].zones) == ("right", ("right lower zone",))
    assert places["pleural effusion"].parts == ("right costophrenic angle",)
    assert places["cardiomegaly"] is None
    assert study.report.text("findings") == "There is an opacity. No effusion."
    assert (study.assessed.findings, study.assessed.text) == ("unknown", True)
    assert set(study.assessed.by_program) == {one.name for one in study.findings}
    # One part; a mask that is not there and one that is not named; an effusion that is called absent, too.
    assert defects(imported) == {"part": 1, "no mask": 2, "conflict": 1}
    assert imported.counts.unmapped == {"negative_pairs of a location": 1}


@pytest.mark.parametrize(
    ("frame", "box"),
    [("stretched", (128, 256, 256, 128)), ("padded", (128, 256, 256, 256)), ("same", None)],
)
def test_masks_of_an_image_that_is_no_square(folder, tmp_path, frame, box):
    write_image(tmp_path / "mimic/files/p19/p19000001/s59000001/aaaa-1.jpg", 1024, 512)
    studies, imported = read_studies(
        "mimic-ils", folder, tmp_path / "out", images=tmp_path / "mimic", mask_frame=frame
    )
    study = studies["s59000001"]
    assert study.images[0].key == "files/p19/p19000001/s59000001/aaaa-1.jpg"
    drawn = study.findings[0].annotations
    assert [one.region.bbox for one in drawn] == ([] if box is None else [box])
    assert defects(imported).get("frame", 0) == (2 if box is None else 0)
    assert [kind for _, kind, _ in skips(imported)] == ["image missing"]


def test_records_that_cannot_be_used(folder, tmp_path):
    write_json(
        folder / FILE,
        {
            "train": {
                "s59000001": {"subject_id": "p19000001"},
                "x": record(),
                "s59000003": record(patient="p1"),
            },
            "trial": {"s59000004": record()},
        },
    )
    _, imported = read_studies("mimic-ils", folder, tmp_path / "out", missing_images="keep")
    assert [(study, kind) for study, kind, _ in skips(imported)] == [
        ("s59000001", "json"),
        ("x", "id"),
        ("s59000003", "id"),
        ("s59000004", "split"),
    ]
    write_text(folder / FILE, '{"train": []}')
    with pytest.raises(SourceError, match="expected an object of records in 'train'"):
        import_studies("mimic-ils", folder, tmp_path / "none", workers=1)
    with pytest.raises(SourceError, match=f"{FILE}: missing; put {FILE} and the folder lesion_mask/"):
        import_studies("mimic-ils", tmp_path / "empty", tmp_path / "none", workers=1)


def test_masks_outside_of_the_folder_are_not_read(folder, tmp_path):
    outside = pair("opacity") | {"seg_mask_path": "../outside.png"}
    write_png(tmp_path / "outside.png", np.full((512, 512), 255, np.uint8))
    write_json(folder / FILE, {"test": {"s59000001": record([outside])}})
    studies, imported = read_studies("mimic-ils", folder, tmp_path / "out", missing_images="keep")
    assert studies["s59000001"].findings[0].annotations == ()
    assert defects(imported) == {"no mask": 1}
