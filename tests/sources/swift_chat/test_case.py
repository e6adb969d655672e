"""Published records as cases: what is read, what stays unknown, and what of the known defects is counted."""

import json

import cv2
import numpy as np
import pytest
from tests.sources.swift_chat import sample

from carina.cases import Box, Fact, Key, Option
from carina.cases.faults import faults
from carina.sources import RecordError
from carina.sources.swift_chat import read_case
from carina.studies.model import ReportSection


def read(record, **options):
    return read_case(sample.encoded(record), **options)


def one(item, **changes):
    """The step of an item alone, and its defects; what any record of this one image has is left out."""
    found = read(sample.alone([item], **changes))
    told = {name: n for name, n in found.defects.items() if name not in ("absolute path", "size unknown")}
    return found.case.steps[0], told


def test_a_record_becomes_a_case_with_all_its_fields():
    found = read(sample.record())
    case = found.case
    assert (case.id, case.study) == ("trek-p10000001-s50000002", "p10000001-s50000002")
    assert (case.reference_study, case.later_study) == ("p10000001-s50000001", "p10000001-s50000003")
    assert (case.protocol, case.patient, case.source, case.split) == ("trek", "p10000001", "mimic_cxr", None)
    assert case.order == "staged"
    assert [(image.key, image.role, image.view) for image in case.images] == [
        ("files/p10/p10000001/s50000002/a.jpg", "current", "unknown"),
        ("files/p10/p10000001/s50000001/b.jpg", "reference", "unknown"),
    ]
    assert [(image.width, image.height) for image in case.images] == [(0, 0), (0, 0)]
    assert [step.id for step in case.steps] == [f"t{n}" for n in range(1, 13)]
    assert [(step.stage, step.task, step.format) for step in case.steps] == [
        (1, "view", "open"),
        (2, "any abnormality", "yes_no"),
        (2, "presence", "yes_no"),
        (2, "device presence", "choice"),
        (3, "location", "choice"),
        (3, "region box", "boxes"),
        (3, "box content", "open"),
        (4, "relations", "open"),
        (5, "change", "choice"),
        (6, "outlook", "open"),
        (7, "advice", "open"),
        (8, "full report", "report"),
    ]
    assert {step.id: step.shows for step in case.steps if step.shows} == {"t1": ("v1",), "t9": ("v2",)}
    assert case.steps[8].uses == ("v1", "v2")
    assert case.steps[0].question == "This is the current image:\nWhich view is it?"
    assert case.steps[8].question == ("Compare with the earlier image. Better or worse? 1. better 2. worse")
    assert list(faults(case)) == []
    assert dict(found.defects) == {
        "absolute path": 2,
        "size unknown": 2,
        "multi-choice-N": 3,
        "label of another stage": 1,
    }
    assert found.unmapped == []


def test_keys_of_every_format_are_read():
    steps = read(sample.record()).case.steps
    assert steps[1].key == Key(label="yes", text="Yes, something is.")
    assert steps[2].key == Key(label="no", text="No")
    assert steps[2].constraints.answer_only
    assert steps[3].key == Key(options=("A",), kinds=("key", "distractor"), text="A. Yes")
    assert (steps[4].multiple, steps[4].score) == (True, "set")
    assert steps[4].options == (
        Option(id="A", text="apex"),
        Option(id="B", text="base"),
        Option(id="C", text="none of these"),
    )
    assert steps[4].key == Key(options=("A", "B"), kinds=("key", "key", "none"), text="A. apex and B. base")
    assert steps[5].key.boxes == (
        Box(
            image="files/p10/p10000001/s50000002/a.jpg",
            xyxy=(50.45, 10.27, 90.62, 80.36),
            frame="percent",
            name="left lung",
            of="anatomy",
        ),
    )
    assert steps[10].constraints.min_words == 3
    assert steps[11].key.sections == (
        ReportSection(name="impression", text="Effusion."),
        ReportSection(name="findings", text="Fluid at the base."),
    )


def test_facts_and_origin_of_a_question_are_read():
    steps = read(sample.record()).case.steps
    assert steps[2].facts == (
        Fact(name="target", about="finding", text="edema"),
        Fact(name="truth", text="absent"),
    )
    assert steps[3].facts == (Fact(name="target", about="device", text="chest tube"),)
    assert steps[5].facts == (Fact(name="target", about="region", text="left lung"),)
    assert Fact(name="history", text="required") in steps[7].facts
    assert steps[7].depends_on == ()
    assert (steps[9].origin.review, steps[9].origin.note) == ("rewritten", "polish_stage6")
    assert (steps[10].origin.method, steps[10].origin.review) == ("import", "rejected")
    assert Fact(name="judge", text="Not in the report.") in steps[10].facts


