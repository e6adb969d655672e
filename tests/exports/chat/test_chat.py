"""Conversations on disk: exact records of each layout, pictures once each, whole or not at all, resumable."""

import base64
import json

import cv2
import msgspec
import numpy as np
import pytest
from tests.exports.chat import conversation
from tests.sources.chexpercept import percept_cases

from carina.cases import CaseImage, Views, open_benchmark
from carina.exports import _folder, export
from carina.store.errors import CarinaError


@pytest.fixture
def bench(tmp_path):
    splits = ["train", "test", "train", "train", None]
    cases = [conversation.case(number, split=split) for number, split in enumerate(splits, start=1)]
    return conversation.write(tmp_path / "bench", cases)


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def exported(bench, out, *, workers=1, **options):
    return export(bench, out, to="chat", options=options, workers=workers)


def test_each_part_and_split_has_a_file(bench, tmp_path):
    result = exported(bench, tmp_path / "chat")
    assert sorted(path.name for path in (tmp_path / "chat").iterdir()) == [
        "carina.json",
        "images",
        "test-00000.jsonl",
        "train-00000.jsonl",
        "train-00001.jsonl",
        "unsplit-00002.jsonl",
    ]
    ids = {name: [line["id"] for line in lines(tmp_path / "chat" / name)] for name in result.files}
    assert ids == {
        "test-00000.jsonl": ["trek-s2"],
        "train-00000.jsonl": ["trek-s1"],
        "train-00001.jsonl": ["trek-s3", "trek-s4"],
        "unsplit-00002.jsonl": ["trek-s5"],
    }
    assert result.counts == {
        "cases": 5,
        "questions": 45,
        "pictures": 3,
        "splits": {"test": 1, "train": 3, "unsplit": 1},
    }
    assert result.manifest["command"] == "carina export bench --to chat --layout openai --pictures copy"


def test_pictures_are_those_of_the_views_once_each(bench, tmp_path):
    exported(bench, tmp_path / "chat")
    opened = open_benchmark(bench)
    case = opened["trek-s1"]
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    first = line["messages"][0]
    assert [part["type"] for part in first["content"]] == ["image_url", "image_url", "text"]
    for view, part in zip(("v1", "v2"), first["content"], strict=False):
        content = (tmp_path / "chat" / part["image_url"]["url"]).read_bytes()
        assert content == Views(opened).png(case, view)
        assert (
            cv2.imdecode(np.frombuffer(content, np.uint8), 0) == conversation.pixels(case.images[0].key)
        ).all() == (view == "v1")
    assert len(list((tmp_path / "chat" / "images").rglob("*.png"))) == 3


def test_the_openai_layout_has_messages_with_parts(bench, tmp_path):
    exported(bench, tmp_path / "chat", pictures="none", system="You read images.")
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    assert set(line) == {"id", "messages"}
    assert line["messages"][:4] == [
        {"role": "system", "content": "You read images."},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": conversation.FRONTAL}},
                {"type": "image_url", "image_url": {"url": conversation.LATERAL}},
                {"type": "text", "text": "These are the current images. Which projections are they?"},
            ],
        },
        {"role": "assistant", "content": "A frontal and a lateral view."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Is there a pleural effusion? Answer with yes or no only."}],
        },
    ]
    assert not (tmp_path / "chat" / "images").exists()


