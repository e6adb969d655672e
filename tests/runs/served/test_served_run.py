"""Whole runs of a served model: a real client, a service on a loopback port that also misbehaves, a real log."""

import gc
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image as Pil
from tests.models.loopback import KEY, MODEL, Answer, failing, in_a_loop, serving
from tests.runs.conftest import CASES, SIZE
from tests.runs.served.scripted_model import RIGHT, pictures, pixels, serving_model, turn
from typer.testing import CliRunner

from carina.cases import Provenance, open_benchmark, write_benchmark
from carina.cases.draw import PngEncoder
from carina.cli import app
from carina.models.served import ChatMessage, Sampling, ServedModel, service
from carina.models.served.guard import LARGEST_ANSWER
from carina.models.served.terms import refuse_restricted
from carina.runs import Policy, open_run, read_info
from carina.runs.evaluate import run_model
from carina.runs.log import read_log
from carina.runs.options import RunOptions
from carina.store.errors import CarinaError
from carina.studies import SourceInfo

NAMES = [case.id for case in CASES]
STEPS = sum(len(case.steps) for case in CASES)
EVERYTHING = {(case.id, number): 1 for case in CASES for number in range(len(case.steps))}


def run(bench, out, scripted, model=MODEL, **options):
    options = {
        "base_url": scripted.service.url,
        "connections": 4,
        "retries": 0,
        "first_request": False,
    } | options
    return run_model(bench.directory, model, out, RunOptions(**options))


def timeless(out):
    return [msgspec.structs.replace(row, seconds=None) for row in open_run(out).rows()]


@pytest.fixture(scope="module")
def unbroken(bench, tmp_path_factory):
    """The rows of a run to which nothing happened, and what the service was asked."""
    with pytest.MonkeyPatch.context() as patch, serving_model(NAMES) as scripted:
        patch.setenv("LOOPBACK_API_KEY", KEY)
        out = tmp_path_factory.mktemp("unbroken") / "run"
        result = run(bench, out, scripted)
    return out, result, scripted


def conversations(scripted):
    """Requests by case, in the order in which they came."""
    found = {}
    for asked in scripted.service.asked:
        found.setdefault(scripted.case(asked), []).append(asked)
    return found


# ---- what is sent ---------------------------------------------------------------------------------------------------


def test_every_step_is_asked_once_and_stored(unbroken):
    out, result, scripted = unbroken
    assert scripted.answered == EVERYTHING
    counts = result.counts
    assert (counts.cases, counts.complete, counts.steps, counts.answered) == (12, 12, STEPS, STEPS)
    assert (counts.input_tokens, counts.output_tokens) == (7 * STEPS, 3 * STEPS)
    rows = timeless(out)
    assert [row.case for row in rows] == [case.id for case in CASES for _ in case.steps]
    assert {row.raw for row in rows} == {RIGHT}
    assert all(row.seconds > 0 for row in open_run(out).rows())


def test_each_image_stands_in_one_message(unbroken):
    _, result, scripted = unbroken
    asked = conversations(scripted)["rr-1"]
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
    sent = sum(len(pictures(one.body["messages"])) for one in scripted.service.asked)
    assert sent == result.counts.image_sends == 4 * 1 + 4 * (1 + 2 + 5 * 3) + 4 * 5


def test_earlier_messages_are_sent_again_byte_for_byte(unbroken):
    _, _, scripted = unbroken
    for asked in conversations(scripted).values():
        for before, after in pairwise(asked):
            # Up to the end of the last message: what a service may have kept of the prompt.
            said = msgspec.json.encode(before.body["messages"])[:-1]
            assert said in before.raw
            assert (
                after.raw[: before.raw.index(said) + len(said)]
                == before.raw[: before.raw.index(said) + len(said)]
            )


def test_roles_take_turns_after_one_system_prompt(unbroken):
    _, _, scripted = unbroken
    for asked in scripted.service.asked:
        roles = [message["role"] for message in asked.body["messages"]]
        assert roles == ["system", *["user", "assistant"] * turn(asked), "user"]


