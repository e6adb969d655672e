"""MIMIC-Ext-MIMIC-CXR-VQA: closed answers as labels and options, and files without answers."""

import pytest
from tests.sources.question_sets import (
    PATIENT,
    STUDY,
    read_cases,
    run_through,
    write_json,
    write_mimic_image,
)

from carina.models.served.terms import refuse_restricted
from carina.sources import SOURCES
from carina.sources._record import SourceError
from carina.store.errors import CarinaError

IMAGE = "02aa804e-bde0afdd-112c0b34-7bc16630-4e384014"
ORDER = [
    "yes",
    "no",
    "m",
    "f",
    "ap",
    "pa",
    "left lung",
    "right lung",
    "carina",
    "atelectasis",
    "lung opacity",
    "mass",
]


def record(idx, question, answer, content, kind, **fields):
    arguments = {"object": {}, "attribute": {}, "category": {}, "viewpos": {}, "gender": {}}
    return {
        "split": "test",
        "idx": idx,
        "image_id": IMAGE,
        "question": question,
        "content_type": content,
        "semantic_type": kind,
        "template": "Is there ${attribute}?",
        "template_program": "program_1",
        "template_arguments": arguments | fields.pop("arguments", {}),
        "answer": answer,
        "subject_id": PATIENT,
        "study_id": STUDY,
        "image_path": f"p10/p{PATIENT}/s{STUDY}/{IMAGE}.jpg",
        **fields,
    }


LUNGS = {"arguments": {"object": {"0": "left lung", "1": "right lung"}, "attribute": {"0": "mass"}}}
TEST = [
    record(0, "Is there a mass?", ["no"], "presence", "verify"),
    record(1, "Is the mass in the left or right lung?", ["right lung"], "anatomy", "choose", **LUNGS),
    record(
        2, "Is opacity in the left or right lung?", ["left lung", "right lung"], "anatomy", "choose", **LUNGS
    ),
    record(3, "Is edema in the left or right lung?", [], "anatomy", "choose", **LUNGS),
    record(4, "What is abnormal?", ["mass", "atelectasis"], "abnormality", "query"),
    record(5, "What is abnormal here?", [], "abnormality", "query"),
    record(6, "What is the gender?", ["f"], "gender", "query"),
    record(7, "Is this AP or PA?", ["pa"], "plane", "choose", subject_id=10000001, study_id=50000001),
    record(8, "Is there a line?", [], "presence", "verify"),
    record(9, "Which lung?", ["carina"], "anatomy", "choose", **LUNGS),
    record(10, "Which lung?", ["left lung"], "anatomy", "choose"),
    record(11, "Is there a tube?", ["yes"], "presence", "verify", image_id="0-missing"),
    record(12, "Is there a tube?", ["yes"], "presence", "guess"),
    record(13, "Is there a tube?", ["yes"], "presence", "verify", subject_id="p1"),
]
TRAIN = [record(0, "What is abnormal?", ["lung opacity"], "abnormality", "query", split="train")]


def make_folder(tmp_path):
    dataset = tmp_path / "vqa" / "dataset"
    write_json(dataset / "ans2idx.json", {answer: place for place, answer in enumerate(ORDER)})
    write_json(dataset / "test.json", TEST)
    write_json(dataset / "train.json", TRAIN)
    write_mimic_image(tmp_path / "mimic", STUDY, IMAGE)
    return tmp_path / "vqa"


folder = pytest.fixture(make_folder, name="folder")