def test_the_openai_layout_may_embed_pictures(bench, tmp_path):
    exported(bench, tmp_path / "chat", pictures="embed")
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    head, _, data = line["messages"][0]["content"][0]["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    decoded = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), 0)
    assert (decoded == conversation.pixels(conversation.FRONTAL)).all()
    assert not (tmp_path / "chat" / "images").exists()


def test_the_llava_layout_has_image_paths_and_placeholders(bench, tmp_path):
    exported(bench, tmp_path / "chat", layout="llava", pictures="none")
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    assert list(line) == ["id", "image", "conversations"]
    assert line["image"] == [conversation.FRONTAL, conversation.LATERAL, conversation.PRIOR]
    said = line["conversations"]
    assert said[0] == {
        "from": "human",
        "value": "<image>\n<image>\nThese are the current images. Which projections are they?",
    }
    assert said[1] == {"from": "gpt", "value": "A frontal and a lateral view."}
    assert [turn["value"].count("<image>") for turn in said] == [2, *[0] * 11, 1, *[0] * 5]


def test_the_swift_layout_has_the_fields_of_the_published_sample(bench, tmp_path):
    exported(bench, tmp_path / "chat", layout="swift", pictures="none", system="S")
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    assert line["images"] == [conversation.FRONTAL, conversation.LATERAL, conversation.PRIOR]
    assert line["messages"][0] == {"role": "system", "content": "S"}
    assert line["messages"][13] == {
        "role": "user",
        "content": "<image>\nThe earlier image is added for reference. What has changed?",
    }
    assert {
        name: line[name] for name in ("source", "pat_id", "study_id", "ref_study_id", "pos_study_id")
    } == {
        "source": "by hand",
        "pat_id": "p1",
        "study_id": "s1",
        "ref_study_id": "s0",
        "pos_study_id": "s9",
    }
    assert line["content"][3] == {
        "stage": 3,
        "task_type": "severity",
        "qtype": "choice",
        "image_input_count": 2,
        "num_of_images": 2,
        "target": "abnormality_[pleural effusion]",
        "target_kind": "finding",
        "option_list": ["small", "moderate", "large"],
        "answer_list": ["moderate"],
        "constraints": {},
    }
    assert line["content"][5]["bbox_list"] == [[31.25, 40.62, 80.36, 90.18]]
    assert line["content"][6]["image_input_count"] == 3


def test_the_staged_layout_has_facts_evidence_and_keys(bench, tmp_path):
    exported(bench, tmp_path / "chat", layout="staged")
    (line,) = lines(tmp_path / "chat" / "train-00000.jsonl")
    assert line["schema"] == "staged-cxr/1"
    assert line["id"] == "by hand:p1:s1:s0"
    assert line["images"][1] == {
        "key": conversation.LATERAL,
        "role": "current",
        "ordinal": 2,
        "view": "LL",
        "width": 40,
        "height": 48,
        "sha256": None,
    }
    assert line["context"] == {"indication": "Cough.", "age": 61, "sex": "F"}
    turns = line["turns"]
    assert [turn["tid"] for turn in turns] == list(range(1, 10))
    assert [turn["shows_images"] for turn in turns] == [[1, 2], [], [], [], [], [], [3], [], []]
    assert turns[1]["answer"]["label"] == "yes"
    assert turns[1]["slots"] == {"finding": "pleural effusion"}
    assert turns[1]["evidence"] == [{"report": "current", "sentence": 1}]
    assert turns[4]["options"] == [
        {"id": "A", "text": "right lung", "correct": True},
        {"id": "B", "text": "left lung", "correct": True},
        {"id": "C", "text": "apex", "correct": False},
    ]
    assert turns[5]["answer"]["boxes"] == [
        {
            "image": 1,
            "frame": "percent",
            "xyxy": [31.25, 40.62, 80.36, 90.18],
            "name": "heart",
            "of": "region",
        }
    ]
    assert (turns[6]["depends_on"], turns[6]["history_required"]) == ([2], True)
    assert turns[8]["answer"]["sections"] == {"findings": None, "impression": "Larger effusion."}
    assert turns[8]["constraints"] == {"max_words": 20, "min_words": None, "answer_only": False}


@pytest.mark.parametrize("layout", ["openai", "llava", "swift", "staged"])
def test_without_answers_no_part_of_a_key_is_written(bench, tmp_path, layout):
    exported(bench, tmp_path / "chat", layout=layout, answers="without", pictures="none")
    text = (tmp_path / "chat" / "train-00000.jsonl").read_text()
    for secret in (
        "A frontal and a lateral",
        "31.25",
        "has grown",
        "correct",
        "answer_list",
        '"label"',
        "gpt",
    ):
        assert secret not in text
    assert "Do you see a pacemaker?" in text
    assert '"depends_on":[2]' not in text


@pytest.mark.parametrize("layout", ["openai", "llava", "swift"])
def test_percept_cases_are_exported_too(tmp_path, layout):
    case = percept_cases.case("RR")
    percept_cases.write(tmp_path / "bench", [case])
    result = exported(tmp_path / "bench", tmp_path / "chat", layout=layout)
    shown = sum(len(step.shows) for step in case.steps)
    (line,) = lines(tmp_path / "chat" / "unsplit-00000.jsonl")
    text = json.dumps(line)
    assert (text.count("<image>") or text.count("image_url") // 2) == shown
    assert result.counts["questions"] == len(case.steps)
    exported(tmp_path / "bench", tmp_path / "keys", layout=layout, pictures="none")
    (line,) = lines(tmp_path / "keys" / "unsplit-00000.jsonl")
    assert '"x-1.png"' in json.dumps(line)
    assert f'"x-1.png#{case.steps[1].shows[0]}"' in json.dumps(line)


def test_the_staged_layout_refuses_views_with_overlays(tmp_path):
    percept_cases.write(tmp_path / "bench", [percept_cases.case("RR")])
    with pytest.raises(CarinaError, match=r"case '.+': view 'v2' .*staged-cxr/1"):
        exported(tmp_path / "bench", tmp_path / "chat", layout="staged")
    assert not (tmp_path / "chat").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layout": "staged", "pictures": "copy"}, "layout staged refers to images by key"),
        ({"layout": "llava", "pictures": "embed"}, "layout llava refers to pictures by path"),
        ({"layout": "llava", "system": "x"}, "layout llava has no system message"),
    ],
)
def test_options_that_a_layout_cannot_hold_are_refused(bench, tmp_path, options, sentence):
    with pytest.raises(CarinaError, match=sentence):
        exported(bench, tmp_path / "chat", **options)


