"""The blind models and the one that knows the key."""

from collections import Counter

import pytest
from tests.runs.conftest import CASES, revision_required, talk

from carina import models
from carina.cases import Option, Step
from carina.models import Reply
from carina.runs.builtin import NAMES
from carina.runs.builtin.majority import Majority
from carina.runs.builtin.oracle import Oracle
from carina.runs.builtin.random_answers import RandomAnswers
from carina.runs.records import Policy, Turn
from carina.runs.walk import Walk, without_key
from carina.store.errors import CarinaError


def no_images(case, view):
    raise AssertionError(f"looked at {view} of {case}")


def turn(case, step_id):
    return Turn(case=case.id, step=without_key(case.step(step_id)), system="", messages=())


def answer_text(model, case, step_id):
    return model.answer([turn(case, step_id)], no_images)[0].text


def test_the_oracle_is_always_right(bench):
    oracle = Oracle(bench)
    for case in CASES:
        walk = Walk(case, Policy())
        while walk.turn is not None:
            walk.take(oracle.answer([walk.turn], no_images)[0])
        for row in walk.rows():
            assert row.status == "ok"
            assert row.correct in (True, None)
            assert row.score == pytest.approx(1.0)
            assert row.obeyed in (True, None)


def test_random_answers_depend_on_the_seed_and_are_equally_likely():
    drawn = Counter()
    for number in range(4000):
        case = revision_required(f"c{number}")
        text = answer_text(RandomAnswers(1), case, "3a")
        assert text == answer_text(RandomAnswers(1), case, "3a")
        drawn[text] += 1
    # Three points: seven sets of them, or None alone; 500 of each are expected.
    assert len(drawn) == 8
    assert max(drawn.values()) < 590
    assert min(drawn.values()) > 410
    assert "Answer: 4" in drawn
    assert not any("4" in text and "," in text for text in drawn)


def test_random_answers_to_a_closed_set_of_many_options_are_drawn_without_listing_all_sets():
    options = (
        *(Option(id=str(n), text=f"finding {n}") for n in range(1, 61)),
        Option(id="61", text="none of these"),
    )
    step = Step(
        id="q1", stage=1, task="query", format="choice", question="Which?", options=options, multiple=True
    )
    asked = Turn(case="c1", step=step, system="", messages=())
    (reply,) = RandomAnswers(1).answer([asked], no_images)
    chosen = [int(number) for number in reply.text.removeprefix("Answer: ").split(", ")]
    assert 10 < len(chosen) < 50
    assert 61 not in chosen
    assert RandomAnswers(1).answer([asked], no_images) == [reply]


def test_random_answers_of_all_formats_can_be_parsed():
    case = talk()
    assert answer_text(RandomAnswers(0), case, "t2") in ("Yes.", "No.", "Uncertain.")
    assert answer_text(RandomAnswers(0), case, "t4").startswith("[")
    assert answer_text(RandomAnswers(0), case, "t5")


def test_majority_gives_the_most_frequent_answer_of_other_cases(bench):
    majority = Majority(bench)
    assert answer_text(majority, bench["rr"], "4a") == "Answer: 2"
    assert answer_text(majority, bench["rr"], "4b") == "Answer: 1, 2"
    assert answer_text(majority, bench["talk"], "t2") == "No."
    assert answer_text(majority, bench["talk"], "t4") == "heart: [25%, 50%, 75%, 75%]"
    assert answer_text(majority, bench["talk"], "t5") == "Mild pulmonary edema. No pneumothorax."


def test_majority_learns_no_case_from_its_own_key(tmp_path):
    from carina.cases import Provenance, open_benchmark, write_benchmark

    alone = talk("alone")
    write_benchmark(tmp_path / "bench", [alone], Provenance(command="test"))
    majority = Majority(open_benchmark(tmp_path / "bench"))
    assert answer_text(majority, alone, "t5") == "No acute cardiopulmonary abnormality."
    assert answer_text(majority, alone, "t4") == "[0%, 0%, 100%, 100%]"
    assert answer_text(majority, alone, "t3") == "Answer: 1"


def test_models_are_opened_by_name(bench):
    assert [models.open(name, benchmark=bench).name for name in NAMES] == list(NAMES)
    with pytest.raises(CarinaError, match=r"model 'builtin/nobody': unknown.*builtin/random"):
        models.open("builtin/nobody", benchmark=bench)


def test_the_oracle_replies_in_the_words_of_an_answer(bench):
    assert Oracle(bench).answer([turn(bench["lf"], "1")], no_images) == [Reply(text="Answer: 2", stop="stop")]