def test_an_image_is_encoded_once_per_case(bench, tmp_path, monkeypatch):
    made = []
    encode = PngEncoder.encode
    monkeypatch.setattr(
        PngEncoder, "encode", lambda self, picture: made.append(picture.shape) or encode(self, picture)
    )
    with serving_model(NAMES) as scripted:
        run(bench, tmp_path / "run", scripted, policy=Policy(history="none"))
    assert len(made) == sum(len(case.views) for case in CASES if case.path != "LF") + 4
    assert sum(len(pictures(one.body["messages"])) for one in scripted.service.asked) > len(made)


def test_downscaled_and_blind_images_are_sent_and_recorded(bench, tmp_path):
    with serving_model(NAMES * 2) as scripted:
        run(bench, tmp_path / "small", scripted, max_side=16, limit=2)
        small = [pixels(uri) for one in scripted.service.asked for uri in pictures(one.body["messages"])]
    with serving_model(["any"] * 20) as scripted:
        run(bench, tmp_path / "blind", scripted, blind=True, limit=2)
        grey = [pixels(uri) for one in scripted.service.asked for uri in pictures(one.body["messages"])]
    assert {picture.shape for picture in small} == {(16, 16)}
    assert {picture.shape for picture in grey} == {(SIZE, SIZE)}
    assert all(np.all(picture == 128) for picture in grey)
    assert (read_info(tmp_path / "small").max_side, read_info(tmp_path / "small").blind) == (16, False)
    assert (read_info(tmp_path / "blind").max_side, read_info(tmp_path / "blind").blind) == (None, True)


def test_no_event_of_the_model_layer_outlives_its_turn(unbroken):
    assert unbroken[1].counts.answered == STEPS
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one).__name__ == "ModelEvent"]


def test_the_fast_path_sends_the_same_request(monkeypatch):
    said = [ChatMessage(role="user", text='Wie groß? \u2028 \\ "', images=("data:image/png;base64,AAAA",))]

    async def answer(url):
        model = ServedModel(MODEL, sampling=Sampling(seed=3), base_url=url)
        reply = await model.conversation("Be brief.").answer(said)
        assert model._model.config.cache_prompt is None, "whether prompts are kept is left to the provider"
        await model.close()
        return reply

    with serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: "fine"
        ours = in_a_loop(answer(scripted.service.url))
        monkeypatch.setattr(service, "skip_request_checks", lambda _: None)
        theirs = in_a_loop(answer(scripted.service.url))
    first, second = scripted.service.asked
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
    ("talk-0", 0): ([Answer(cut=0.0)] * 9, "connection closed: http://127.0.0.1"),
    ("talk-1", 4): ([Answer(body='{"id": "c", "object": "chat.completion", "choices": []}')], "ModelOutput"),
    ("talk-2", 3): ([failing(400, "what is this")], "HTTP 400: what is this"),
}


def test_retried_errors_leave_no_trace_in_the_table(bench, tmp_path, unbroken):
    with serving_model(NAMES, PASSES) as scripted:
        result = run(bench, tmp_path / "run", scripted, retries=2)
    assert result.failures == ()
    assert scripted.answered == EVERYTHING
    assert timeless(tmp_path / "run") == timeless(unbroken[0])
    first, second = [one for one in scripted.service.asked if scripted.case(one) == "rr" and turn(one) == 1]
    assert second.time - first.time >= 0.99, "the service had asked for a second"


def test_persistent_errors_are_incomplete_and_asked_again_by_the_next_call(bench, tmp_path, unbroken):
    faults = {place: answers for place, (answers, _) in STAYS.items()}
    out = tmp_path / "run"
    with serving_model(NAMES, faults) as scripted:
        result = run(bench, out, scripted)
    rows = {(row.case, row.number): row for row in timeless(out)}
    assert len(rows) == STEPS
    assert {case for case, _ in result.failures} == {case for case, _ in STAYS}
    for place, (_, message) in STAYS.items():
        assert rows[place].state == "incomplete"
        assert re.search(message, rows[place].error)
        assert rows[place].error in dict(result.failures)[place[0]]
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
    with serving_model(NAMES) as scripted:
        again = run(bench, out, scripted)
    assert set(scripted.answered) == lost, "only what is missing"
    assert set(scripted.answered.values()) == {1}
    assert again.failures == ()
    assert timeless(out) == timeless(unbroken[0])