def snapshot(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_same_bytes_for_any_number_of_workers(bench, tmp_path):
    exported(bench, tmp_path / "one")
    exported(bench, tmp_path / "two", workers=2)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_an_interrupted_export_resumes(bench, tmp_path, monkeypatch):
    exported(bench, tmp_path / "whole")
    asked = []
    real = Views.png

    def broken(self, case, view):
        asked.append(case.id)
        if case.id == "trek-s4" and asked.count("trek-s4") == 1:
            raise KeyboardInterrupt
        return real(self, case, view)

    monkeypatch.setattr(Views, "png", broken)
    with pytest.raises(KeyboardInterrupt):
        exported(bench, tmp_path / "chat")
    assert not (tmp_path / "chat").exists()
    asked_before = len(asked)
    exported(bench, tmp_path / "chat")
    assert "trek-s1" not in asked[asked_before:]
    assert snapshot(tmp_path / "chat") == snapshot(tmp_path / "whole")


def test_a_finished_export_is_kept_and_another_one_is_refused(bench, tmp_path):
    exported(bench, tmp_path / "chat")
    before = snapshot(tmp_path / "chat")
    exported(bench, tmp_path / "chat")
    assert snapshot(tmp_path / "chat") == before
    with pytest.raises(CarinaError, match="chat: "):
        exported(bench, tmp_path / "chat", layout="llava")
    assert snapshot(tmp_path / "chat") == before


def test_leftovers_of_a_killed_command_do_not_come_along(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(_folder, "_write_part", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        exported(bench, tmp_path / "chat")
    (tmp_path / ".chat.partial" / ".train-00000.jsonl.1.tmp").write_bytes(b"half")
    monkeypatch.undo()
    exported(bench, tmp_path / "chat")
    assert not list((tmp_path / "chat").rglob(".*"))


def test_a_missing_image_is_reported_and_nothing_is_left_half_written(bench, tmp_path):
    (tmp_path / "images" / conversation.PRIOR).unlink()
    with pytest.raises(CarinaError, match=r"image 'p1/s1/frontal.png'"):
        exported(bench, tmp_path / "chat")
    assert not (tmp_path / "chat").exists()


def test_no_path_of_this_machine_is_written(bench, tmp_path):
    exported(bench, tmp_path / "chat", layout="swift")
    for content in snapshot(tmp_path / "chat").values():
        assert str(tmp_path).encode() not in content


def test_a_case_of_no_image_has_no_field_for_them(tmp_path):
    case = conversation.case()
    bare = msgspec.structs.replace(
        case,
        images=(CaseImage(key="x.png", width=8, height=8),),
        views=(),
        steps=tuple(
            msgspec.structs.replace(step, shows=(), uses=(), key=msgspec.structs.replace(step.key, boxes=()))
            for step in case.steps[:3]
        ),
    )
    conversation.write(tmp_path / "bench", [bare])
    for layout, field in (("llava", "image"), ("swift", "images")):
        exported(tmp_path / "bench", tmp_path / layout, layout=layout)
        (line,) = lines(tmp_path / layout / "train-00000.jsonl")
        assert field not in line