def test_sizes_come_from_the_files_where_they_are(tmp_path):
    path = tmp_path / "p10" / "p10000001" / "s50000002" / "a.jpg"
    path.parent.mkdir(parents=True)
    cv2.imwrite(str(path), np.zeros((20, 30), np.uint8))
    found = read(sample.record(), images=tmp_path)
    current, reference = found.case.images
    assert (current.key, current.width, current.height) == ("p10/p10000001/s50000002/a.jpg", 30, 20)
    assert (reference.width, reference.height) == (0, 0)
    assert (found.defects["image absent"], found.defects["size unknown"]) == (1, 1)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/x/y/files/p10/p10000001/s50000002/a.jpg", "files/p10/p10000001/s50000002/a.jpg"),
        ("/x/p11/p11000001/s5/a.jpg", "p11/p11000001/s5/a.jpg"),
        ("/x/CheXpert/train/patient00001/study1/v.jpg", "train/patient00001/study1/v.jpg"),
        ("/x/p10000001/s5/a.jpg", "p10000001/s5/a.jpg"),
        ("/data/me/somewhere/else/pic/s5/a.jpg", "pic/s5/a.jpg"),
        ("C:\\data\\patient00001\\study1\\v.jpg", "patient00001/study1/v.jpg"),
        ("images/s5/a.jpg", "images/s5/a.jpg"),
        ("./images/s5/a.jpg", "images/s5/a.jpg"),
    ],
)
def test_private_folders_are_removed_from_image_keys(path, key):
    record = sample.alone(sample.content()[:1], image=[path])
    assert read(record).case.images[0].key == key


# ---- defects ------------------------------------------------------------------------------------------------------


def opened(question="Where?", answer="There.", **more):
    return sample.item(2, "Findings_Identification", "open", question, answer, is_joint_sent=True, **more)


def chosen(answers, options=("a", "b"), kind="multi-choice-2", **more):
    return sample.item(
        2,
        "Findings_Identification",
        kind,
        "Which?",
        "A. a",
        option_list=list(options),
        answer_list=list(answers),
        **more,
    )


def boxed(answer, **more):
    more = {"bbox_list": [[1, 2, 3, 4]], "image_id": 1, **more}
    return sample.item(3, "Findings_Detection", "detection", "[detection] Where?", answer, **more)


@pytest.mark.parametrize(
    ("item", "defects"),
    [
        (opened(), {}),
        (opened("In {words} words, {words}?"), {"unfilled slot": 2}),
        (opened("Is the the heart large? It is is."), {"doubled word": 2}),
        (opened("Draw boxs.", "Two boxs."), {"boxs": 2}),
        (opened("Without explaination?"), {"explaination": 1}),
        (chosen(["a"]), {"multi-choice-N": 1}),
        (chosen(["a"], kind="multi-choice-3"), {"multi-choice-N": 1, "wrong number in multi-choice-N": 1}),
        (
            chosen(["c"]),
            {"multi-choice-N": 1, "answer not among options": 1, "type name against content": 1},
        ),
        (chosen([]), {"multi-choice-N": 1, "answer not among options": 1, "type name against content": 1}),
        (
            chosen(["a"], options=("a", "A.")),
            {"multi-choice-N": 1, "equal options": 1, "type name against content": 1},
        ),
        (
            sample.item(2, "Findings_Identification", "yes/no", "Is it?", "Perhaps."),
            {"yes/no without its word": 1},
        ),
        (sample.item(7, "Quality_Assessment", "open", "Q?", "A."), {"label of another stage": 1}),
        (sample.item(7, "Something_New", "open", "Q?", "A."), {"unknown label": 1}),
        (sample.item(6, "Future_Trend_Analysis", "open", "Q?", "A."), {"stage 6 without link": 1}),
        (sample.item(5, "Differences_Comparison", "open", "Q?", "A."), {"stage 5 without reference": 1}),
        (opened("Use at most 2 words.", "One two three."), {"limit not obeyed": 1}),
        (opened(mood="good", why=["x"]), {"unmapped field": 2}),
        (boxed("<|ref|> x <|/ref|> <|box|>(1, 2), (3, 104)<|/box|>"), {"box outside the frame": 1}),
        (boxed("<|ref|> x <|/ref|> <|box|>(3, 2), (1, 4)<|/box|>"), {"corners exchanged": 1}),
        (boxed("<|ref|> x <|/ref|> <|box|>(1, 2), (1, 4)<|/box|>"), {"unreadable box": 1}),
        (boxed("Somewhere."), {"unreadable box": 1}),
        (boxed("<|ref|> x <|/ref|> <|box|>(1, 2), (3, 4)<|/box|>", image_id=2), {"unreadable box": 1}),
    ],
)
def test_a_defect_is_counted_and_the_record_used(item, defects):
    step, told = one(item)
    assert told == defects
    assert step.question


