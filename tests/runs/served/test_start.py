"""How a run of a served model starts: the first request, a directory without answers, runs in which nothing works."""

import json

import pytest
from tests.models.loopback import KEY, MODEL, Answer, failing, serving
from tests.runs.conftest import CASES
from tests.runs.served.scripted_model import FIRST_SYSTEM, RIGHT, serving_model
from tests.runs.served.test_served_run import restricted
from typer.testing import CliRunner

import carina
from carina.cli import app
from carina.models.served import Sampling
from carina.runs import Policy, open_run, read_info
from carina.runs.evaluate import run_model
from carina.runs.failures import NothingAnsweredError, describe_failures
from carina.runs.options import RunOptions
from carina.runs.results import Failure
from carina.store.errors import CarinaError

NAMES = [case.id for case in CASES]


def start(bench, out, scripted, model=MODEL, notify=None, **options):
    options = {"base_url": scripted.service.url, "connections": 4, "retries": 0, "limit": 2} | options
    return run_model(bench.directory, model, out, RunOptions(**options), notify=notify)


def invoke(bench, out, url, *more):
    line = [
        "run",
        str(bench.directory),
        "--model",
        MODEL,
        "-o",
        str(out),
        "--base-url",
        url,
        "--retries",
        "0",
    ]
    return CliRunner().invoke(app, [*line, *more])


# ---- the first request ----------------------------------------------------------------------------------------------


def test_one_request_is_sent_before_the_first_question_and_not_counted(bench, tmp_path):
    notices = []
    with serving_model(NAMES) as scripted:
        result = start(bench, tmp_path / "run", scripted, notify=notices.append)
        assert scripted.service.asked[0].system == FIRST_SYSTEM
        assert scripted.first_requests == 1
        assert len(scripted.service.asked) == 1 + result.counts.answered
    assert result.counts.input_tokens == 7 * result.counts.answered
    (notice,) = notices
    assert notice.startswith(f"{MODEL}: the first request was answered in ")
    assert notice.endswith(" s; 7 tokens sent and 3 tokens written, not counted in the run")


def test_it_is_not_sent_where_nothing_is_left_to_ask_or_the_user_does_not_want_it(bench, tmp_path):
    with serving_model(NAMES) as scripted:
        start(bench, tmp_path / "run", scripted, first_request=False)
        start(bench, tmp_path / "run", scripted)
        carina.run(
            bench.directory,
            MODEL,
            tmp_path / "other",
            base_url=scripted.service.url,
            limit=1,
            first_request=False,
        )
        ended = invoke(bench, tmp_path / "third", scripted.service.url, "--limit", "1", "--no-first-request")
        assert ended.exit_code == 0
        assert scripted.first_requests == 0
    ended = CliRunner().invoke(app, ["run", str(bench.directory), "--model", MODEL, "--estimate"])
    assert ended.exit_code == 0


def test_where_it_fails_one_sentence_is_printed_and_nothing_is_written(bench, tmp_path):
    with serving(lambda _: failing(401, "no")) as service:
        ended = invoke(bench, tmp_path / "run", service.url)
    assert (ended.exit_code, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        f"Error: model '{MODEL}': the first request failed: HTTP 401 from {service.url}: no; "
    )
    assert KEY not in line
    assert not (tmp_path / "run").exists()


def test_a_started_run_is_kept_where_it_fails(bench, tmp_path):
    out = tmp_path / "run"
    with serving_model(NAMES, {("rr", 1): [failing(400, "no")]}) as scripted:
        start(bench, out, scripted)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(CarinaError, match="connection refused"):
        start(bench, out, scripted)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_restricted_data_is_refused_before_it_is_sent(tmp_path):
    closed = restricted(tmp_path)
    options = RunOptions(base_url="http://192.0.2.1/v1")
    with pytest.raises(CarinaError, match="--accept-terms"):
        run_model(closed.directory, MODEL, tmp_path / "run", options)


# ---- a directory in which nothing was answered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai-api/loopback/other"},
        {"sampling": Sampling(temperature=1.0)},
        {"policy": Policy(history="gold")},
        {"limit": 1},
    ],
)
def test_a_failed_start_does_not_bind_the_directory(bench, tmp_path, change):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: failing(400, "no")
        with pytest.raises(NothingAnsweredError):
            start(bench, out, scripted, first_request=False)
    assert {path.name for path in out.iterdir()} >= {"run.json", "steps-00.jsonl", "steps.parquet"}
    (out / "notes.txt").write_text("mine")
    with serving_model(NAMES) as scripted:
        result = start(bench, out, scripted, **change)
        again = start(bench, out, scripted, **change)
    assert result.counts.answered == again.counts.answered == sum(scripted.answered.values()) > 0
    assert read_info(out).model == change.get("model", MODEL)
    assert len(read_info(out).calls) == 1
    assert (out / "notes.txt").read_text() == "mine"


