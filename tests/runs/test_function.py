"""Python functions as models: what they get, what they may return, and how a run with one resumes."""

import asyncio
import sys

import numpy as np
import pytest
from tests.runs.conftest import CASES, SIZE

import carina
from carina.runs import open_run
from carina.store.errors import CarinaError

STEPS = sum(len(case.steps) for case in CASES)


class Recorder:
    """A function that remembers what it was asked, and fails at some of the questions."""

    def __init__(self, fails=(), answer="Answer: 1"):
        self.asked, self.fails, self.answer = [], fails, answer

    def reply(self, messages):
        question = messages[-1].text
        self.asked.append(question)
        if any(part in question for part in self.fails):
            raise TimeoutError("no connection\nsecond line")
        return self.answer


def test_a_function_gets_the_conversation_with_its_images_in_order(bench, tmp_path):
    seen = []

    def first_option(messages):
        seen.append(messages)
        return "Answer: 1"

    run = carina.run(bench, first_option, tmp_path / "run")
    assert run.counts.answered == STEPS
    (last,) = [
        one for one in seen if one[-1].text.startswith("Question 4b?") and one[1].images[0][0, 0, 0] == 20
    ]
    assert [one.role for one in last] == ["system", *["user", "assistant"] * 6, "user"]
    assert last[0].text == run.info.system["percept"]
    assert {one.text for one in last if one.role == "assistant"} == {"Answer: 1"}
    assert [len(one.images) for one in last if one.role == "user"] == [1, 1, 1, 0, 0, 0, 0]
    image = last[1].images[0]
    assert (image.dtype, image.shape) == (np.uint8, (SIZE, SIZE, 3))
    assert (image == 20).all()  # the image of the second case, as the fixture paints it
    image[:] = 0  # the function may change its copy


def test_the_run_records_the_qualified_name_or_the_label(bench, tmp_path):
    recorder = Recorder()
    assert carina.run(bench, recorder.reply, tmp_path / "own", limit=1).info.model == "Recorder.reply"
    labelled = carina.run(bench, lambda _messages: "yes", tmp_path / "label", label="my method", limit=1)
    assert labelled.info.model == "my method"
    assert set(labelled.to_frame()["model"]) == {"my method"}


@pytest.mark.parametrize(
    ("model", "label", "message"),
    [
        (lambda _messages: "yes", None, "has no name of its own; give it one with label="),
        (len, "openai/gpt-5", "without '/' and ':'"),
        (len, " ", "without '/' and ':'"),
        ("builtin/oracle", "mine", "has a name of its own; leave it out"),
        (7, None, "expected the name of a model or a function, found 7"),
    ],
)
def test_what_is_no_model_or_no_name_is_refused(bench, tmp_path, model, label, message):
    with pytest.raises(CarinaError, match=message):
        carina.run(bench, model, tmp_path / "run", label=label)
    assert not (tmp_path / "run").exists()


def test_a_failed_turn_has_its_reason_and_resuming_asks_nothing_else(bench, tmp_path):
    first = Recorder(fails=["Question 3a"])
    run = carina.run(bench, first.reply, tmp_path / "run")
    assert {failure.reason for failure in run.failures} == {"TimeoutError: no connection"}
    assert len(run.failures) == 4  # the four cases that require a revision
    second = Recorder()
    finished = carina.run(bench, second.reply, tmp_path / "run")
    assert finished.failures == ()
    # Of each of these cases the question that failed, and the four behind it.
    assert len(second.asked) == 4 * 5
    third = Recorder()
    carina.run(bench, third.reply, tmp_path / "run")
    assert third.asked == []


def test_a_function_of_another_name_is_refused_in_the_same_directory(bench, tmp_path):
    def one(_messages):
        return "Answer: 1"

    def other(_messages):
        return "Answer: 1"

    carina.run(bench, one, tmp_path / "run", limit=1)
    with pytest.raises(CarinaError, match=r"holds another run \(model one, not other\)"):
        carina.run(bench, other, tmp_path / "run", limit=1)


@pytest.mark.parametrize("limit", [1, None])
def test_where_every_turn_fails_the_run_ends_with_the_reason(bench, tmp_path, limit):
    broken = Recorder(fails=[""])
    with pytest.raises(CarinaError, match=r"all .* turns failed, the last with TimeoutError") as caught:
        carina.run(bench, broken.reply, tmp_path / "run", limit=limit)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert len(broken.asked) <= 20
    assert carina.run(bench, Recorder().reply, tmp_path / "run", limit=limit).failures == ()


def test_a_last_case_that_fails_on_resume_is_still_only_listed(bench, tmp_path):
    for _ in range(2):
        run = carina.run(bench, Recorder(fails=["Question 4b"]).reply, tmp_path / "run", limit=2)
        assert [failure.case for failure in run.failures] == ["rr"]


@pytest.mark.parametrize(
    ("result", "found"), [(None, "found None"), (3, "found int 3"), (["yes"], "found list")]
)
def test_a_result_that_is_no_text_ends_the_run_and_keeps_earlier_answers(bench, tmp_path, result, found):
    def answer(messages):
        return "Answer: 1" if messages[-1].text.startswith("Question 1?") else result

    with pytest.raises(CarinaError, match=rf"expected text \(str\) as the answer, {found}"):
        carina.run(bench, answer, tmp_path / "run", limit=2)
    recorder = Recorder()
    answer_all = carina.run(
        bench, recorder.reply, tmp_path / "run", limit=2, label=open_run(tmp_path / "run").info.model
    )
    assert answer_all.failures == ()
    assert not any(question.startswith("Question 1?") for question in recorder.asked)


