"""SLAKE: every field, its traps, and which questions are used."""

import pytest
from tests.sources.question_sets import read_cases, write_image, write_json

from carina.sources import SOURCES
from carina.sources._record import SourceError


def record(qid, question, answer, **fields):
    return {
        "img_id": 1,
        "img_name": "xmlab1/source.jpg",
        "question": question,
        "answer": answer,
        "q_lang": "en",
        "location": "Lung",
        "modality": "X-Ray",
        "answer_type": "CLOSED",
        "base_type": "vqa",
        "content_type": "Abnormality",
        "triple": ["vhead", "_", "_"],
        "qid": qid,
        **fields,
    }


TEST = [
    record(1, "Does the picture contain lungs?", "Yes", content_type="Organ"),
    record(2, "Is the lung healthy?", "No"),
    record(3, "What disease is shown?", "Atelectasis, Pneumonia", answer_type="OPEN"),
    record(4, "这是什么?", "肺", q_lang="zh", answer_type="OPEN"),
    record(5, "Is this a brain?", "Yes", location="Brain_Face", modality="MRI"),
    record(6, "Is the liver normal?", "Yes", location="Abdomen"),
    record(7, "Which organ breathes?", "Lung", base_type="kvqa", answer_type="OPEN", content_type="KG"),
    record(8, "Is the heart large?", "Yes", img_name="xmlab2/source.jpg"),
    record(9, "Is the heart small?", "Yes", img_name="../../secret.jpg"),
]


def make_folder(tmp_path):
    slake = tmp_path / "Slake1.0"
    write_json(slake / "test.json", TEST)
    write_json(slake / "validate.json", [record(20, "Is there fluid?", "No", location="Chest_lung")])
    write_image(slake / "imgs/xmlab1/source.jpg", 10, 6, mode="RGB")
    return slake


folder = pytest.fixture(make_folder, name="folder")


def test_english_questions_about_chest_radiographs_become_cases(folder, tmp_path):
    cases, imported = read_cases("slake", folder, tmp_path / "bench")
    asked = {
        name: (case.target, case.steps[0].format, case.steps[0].key.label, case.steps[0].key.text)
        for name, case in cases.items()
    }
    assert asked == {
        "slake-1": ("organ", "yes_no", "yes", None),
        "slake-2": ("abnormality", "yes_no", "no", None),
        "slake-3": ("abnormality", "open", None, "Atelectasis, Pneumonia"),
        "slake-7": ("kg", "open", None, "Lung"),
    }
    first = cases["slake-1"]
    assert (first.study, first.patient, first.split) == ("xmlab1", None, "test")
    image = first.images[0]
    assert (image.key, image.width, image.height, image.finished) == ("imgs/xmlab1/source.jpg", 10, 6, True)
    assert [(item.field, item.kind) for item in imported.skipped] == [
        ("q_lang", "language"),
        ("modality", "modality"),
        ("location", "location"),
        ("image", "image missing"),
        ("image", "image"),
    ]


def test_other_questions_can_be_chosen(folder, tmp_path):
    cases, _ = read_cases("slake", folder, tmp_path / "a", options={"split": "val"})
    assert {name: case.split for name, case in cases.items()} == {"slake-20": "val"}
    options = {"modality": "all", "location": "all", "knowledge": "skip"}
    cases, imported = read_cases("slake", folder, tmp_path / "b", options=options)
    assert list(cases) == [f"slake-{n}" for n in (1, 2, 3, 5, 6)]
    assert "knowledge" in {item.kind for item in imported.skipped}


def test_the_other_name_of_the_middle_split_is_found(folder, tmp_path):
    (folder / "validate.json").rename(folder / "validation.json")
    cases, _ = read_cases("slake", folder, tmp_path / "a", options={"split": "all"})
    assert len(cases) == 5


def test_a_missing_split_is_named(folder):
    with pytest.raises(SourceError, match=r"train\.json: missing"):
        list(SOURCES["slake"].read(folder, split="train"))
