"""MIMIC-Ext-CXR-QBA: grades, boxes, and the joins between tables, zip file and images."""

import gzip
import json
import zipfile

import polars as pl
import pytest
from tests.sources.question_sets import OTHER, PATIENT, STUDY, read_cases, run_through, write_mimic_image

from carina.sources import SOURCES
from carina.sources._record import SourceError
from carina.sources.cxr_qba import _divide_patients

IMAGE = "aa-1"
SCENE = "MARKER-OF-THE-SCENE-GRAPH"


def question(name, text, answer, *, boxes=(), **fields):
    main = {
        "answer_type": "main_answer",
        "text": answer,
        "regions": ["heart"],
        "obs_entities": ["cardiomegaly"],
        "localization": {
            IMAGE: {"bboxes": [list(box) for box in boxes]},
            "another": {"bboxes": [[0, 0, 1, 1]]},
        },
    }
    side = {"answer_type": "related_information", "text": SCENE, "localization": {}}
    return {
        "question_id": name,
        "question": text,
        "question_type": "finding",
        "extra": SCENE,
        "answers": [main, side],
        **fields,
    }


QUESTIONS = [
    question(
        "is_heart", "Is the heart enlarged?", "Yes, the heart is mildly enlarged.", boxes=[(1, 2, 9, 7)]
    ),
    question(
        "describe", "Describe the lungs.", "There is a pleural effusion.", boxes=[(0, 0, 4, 4), (8, 2, 30, 4)]
    ),
    question("blank", "Is there edema?", ""),
    question("twice", "Is there a rib?", "Yes."),
    question("twice", "Is there a lung?", "Yes."),
    question("poor", "Is there fluid?", "No."),
    question("unseen", "Is there gas?", "No."),
    question("device", "Are there devices?", "No, no device is seen."),
]
RATED = {
    "is_heart": "A++",
    "describe": "A",
    "blank": "A+",
    "twice": "A",
    "poor": "B",
    "unseen": "A",
    "device": "A",
    "gone": "A",
}


def write_tables(folder, ending):
    keys = {"patient_id": f"p{PATIENT}", "study_id": f"s{STUDY}"}
    rated = [
        {**keys, "question_id": name, "question.question_type": "finding", "question.quality.rating": rating}
        for name, rating in RATED.items()
    ]
    rated.append({**rated[0], "study_id": f"s{OTHER}"})
    shown = [{**keys, "question_id": name, "image_id": IMAGE} for name in RATED if name != "unseen"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("question_metadata", rated), ("question_image_metadata", shown)):
        table = pl.DataFrame(rows)
        if ending == ".parquet":
            table.write_parquet(folder / f"{name}.parquet")
        else:
            (folder / f"{name}.csv.gz").write_bytes(gzip.compress(table.write_csv().encode()))


def make_folder(tmp_path, prefix="qa/", ending=".parquet"):
    root = tmp_path / "qba"
    write_tables(root / "metadata", ending)
    with zipfile.ZipFile(root / "qa.zip", "w") as archive:
        name = f"{prefix}p10/p{PATIENT}/s{STUDY}.qa.json"
        archive.writestr(name, json.dumps({"patient_id": f"p{PATIENT}", "questions": QUESTIONS}))
    write_mimic_image(tmp_path / "mimic", STUDY, IMAGE)
    return root


@pytest.fixture(params=[("qa/", ".parquet"), ("", ".csv.gz")], ids=["parquet", "csv"])
def folder(request, tmp_path):
    return make_folder(tmp_path, *request.param)


