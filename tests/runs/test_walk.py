"""The walk through a case: what is sent, what later turns show, and where it ends; for any answers."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.conftest import lesion_free, revision_required, talk

from carina.cases.messages import answer
from carina.models.served import Reply
from carina.runs.parse import parse
from carina.runs.prompts import NO_ANSWER, write_key_as_answer
from carina.runs.records import Policy
from carina.runs.walk import LONGEST_IN_HISTORY, LONGEST_KEPT, Walk

RR, LF, TALK = revision_required(), lesion_free(), talk()
HISTORIES = ("own", "gold", "hint", "none")


def reply(text):
    return Reply(text=text, stop="stop")


def walked(case, policy, answers):
    """The walk to its end, with the turns that it handed out; `answers` by step, the key where none is given."""
    walk, turns = Walk(case, policy), []
    while (turn := walk.turn) is not None:
        turns.append(turn)
        step = case.step(turn.step.id)
        walk.take(answers.get(step.id) or reply(write_key_as_answer(case, step)))
    return walk, turns


def wrong(case, step_id):
    step = case.step(step_id)
    other = next(n for n, option in enumerate(step.options, start=1) if option.id not in step.key.options)
    return reply(f"Answer: {other}")


texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["Answer: 1", "Answer: 2", "Answer: 1, 3", "Yes.", "No.", "I cannot look at images.", "[1,2,3,4]", ""]
    ),
)
replies = st.one_of(texts.map(reply), st.just(Reply(text=None, error="HTTP 500: down")))
policies = st.builds(
    Policy,
    history=st.sampled_from(HISTORIES),
    scope=st.sampled_from(("step", "stage")),
    on_wrong=st.sampled_from(("continue", "stop")),
    profile=st.sampled_from(("carina", "chexpercept")),
)


@given(st.sampled_from([RR, LF, TALK]), policies, st.lists(replies, min_size=9, max_size=9))
def test_whatever_the_answers_every_case_ends_and_no_step_is_asked_twice(case, policy, given_replies):
    walk, asked = Walk(case, policy), []
    for one in given_replies:
        if walk.turn is None:
            break
        asked.append(walk.turn.step.id)
        walk.take(one)
    assert walk.over
    assert len(asked) == len(set(asked))
    assert asked == [step.id for step in case.steps][: len(asked)]
    rows = list(walk.rows())
    assert [row.step for row in rows] == [step.id for step in case.steps]
    for row in rows:
        if row.state == "answered":
            assert row.status is not None
            assert row.score is not None
        if row.raw is None:
            assert row.correct is None
            assert row.score is None
    # A failure on the way is never an answer, and no answer is a failure.
    failed = [one.text is None for one in given_replies[: len(asked)]]
    assert [row.error is not None for row in rows[: len(asked)]] == failed


@given(st.sampled_from([RR, TALK]), st.sampled_from(("own", "none")), st.lists(texts, min_size=9, max_size=9))
def test_no_answer_key_is_shown_before_its_step(case, history, given_texts):
    walk = Walk(case, Policy(history=history))
    said_by_model: list[str] = []
    for text in given_texts:
        turn = walk.turn
        if turn is None:
            break
        sent = msgspec.json.encode(turn).decode()
        assert "secret" not in sent
        assert turn.step.key == msgspec.structs.replace(
            turn.step.key, options=(), text=None, label=None, boxes=()
        )
        shown = [message.text for message in turn.messages if message.role == "assistant"]
        assert len(shown) == (0 if history == "none" else len(said_by_model))
        for words, own in zip(shown, said_by_model, strict=False):
            assert words == NO_ANSWER or words in own
        questions = [message.text for message in turn.messages if message.role == "user"]
        assert questions[-1] == walk.case.step(turn.step.id).question
        walk.take(reply(text))
        said_by_model.append(text)


@given(st.sampled_from([RR, TALK]), st.lists(texts, min_size=9, max_size=9))
def test_under_gold_the_history_is_the_key(case, given_texts):
    walk = Walk(case, Policy(history="gold"))
    for text in given_texts:
        turn = walk.turn
        if turn is None:
            break
        for message in turn.messages:
            if message.role == "assistant":
                step = case.step(message.step)
                found = parse(step, message.text, images={image.key: (32, 32) for image in case.images})
                if step.format in ("choice", "yes_no"):
                    assert (found.options, found.label) == (step.key.options, step.key.label)
                else:
                    assert message.text == answer(case, step)
        walk.take(reply(text))


def test_an_image_is_shown_once_with_the_first_step_that_needs_it():
    _, turns = walked(RR, Policy(), {})
    assert [turn.messages[-1].shows for turn in turns] == [("v1",), ("v2",), ("v3",), (), (), (), ()]
    _, alone = walked(RR, Policy(history="none"), {})
    assert [turn.messages[-1].shows for turn in alone] == [
        ("v1",), ("v1", "v2"), ("v1", "v3"), ("v1", "v3"), ("v1",), ("v1",), ("v1",)
    ]  # fmt: skip
    assert all(len(turn.messages) == 1 for turn in alone)


def test_later_turns_repeat_the_earlier_messages_unchanged():
    _, turns = walked(RR, Policy(), {"2": wrong(RR, "2")})
    for before, after in pairwise(turns):
        assert after.messages[: len(before.messages)] == before.messages


@pytest.mark.parametrize(
    ("scope", "mended"),
    [
        ("step", {"2": ["1"], "3a": ["1", "2"], "3b": ["1", "2", "3a"], "3c": ["1", "2", "3a", "3b"]}),
        ("stage", {"2": ["1"], "3a": ["1", "2"], "3b": ["1", "2"], "3c": ["1", "2", "3a", "3b"]}),
    ],
)
def test_gold_corrects_before_every_step_or_at_the_correction_points(scope, mended):
    answers = {step.id: wrong(RR, step.id) for step in RR.steps}
    _, turns = walked(RR, Policy(history="gold", scope=scope), answers)
    for turn in turns[1:]:
        replaced = [
            message.step
            for message in turn.messages
            if message.role == "assistant" and message.text != answers[message.step].text
        ]
        if turn.step.id in mended:
            assert replaced == mended[turn.step.id]
    last = [message.text for message in turns[-1].messages if message.role == "assistant"]
    assert last[-1] == ("Answer: 2" if scope == "step" else answers["4a"].text)


def test_a_hint_states_the_truth_once_and_keeps_the_answer():
    walk, turns = walked(RR, Policy(history="hint"), {"1": wrong(RR, "1")})
    assert "the right answer to the question “Question 1?" in turns[1].messages[-1].text
    assert "(1) Yes." in turns[1].messages[-1].text
    assert turns[1].messages[1].text == "Answer: 2"
    assert turns[2].messages[-1].text == RR.step("3a").question
    rows = list(walk.rows())
    assert rows[1].hint is not None
    assert rows[2].hint is None


def test_nothing_is_corrected_while_all_answers_are_right():
    _, own = walked(RR, Policy(), {})
    for history in ("gold", "hint"):
        _, corrected = walked(RR, Policy(history=history), {})
        assert [turn.messages for turn in corrected] == [turn.messages for turn in own]


def test_on_wrong_stop_ends_after_the_first_wrong_stage():
    walk, turns = walked(RR, Policy(on_wrong="stop"), {"3a": wrong(RR, "3a")})
    assert [turn.step.id for turn in turns] == ["1", "2", "3a", "3b", "3c"]
    assert [row.state for row in walk.rows()] == ["answered"] * 5 + ["not_reached"] * 2
    assert walk.complete


def test_a_transport_error_ends_the_case_and_is_not_scored():
    walk, turns = walked(RR, Policy(), {"2": Reply(text=None, error="HTTP 500: down")})
    assert [turn.step.id for turn in turns] == ["1", "2"]
    rows = list(walk.rows())
    assert [row.state for row in rows] == ["answered"] + ["incomplete"] * 6
    assert rows[1].error == "HTTP 500: down"
    assert all(row.correct is None and row.score is None for row in rows[1:])
    assert not walk.complete


def test_without_a_history_a_failure_concerns_one_step():
    walk, turns = walked(RR, Policy(history="none"), {"2": Reply(text=None, error="gone")})
    assert len(turns) == 7
    assert [row.state for row in walk.rows()].count("incomplete") == 1


def test_replaying_a_case_gives_the_same_rows():
    answers = {"2": wrong(RR, "2"), "3c": reply("I can't tell.")}
    walk, turns = walked(RR, Policy(history="hint"), answers)
    again = Walk(RR, Policy(history="hint"))
    for row in list(walk.rows())[:4]:
        again.replay(row, row.raw)
    assert again.turn == turns[4]
    while again.turn is not None:
        step = RR.step(again.turn.step.id)
        again.take(answers.get(step.id) or reply(write_key_as_answer(RR, step)))
    assert list(again.rows()) == list(walk.rows())


def test_huge_answers_are_shortened_in_the_table_and_the_history():
    huge = "x " * 1_000_000 + "\nAnswer: 1"
    walk, turns = walked(RR, Policy(), {"1": reply(huge)})
    row = next(walk.rows())
    assert row.correct is True
    assert len(row.raw) < LONGEST_KEPT + 100
    assert "characters left out" in row.raw
    assert len(turns[1].messages[1].text) <= LONGEST_IN_HISTORY
    assert turns[1].messages[1].text.endswith("Answer: 1")


def test_reasoning_and_image_tokens_are_removed_from_the_history():
    _, turns = walked(RR, Policy(), {"1": reply("<think>Maybe 2.</think><image> Answer: 1")})
    assert turns[1].messages[1].text == "[image] Answer: 1"


def test_a_finished_walk_takes_no_answer():
    walk, _ = walked(LF, Policy(), {})
    with pytest.raises(ValueError, match="is over"):
        walk.take(reply("Answer: 1"))


def test_a_wrong_answer_records_the_kind_of_the_chosen_option():
    walk, _ = walked(RR, Policy(), {"3c": reply("Answer: 4")})
    row = next(row for row in walk.rows() if row.step == "3c")
    assert (row.correct, row.answer, row.kinds) == (False, ("m4",), ("wrong",))


def test_a_box_lies_on_the_image_that_the_step_is_about():
    frontal, lateral = TALK.images[0], msgspec.structs.replace(TALK.images[0], key="side.png", view="lateral")
    view = msgspec.structs.replace(
        TALK.views[0], id="v2", panels=(msgspec.structs.replace(TALK.views[0].panels[0], image="side.png"),)
    )
    asked = msgspec.structs.replace(
        TALK.step("t4"),
        uses=("v2",),
        depends_on=(),
        key=msgspec.structs.replace(
            TALK.step("t4").key,
            boxes=(msgspec.structs.replace(TALK.step("t4").key.boxes[0], image="side.png"),),
        ),
    )
    case = msgspec.structs.replace(TALK, images=(frontal, lateral), views=(*TALK.views, view), steps=(asked,))
    walk, _ = walked(case, Policy(), {})
    row = next(walk.rows())
    assert (row.correct, row.iou) == (True, pytest.approx(1.0))
    assert row.boxes[0].image == "side.png"


def test_without_a_history_only_failed_steps_are_asked_again():
    policy = Policy(history="none")
    walk, _ = walked(RR, policy, {"2": Reply(text=None, error="gone")})
    again = Walk(RR, policy)
    for row in walk.rows():
        if row.state == "answered":
            again.replay(row, row.raw)
    assert again.turn.step.id == "2"
    again.take(reply("Answer: 2"))
    assert again.over
    assert [row.step for row in again.rows()] == [step.id for step in RR.steps]


def test_gold_keeps_right_free_text():
    _, turns = walked(TALK, Policy(history="gold"), {"t1": reply("PA view"), "t2": reply("No.")})
    assert [message.text for message in turns[2].messages if message.role == "assistant"] == [
        "PA view",
        "No.",
    ]


def test_a_lone_surrogate_can_be_stored():
    walk, _ = walked(RR, Policy(), {"1": reply("Answer: 1 \ud83d")})
    row = next(walk.rows())
    assert row.correct is True
    assert msgspec.json.encode(row)


def test_without_a_history_the_images_of_two_studies_are_described():
    now, before = TALK.images[0], msgspec.structs.replace(TALK.images[0], key="before.png", role="reference")
    view = msgspec.structs.replace(
        TALK.views[0], id="v2", panels=(msgspec.structs.replace(TALK.views[0].panels[0], image="before.png"),)
    )
    compared = msgspec.structs.replace(TALK.step("t5"), shows=("v2",), uses=("v1", "v2"))
    case = msgspec.structs.replace(
        TALK, images=(now, before), views=(*TALK.views, view), steps=(TALK.steps[0], compared)
    )
    _, alone = walked(case, Policy(history="none"), {})
    assert alone[1].messages[0].shows == ("v1", "v2")
    assert alone[1].messages[0].text == (
        "The first image is of the current study, the other one of the reference study.\nWrite the impression."
    )
    _, own = walked(case, Policy(), {})
    assert own[1].messages[-1].text == "Write the impression."
