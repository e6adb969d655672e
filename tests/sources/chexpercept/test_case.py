"""Published records as cases: what is asked, what is right, and every way in which a record contradicts itself."""

import json
from copy import deepcopy

import pytest
from tests.sources.chexpercept import published

from carina.cases.faults import faults
from carina.sources import RecordError
from carina.sources.chexpercept.case import Picture, read_case, read_target
from carina.store.errors import ImageError

NAME = "effusion_s1_positive_0"


def probe(key):
    return Picture(key, 24, 24, "0" * 64)


def read(record, key_id=NAME, **more):
    return read_case(key_id, record, probe, **more)


@pytest.fixture
def rr():
    return published.record("RR", pair_id="s1_positive_0")


def test_a_case_that_needs_revision_has_nine_steps(rr):
    case = read(rr, patient="p7")
    assert (case.id, case.protocol, case.study, case.patient) == (NAME, "percept", "d-1", "p7")
    assert (case.target, case.path, case.source) == ("effusion", "RR", "chexpercept")
    assert list(faults(case)) == []
    told = [(step.id, step.stage, step.task, step.multiple, step.score, step.right) for step in case.steps]
    assert told == [
        ("1", 1, "detection", False, "exact", (1,)),
        ("2", 2, "contour evaluation", False, "exact", (1,)),
        ("3a", 3, "expansion", True, "set", (1, 3)),
        ("3b", 3, "contraction", True, "set", (5,)),
        ("3c", 3, "revision", False, "exact", (2,)),
        ("4a", 4, "distribution", False, "exact", (2,)),
        ("4b", 4, "location", True, "set", (1, 3)),
        ("4c", 4, "severity", False, "exact", (1,)),
        ("4d", 4, "comparison", False, "exact", (4,)),
    ]
    assert [step.key.options for step in case.steps] == [
        ("yes",),
        ("yes",),
        ("p1", "p3"),
        ("none",),
        ("o2",),
        ("2",),
        (
            "the intersection of the right lateral lung and the right mid zone lung",
            "the right costophrenic angle",
        ),
        ("low",),
        ("one",),
    ]
    assert case.step("3c").key.kinds == ("fake", "key", "fake", "fake")
    assert [option.id for option in case.step("4a").options] == ["1", "2", "3", "4+"]
    assert [option.id for option in case.step("4c").options] == ["low", "mid", "high"]
    assert [option.id for option in case.step("4d").options] == ["similar", "left", "right", "one"]
    assert case.step("4b").options[3].id == "none"


def test_questions_are_kept_word_for_word(rr):
    case = read(rr)
    assert case.step("1").question == "Is it there?\nOptions:\n(1) Yes\n(2) No"
    assert case.step("3a").context == "Coloured points lie on and around the mask."
    assert [option.text for option in case.step("3b").options] == [
        "red point",
        "orange point",
        "yellow point",
        "green point",
        "None",
    ]
    assert all(step.context is None for step in case.steps if step.id != "3a")


def test_each_picture_enters_once_without_overlays(rr):
    case = read(rr)
    start = f"chexpercept/{NAME}"
    revision = f"{start}/contour_qa/contour_revision_qa"
    assert {view.id: view.panels[0].image for view in case.views} == {
        "v1": f"{start}/detection_qa/xray.png",
        "v2": f"{start}/contour_qa/contour_eval_qa/xray_with_mask.png",
        "v3": f"{revision}/xray_with_mask_and_points.png",
        "v4": f"{revision}/option_1_mask_fake.png",
        "v5": f"{revision}/option_2_mask_answer.png",
        "v6": f"{revision}/option_3_mask_fake.png",
        "v7": f"{revision}/option_4_mask_fake.png",
    }
    assert all(image.finished and image.sha256 == "0" * 64 for image in case.images)
    assert all(len(view.panels) == 1 and view.side is None for view in case.views)
    shown = {step.id: step.shows for step in case.steps if step.shows}
    assert shown == {"1": ("v1",), "2": ("v2",), "3a": ("v3",), "3c": ("v4", "v5", "v6", "v7")}
    assert case.step("3b").uses == ("v1", "v3")
    assert case.step("4c").uses == ("v1",)
    assert [option.view for option in case.step("3c").options] == ["v4", "v5", "v6", "v7"]