def test_an_answer_that_never_comes_times_out_and_is_asked_again_by_the_next_call(bench, tmp_path):
    out, released = tmp_path / "run", threading.Event()
    with serving_model(NAMES) as scripted:
        # No answer at all comes in time, so that no limit of time decides which ones do.
        scripted.service._script = lambda _: released.wait() and RIGHT
        with pytest.raises(CarinaError, match="no question was answered: 1 case failed with timeout: "):
            run(bench, out, scripted, timeout=1, limit=1)
        released.set()
    ((case, _),) = open_run(out).failures
    assert {row.state for row in timeless(out)} == {"incomplete"}
    assert re.search("timeout: .*http://127.0.0.1:.* within 1 s", timeless(out)[0].error)
    with serving_model(NAMES) as scripted:
        again = run(bench, out, scripted, limit=1)
    assert {name for name, _ in scripted.answered} == {case}
    assert again.failures == ()


def test_without_a_history_answers_after_an_error_are_kept(bench, tmp_path):
    out, policy = tmp_path / "run", Policy(history="none")
    question = next(case for case in CASES if case.id == "rr").steps[3].question
    with serving_model(NAMES) as scripted:
        usual = scripted.service._script
        scripted.service._script = lambda asked: (
            failing(400, "no")
            if scripted.case(asked) == "rr"
            and question in json.dumps(asked.body, ensure_ascii=False).replace("\\n", "\n")
            else usual(asked)
        )
        result = run(bench, out, scripted, policy=policy)
    assert result.counts.incomplete == 1
    with serving_model(NAMES) as scripted:
        run(bench, out, scripted, policy=policy)
    assert len(scripted.service.asked) == 1
    assert read_log(out)["rr"].keys() == set(range(7))
    assert {row.state for row in open_run(out).rows()} == {"answered"}


def test_long_and_empty_answers_are_answers(bench, tmp_path):
    long = "The heart is large. " * 262_144
    with serving_model(NAMES, {("talk", 0): [Answer("")], ("rr", 0): [Answer(long)]}) as scripted:
        result = run(bench, tmp_path / "run", scripted)
        sizes = {
            place: len(one.raw)
            for one in scripted.service.asked
            if (place := (scripted.case(one), turn(one)))
        }
    rows = {(row.case, row.number): row for row in open_run(tmp_path / "run").rows()}
    assert 5_000_000 < len(long) < LARGEST_ANSWER
    assert result.counts.answered == STEPS
    assert (rows["talk", 0].state, rows["talk", 0].correct) != ("answered", True)
    assert rows["rr", 0].correct is False
    assert len(rows["rr", 0].raw) < 200_000
    assert read_log(tmp_path / "run")["rr"][0].reply == long, "what was paid for is kept"
    assert sizes["rr", 1] < 100_000, "and not sent again"


def test_repeated_failures_end_the_requests(bench, tmp_path):
    with serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: failing(400, "no")
        message = r"20 turns in a row failed, the last with HTTP 400: no"
        with pytest.raises(CarinaError, match=message):
            run(bench, tmp_path / "run", scripted, policy=Policy(history="none"))
        assert 20 <= len(scripted.service.asked) <= 24
    with serving_model(NAMES) as scripted:
        run(bench, tmp_path / "run", scripted, policy=Policy(history="none"))
        assert len(scripted.service.asked) == STEPS


@pytest.mark.parametrize(
    ("status", "message"), [(401, "the key is refused"), (404, "there is no such model")]
)
def test_permanent_errors_end_the_run_at_once(bench, tmp_path, status, message):
    with serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: failing(status, f"no: {KEY}")
        with pytest.raises(CarinaError, match=message) as caught:
            run(bench, tmp_path / "run", scripted)
        assert len(scripted.service.asked) <= 8
    assert KEY not in str(caught.value)


