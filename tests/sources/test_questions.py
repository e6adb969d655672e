"""Parts that readers of published questions share: answers, options, keys of images, and workers."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.question_sets import write_image, write_json
from tests.sources.test_vqa_rad import record

from carina.cases.faults import faults
from carina.cases.protocol import find_protocol, stage_title
from carina.runs.parse import parse
from carina.runs.score import score
from carina.sources import import_source
from carina.sources._mimic_images import read_mimic_id, read_path_ids
from carina.sources._questions import (
    Subject,
    ask,
    ask_options,
    decode_lenient,
    find_image,
    find_right,
    make_case,
    read_answer,
    resolve_key,
)
from carina.sources._record import RecordError
from carina.sources.vqa_rad import IMAGES, QUESTIONS


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (3.0, "3"), (0, "0"), (2.5, "2.5"), (True, "yes"), (" a\n b ", "a b"), (["x", 1], "x, 1")],
    ids=["whole", "whole as float", "zero", "fraction", "boolean", "spaces", "list"],
)
def test_answers_become_text(value, text):
    assert read_answer(value) == text


@pytest.mark.parametrize("value", ["", "  ", "nan", "NULL", None, float("nan"), [], [""]], ids=repr)
def test_blank_answers_are_told(value):
    with pytest.raises(RecordError, match="answer: is blank"):
        read_answer(value)


@pytest.mark.parametrize(
    ("question", "answer", "is_closed", "label"),
    [
        ("Is it normal?", "Yes", True, "yes"),
        ("Is it normal?", "no.", None, "no"),
        ("Is it normal?", "No, it is not.", None, "no"),
        ("In the left lung, is there a mass?", "Yes, a small one", None, "yes"),
        ("What is seen?", "No abnormality.", None, None),
        ("What is seen?", "no", False, "no"),
        ("Is the nodule large?", "No evidence", False, None),
        ("Is it left or right?", "left", True, None),
        ("Is there a node?", "Nodular", None, None),
    ],
)
def test_answers_of_yes_and_no_become_labels(question, answer, is_closed, label):
    found = ask(question, answer, task="t", is_closed=is_closed)
    assert found.key.label == label
    assert found.is_open == (label is None)


@pytest.mark.parametrize(
    ("answer", "place"),
    [("B", 1), ("b.", 1), ("(B)", 1), ("B. Right lung", 1), ("right lung", 1), ("Right lung.", 1), ("A", 0)],
)
def test_the_right_option_is_found_by_label_or_text(answer, place):
    assert find_right(answer, ["A", "B"], ["Left lung", "Right lung."]) == place


@pytest.mark.parametrize("answer", ["C", "A. Right lung", "heart", "?"])
def test_an_answer_that_names_no_option_is_told(answer):
    with pytest.raises(RecordError, match="names none of 2 options"):
        find_right(answer, ["A", "B"], ["Left lung", "Right lung"])


texts = st.text(string.ascii_lowercase, min_size=3, max_size=12)


@given(st.lists(texts, min_size=2, max_size=40, unique=True), st.data())
def test_the_key_of_any_options_is_parsed_and_right(options, data):
    several = data.draw(st.sets(st.integers(0, len(options) - 1), min_size=1, max_size=5))
    question = ask_options(
        "Which?", [f"finding {text}" for text in options], several, task="t", multiple=True
    )
    case = make_case("s", Subject(case="c", study="s", patient=None), question, [])
    (step,) = case.steps
    assert not list(faults(case))
    for said in (", ".join(map(str, step.right)), ", ".join(step.key.options)):
        reply = f"Answer: {said}"
        assert score(case, step, parse(step, reply), reply).correct


@given(st.text(max_size=30), st.sampled_from(["", "metadata"]))
def test_keys_of_images_never_leave_the_root(path, start):
    try:
        key = resolve_key(path, start=start)
    except RecordError:
        return
    assert not key.startswith("/")
    assert ".." not in key.split("/")


def test_a_path_may_go_up_as_long_as_it_stays_in_the_root():
    assert resolve_key("../deid_png/a.png", start="metadata") == "deid_png/a.png"
    with pytest.raises(RecordError, match="leads out"):
        resolve_key("../../a.png", start="metadata")


def test_a_damaged_image_is_told(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(RecordError, match="image:"):
        find_image(tmp_path, "a.jpg")


def test_numbers_that_json_does_not_have_are_read_as_nothing():
    assert decode_lenient(b'{"a": NaN, "b": [Infinity, 1]}') == {"a": None, "b": [None, 1]}
    with pytest.raises(RecordError, match="not JSON"):
        decode_lenient(b'{"a": nan}')


@pytest.mark.parametrize("value", ["10000001", "p10000001", 10000001, 10000001.0, " 10000001 "], ids=repr)
def test_ids_of_mimic_are_read_however_they_are_written(value):
    assert read_mimic_id(value, "subject_id") == "10000001"


@pytest.mark.parametrize("value", ["1000001", "x10000001", None, "", "../10000001"], ids=repr)
def test_other_ids_are_told(value):
    with pytest.raises(RecordError, match=r"subject_id: is .* expected eight digits"):
        read_mimic_id(value, "subject_id")


def test_patient_and_study_are_read_from_a_path():
    assert read_path_ids("files/p10/p10000001/s50000001/a.jpg") == ("10000001", "50000001")
    with pytest.raises(RecordError, match="does not name patient and study"):
        read_path_ids("p10/10000001/a.jpg")


def test_the_protocols_have_titles():
    assert find_protocol("questions").title == "Published questions"
    assert [stage_title("questions", stage) for stage in (1, 2)] == ["Closed questions", "Open questions"]
    assert stage_title("cxreasonbench", 4) == "Anatomy"


def test_two_workers_give_the_same_benchmark_as_one(tmp_path):
    folder = tmp_path / "rad"
    many = [record(n, f"Is there finding {n}?", "yes" if n % 3 else "no") for n in range(700)]
    write_json(folder / QUESTIONS, many)
    write_image(folder / IMAGES / "synpic1.jpg")
    for workers in (1, 2):
        import_source("vqa-rad", folder, tmp_path / f"bench-{workers}", workers=workers)
    one, two = (json.loads((tmp_path / f"bench-{n}" / "bench.json").read_text()) for n in (1, 2))
    assert [part["sha256"] for part in one["parts"]] == [part["sha256"] for part in two["parts"]]
    assert one["parts"][0]["sha256"]