def test_one_answer_binds_the_directory(bench, tmp_path):
    out = tmp_path / "run"
    with serving_model(NAMES, {("rr", 0): [failing(400, "no")]}) as scripted:
        start(bench, out, scripted)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        with pytest.raises(CarinaError, match=r"holds another run \(temperature 0\.0, not 1\.0\)"):
            start(bench, out, scripted, sampling=Sampling(temperature=1.0))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_table_with_answers_binds_the_directory_although_the_log_is_gone(bench, tmp_path):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        start(bench, out, scripted)
        (out / "steps-00.jsonl").unlink()
        with pytest.raises(CarinaError, match="holds another run"):
            start(bench, out, scripted, blind=True)


def test_a_damaged_log_binds_the_directory(bench, tmp_path):
    out = tmp_path / "run"
    with serving_model(NAMES) as scripted:
        scripted.service._script = lambda _: failing(400, "no")
        with pytest.raises(NothingAnsweredError):
            start(bench, out, scripted, first_request=False)
        (out / "steps-00.jsonl").write_text("who knows what this was\n")
        with pytest.raises(CarinaError, match="holds another run"):
            start(bench, out, scripted, blind=True)


# ---- nothing is answered, or some of it -----------------------------------------------------------------------------


def test_a_run_without_an_answer_raises_with_counts_and_the_most_frequent_reason(bench, tmp_path):
    out = tmp_path / "run"

    def script(asked):
        return failing(400, "no images" if "Which projection" in json.dumps(asked.body) else "no room")

    with serving(script) as service:
        with pytest.raises(NothingAnsweredError) as caught:
            carina.run(
                bench.directory,
                MODEL,
                out,
                base_url=service.url,
                retries=0,
                limit=3,
                first_request=False,
            )
        assert str(caught.value) == (
            f"model '{MODEL}': no question was answered: 3 cases failed, 2 of them with HTTP 400: no room; repeat the "
            "command to ask again"
        )
        ended = invoke(bench, out, service.url, "--limit", "3", "--no-first-request")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: {caught.value}\n"
    assert open_run(out).counts.incomplete == open_run(out).counts.steps


def test_many_failures_in_a_row_without_an_answer_exit_with_1(bench, tmp_path):
    with serving(lambda _: failing(400, "no")) as service:
        ended = invoke(bench, tmp_path / "run", service.url, "--history", "none", "--no-first-request")
    assert ended.exit_code == 1
    (line,) = ended.stderr.splitlines()
    assert "20 turns in a row failed, the last with HTTP 400: no" in line


def test_equal_reasons_are_grouped_in_notices(bench, tmp_path):
    faults = {
        ("lf", 0): "slow",
        ("rr", 2): "full",
        ("rr-0", 1): "full",
        ("talk", 0): "full",
        ("talk-0", 1): "full",
    }
    notices = []
    with serving_model(NAMES, {at: [failing(400, said)] for at, said in faults.items()}) as scripted:
        result = start(
            bench, tmp_path / "run", scripted, notify=notices.append, limit=None, first_request=False
        )
    assert notices == [
        "failed: 4 cases (rr, talk, rr-0 and 1 more): HTTP 400: full",
        "failed: lf: HTTP 400: slow",
    ]
    assert {case for case, _ in result.failures} == {case for case, _ in faults}
    with serving_model(NAMES, {at: [failing(400, said)] for at, said in faults.items()}) as scripted:
        ended = invoke(bench, tmp_path / "other", scripted.service.url)
    assert ended.exit_code == 1
    assert ended.stderr.count("failed: ") == 2
    assert "5 cases failed; repeat the command to ask again" in ended.stderr


def test_a_case_that_failed_twice_is_one_case():
    failures = [Failure("a", "no"), Failure("a", "no"), *(Failure("b", f"reason {n}") for n in range(11))]
    said = list(describe_failures(failures))
    assert said[0] == "failed: a: no"
    assert said[-1] == "failed: other cases, for 2 other reasons"


def test_a_hostile_first_answer_is_no_answer_to_a_question(bench, tmp_path):
    with serving_model(NAMES) as scripted:
        usual = scripted.service._script
        scripted.service._script = lambda asked: (
            Answer("Answer: 2 " * 1000) if asked.system == FIRST_SYSTEM else usual(asked)
        )
        start(bench, tmp_path / "run", scripted)
    assert {row.raw for row in open_run(tmp_path / "run").rows()} == {RIGHT}