def test_a_good_mask_is_not_revised_though_the_record_holds_the_questions():
    record = published.record("RF", pair_id="x")
    case = read(record)
    assert case.path == "RF"
    assert [step.id for step in case.steps] == ["1", "2", "4a", "4b", "4c", "4d"]
    assert [view.id for view in case.views] == ["v1", "v2"]
    assert case.step("2").key.options == ("no",)
    assert case.step("4a").depends_on == ("2",)
    assert [(branch.step, branch.options) for branch in case.step("4a").reached_by] == [("2", ("no",))]
    assert json.loads(case.extra) == record


def test_a_lesion_free_case_has_one_step():
    case = read(published.record("LF", pair_id="x"), "edema_s3_negative_0")
    assert (case.path, [step.id for step in case.steps]) == ("LF", ["1"])
    assert case.step("1").key.options == ("no",)


def test_the_heart_has_no_attributes():
    case = read(published.record("RR", pair_id="x", attributed=False), "cardiomegaly_x")
    assert [step.id for step in case.steps] == ["1", "2", "3a", "3b", "3c"]


def test_the_examination_branches_as_the_published_runner_corrects(rr):
    case = read(rr)
    assert {step.id: step.depends_on for step in case.steps if step.depends_on} == {
        "2": ("1",),
        "3a": ("2",),
        "3c": ("3a", "3b"),
        "4a": ("3c",),
    }
    assert [(branch.step, branch.options) for branch in case.step("3b").reached_by] == [("2", ("yes",))]
    assert [(branch.step, branch.options) for branch in case.step("4d").reached_by] == [("2", ("yes",))]


def test_an_unknown_lesion_and_unknown_fields_are_kept(rr):
    rr["reader"] = {"name": "x", "n": [1, 2.5, None]}
    case = read(rr, "Ground Glass_s1_positive_0")
    assert case.target == "Ground Glass"
    assert json.loads(case.extra) == rr


@pytest.mark.parametrize(
    ("key_id", "target"),
    [
        ("effusion_a_b", "effusion"),
        ("Pleural Effusion_a", "effusion"),
        ("lung opacity_a", "opacity"),
        ("Edema_x", "edema"),
        ("scoliosis_1", "scoliosis"),
        ("nounderscore", "nounderscore"),
    ],
)
def test_lesions_get_the_names_of_the_percept_protocol(key_id, target):
    assert read_target(key_id) == target


def test_answers_are_found_by_text_whatever_their_order(rr):
    rr["detection_qa"] = published.single("Is it there?", ("No", "Yes"), 2)
    ordinal = ("4 zones or more", "3 zones", "2 zones", "1 zone")
    rr["attribute_extraction_qa"]["distribution"] = published.single("How many?", ordinal, 3)
    case = read(rr)
    assert case.step("1").key.options == ("yes",)
    assert case.step("1").right == (2,)
    assert case.step("4a").key.options == ("2",)


def test_options_in_unknown_words_are_named_by_place(rr):
    words = ("hardly", "somewhat", "all of it")
    rr["attribute_extraction_qa"]["severity/measurement"] = published.single("How much?", words, 3)
    assert read(rr).step("4c").key.options == ("o3",)


def test_options_in_one_line_and_words_after_them_are_read(rr):
    rr["detection_qa"]["question"] = "Is it there? \n  Options: (1) Yes  (2) No"
    rr["contour_qa"]["contour_eval_qa"]["question"] += "\nGive one number."
    assert read(rr).step("2").question.endswith("Give one number.")


def change(record, path, value):
    """A copy with one field changed, or removed where the value is `change`."""
    record = deepcopy(record)
    *way, last = path
    place = record
    for name in way:
        place = place[name]
    if value is change:
        del place[last]
    else:
        place[last] = value
    return record


DETECTION, CONTOUR = ("detection_qa",), ("contour_qa",)
EVAL = (*CONTOUR, "contour_eval_qa")
EXPANSION = (*CONTOUR, "contour_revision_qa_expansion")
RESULT = (*CONTOUR, "contour_revision_qa_revision_result")
LOCATION = ("attribute_extraction_qa", "location")