def test_a_missing_image_is_named(tmp_path):
    folder = tmp_path / "bench"
    write_benchmark(folder, CASES[:2], Provenance(command="made by hand"))
    with (
        serving_model(NAMES) as scripted,
        pytest.raises(CarinaError, match=r"2 cases failed, 1 of them with .*lf\.png"),
    ):
        run(open_benchmark(folder), tmp_path / "run", scripted)
    assert scripted.service.asked == []
    failures = open_run(tmp_path / "run").failures
    assert ["lf.png" in message or "rr.png" in message for _, message in failures] == [True, True]
    assert {row.state for row in open_run(tmp_path / "run").rows()} == {"incomplete"}


# ---- who may have it, and what nobody may see -----------------------------------------------------------------------


def test_api_keys_are_in_no_log_and_no_file(bench, tmp_path, caplog, capfd):
    leak = failing(400, f"Authorization: Bearer {KEY}, key={KEY}")
    out = tmp_path / "run"
    with (
        caplog.at_level(logging.DEBUG),
        serving_model(NAMES, {("lf", 0): [leak], ("rr", 3): [leak]}) as scripted,
    ):
        url = scripted.service.url.replace("http://", "http://user:hidden-word@")
        result = run(bench, out, scripted, base_url=f"{url}?key=hidden-word")
        assert [call.base_url for call in result.info.calls] == [scripted.service.url]
    assert len(result.failures) == 2
    written = b"".join(path.read_bytes() for path in out.iterdir())
    said = "".join(capfd.readouterr())
    rows = msgspec.json.encode(open_run(out).rows()).decode()
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
def test_restricted_data_leaves_the_machine_only_with_accept_terms(tmp_path, monkeypatch, place):
    model, url, environment = place
    for name in ("LOOPBACK_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "INSPECT_EVAL_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bench = restricted(tmp_path)
    if place in HERE:
        assert refuse_restricted(bench.manifest.sources, model, base_url=url, accept_terms=False), (
            "it must stay"
        )
        return
    with pytest.raises(CarinaError, match=r"source hospital: .*--accept-terms"):
        refuse_restricted(bench.manifest.sources, model, base_url=url, accept_terms=False)
    assert not refuse_restricted(bench.manifest.sources, model, base_url=url, accept_terms=True)


def restricted(folder):
    source = SourceInfo(name="hospital", licence="Credentialed Health Data License 1.5.0")
    write_benchmark(folder / "bench", CASES[:1], Provenance(command="made by hand", sources=(source,)))
    return open_benchmark(folder / "bench")


def test_restricted_data_is_refused_before_anything_is_sent(tmp_path):
    bench = restricted(tmp_path)
    for blind in (False, True):
        options = RunOptions(base_url="https://somewhere.invalid/v1", blind=blind)
        with pytest.raises(CarinaError, match="--accept-terms"):
            run_model(bench.directory, MODEL, tmp_path / f"run-{blind}", options)


def test_restricted_data_does_not_follow_a_redirect(tmp_path):
    bench = restricted(tmp_path)
    Pil.fromarray(np.full((SIZE, SIZE), 10, np.uint8)).save(bench.directory / f"{CASES[0].id}.png")
    with serving(lambda _: RIGHT) as other, serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: Answer(
            status=307, body="", headers={"location": f"{other.url}/chat/completions"}
        )
        with pytest.raises(CarinaError, match=f"{scripted.service.url}.*redirects to {other.url}"):
            run(bench, tmp_path / "run", scripted)
        assert len(scripted.service.asked) == 1, "no other question would fare better"
        assert other._server.opened == []


@pytest.mark.parametrize("accept_terms", [False, True])
def test_restricted_data_stays_although_the_address_was_taken_for_another(
    tmp_path, monkeypatch, accept_terms
):
    """`openai/azure/...` takes its address from another variable than `openai/...`."""
    bench = restricted(tmp_path)
    Pil.fromarray(np.full((SIZE, SIZE), 10, np.uint8)).save(bench.directory / f"{CASES[0].id}.png")
    with serving(lambda _: RIGHT) as proxy:
        # Stands for the way to another machine: nothing else is reached from here.
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
        monkeypatch.setenv("AZUREAI_OPENAI_BASE_URL", "http://somewhere.invalid/v1")
        monkeypatch.setenv("AZUREAI_OPENAI_API_KEY", KEY)
        options = RunOptions(retries=0, accept_terms=accept_terms, first_request=False)
        if accept_terms:
            run_model(bench.directory, "openai/azure/tiny", tmp_path / "run", options)
            assert proxy._server.opened
            return
        with pytest.raises(CarinaError, match=r"somewhere\.invalid.*not on this machine.*--accept-terms"):
            run_model(bench.directory, "openai/azure/tiny", tmp_path / "run", options)
        assert proxy._server.opened == []


@pytest.mark.parametrize("address", ["http://[bad", "localhost:8000", "ftp://localhost/v1"])
def test_a_wrong_address_is_one_sentence_and_nothing_is_written(bench, tmp_path, address):
    line = ["run", str(bench.directory), "--model", MODEL, "-o", str(tmp_path / "run"), "--base-url", address]
    done = CliRunner().invoke(app, line)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: --base-url '{address}': ")
    assert not (tmp_path / "run").exists()


# ---- what a server may send -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
def test_token_counts_without_sense_are_not_summed_and_noticed(bench, tmp_path, processes):
    faults = {
        ("lf", 0): [Answer(RIGHT, usage={"prompt_tokens": -7, "completion_tokens": 3, "total_tokens": 1})],
        ("rr", 2): [
            Answer(RIGHT, usage={"prompt_tokens": 10**12, "completion_tokens": 3, "total_tokens": 1})
        ],
        ("talk", 1): [Answer(RIGHT, usage="many")],
    }
    notices = []
    with serving_model(NAMES, faults) as scripted:
        options = RunOptions(
            base_url=scripted.service.url, retries=0, processes=processes, first_request=False
        )
        result = run_model(bench.directory, MODEL, tmp_path / "run", options, notify=notices.append)
    counts = result.counts
    assert counts.answered == STEPS
    assert (counts.input_tokens, counts.output_tokens) == (7 * (STEPS - 3), 3 * (STEPS - 3))
    rows = {(row.case, row.number): row for row in open_run(tmp_path / "run").rows()}
    assert {place for place, row in rows.items() if row.input_tokens is None} == set(faults)
    (notice,) = notices
    assert "the token counts of 3 answers make no sense" in notice


def test_an_answer_without_end_is_incomplete_and_asked_again_by_the_next_call(bench, tmp_path, unbroken):
    out = tmp_path / "run"
    with serving_model(NAMES, {("rr", 3): [Answer("x" * LARGEST_ANSWER)]}) as scripted:
        result = run(bench, out, scripted)
        times = Counter((scripted.case(asked), turn(asked)) for asked in scripted.service.asked)
        assert times["rr", 3] == 1
    ((case, reason),) = result.failures
    assert (case, result.counts.incomplete) == ("rr", 4)
    assert reason.startswith(f"answer too large: {scripted.service.url}")
    with serving_model(NAMES) as scripted:
        run(bench, out, scripted)
    assert set(scripted.answered) == {("rr", number) for number in range(3, 7)}
    assert timeless(out) == timeless(unbroken[0])


def test_text_of_a_server_cannot_command_the_terminal(bench, tmp_path):
    refusal = failing(400, "no\x1b[2J\x1b]0;title\x07\r\u202eall well")
    with serving_model(NAMES, {("rr", 0): [refusal]}) as scripted:
        line = ["run", str(bench.directory), "--model", MODEL, "-o", str(tmp_path / "run"), "--retries", "0"]
        done = CliRunner().invoke(app, [*line, "--base-url", scripted.service.url, "--no-first-request"])
    assert done.exit_code == 1
    assert r"failed: rr: HTTP 400: no\x1b[2J\x1b]0;title\x07 \u202eall well" in done.stderr
    assert done.output.replace("\n", "").replace("\t", "").isprintable()


# ---- taking up ------------------------------------------------------------------------------------------------------

COMMAND = "import sys; from carina.program import main; sys.exit(main())"


def command(bench, out, scripted, *more):
    line = [sys.executable, "-c", COMMAND, "run", str(bench.directory), "--model", MODEL, "-o", str(out)]
    settings = ["--connections", "4", "--retries", "0", "--no-first-request"]
    return [*line, "--base-url", scripted.service.url, *settings, *more]


def test_a_finished_run_asks_nothing_again(bench, unbroken):
    out, _, _ = unbroken
    before = (out / "steps.parquet").read_bytes()
    with serving_model(NAMES) as scripted:
        result = run(bench, out, scripted)
    assert scripted.service.asked == []
    assert result.counts == unbroken[1].counts
    assert (out / "steps.parquet").read_bytes() == before


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_run_resumes_and_equals_an_uninterrupted_one(bench, tmp_path, unbroken, processes):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        scripted.wait = 0.05
        line = command(bench, out, scripted, "--processes", str(processes))
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while sum(scripted.answered.values()) < 15 and process.poll() is None:
                time.sleep(0.01)
            workers = children_of(process.pid)
            process.kill()
        wait_for_end(workers)
        scripted.service.wait_until_idle()
        kept = {(name, number) for name, steps in read_log(out).items() for number in steps}
        lost = set(scripted.answered) - kept
        before = sum(scripted.answered.values())
        scripted.wait = 0.0
        result = run(bench, out, scripted)
    assert result.failures == ()
    assert 10 <= len(kept) < STEPS
    assert len(lost) <= 4, "no more than the connections"
    assert sum(scripted.answered.values()) - before == STEPS - len(kept), "only what is missing"
    assert {place for place, times in scripted.answered.items() if times > 1} == lost
    assert timeless(out) == timeless(unbroken[0])


def children_of(process):
    """Ids of the processes that a process has started."""
    return [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def wait_for_end(processes):
    """Return when processes have ended: workers of a killed run end with it."""
    for process in processes:
        while is_running(process):
            time.sleep(0.01)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_processes_share_the_cases_and_give_the_same_table(bench, tmp_path, unbroken):
    out = tmp_path / "run"
    with serving_model(NAMES, {("rr-1", 2): [failing(400, "no")]}) as scripted:
        ended = subprocess.run(
            command(bench, out, scripted, "--processes", "2", "--json"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert "rr-1: HTTP 400: no" in ended.stderr
        assert json.loads(ended.stdout)["counts"]["incomplete"] == 5
        assert scripted.service.most_at_once <= 4
        assert sorted(path.name for path in out.glob("steps-*")) == ["steps-00.jsonl", "steps-01.jsonl"]
        assert run(bench, out, scripted).failures == ()
    assert scripted.answered == EVERYTHING
    assert timeless(out) == timeless(unbroken[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": Policy(history="gold")}, "history own, not gold"),
        ({"max_side": 16}, "max_side None, not 16"),
        ({"blind": True}, "blind False, not True"),
        ({"sampling": Sampling(temperature=1.0)}, "temperature 0.0, not 1.0"),
        ({"limit": 3}, "holds a run of 12 cases, more than the 3 that are selected now"),
        (
            {"model": "openai-api/loopback/other"},
            "model openai-api/loopback/tiny, not openai-api/loopback/other",
        ),
    ],
)
def test_another_run_is_refused_with_the_difference(bench, unbroken, change, message):
    with serving_model(NAMES) as scripted:
        with pytest.raises(CarinaError, match=message):
            run(bench, unbroken[0], scripted, **change)
        assert scripted.service.asked == []


def test_another_version_of_the_benchmark_is_refused(tmp_path, unbroken):
    folder = tmp_path / "bench"
    changed = msgspec.structs.replace(CASES[0], patient="somebody else")
    write_benchmark(folder, (changed, *CASES[1:]), Provenance(command="made by hand"), part_size=5)
    with (
        serving_model(NAMES) as scripted,
        pytest.raises(CarinaError, match=r"holds another run \(fingerprint"),
    ):
        run(open_benchmark(folder), unbroken[0], scripted)


def test_nothing_of_the_extra_is_imported_to_run_a_builtin_model(bench, tmp_path):
    code = (
        "import sys; from carina.program import main\n"
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


def test_a_run_starts_inside_a_running_event_loop(bench, tmp_path):
    async def notebook(scripted):
        return run(bench, tmp_path / "run", scripted, limit=2)

    with serving_model(NAMES) as scripted:
        result = in_a_loop(notebook(scripted))
    assert result.counts.complete == 2
