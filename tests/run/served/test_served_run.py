"""Whole runs of a served model: a real client, a service on a loopback port that also misbehaves, a real log."""

import asyncio
import gc
import json
import logging
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from tests.models.loopback import KEY, MODEL, Answer, failing
from tests.run.conftest import CASES, SIZE
from tests.run.served.exam import RIGHT, examined, pictures, pixels, turn

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.draw import PngEncoder
from carina.errors import CarinaError
from carina.models.served import Said, Sampling, ServedModel, service
from carina.run import Policy, RunOptions, Tally, read_info, read_rows, run_model, served
from carina.run.log import read_log
from carina.run.terms import refuse_restricted
from carina.studies import SourceInfo

NAMES = [case.id for case in CASES]
STEPS = sum(len(case.steps) for case in CASES)
EVERYTHING = {(case.id, number): 1 for case in CASES for number in range(len(case.steps))}


def run(bench, out, exam, model=MODEL, **options):
    options = {"base_url": exam.service.url, "connections": 4, "retries": 0} | options
    return run_model(bench.directory, model, out, RunOptions(**options))


def timeless(out):
    return [msgspec.structs.replace(row, seconds=None) for row in read_rows(out)]


@pytest.fixture(scope="module")
def unbroken(bench, tmp_path_factory):
    """The rows of a run to which nothing happened, and what the service was asked."""
    with pytest.MonkeyPatch.context() as patch, examined(NAMES) as exam:
        patch.setenv("LOOPBACK_API_KEY", KEY)
        out = tmp_path_factory.mktemp("unbroken") / "run"
        result = run(bench, out, exam)
    return out, result, exam