WRONG = [
    # types and what is missing
    ((*DETECTION,), [], "type", "detection_qa: expected an object, found []"),
    ((*DETECTION,), change, "missing", "detection_qa: is missing"),
    ((*DETECTION, "question"), 3, "type", "detection_qa.question: expected text, found 3"),
    ((*DETECTION, "question"), "  ", "missing", "detection_qa.question: is empty"),
    ((*DETECTION, "answer_index"), "1", "type", "detection_qa.answer_index: expected a whole number, found '1'"),
    ((*DETECTION, "answer_index"), True, "type", "expected a whole number, found true"),
    ((*DETECTION, "answer_index"), 1.0, "type", "expected a whole number, found 1.0"),
    ((*DETECTION, "answer_options"), ["Yes", None], "type", "detection_qa.answer_options: expected a list of texts"),
    (("dicom_id",), 5, "type", "dicom_id: expected text, found 5"),
    (("pair_id",), change, "missing", "pair_id: is missing"),
    ((*CONTOUR, "no_deformation"), "no", "type", "contour_qa.no_deformation: expected true or false"),
    ((*CONTOUR, "initial_context"), change, "missing", "contour_qa.initial_context: is missing"),
    (("attribute_extraction_qa", "comparison"), [], "type", "comparison: expected an object, found []"),
    ((*EXPANSION, "answer_index"), 1, "type", "contour_revision_qa_expansion.answer_index: expected a list, found 1"),
    ((*EXPANSION, "answer_index"), [1, "3"], "type", "expected a list of whole numbers"),
    # index, answer and options
    ((*DETECTION, "answer_index"), 0, "answer", "detection_qa.answer_index: is 0, expected 1 to 2"),
    ((*DETECTION, "answer_index"), 3, "answer", "detection_qa.answer_index: is 3, expected 1 to 2"),
    ((*DETECTION, "answer_index"), 2, "answer", "detection_qa.answer: is 'Yes', but answer_index 2 is 'No'"),
    ((*DETECTION, "answer_options"), ["No", "Yes"], "options", "lists 'Yes' as option 1, but answer_options has 'No'"),
    ((*DETECTION, "answer_options"), ["Yes"], "options", "answer_options: expected Yes and No, found 'Yes'"),
    ((*DETECTION, "question"), "Is it there?", "options", 'detection_qa.question: has no line "Options:"'),
    (
        (*DETECTION, "question"),
        "Is it?\nOptions:\n(1) Yes\n(2) No\n(3) Perhaps",
        "options",
        "detection_qa.question: lists 3 options, but answer_options has 2",
    ),
    (
        (*DETECTION, "question"),
        "Is it?\nOptions:\n(1) Yes",
        "options",
        "lists nothing as option 2, but answer_options has 'No'",
    ),
    ((*EVAL, "answer_index"), 2, "answer", "contour_eval_qa.answer: is 'Yes', but answer_index 2 is 'No'"),
    ((*CONTOUR, "no_deformation"), True, "answer", "is 'Yes', but contour_qa.no_deformation is true"),
    ((*EXPANSION, "answer_index"), [], "answer", "contour_revision_qa_expansion.answer_index: is empty"),
    ((*EXPANSION, "answer_index"), [1, 1], "answer", "names an option twice"),
    ((*EXPANSION, "answer_index"), [1, 2], "answer", "is 'red point, yellow point', but answer_index [1, 2]"),
    ((*EXPANSION, "answer"), "red point", "answer", "contour_revision_qa_expansion.answer: is 'red point'"),
    ((*RESULT, "answer"), "3rd mask", "answer", "is '3rd mask', but answer_index 2 is '2nd mask'"),
    ((*RESULT, "answer_options", 1, "type"), "maybe", "type", 'answer_options[1].type: expected "true" or "fake"'),
    ((*RESULT, "answer_options", 1, "type"), "fake", "answer", 'the options of type "true" are []'),
    ((*RESULT, "answer_options", 0, "type"), "true", "answer", 'the options of type "true" are [1, 2]'),
    ((*LOCATION, "answer_index"), [1], "answer", "attribute_extraction_qa.location.answer: is"),
    # points
    ((*EXPANSION, "answer_options", 1, "point"), [24, 5], "point", "answer_options[1].point: [24, 5] lies outside"),
    ((*EXPANSION, "answer_options", 1, "point"), [3, -1], "point", "[3, -1] lies outside its picture of 24 x 24"),
    ((*EXPANSION, "answer_options", 1, "point"), [3], "type", "expected a point [x, y]"),
    ((*EXPANSION, "answer_options", 1, "point"), ["3", 4], "type", "expected a point [x, y]"),
    ((*EXPANSION, "answer_options", 1, "point"), None, "point", "is None, but the color is 'orange'"),
    # paths
    ((*EVAL, "relative_path"), "../../../secret.png", "path", "contour_eval_qa.relative_path: '../../../secret.png'"),
    ((*EVAL, "relative_path"), "/etc/passwd", "path", "does not lead to a file below"),
    ((*EVAL, "relative_path"), "C:\\x.png", "path", "does not lead to a file below"),
    ((*EVAL, "relative_path"), "C:/x.png", "path", "does not lead to a file below"),
    ((*EVAL, "relative_path"), "a\0.png", "path", "does not lead to a file below"),
    ((*EVAL, "relative_path"), ".", "path", "does not lead to a file below"),
    ((*RESULT, "answer_options", 2, "relative_path"), "a/../../b.png", "path", "answer_options[2].relative_path"),
    (
        (*RESULT, "answer_options", 2, "relative_path"),
        "option_1_mask_fake.png",
        "path",
        "is used already, as picture 4",
    ),
]  # fmt: skip