def test_slots_are_marked_so_that_the_case_is_sound():
    step, _ = one(opened("Answer in {words} words."))
    assert step.question.endswith("Answer in [words] words.")


def test_a_choice_whose_key_is_lost_is_open():
    step, _ = one(chosen(["c"]))
    assert (step.format, step.options, step.key) == ("open", (), Key(text="A. a"))


@pytest.mark.parametrize(
    ("options", "answers", "expected"),
    [
        (("3.3 cm", "4.3 cm"), ["4.3 cm"], (("A", "B"), ("B",))),
        (("2. left", "3. right"), ["2. left"], (("A", "B"), ("A",))),
        (("1. left", "2. right"), ["right"], (("1", "2"), ("2",))),
        (("A.left", "B.right"), ["A"], (("A", "B"), ("A",))),
        (("1). left", "2). right"), ["2). right"], (("1", "2"), ("2",))),
    ],
)
def test_labels_count_the_options_or_are_words(options, answers, expected):
    step, _ = one(chosen(answers, options=options))
    assert (tuple(option.id for option in step.options), step.key.options) == expected


def test_an_answer_is_not_another_option_without_its_first_figure():
    step, told = one(chosen(["4.5 cm"], options=("5 cm", "6 cm")))
    assert (step.format, told["answer not among options"]) == ("open", 1)


def test_a_box_is_cut_at_its_frame():
    step, _ = one(boxed("<|ref|> x <|/ref|> <|box|>(-1.5, -2), (103, 104)<|/box|>"))
    assert step.key.boxes[0].xyxy == (0.0, 0.0, 100.0, 100.0)
    assert step.key.text == "<|ref|> x <|/ref|> <|box|>(-1.5, -2), (103, 104)<|/box|>"


def test_several_boxes_are_read():
    step, told = one(
        boxed("<|ref|> x <|/ref|> <|box|>(1, 2), (3, 4)<|/box|> <|ref|>y<|/ref|><|box|>(5.5,6),(7,8)<|/box|>")
    )
    assert told == {}
    assert [(box.name, box.xyxy) for box in step.key.boxes] == [("x", (1, 2, 3, 4)), ("y", (5.5, 6, 7, 8))]


def test_uncertain_is_never_guessed():
    step, _ = one(sample.item(2, "Findings_Identification", "yes/no", "Edema?", "Possibly.", target="x"))
    assert (step.format, step.key.label) == ("open", None)


def test_an_open_answer_that_begins_with_no_is_open():
    step, told = one(opened("What has changed?", "No change is seen."))
    assert (step.format, step.key.label, told) == ("open", None, {})
    step, told = one(sample.item(2, "others", "open", "What has changed?", "No change is seen."))
    assert (step.format, step.key.label, told) == ("open", None, {})


def test_where_the_two_copies_differ_content_counts():
    record = sample.record()
    record["messages"][2]["content"] = "Another answer."
    record["messages"][3]["content"] = "Another question?"
    found = read(record)
    assert found.defects["texts differ"] == 2
    assert found.case.steps[0].key.text == "A frontal view."
    assert found.case.steps[1].question == "Is anything abnormal?"


def test_a_message_may_say_more_than_its_item():
    record = sample.record()
    record["messages"][3]["content"] = "Cough. Is anything abnormal? Be short."
    found = read(record)
    assert found.defects["texts differ"] == 0
    assert found.case.steps[1].question == "Cough. Is anything abnormal? Be short."


def test_shuffled_conversations_say_so():
    items = sample.content()
    found = read(sample.record(content=[items[0], items[11], *items[1:11]]))
    assert found.case.order == "shuffled"
    assert (found.defects["shuffled order"], found.defects["turn after the report"]) == (1, 10)