def in_a_loop(work):
    """What a coroutine returns, on a thread of its own: a browser's loop may be running on this one."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        return beside.submit(asyncio.run, work).result()


def conversations(exam):
    """Requests by case, in the order in which they came."""
    found = {}
    for asked in exam.service.asked:
        found.setdefault(exam.case(asked), []).append(asked)
    return found


# ---- what is sent ---------------------------------------------------------------------------------------------------


def test_every_step_is_asked_once_and_kept(unbroken):
    out, result, exam = unbroken
    assert exam.answered == EVERYTHING
    counts = result.counts
    assert (counts.cases, counts.complete, counts.steps, counts.answered) == (12, 12, STEPS, STEPS)
    assert (counts.input_tokens, counts.output_tokens) == (7 * STEPS, 3 * STEPS)
    rows = timeless(out)
    assert [row.case for row in rows] == [case.id for case in CASES for _ in case.steps]
    assert {row.raw for row in rows} == {RIGHT}
    assert all(row.seconds > 0 for row in read_rows(out))


def test_pictures_stand_where_they_entered_and_in_no_other_message(unbroken):
    _, result, exam = unbroken
    asked = conversations(exam)["rr-1"]
    entered = [
        [len(pictures([message])) for message in one.body["messages"] if message["role"] == "user"]
        for one in asked
    ]
    assert entered == [
        [1],
        [1, 1],
        [1, 1, 1],
        [1, 1, 1, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
    ]
    sent = sum(len(pictures(one.body["messages"])) for one in exam.service.asked)
    assert sent == result.counts.image_sends == 4 * 1 + 4 * (1 + 2 + 5 * 3) + 4 * 5


def test_what_was_said_before_is_sent_again_byte_for_byte(unbroken):
    _, _, exam = unbroken
    for asked in conversations(exam).values():
        for before, after in pairwise(asked):
            # Up to the end of the last message: what a service may have kept of the prompt.
            said = msgspec.json.encode(before.body["messages"])[:-1]
            assert said in before.raw
            assert (
                after.raw[: before.raw.index(said) + len(said)]
                == before.raw[: before.raw.index(said) + len(said)]
            )


def test_roles_take_turns_after_one_system_prompt(unbroken):
    _, _, exam = unbroken
    for asked in exam.service.asked:
        roles = [message["role"] for message in asked.body["messages"]]
        assert roles == ["system", *["user", "assistant"] * turn(asked), "user"]


def test_a_picture_is_encoded_once_a_case_not_once_a_turn(bench, tmp_path, monkeypatch):
    made = []
    encode = PngEncoder.encode
    monkeypatch.setattr(
        PngEncoder, "encode", lambda self, picture: made.append(picture.shape) or encode(self, picture)
    )
    with examined(NAMES) as exam:
        run(bench, tmp_path / "run", exam, policy=Policy(history="none"))
    assert len(made) == sum(len(case.views) for case in CASES if case.path != "LF") + 4
    assert sum(len(pictures(one.body["messages"])) for one in exam.service.asked) > len(made)


def test_smaller_and_blind_pictures_are_sent_and_written_down(bench, tmp_path):
    with examined(NAMES * 2) as exam:
        run(bench, tmp_path / "small", exam, max_side=16, limit=2)
        small = [pixels(uri) for one in exam.service.asked for uri in pictures(one.body["messages"])]
    with examined(["any"] * 20) as exam:
        run(bench, tmp_path / "blind", exam, blind=True, limit=2)
        grey = [pixels(uri) for one in exam.service.asked for uri in pictures(one.body["messages"])]
    assert {picture.shape for picture in small} == {(16, 16)}
    assert {picture.shape for picture in grey} == {(SIZE, SIZE)}
    assert all(np.all(picture == 128) for picture in grey)
    assert (read_info(tmp_path / "small").max_side, read_info(tmp_path / "small").blind) == (16, False)
    assert (read_info(tmp_path / "blind").max_side, read_info(tmp_path / "blind").blind) == (None, True)


def test_no_event_of_the_model_layer_outlives_its_turn(unbroken):
    assert unbroken[1].counts.answered == STEPS
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one).__name__ == "ModelEvent"]


def test_the_short_way_sends_what_the_clients_own_way_sends(monkeypatch):
    said = [Said(role="user", text='Wie groß? \u2028 \\ "', pictures=("data:image/png;base64,AAAA",))]

    async def answer(url):
        model = ServedModel(MODEL, sampling=Sampling(seed=3), base_url=url)
        reply = await model.conversation("Be brief.").answer(said)
        assert model._model.config.cache_prompt is None, "whether prompts are kept is left to the provider"
        await model.close()
        return reply

    with examined(NAMES) as exam:
        exam.service._script = lambda _: "fine"
        ours = in_a_loop(answer(exam.service.url))
        monkeypatch.setattr(service, "as_it_is", lambda _: None)
        theirs = in_a_loop(answer(exam.service.url))
    first, second = exam.service.asked
    assert ours == theirs
    assert ours.text == "fine"
    assert first.body == second.body
    changing = {"x-irid", "host", "content-length"}
    assert {n: v for n, v in first.headers.items() if n not in changing} == {
        n: v for n, v in second.headers.items() if n not in changing
    }
    assert first.headers["authorization"] == f"Bearer {KEY}"


# ---- what goes wrong ------------------------------------------------------------------------------------------------

PATIENCE = Answer(status=429, body='{"error": {"message": "slow down"}}', headers={"retry-after": "1"})
PASSES = {
    ("rr", 1): [PATIENCE],
    ("rr-0", 2): [failing(500, "oops"), failing(503, "oops")],
    ("rr-1", 0): [Answer(cut=0.0)],
    ("rr-2", 3): [Answer(cut=0.5)],
    ("talk", 4): [failing(429, "slow down", **{"retry-after-ms": "1"})],
}
STAYS = {
    ("lf", 0): ([Answer(body='{"id": "c", "choi')], "JSONDecodeError"),
    ("rr", 2): ([failing(500, "the disk is full")] * 9, "HTTP 500: the disk is full"),
    ("talk", 1): ([Answer(wait=3.0)], "Timeout"),
    ("talk-0", 0): ([Answer(cut=0.0)] * 9, "APIConnectionError|Timeout"),
    ("talk-1", 4): ([Answer(body='{"id": "c", "object": "chat.completion", "choices": []}')], "ModelOutput"),
    ("talk-2", 3): ([failing(400, "what is this")], "HTTP 400: what is this"),
}


def test_what_passes_leaves_no_trace(bench, tmp_path, unbroken):
    with examined(NAMES, PASSES) as exam:
        result = run(bench, tmp_path / "run", exam, retries=2)
    assert result.failed == ()
    assert exam.answered == EVERYTHING
    assert timeless(tmp_path / "run") == timeless(unbroken[0])
    first, second = [one for one in exam.service.asked if exam.case(one) == "rr" and turn(one) == 1]
    assert second.time - first.time >= 0.99, "the service had asked for a second"


def test_what_stays_is_incomplete_never_scored_and_mended_by_the_next_call(bench, tmp_path, unbroken):
    faults = {place: answers for place, (answers, _) in STAYS.items()}
    out = tmp_path / "run"
    with examined(NAMES, faults) as exam:
        result = run(bench, out, exam, timeout=1)
    rows = {(row.case, row.number): row for row in timeless(out)}
    assert len(rows) == STEPS
    assert {case for case, _ in result.failed} == {case for case, _ in STAYS}
    for place, (_, told) in STAYS.items():
        assert rows[place].state == "incomplete"
        assert re.search(told, rows[place].error)
        assert rows[place].error in dict(result.failed)[place[0]]
    lost = {
        (case.id, number)
        for case in CASES
        for number in range(len(case.steps))
        if any(name == case.id and number >= place for name, place in STAYS)
    }
    assert {place for place, row in rows.items() if row.state == "incomplete"} == lost
    assert result.counts.incomplete == len(lost)
    assert result.counts.answered == STEPS - len(lost)
    assert result.counts.complete == len(CASES) - len(STAYS)
    assert not [
        row for place, row in rows.items() if place in lost and (row.score, row.correct) != (None, None)
    ]
    with examined(NAMES) as exam:
        again = run(bench, out, exam)
    assert set(exam.answered) == lost, "only what is missing"
    assert set(exam.answered.values()) == {1}
    assert again.failed == ()
    assert timeless(out) == timeless(unbroken[0])


def test_with_no_history_answers_behind_a_failure_are_not_asked_again(bench, tmp_path):
    out, policy = tmp_path / "run", Policy(history="none")
    question = next(case for case in CASES if case.id == "rr").steps[3].question
    with examined(NAMES) as exam:
        usual = exam.service._script
        exam.service._script = lambda asked: (
            failing(400, "no")
            if exam.case(asked) == "rr"
            and question in json.dumps(asked.body, ensure_ascii=False).replace("\\n", "\n")
            else usual(asked)
        )
        result = run(bench, out, exam, policy=policy)
    assert result.counts.incomplete == 1
    with examined(NAMES) as exam:
        run(bench, out, exam, policy=policy)
    assert len(exam.service.asked) == 1
    assert read_log(out)["rr"].keys() == set(range(7))
    assert {row.state for row in read_rows(out)} == {"answered"}


def test_answers_of_any_length_are_answers(bench, tmp_path):
    long = "The heart is large. " * 524_288
    with examined(NAMES, {("talk", 0): [Answer("")], ("rr", 0): [Answer(long)]}) as exam:
        result = run(bench, tmp_path / "run", exam)
        sizes = {place: len(one.raw) for one in exam.service.asked if (place := (exam.case(one), turn(one)))}
    rows = {(row.case, row.number): row for row in read_rows(tmp_path / "run")}
    assert len(long) > 10_000_000
    assert result.counts.answered == STEPS
    assert (rows["talk", 0].state, rows["talk", 0].correct) != ("answered", True)
    assert rows["rr", 0].correct is False
    assert len(rows["rr", 0].raw) < 200_000
    assert read_log(tmp_path / "run")["rr"][0].reply == long, "what was paid for is kept"
    assert sizes["rr", 1] < 100_000, "and not sent again"


def test_a_service_that_fails_for_all_is_not_asked_for_ever(bench, tmp_path):
    with examined(NAMES) as exam:
        exam.service._script = lambda _: failing(400, "no")
        told = r"20 turns in a row failed, the last with HTTP 400: no"
        with pytest.raises(CarinaError, match=told):
            run(bench, tmp_path / "run", exam, policy=Policy(history="none"))
        assert 20 <= len(exam.service.asked) <= 24
    with examined(NAMES) as exam:
        run(bench, tmp_path / "run", exam, policy=Policy(history="none"))
        assert len(exam.service.asked) == STEPS


@pytest.mark.parametrize(("status", "told"), [(401, "the key is refused"), (404, "there is no such model")])
def test_what_would_fail_every_turn_ends_the_run_at_once(bench, tmp_path, status, told):
    with examined(NAMES) as exam:
        exam.service._script = lambda _: failing(status, f"no: {KEY}")
        with pytest.raises(CarinaError, match=told) as caught:
            run(bench, tmp_path / "run", exam)
        assert len(exam.service.asked) <= 8
    assert KEY not in str(caught.value)


def test_a_missing_image_is_named(tmp_path):
    folder = tmp_path / "bench"
    write_benchmark(folder, CASES[:2], Provenance(command="made by hand"))
    with examined(NAMES) as exam:
        result = run(open_benchmark(folder), tmp_path / "run", exam)
    assert exam.service.asked == []
    assert ["lf.png" in told or "rr.png" in told for _, told in result.failed] == [True, True]
    assert {row.state for row in read_rows(tmp_path / "run")} == {"incomplete"}


# ---- who may have it, and what nobody may see -----------------------------------------------------------------------


def test_keys_stand_in_no_log_and_no_file(bench, tmp_path, caplog, capfd):
    leak = failing(400, f"Authorization: Bearer {KEY}, key={KEY}")
    out = tmp_path / "run"
    with caplog.at_level(logging.DEBUG), examined(NAMES, {("lf", 0): [leak], ("rr", 3): [leak]}) as exam:
        url = exam.service.url.replace("http://", "http://user:hidden-word@")
        result = run(bench, out, exam, base_url=f"{url}?key=hidden-word")
        assert [call.base_url for call in result.info.calls] == [exam.service.url]
    assert len(result.failed) == 2
    written = b"".join(path.read_bytes() for path in out.iterdir())
    said = "".join(capfd.readouterr())
    rows = msgspec.json.encode(read_rows(out)).decode()
    for secret in (KEY, "hidden-word"):
        assert secret.encode() not in written
        assert secret not in rows + said + str(result)
    assert KEY not in caplog.text


HERE = [
    (MODEL, "http://127.0.0.1:9/v1", {}),
    (MODEL, "http://localhost:9/v1", {}),
    (MODEL, "http://[::1]:9/v1", {}),
    (MODEL, None, {"LOOPBACK_BASE_URL": "http://localhost:9"}),
    ("ollama/llava", None, {}),
]
ELSEWHERE = [
    (MODEL, "https://localhost.somewhere.org/v1", {}),
    (MODEL, "https://127.somewhere.org/v1", {}),
    (MODEL, "http://localhost:9@somewhere.org/v1", {}),
    (MODEL, "http://192.168.0.7/v1", {}),
    (MODEL, None, {}),
    ("openai/gpt-5", None, {}),
    ("ollama/llava", None, {"OLLAMA_BASE_URL": "https://somewhere.org"}),
    ("vllm/llava", None, {"INSPECT_EVAL_MODEL_BASE_URL": "https://somewhere.org"}),
]


@pytest.mark.parametrize("place", [*HERE, *ELSEWHERE])
def test_restricted_cases_leave_the_machine_only_by_word(tmp_path, monkeypatch, place):
    model, url, environment = place
    for name in ("LOOPBACK_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "INSPECT_EVAL_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bench = restricted(tmp_path)
    if place in HERE:
        refuse_restricted(bench, model, base_url=url, accept_terms=False)
        return
    with pytest.raises(CarinaError, match=r"cases of hospital are under the terms .*--accept-terms"):
        refuse_restricted(bench, model, base_url=url, accept_terms=False)
    refuse_restricted(bench, model, base_url=url, accept_terms=True)


def restricted(folder):
    source = SourceInfo(name="hospital", licence="Credentialed Health Data License 1.5.0")
    write_benchmark(folder / "bench", CASES[:1], Provenance(command="made by hand", sources=(source,)))
    return open_benchmark(folder / "bench")


def test_a_run_asks_for_the_terms_before_anything_is_sent(tmp_path):
    bench = restricted(tmp_path)
    for blind in (False, True):
        options = RunOptions(base_url="https://somewhere.invalid/v1", blind=blind)
        with pytest.raises(CarinaError, match="--accept-terms"):
            run_model(bench.directory, MODEL, tmp_path / f"run-{blind}", options)


# ---- taking up ------------------------------------------------------------------------------------------------------

COMMAND = "import sys; from carina.cli import main; sys.exit(main())"


def command(bench, out, exam, *more):
    line = [sys.executable, "-c", COMMAND, "run", str(bench.directory), "--model", MODEL, "-o", str(out)]
    return [*line, "--base-url", exam.service.url, "--connections", "4", "--retries", "0", *more]


def test_the_same_command_again_asks_nothing(bench, unbroken):
    out, _, _ = unbroken
    before = (out / "steps.parquet").read_bytes()
    with examined(NAMES) as exam:
        result = run(bench, out, exam)
    assert exam.service.asked == []
    assert result.counts == unbroken[1].counts
    assert (out / "steps.parquet").read_bytes() == before


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_run_is_taken_up_and_equals_an_unbroken_one(bench, tmp_path, unbroken, processes):
    out = tmp_path / "run"
    with examined(NAMES) as exam:
        exam.wait = 0.05
        line = command(bench, out, exam, "--processes", str(processes))
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until = time.monotonic() + 60
            while sum(exam.answered.values()) < 15 and time.monotonic() < until:
                time.sleep(0.01)
            process.kill()
        settled(exam)
        kept = {(name, number) for name, steps in read_log(out).items() for number in steps}
        lost = set(exam.answered) - kept
        before = sum(exam.answered.values())
        exam.wait = 0.0
        result = run(bench, out, exam)
    assert result.failed == ()
    assert 10 <= len(kept) < STEPS
    assert len(lost) <= 4, "no more than the connections"
    assert sum(exam.answered.values()) - before == STEPS - len(kept), "only what is missing"
    assert {place for place, times in exam.answered.items() if times > 1} == lost
    assert timeless(out) == timeless(unbroken[0])


def settled(exam):
    """Return when nobody asks any more: processes of a killed run end with it."""
    asked = -1
    while asked != len(exam.service.asked):
        asked = len(exam.service.asked)
        time.sleep(0.4)


def test_processes_share_the_cases_and_give_the_same_table(bench, tmp_path, unbroken):
    out = tmp_path / "run"
    with examined(NAMES, {("rr-1", 2): [failing(400, "no")]}) as exam:
        ended = subprocess.run(
            command(bench, out, exam, "--processes", "2", "--json"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert "rr-1: HTTP 400: no" in ended.stderr
        assert json.loads(ended.stdout)["counts"]["incomplete"] == 5
        assert exam.service.most_at_once <= 4
        assert sorted(path.name for path in out.glob("steps-*")) == ["steps-00.jsonl", "steps-01.jsonl"]
        assert run(bench, out, exam).failed == ()
    assert exam.answered == EVERYTHING
    assert timeless(out) == timeless(unbroken[0])


class Worker(NamedTuple):
    exitcode: int | None


def test_the_last_words_of_every_process_are_heard_also_of_one_that_was_killed():
    heard, told = Queue(), []
    asked, ended = Tally(asked=1), Tally(cases=1)
    for message in [(0, asked), (2, asked), (0, "the key is refused"), (2, ended), (2, "")]:
        heard.put(message)
    words = served._messages(heard, [Worker(0), Worker(-9), Worker(0)], told.append)
    assert list(words) == [
        "the key is refused",
        "",
        "a process of the run ended with exit code -9; the same command resumes",
    ]
    assert told == [asked, asked, ended]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"policy": Policy(history="gold")}, "history own, not gold"),
        ({"max_side": 16}, "max_side None, not 16"),
        ({"blind": True}, "blind False, not True"),
        ({"sampling": Sampling(temperature=1.0)}, "temperature 0.0, not 1.0"),
        ({"limit": 3}, "holds a run of 12 cases, more than the 3 that are chosen now"),
        (
            {"model": "openai-api/loopback/other"},
            "model openai-api/loopback/tiny, not openai-api/loopback/other",
        ),
    ],
)
def test_another_run_is_refused_with_the_difference(bench, unbroken, change, told):
    with examined(NAMES) as exam:
        with pytest.raises(CarinaError, match=told):
            run(bench, unbroken[0], exam, **change)
        assert exam.service.asked == []


def test_another_version_of_the_benchmark_is_refused(tmp_path, unbroken):
    folder = tmp_path / "bench"
    changed = msgspec.structs.replace(CASES[0], patient="somebody else")
    write_benchmark(folder, (changed, *CASES[1:]), Provenance(command="made by hand"), part_size=5)
    with examined(NAMES) as exam, pytest.raises(CarinaError, match=r"holds another run \(fingerprint"):
        run(open_benchmark(folder), unbroken[0], exam)


def test_nothing_of_the_extra_is_imported_to_run_a_builtin_model(bench, tmp_path):
    code = (
        "import sys; from carina.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "sys.exit('inspect_ai' in sys.modules or 'openai' in sys.modules)"
    )
    line = ["run", str(bench.directory), "--model", "builtin/oracle", "-o", str(tmp_path / "run")]
    ended = subprocess.run(
        [sys.executable, "-c", code, *line], env=os.environ | {"NO_COLOR": "1"}, check=False
    )
    assert ended.returncode == 0
    assert Path(tmp_path / "run" / "steps.parquet").exists()


def test_a_run_can_be_started_where_a_loop_is_running(bench, tmp_path):
    async def notebook(exam):
        return run(bench, tmp_path / "run", exam, limit=2)

    with examined(NAMES) as exam:
        result = in_a_loop(notebook(exam))
    assert result.counts.complete == 2