def test_questions_of_the_grade_or_better_become_cases(folder, tmp_path):
    cases, imported = read_cases("cxr-qba", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert list(cases) == [f"cxr-qba-{STUDY}-{name}" for name in ("describe", "device", "is_heart")]
    heart = cases[f"cxr-qba-{STUDY}-is_heart"]
    step = heart.steps[0]
    assert (step.format, step.key.label, step.key.text) == (
        "yes_no",
        "yes",
        "Yes, the heart is mildly enlarged.",
    )
    key = f"files/p10/p{PATIENT}/s{STUDY}/{IMAGE}.jpg"
    assert [(box.image, box.xyxy, box.frame) for box in step.key.boxes] == [(key, (1, 2, 9, 7), "pixel")]
    assert (heart.patient, heart.study, heart.target, heart.images[0].key) == (PATIENT, STUDY, "finding", key)
    lungs = cases[f"cxr-qba-{STUDY}-describe"].steps[0]
    assert (lungs.format, lungs.key.text) == ("open", "There is a pleural effusion.")
    assert [box.xyxy for box in lungs.key.boxes] == [(0, 0, 4, 4)]  # the other one leaves the image
    assert imported.counts.defects["box"].times == 1
    assert cases[f"cxr-qba-{STUDY}-device"].steps[0].key.label == "no"


def test_what_cannot_be_joined_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read_cases("cxr-qba", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert [(item.place.rpartition("/")[2], item.field, item.kind) for item in imported.skipped] == [
        ("blank", "answers", "blank answer"),
        ("gone", "question_id", "not joined"),
        ("twice", "question_id", "id"),
        ("unseen", "image_id", "image missing"),
        ("is_heart", "file", "not joined"),
    ]


def test_the_grade_and_the_tables_can_be_chosen(folder, tmp_path):
    images = tmp_path / "mimic"
    cases, _ = read_cases("cxr-qba", folder, tmp_path / "a", images=images, options={"grade": "A++"})
    assert list(cases) == [f"cxr-qba-{STUDY}-is_heart"]
    cases, _ = read_cases("cxr-qba", folder, tmp_path / "b", images=images, options={"grade": "C"})
    assert f"cxr-qba-{STUDY}-poor" in cases
    (folder / "metadata").rename(folder / "subset")
    cases, _ = read_cases(
        "cxr-qba", folder, tmp_path / "c", images=images, options={"tables": folder / "subset"}
    )
    assert len(cases) == 3


def test_nothing_beside_the_main_answer_is_stored(folder, tmp_path):
    read_cases("cxr-qba", folder, tmp_path / "bench", images=tmp_path / "mimic")
    stored = [file.read_bytes() for file in (tmp_path / "bench").rglob("*") if file.is_file()]
    assert not any(SCENE.encode() in content for content in stored)


def test_unknown_grades_and_missing_files_are_named(folder, tmp_path):
    read, images = SOURCES["cxr-qba"].read, tmp_path / "mimic"
    with pytest.raises(SourceError, match=r"question_metadata\.parquet: missing"):
        list(read(folder, tables=tmp_path, images=images))
    pl.DataFrame(
        {"patient_id": ["p"], "study_id": ["s"], "question_id": ["q"], "question.quality.rating": ["Z"]}
    ).write_parquet(tmp_path / "question_metadata.parquet")
    with pytest.raises(SourceError, match="is 'Z', expected one of A"):
        list(read(folder, tables=tmp_path, images=images))
    (folder / "qa.zip").write_bytes(b"no zip")
    with pytest.raises(SourceError, match=r"qa\.zip: cannot be read"):
        list(read(folder, images=images))


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    rows = run_through("cxr-qba", folder, tmp_path, "--images", tmp_path / "mimic")
    assert rows["oracle"]["score"].to_list() == [1.0] * 3


def test_a_large_table_is_read_in_shares_of_patients(folder, tmp_path, monkeypatch):
    images = tmp_path / "mimic"
    whole, _ = read_cases("cxr-qba", folder, tmp_path / "a", images=images)
    monkeypatch.setattr("carina.sources.cxr_qba._QUESTIONS_AT_ONCE", 1)
    shares, _ = read_cases("cxr-qba", folder, tmp_path / "b", images=images)
    assert shares == whole


def test_shares_end_with_a_patient(monkeypatch):
    monkeypatch.setattr("carina.sources.cxr_qba._QUESTIONS_AT_ONCE", 3)
    counts = [("a", 2), ("b", 2), ("c", 1), ("d", 3), ("e", 1)]
    assert list(_divide_patients(counts)) == [("a", "b"), ("c", "d"), ("e", "e")]
    with pytest.raises(SourceError, match="4 rows have no patient_id"):
        list(_divide_patients([(None, 4)]))