def test_numbers_of_studies_are_not_time():
    found = read(
        sample.record(
            ref_study_id="s50000009",
            pos_study_id="s50000001",
            image=[f"{sample.ROOT}/s50000002/a.jpg", f"{sample.ROOT}/s50000009/b.jpg"],
        )
    )
    assert found.defects["study numbers against time"] == 2
    assert not [fact for fact in found.case.facts if fact.name in ("order", "date")]


def test_reference_without_comparison_is_counted():
    items = [item for item in sample.content() if item["stage"] != 5]
    assert read(sample.record(content=items)).defects["reference without stage 5"] == 1


def test_placeholders_may_be_in_the_items_alone():
    record = sample.record()
    del record["messages"]
    record["content"][0]["question"] = "<image> Which view is it?"
    record["content"][8]["question"] = "Better or worse? <image>"
    case = read(record).case
    assert [step.shows for step in case.steps if step.shows] == [("v1",), ("v2",)]
    assert case.steps[0].question == "Which view is it?"
    assert case.steps[8].question == "Better or worse?"


def test_without_placeholders_the_counts_say_where_images_enter():
    record = sample.record()
    del record["messages"]
    assert {step.id: step.shows for step in read(record).case.steps if step.shows} == {
        "t1": ("v1",),
        "t9": ("v2",),
    }


def test_a_count_that_contradicts_the_placeholders_is_a_defect():
    record = sample.record()
    record["content"][3]["image_input_count"] = 2
    assert read(record).defects["image count differs"] == 1


# ---- records that cannot be used ----------------------------------------------------------------------------------


def broken(change):
    record = sample.record()
    change(record)
    return record


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda r: r.pop("study_id"), "study_id: is missing"),
        (lambda r: r.update(content=[]), "content: is missing"),
        (lambda r: r.update(content="x"), "content: expected a list of objects, found 'x'"),
        (lambda r: r["content"][3].update(stage=9), r"content\[3\].stage: is 9, expected 1 to 8"),
        (lambda r: r["content"][3].update(stage="two"), r"content\[3\].stage: expected a whole number"),
        (lambda r: r["content"][1].update(answer=5), r"content\[1\].answer: expected text, found 5"),
        (lambda r: r["content"][5].update(bbox_list=[[1, 2]]), r"content\[5\].bbox_list: expected boxes"),
        (lambda r: r["image"].pop(), "messages: hold 2 placeholders for 1 images"),
        (lambda r: r.update(image=["/a/../b.jpg", "c.jpg"]), r"image\[0\]: '/a/../b.jpg' does not lead to"),
        (lambda r: r.update(image=["https://x.org/a.jpg"] * 2), r"image\[0\]: 'https://x.org/a.jpg' is an address"),
        (lambda r: r.update(image=["data:image/png;base64,xx"] * 2), r"image\[0\]: .* is an address"),
        (lambda r: r["messages"].pop(), "messages: expected a user and an assistant in turn"),
        (
            lambda r: r["image"].__setitem__(1, f"{sample.ROOT}/s50000003/c.jpg"),
            "image: shows the later study",
        ),
        (lambda r: (r.update(image=["x/a.jpg", "x/b.jpg"]), r["content"][5].pop("num_of_images")),
         "image: which images are of the reference study is unknown"),
        (lambda r: r.update(image=[r["image"][0]] * 2, ref_study_id=""), "record: image .* 2 times"),
        (lambda r: r.update(split="dev"), "split: is 'dev', expected train, val, test"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_used_names_its_field(change, sentence):
    with pytest.raises(RecordError, match=f"^{sentence}"):
        read(broken(change))


def test_roles_follow_the_number_of_images_where_folders_are_unknown():
    record = sample.record(image=["x/a.jpg", "x/b.jpg"])
    assert [image.role for image in read(record).case.images] == ["current", "reference"]


def test_a_record_that_is_no_json_is_refused():
    with pytest.raises(RecordError, match="record: not JSON"):
        read_case(b'{"study_id": NaN}')
    with pytest.raises(RecordError, match="record: expected an object, found 5"):
        read_case(b"5")


def test_names_may_be_numbers():
    assert json.loads(sample.encoded(sample.record(pat_id=7)))["pat_id"] == 7
    assert read(sample.record(pat_id=7)).case.patient == "7"
