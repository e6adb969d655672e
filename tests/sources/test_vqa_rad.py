"""VQA-RAD: every field, its traps, and the way through the command line."""

import csv
from collections import Counter

import pytest
from tests.sources.question_sets import read_cases, run_through, write_image, write_json

from carina.sources import SOURCES
from carina.sources._record import SourceError
from carina.sources.vqa_rad import IMAGES, QUESTIONS


def record(qid, question, answer, **fields):
    return {
        "qid": qid,
        "phrase_type": "test_freeform",
        "image_name": "synpic1.jpg",
        "image_case_url": "https://example.org/1",
        "image_organ": "CHEST",
        "evaluation": "evaluated",
        "question": question,
        "qid_linked_id": "03f451ca-de62-4617-9679-e836026a7642",
        "question_rephrase": "NULL",
        "question_relation": "NULL",
        "question_frame": "NULL",
        "question_type": "PRES",
        "answer": answer,
        "answer_type": "CLOSED",
        **fields,
    }


RECORDS = [
    record(0, "Is there a pneumothorax?", "Yes", answer_type="CLOSED "),
    record("1", "Is there cardiomegaly?", "no"),
    record(2, "What is abnormal?", "pleural effusion", question_type="ABN", answer_type="OPEN"),
    record(3, "How many lungs are normal?", 1, question_type="COUNT", answer_type="OPEN"),
    record(4, "In what plane is this film?", "PA", question_type="PLANE, OTHER", answer_type="OPEN"),
    record(5, "Is the lesion on the left or right?", "left", question_type="POS"),
    record(6, "Is there a mass?", "yes", image_organ="HEAD"),
    record(7, "Is there a tube?", "  "),
    record(8, "Is there a line?", "yes", image_name="synpic9.jpg"),
    record(9, "Is there a clavicle?", "yes", phrase_type="freeform", image_name="synpic2.jpg"),
    record(10, "Is there a rib?", "Yes.", phrase_type="para"),
    record(1, "Is the heart large?", "no", phrase_type="test_para", image_name="synpic3.jpg"),
]


def make_folder(tmp_path):
    write_json(tmp_path / "rad" / QUESTIONS, RECORDS)
    for name, mode in (("synpic1.jpg", "RGB"), ("synpic2.jpg", "L"), ("synpic3.jpg", "L")):
        write_image(tmp_path / "rad" / IMAGES / name, 12, 8, mode=mode)
    return tmp_path / "rad"


folder = pytest.fixture(make_folder, name="folder")


def test_test_questions_about_the_chest_become_cases(folder, tmp_path):
    cases, imported = read_cases("vqa-rad", folder, tmp_path / "bench")
    assert list(cases) == [f"vqa-rad-{n}" for n in (0, 1, 2, 3, 4, 5)] + ["vqa-rad-1-2"]
    asked = {
        name: (case.target, step.stage, step.format, step.key.label, step.key.text)
        for name, case in cases.items()
        for step in case.steps
    }
    assert asked == {
        "vqa-rad-0": ("pres", 1, "yes_no", "yes", None),
        "vqa-rad-1": ("pres", 1, "yes_no", "no", None),
        "vqa-rad-2": ("abn", 2, "open", None, "pleural effusion"),
        "vqa-rad-3": ("count", 2, "open", None, "1"),
        "vqa-rad-4": ("view", 2, "open", None, "PA"),
        "vqa-rad-5": ("pos", 2, "open", None, "left"),
        "vqa-rad-1-2": ("pres", 1, "yes_no", "no", None),
    }
    first = cases["vqa-rad-0"]
    assert (first.protocol, first.source, first.study, first.patient) == (
        "questions",
        "vqa-rad",
        "synpic1",
        None,
    )
    assert (first.split, first.steps[0].question) == ("test", "Is there a pneumothorax?")
    image = first.images[0]
    assert (image.key, image.width, image.height) == (f"{IMAGES}/synpic1.jpg", 12, 8)
    assert image.finished
    assert first.steps[0].shows == first.steps[0].uses == ("v1",)
    assert first.extra is None
    assert first.facts == ()
    assert imported.opened().manifest.sources[0].licence.startswith("CC0")


def test_what_is_not_used_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read_cases("vqa-rad", folder, tmp_path / "bench")
    assert [(item.place.rpartition(": ")[2], item.field, item.kind) for item in imported.skipped] == [
        ("record 7", "image_organ", "organ"),
        ("record 8", "answer", "blank answer"),
        ("record 9", "image", "image missing"),
    ]
    with (tmp_path / "bench" / "defects.csv").open() as table:
        defects = Counter(row["defect"] for row in csv.DictReader(table))
    # Six questions about synpic1, of which "Is there a rib?" is a training question.
    assert defects == {"second id": 1, "image in both splits": 6}


def test_splits_organs_and_the_folder_of_images_can_be_chosen(folder, tmp_path):
    cases, _ = read_cases("vqa-rad", folder, tmp_path / "a", options={"split": "train"})
    assert {name: case.split for name, case in cases.items()} == {"vqa-rad-9": "train", "vqa-rad-10": "train"}
    cases, _ = read_cases("vqa-rad", folder, tmp_path / "b", options={"organ": "all", "split": "all"})
    assert len(cases) == 10
    (folder / IMAGES).rename(tmp_path / "pictures")
    cases, _ = read_cases("vqa-rad", folder / QUESTIONS, tmp_path / "c", images=tmp_path / "pictures")
    assert cases["vqa-rad-0"].images[0].key == "synpic1.jpg"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"VQA_RAD Dataset Public\.json: missing"):
        list(SOURCES["vqa-rad"].read(tmp_path))


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    rows = run_through("vqa-rad", folder, tmp_path)
    assert rows["oracle"]["score"].to_list() == [1.0] * 7
    assert rows["oracle"]["correct"].to_list() == [True, True, None, None, True, None, True]
    assert rows["random"].height == 7
