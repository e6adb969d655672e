"""What is said in a conversation: placeholders as many as pictures, turn by turn, and answers in words."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.exports.chat import conversation
from tests.sources.chexpercept import percept_cases

from carina.cases import Box, Key, Option, Step, without_keys
from carina.cases.messages import answer, box_text, escape_media, inline, messages, view_ids
from carina.store.errors import BenchmarkError
from carina.studies.model import ReportSection


def test_a_conversation_becomes_messages_turn_by_turn():
    said = messages(conversation.case())
    assert [message.role for message in said] == ["user", "assistant"] * 9
    assert [message.step for message in said[::2]] == [f"t{n}" for n in range(1, 10)]
    assert {message.step: message.shows for message in said if message.shows} == {
        "t1": ("v1", "v2"),
        "t7": ("v3",),
    }
    assert [message.text for message in said[1::2]] == [
        "A frontal and a lateral view.",
        "Yes",
        "No, there is no pacemaker.",
        "B. moderate",
        "A. right lung and B. left lung",
        f"It is here: {conversation.BOX}",
        "The effusion has grown.",
        "It should clear.",
        "Larger effusion.",
    ]


def test_without_answers_messages_are_questions_alone():
    said = messages(without_keys(conversation.case()), answers=False)
    assert [message.role for message in said] == ["user"] * 9
    assert view_ids(said) == ["v1", "v2", "v3"]


@pytest.mark.parametrize("path", ["RR", "RF", "LF"])
def test_percept_cases_answer_by_their_options(path):
    case = percept_cases.case(path)
    said = messages(case)
    assert [message.step for message in said[::2]] == [step.id for step in case.steps]
    for step, message in zip(case.steps, said[1::2], strict=True):
        assert message.text == ", ".join(f"({n}) {step.options[n - 1].text}" for n in step.right)
        assert all(part in step.question for part in message.text.split(", ("))
    assert view_ids(said) == [view for step in case.steps for view in step.shows]


def step(**fields):
    return Step(**{"id": "t1", "stage": 1, "task": "x", "format": "open", "question": "Q?", **fields})


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which? (1) a (2) b", "(2) b"),
        ("Which? 1) a 2) b", "2) b"),
        ("Which? A. a; B. b", "B. b"),
        ("Which? 1. a; 2. b", "2. b"),
        ("Which, a or b?", "b"),
    ],
)
def test_options_are_labelled_as_the_question_labels_them(question, expected):
    options = (Option(id="A", text="a"), Option(id="B", text="b"))
    asked = step(format="choice", question=question, options=options, key=Key(options=("B",)))
    assert answer(conversation.case(), asked) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Key(label="uncertain"), "Uncertain."),
        (Key(label="no", text="No, none."), "No, none."),
        (Key(text=""), ""),
        (
            Key(
                sections=(
                    ReportSection(name="findings", text="Clear."),
                    ReportSection(name="impression", text="Normal."),
                )
            ),
            "Findings: Clear.\nImpression: Normal.",
        ),
        (
            Key(boxes=(Box(image="i", xyxy=(1, 2.5, 3, 4), name="heart"), Box(image="i", xyxy=(0, 0, 1, 1)))),
            "heart: [1, 2.5, 3, 4]\n[0, 0, 1, 1]",
        ),
    ],
)
def test_answers_are_made_from_the_key(key, expected):
    assert answer(conversation.case(), step(key=key)) == expected


def test_regions_are_answered_by_their_bounding_boxes():
    case = percept_cases.case("RR")
    x, y, width, height = case.regions[0].region.bbox
    told = answer(case, step(format="map", key=Key(regions=(case.regions[0].name,))))
    assert told == f"[{x}, {y}, {x + width}, {y + height}]"


def test_a_key_that_says_nothing_is_an_error():
    with pytest.raises(BenchmarkError, match="case 'trek-s1', step 't1'"):
        answer(conversation.case(), step())


def test_boxes_in_percent_are_labelled_as_percent():
    box = Box(image="i", xyxy=(31.25, 40, 80.123456, 90), frame="percent", name="heart")
    assert box_text(box) == "heart: [31.25%, 40%, 80.1235%, 90%]"


def test_context_comes_before_the_question():
    case = conversation.case()
    first = msgspec.structs.replace(case.steps[0], context="Cough.", question="What is it?")
    said = messages(msgspec.structs.replace(case, steps=(first,)))
    assert inline(said[0]) == "<image>\n<image>\nCough.\nWhat is it?"


def test_words_that_look_like_placeholders_are_not():
    assert escape_media("an <image>, an <IMAGE>, <video> and <audio>, <box>") == (
        "an [image], an [IMAGE], [video] and [audio], <box>"
    )


texts = st.text(st.sampled_from("<image> /\nx"), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(texts, texts, st.integers(0, 2)), min_size=1, max_size=5))
def test_at_every_prefix_placeholders_are_as_many_as_pictures(turns):
    made, entered = [], 0
    for n, (question, text, pictures) in enumerate(turns):
        shows = tuple(f"v{entered + k}" for k in range(pictures))
        entered += pictures
        made.append(step(id=f"t{n}", question=question, shows=shows, key=Key(text=text)))
    said = messages(msgspec.structs.replace(conversation.case(), steps=tuple(made)))
    for end in range(1, len(said) + 1):
        prefix = said[:end]
        assert sum(inline(message).count("<image>") for message in prefix) == len(view_ids(prefix))