def test_a_batched_function_gets_so_many_conversations_at_a_time(bench, tmp_path):
    sizes = []

    def answer_all(conversations):
        sizes.append(len(conversations))
        return [f"Answer: {1 + len(one) % 2}" for one in conversations]

    run = carina.run(bench, carina.batched(answer_all, size=5), tmp_path / "run")
    assert run.info.model == "answer_all"
    assert sum(sizes) == STEPS
    assert max(sizes) == 5


def test_an_error_in_a_batch_concerns_the_turn_that_raises_it_alone(bench, tmp_path):
    recorder = Recorder(fails=["Question 2?"])

    def answer_all(conversations):
        return [recorder.reply(one) for one in conversations]

    run = carina.run(bench, carina.batched(answer_all, size=4), tmp_path / "run")
    assert sorted(failure.case for failure in run.failures) == ["rr", "rr-0", "rr-1", "rr-2"]
    assert run.counts.answered == STEPS - 4 * 6


@pytest.mark.parametrize(
    ("result", "message"),
    [([], "expected 4 answers, one per conversation, found 0"), ("yes", "expected a list of 4 answers, found str"),
     (None, "expected a list of 4 answers, found None"), ([1] * 4, r"expected text \(str\)")],
)  # fmt: skip
def test_a_batch_of_another_form_ends_the_run(bench, tmp_path, result, message):
    def answer_all(_conversations):
        return result

    with pytest.raises(CarinaError, match=message):
        carina.run(bench, carina.batched(answer_all, size=4), tmp_path / "run")


async def _answer(_messages):
    return "Answer: 1"


@pytest.mark.parametrize(
    ("function", "size", "message"),
    [
        (_answer, 4, "_answer is async"),
        (len, 0, "at least 1, found 0"),
        (7, 4, "expected a function, found 7"),
    ],
)
def test_what_cannot_be_batched_is_refused(function, size, message):
    with pytest.raises(CarinaError, match=message):
        carina.batched(function, size=size)


def test_an_async_function_is_called_so_many_times_at_once(bench, tmp_path):
    running, most = 0, 0

    async def answer(_messages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        # Until all of them are here: one at a time would wait forever.
        while most < 3:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        return "Answer: 1"

    run = carina.run(bench, answer, tmp_path / "run", connections=3)
    assert (run.counts.answered, most) == (STEPS, 3)


def test_sync_batched_and_async_functions_give_the_same_table(bench, tmp_path):
    def answer(messages):
        return f"Answer: {1 + (sum(one.images[0].sum() for one in messages if one.images) // SIZE) % 3}"

    async def answer_async(messages):
        return answer(messages)

    def answer_all(conversations):
        return list(map(answer, conversations))

    forms = {"plain": answer, "async": answer_async, "batched": carina.batched(answer_all, size=3)}
    frames = [
        carina.run(bench, form, tmp_path / name, label="same").to_frame().drop("seconds")
        for name, form in forms.items()
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_async_failures_are_listed_and_where_all_fail_the_run_ends(bench, tmp_path):
    recorder = Recorder(fails=["Question 3a"])

    async def answer(messages):
        return recorder.reply(messages)

    async def broken(_messages):
        raise ValueError("no key")

    async def silent(_messages):
        return None

    assert len(carina.run(bench, answer, tmp_path / "some").failures) == 4
    with pytest.raises(CarinaError, match="turns failed, the last with ValueError: no key"):
        carina.run(bench, broken, tmp_path / "all")
    with pytest.raises(CarinaError, match="found None; return ''"):
        carina.run(bench, silent, tmp_path / "none")


def test_an_interrupt_in_a_function_keeps_its_answers(bench, tmp_path):
    left = 5

    def answer(_messages):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return "Answer: 1"

    with pytest.raises(KeyboardInterrupt):
        carina.run(bench, answer, tmp_path / "run")
    left = STEPS - 5
    assert carina.run(bench, answer, tmp_path / "run").counts.answered == STEPS
    assert left == 0


def test_a_function_runs_in_one_process(bench, tmp_path):
    for options in ({"processes": 2}, {"engine": "ray"}):
        with pytest.raises(CarinaError, match="runs in this process alone"):
            carina.run(bench, Recorder().reply, tmp_path / "run", **options)


def test_the_command_line_names_a_function_by_module(bench, tmp_path, monkeypatch):
    (tmp_path / "my_answers_for_test.py").write_text("def first(messages):\n    return 'Answer: 1'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_answers_for_test", raising=False)
    name = "function:my_answers_for_test.first"
    run = carina.run(bench.directory, name, "run")
    assert (run.info.model, run.counts.answered) == (name, STEPS)
    assert str(tmp_path) not in sys.path
    for wrong, message in (
        ("function:first", "expected function:MODULE.NAME"),
        ("function:no_such_module.f", "no_such_module cannot be imported"),
        ("function:my_answers_for_test.second", "has no function second"),
    ):
        with pytest.raises(CarinaError, match=message):
            carina.run(bench.directory, wrong, "other")


def test_restricted_data_needs_no_terms_for_a_function(bench, tmp_path):
    from carina.cases import Provenance, write_benchmark
    from carina.studies import SourceInfo

    restricted = SourceInfo(name="mimic", licence="PhysioNet Credentialed Health Data License 1.5.0")
    write_benchmark(tmp_path / "bench", CASES[:1], Provenance(command="test", sources=(restricted,)))
    (tmp_path / "bench" / "lf.png").write_bytes((bench.directory / "lf.png").read_bytes())
    assert carina.run(tmp_path / "bench", Recorder().reply, tmp_path / "run").counts.answered == 1
