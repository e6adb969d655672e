"""The reader that believes what was said before: what it takes from a conversation, and what comes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.builtin.chests import RIGHT, chest, disc, make_options, png, step, tint_mask, with_disc

from carina.cases import open_benchmark
from carina.cases.messages import Message
from carina.percept import build_percept
from carina.phantom import PhantomOptions
from carina.phantom.make import write_phantom
from carina.runs import Policy, open_run
from carina.runs.builtin.reader import AnchoredReader, Reader
from carina.runs.builtin.reader.settled_answers import SettledAnswers, read_settled_answers
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.runs.prompts import split_hints, write_hint
from carina.runs.records import Turn
from carina.studies import open_studies

DETECTION = "Is edema visible on this chest X-ray?\nOptions:\n(1) No\n(2) Yes"
EVALUATION = "Does the contour need a major revision?\nOptions:\n(1) Yes\n(2) No"
POINTS = "Options:\n(1) red point\n(2) blue point\n(3) green point\n(4) None"
EXPANSION = f"Towards which points must the contour be expanded?\n{POINTS}"
CONTRACTION = f"At which points must the contour be contracted?\n{POINTS}"
REVISION = "Which of these masks is the contour?\nOptions:\n(1) 1st mask\n(2) 2nd mask"


def conversation(*said, last="What now?"):
    """Messages from questions with their answers, and views that enter with a question in third place."""
    found = []
    for question, answer, *shows in said:
        found.append(Message(role="user", step="?", text=question, shows=tuple(shows)))
        found.append(Message(role="assistant", step="?", text=answer))
    return (*found, Message(role="user", step="?", text=last))


# ---- what a conversation says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ([], SettledAnswers()),
        ([(DETECTION, "Answer: 2")], SettledAnswers(has_lesion=True)),
        ([(DETECTION, "I see nothing.\nAnswer: 1")], SettledAnswers(has_lesion=False)),
        ([(DETECTION, "(no answer)")], SettledAnswers()),
        (
            [(DETECTION, "Answer: 2"), (EVALUATION, "Answer: 2")],
            SettledAnswers(has_lesion=True, needs_revision=False),
        ),
        ([(EXPANSION, "Answer: 1, 3")], SettledAnswers(expand=frozenset({"red point", "green point"}))),
        ([(CONTRACTION, "Answer: 4")], SettledAnswers(contract=frozenset())),
        ([(REVISION, "Answer: 2", "v4", "v5")], SettledAnswers(mask="v5")),
        ([(REVISION, "Answer: 2")], SettledAnswers()),
        ([("How many zones?\nOptions:\n(1) 1 zone\n(2) 2 zones", "Answer: 2")], SettledAnswers()),
        ([("Tell me more.", "There is edema.")], SettledAnswers()),
    ],
)
def test_settled_answers_are_read_from_the_messages(said, found):
    assert read_settled_answers(conversation(*said)) == found


def test_a_hint_replaces_the_answer_that_it_corrects():
    told = write_hint(EXPANSION, "(2) blue point, (3) green point")
    again = write_hint(REVISION, "(1) 1st mask")
    messages = conversation(
        (EXPANSION, "Answer: 1"),
        (f"{told}\n{CONTRACTION}", "Answer: 4"),
        (REVISION, "Answer: 2", "v4", "v5"),
        last=f"{again}\nIn how many zones?",
    )
    assert read_settled_answers(messages) == SettledAnswers(
        expand=frozenset({"blue point", "green point"}), contract=frozenset(), mask="v4"
    )


WORDS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="“”"), min_size=1
)


@given(told=st.lists(st.tuples(WORDS, WORDS), max_size=3), question=WORDS)
def test_hints_are_parsed_back_as_they_were_written(told, question):
    text = "\n".join([*(write_hint(*one) for one in told), question])
    rest, found = split_hints(text)
    assert rest == question
    ends = (".", "!", "?")
    assert found == tuple((asked, said if said.endswith(ends) else f"{said}.") for asked, said in told)


# ---- what it makes of it --------------------------------------------------------------------------------------------

SICK = with_disc(chest(), RIGHT, 24, 140)
IMAGES = {
    "v1": png(SICK),
    "v2": png(tint_mask(SICK, disc(RIGHT, 24))),
    "m1": png(tint_mask(SICK, disc(RIGHT, 24))),
    "m2": png(tint_mask(SICK, disc(RIGHT, 12))),
    "m3": png(tint_mask(SICK, disc(RIGHT, 34))),
}
MASKS = make_options("1st mask", "2nd mask", "3rd mask", views=["m1", "m2", "m3"])


def answer_text(model, asked, *said):
    views = [message.shows for message in conversation(*said)]
    shows = tuple(view for view in IMAGES if view not in {one for shown in views for one in shown})
    messages = conversation(*said, last=asked.question)
    last = Message(role="user", step="s", text=asked.question, shows=shows)
    turn = Turn(case="c", step=asked, system="", messages=(*messages[:-1], last))
    [reply] = model.answer([turn], lambda _case, view: IMAGES[view])
    return reply.text


CONTOUR = step("contour evaluation", "choice", "Does the contour of the consolidation need a major revision?",
               make_options("Yes", "No"), stage=2, uses=("v1", "v2"))  # fmt: skip
REVISED = step("revision", "choice", "Which of these masks is the contour of the consolidation?", MASKS,
               uses=("v1", "m1", "m2", "m3"))  # fmt: skip
WHERE = step("location", "choice", "Which of these regions hold the consolidation?", stage=4, multiple=True,
             options=make_options("lateral half of the right mid zone", "lateral half of the left upper zone",
                             "None of the above (options 1-2)"))  # fmt: skip
SEEN = (DETECTION.replace("edema", "consolidation"), "Answer: 2", "v1")
MISSED = (DETECTION.replace("edema", "consolidation"), "Answer: 1", "v1")
GOOD, BAD = (EVALUATION, "Answer: 2", "v2"), (EVALUATION, "Answer: 1", "v2")


def test_without_earlier_turns_it_answers_as_the_reader():
    for asked in (CONTOUR, REVISED, WHERE):
        assert answer_text(AnchoredReader(), asked) == answer_text(Reader(), asked)


def test_after_a_missed_lesion_every_contour_is_too_large():
    assert (
        answer_text(AnchoredReader(), CONTOUR, SEEN) == answer_text(Reader(), CONTOUR, MISSED) == "Answer: 2"
    )
    assert answer_text(AnchoredReader(), CONTOUR, MISSED) == "Answer: 1"
    assert answer_text(AnchoredReader(), REVISED, MISSED, BAD) == "Answer: 2", "the smallest"
    assert answer_text(AnchoredReader(), WHERE, MISSED) == "Answer: 3", "nowhere"


def test_a_contour_that_was_accepted_is_not_changed():
    assert answer_text(AnchoredReader(), REVISED, SEEN, GOOD) == "Answer: 1"
    none = step("expansion", "choice", EXPANSION, make_options("red point", "None"), multiple=True)
    assert answer_text(AnchoredReader(), none, SEEN, GOOD) == "Answer: 2"


def test_attributes_are_those_of_the_mask_that_was_chosen():
    chosen = (REVISION, "Answer: 2", "v1", "m4")
    other = {**IMAGES, "m4": png(tint_mask(SICK, disc((196, 70), 24)))}
    messages = conversation(SEEN, BAD, chosen, last=WHERE.question)
    turn = Turn(case="c", step=WHERE, system="", messages=messages)
    replies = [
        model.answer([turn], lambda _case, view: other[view])[0].text
        for model in (AnchoredReader(), Reader())
    ]
    assert replies[0] == "Answer: 2", "where the mask lies"
    assert replies[1] == "Answer: 1", "where the lesion lies"


# ---- on phantoms ----------------------------------------------------------------------------------------------------


OPTIONS = {"per_cell": 2, "targets": ("edema", "pneumonia", "effusion"), "workers": 1}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A small benchmark under every history, by the anchored reader."""
    folder = tmp_path_factory.mktemp("anchored")
    write_phantom(folder / "studies", n=60, seed=2, options=PhantomOptions(size=256), workers=1)
    build_percept(open_studies(folder / "studies"), folder / "bench", **OPTIONS)
    found = {}
    for history in ("own", "gold", "hint"):
        options = RunOptions(policy=Policy(history=history))
        run_model(folder / "bench", "builtin/anchored", folder / history, options)
        found[history] = {(row.case, row.number): row for row in open_run(folder / history).rows()}
    return open_benchmark(folder / "bench"), found


def test_right_earlier_answers_give_more_right_answers(runs):
    _, found = runs
    right = {history: sum(bool(row.correct) for row in rows.values()) for history, rows in found.items()}
    assert right["gold"] > right["own"]
    # Whether the truth stands in the place of an answer or is told, it is believed.
    assert [row.answer for row in found["hint"].values()] == [row.answer for row in found["gold"].values()]


def test_histories_differ_only_after_a_wrong_answer(runs):
    bench, found = runs
    apart = 0
    for case in bench:
        wrong = False
        for number in range(len(case.steps)):
            own, gold = (found[history][case.id, number] for history in ("own", "gold"))
            if not wrong:
                assert own.answer == gold.answer
            apart += own.answer != gold.answer
            wrong = wrong or not own.correct
    assert apart > 0
