"""ReXVQA: options, images, and the report beside a question, which no case may hold."""

import json

import msgspec
import numpy as np
import pytest
from tests.sources.question_sets import read_cases, run_through

from carina.sources import SOURCES
from carina.sources._record import SourceError
from carina.studies import write_png

REPORT_TEXT = "MARKER-OF-THE-REPORT"
FRONTAL, LATERAL = (f"../deid_png/P1/A1/studies/1.2/series/1.3/instances/{n}.png" for n in (1, 2))


def record(**fields):
    return {
        "question": "Which finding is present?",
        "options": ["A. Pneumothorax", "B. Pleural effusion", "C. Nodule", "D. None of the above"],
        "correct_answer": "B",
        "correct_answer_explanation": REPORT_TEXT,
        "task_name": "Presence Assessment",
        "category": "Pleura",
        "subcategory": "Effusion",
        "class": "Positive",
        "study_id": "P1_A1",
        "StudyInstanceUid": "1.2",
        "PatientID": "P1",
        "PatientAge": "036Y",
        "PatientSex": "F",
        "StudyDate": "20100101",
        "Indication": REPORT_TEXT,
        "Findings": REPORT_TEXT,
        "Impression": REPORT_TEXT,
        "ImagePath": [FRONTAL, LATERAL],
        "ImageModality": ["DX", "DX"],
        "ImageViewPosition": ["POSTERO_ANTERIOR", None],
        **fields,
    }


RECORDS = {
    "q1": record(),
    "q2": record(options=["Left", "Right"], correct_answer="Right", task_name=float("nan")),
    "q3": record(correct_answer="C. Nodule"),
    "q4": record(correct_answer="E"),
    "q5": record(ImagePath=["../../out.png"], ImageViewPosition=["PA"]),
    "q6": record(ImagePath=["../deid_png/none.png"], ImageViewPosition=["PA"]),
    "q7": record(ImageViewPosition=["PA"]),
    "q8": record(options=["Only"], correct_answer="A"),
    "q9": record(correct_answer=None),
    "q10": record(options=["A. Same", "B. Same"], correct_answer="A"),
}


def make_folder(tmp_path):
    root = tmp_path / "rex"
    for path in (FRONTAL, LATERAL):
        write_png(root / path.removeprefix("../"), np.full((6, 9), 300, np.uint16))
    (root / "metadata").mkdir()
    (root / "metadata" / "test_vqa_data.json").write_text(json.dumps(RECORDS))  # with a bare NaN
    return root


folder = pytest.fixture(make_folder, name="folder")


def test_questions_become_choices(folder, tmp_path):
    cases, _ = read_cases("rexvqa", folder, tmp_path / "bench")
    assert list(cases) == ["rexvqa-q1", "rexvqa-q2", "rexvqa-q3"]
    first = cases["rexvqa-q1"]
    step = first.steps[0]
    assert step.question == (
        "Which finding is present?\nA. Pneumothorax\nB. Pleural effusion\nC. Nodule\nD. None of the above"
    )
    assert [(option.id, option.text) for option in step.options][1] == ("B", "Pleural effusion")
    assert (step.format, step.stage, step.key.options, step.multiple) == ("choice", 1, ("B",), False)
    assert (first.study, first.patient, first.split, first.target) == (
        "1.2",
        "P1",
        "test",
        "presence assessment",
    )
    assert [(image.key, image.view, image.width, image.height, image.bits) for image in first.images] == [
        (FRONTAL.removeprefix("../"), "PA", 9, 6, 16),
        (LATERAL.removeprefix("../"), "unknown", 9, 6, 16),
    ]
    assert step.shows == ("v1", "v2")
    second = cases["rexvqa-q2"]
    assert second.target == "pleura"
    assert (second.steps[0].question, second.steps[0].key.options) == (
        "Which finding is present?\nA. Left\nB. Right",
        ("B",),
    )
    assert cases["rexvqa-q3"].steps[0].key.options == ("C",)


def test_the_report_beside_a_question_is_nowhere_in_the_benchmark(folder, tmp_path):
    cases, _ = read_cases("rexvqa", folder, tmp_path / "bench")
    assert all(REPORT_TEXT.encode() not in msgspec.json.encode(case) for case in cases.values())
    assert all(
        REPORT_TEXT.encode() not in file.read_bytes()
        for file in (tmp_path / "bench").rglob("*")
        if file.is_file()
    )


def test_what_is_wrong_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read_cases("rexvqa", folder, tmp_path / "bench")
    assert [(item.place.rpartition(": ")[2], item.field, item.kind) for item in imported.skipped] == [
        ("q4", "answer", "answer"),
        ("q5", "image", "image"),
        ("q6", "image", "image missing"),
        ("q7", "ImageViewPosition", "views"),
        ("q8", "options", "options"),
        ("q9", "correct_answer", "blank answer"),
        ("rexvqa-q10", "", "record"),
    ]


def test_a_missing_file_is_named(folder):
    with pytest.raises(SourceError, match=r"valid_mini_vqa_data\.json: missing"):
        list(SOURCES["rexvqa"].read(folder, split="valid_mini"))


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    rows = run_through("rexvqa", folder, tmp_path)
    assert rows["oracle"]["correct"].to_list() == [True] * 3
    assert rows["random"]["correct"].null_count() == 0