def test_an_attribute_that_is_null_is_not_asked(rr):
    whole = [step.id for step in read(rr).steps]
    without = [step.id for step in read(change(rr, ("attribute_extraction_qa", "comparison"), None)).steps]
    (left_out,) = set(whole) - set(without)
    assert [step for step in whole if step != left_out] == without


@pytest.mark.parametrize(("path", "value", "reason", "sentence"), WRONG)
def test_a_contradiction_is_reported_with_its_field(rr, path, value, reason, sentence):
    with pytest.raises(RecordError) as told:
        read(change(rr, path, value))
    assert told.value.kind == reason
    assert sentence in str(told.value)
    assert told.value.field in str(told.value)


def test_none_excludes_the_others(rr):
    block = rr["contour_qa"]["contour_revision_qa_contraction"]
    block |= {"answer_index": [2, 5], "answer": "orange point, None"}
    with pytest.raises(RecordError, match=r"contour_revision_qa_contraction\.answer_index: .*\[2, 5\]"):
        read(rr)


def test_a_colour_that_two_points_have_cannot_be_asked(rr):
    for name in ("expansion", "contraction"):
        block = rr["contour_qa"][f"contour_revision_qa_{name}"]
        block["answer_options"][1]["color"] = "red"
        block["question"] = block["question"].replace("orange", "red")
    with pytest.raises(RecordError, match="option text 'red point'"):
        read(rr)


def test_a_picture_that_cannot_be_read_is_named_with_its_field(rr):
    def broken(key):
        if "option_3" in key:
            raise ImageError(f"{key}: no such image file")
        return probe(key)

    field = r"answer_options\[2\]\.relative_path: .*option_3_mask_fake\.png"
    with pytest.raises(RecordError, match=field) as told:
        read_case(NAME, rr, broken)
    assert told.value.kind == "image"


@pytest.mark.parametrize("key_id", ["", "..", ".", "a/b", "a\\b", "a\nb", "a\0", "x" * 300])
def test_a_name_that_is_no_folder_is_refused(rr, key_id):
    with pytest.raises(RecordError, match="key_id"):
        read(rr, key_id)


def test_half_a_character_is_refused(rr):
    rr["notes"] = "\ud800"
    with pytest.raises(RecordError, match="half of a character"):
        read(rr)


def test_a_record_that_is_no_object_is_refused():
    with pytest.raises(RecordError, match=r"record: expected an object, found \[\]"):
        read([])