def test_answers_become_labels_and_options(folder, tmp_path):
    cases, _ = read_cases("mimic-cxr-vqa", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert list(cases) == [f"mimic-cxr-vqa-test-{idx}" for idx in range(8)]
    steps = [case.steps[0] for case in cases.values()]
    assert (steps[0].format, steps[0].key.label, steps[0].question) == ("yes_no", "no", "Is there a mass?")
    assert steps[1].question == (
        "Is the mass in the left or right lung?\nA. left lung\nB. right lung\nC. none of these"
    )
    keys = [(step.key.options, len(step.options), step.multiple, step.score) for step in steps[1:]]
    assert keys == [
        (("B",), 3, True, "set"),
        (("A", "B"), 3, True, "set"),
        (("C",), 3, True, "set"),
        (("A", "C"), 4, True, "set"),
        (("D",), 4, True, "set"),
        (("B",), 2, False, "exact"),
        (("B",), 2, False, "exact"),
    ]
    # In the published order, and with what only training questions answer.
    assert [option.text for option in steps[4].options] == [
        "atelectasis",
        "lung opacity",
        "mass",
        "none of these",
    ]
    assert [option.text for option in steps[7].options] == ["AP", "PA"]
    case = cases["mimic-cxr-vqa-test-7"]
    assert (case.patient, case.study, case.split, case.target) == (PATIENT, STUDY, "test", "plane")
    assert case.images[0].key == f"files/p10/p{PATIENT}/s{STUDY}/{IMAGE}.jpg"
    assert (case.images[0].width, case.images[0].height) == (12, 8)


def test_what_is_wrong_is_counted_with_its_reason(folder, tmp_path):
    _, imported = read_cases("mimic-cxr-vqa", folder, tmp_path / "bench", images=tmp_path / "mimic")
    assert [(item.field, item.kind) for item in imported.skipped] == [
        ("answer", "blank answer"),
        ("answer", "answer"),
        ("template_arguments", "options"),
        ("image", "image missing"),
        ("semantic_type", "type"),
        ("subject_id", "id"),
    ]


def test_files_without_answers_are_refused(folder, tmp_path):
    empty = [{**one, "answer": []} for one in TEST]
    write_json(folder / "dataset" / "test.json", empty)
    (folder / "dataset" / "train.json").unlink()
    with pytest.raises(SourceError, match="no question has an answer"):
        list(SOURCES["mimic-cxr-vqa"].read(folder, images=tmp_path / "mimic"))


def test_a_file_whose_answers_were_not_joined_is_refused_though_another_has_answers(folder, tmp_path):
    """Its empty lists would be keyed "none of these"."""
    write_json(folder / "dataset" / "train.json", TEST)
    write_json(folder / "dataset" / "test.json", [{**one, "answer": []} for one in TEST])
    read = SOURCES["mimic-cxr-vqa"].read
    for split in ("test", "all"):
        with pytest.raises(SourceError, match=r"test\.json: no question has an answer"):
            list(read(folder, split=split, images=tmp_path / "mimic"))
    assert list(read(folder, split="train", images=tmp_path / "mimic"))


def test_the_folder_of_images_must_be_that_of_mimic(folder, tmp_path):
    read = SOURCES["mimic-cxr-vqa"].read
    with pytest.raises(SourceError, match="--images"):
        list(read(folder))
    with pytest.raises(SourceError, match="files/p10"):
        list(read(folder, images=folder))
    cases, _ = read_cases("mimic-cxr-vqa", folder, tmp_path / "b", images=tmp_path / "mimic" / "files")
    assert cases["mimic-cxr-vqa-test-0"].images[0].key == f"p10/p{PATIENT}/s{STUDY}/{IMAGE}.jpg"


def test_cases_may_not_be_sent_to_another_machine(folder, tmp_path):
    _, imported = read_cases("mimic-cxr-vqa", folder, tmp_path / "bench", images=tmp_path / "mimic")
    sources = imported.opened().manifest.sources
    with pytest.raises(CarinaError, match="Credentialed"):
        refuse_restricted(sources, "openai/gpt", base_url=None, accept_terms=False)


def test_the_oracle_is_right_through_the_command_line(folder, tmp_path):
    rows = run_through("mimic-cxr-vqa", folder, tmp_path, "--images", tmp_path / "mimic")
    assert rows["oracle"]["correct"].to_list() == [True] * 8
    assert rows["random"]["correct"].null_count() == 0
