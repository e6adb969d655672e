"""Benchmarks as Inspect tasks: the same answers as `carina run`, in Inspect's log and in a run."""

import json
import math
import shutil
import subprocess
import sys
import zipfile

import pytest
from tests.models.loopback import KEY, MODEL, Answer, failing
from tests.runs.conftest import CASES
from tests.runs.served.scripted_model import serving_model

from carina.pages.report import report
from carina.runs import open_run, read_info
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.runs.prompts import style_text, system_prompt
from carina.store.errors import CarinaError

NAMES = [case.id for case in CASES]
TREK = [case for case in CASES if case.protocol == "trek"]
# In a process of its own, as its users have it: it leaves connections open and settles how this one logs.
CODE = """
import json, shutil, sys
from inspect_ai import eval as inspect_eval
from carina.runs.inspect_task import percept, trek
bench, url, run, logs, model = sys.argv[1:]
OTHERS = {"log_images": True, "prompt_style": "answer", "image_order": "after", "image_detail": "low"}
notices = []
arguments_of_all = [{"out": run}, {"out": run}, OTHERS, {"out": f"{run}-3", "on_wrong": "stop"}]
for number, arguments in enumerate(arguments_of_all):
    task = percept(bench=bench, **arguments) if number == 3 else trek(bench=bench, **arguments)
    (log,) = inspect_eval(task, model=model, model_base_url=url, max_retries=0, log_dir=logs, display="none")
    if number < 3:
        shutil.copytree(run, f"{run}-{number}")
    notices.append({
        "status": log.status,
        "location": log.location,
        "scores": {score.name: {name.split("/")[-1]: one.value for name, one in score.metrics.items()}
                   for score in log.results.scores},
        "samples": {sample.id: sample.scores["stages"].value for sample in log.samples},
        "roles": [message.role for message in log.samples[0].messages],
    })
print(json.dumps(notices))
"""


@pytest.fixture(scope="module")
def evaluated(bench, tmp_path_factory):
    """Two evaluations into one run, the first with faults; one with pictures in its log; one that stops at errors."""
    folder = tmp_path_factory.mktemp("inspect")
    faults = {
        ("talk", 3): [failing(400, "no")],
        ("talk-0", 1): [Answer("Yes.")],
        ("rr-0", 1): [Answer("Answer: 2")],
        ("rr-1", 1): [failing(400, "no")],
        ("lf-0", 0): [Answer("Answer: 2")],
    }
    with pytest.MonkeyPatch.context() as patch, serving_model(NAMES, faults) as scripted:
        patch.setenv("LOOPBACK_API_KEY", KEY)
        line = [bench.directory, scripted.service.url, folder / "run", folder / "logs", MODEL]
        ended = subprocess.run(
            [sys.executable, "-c", CODE, *map(str, line)], stdout=subprocess.PIPE, text=True, check=True
        )
    return folder, json.loads(ended.stdout.splitlines()[-1]), scripted


def test_every_stage_has_a_score_and_an_unreached_one_is_nan(evaluated):
    folder, (first, *_), _ = evaluated
    assert first["status"] == "success"
    # Stage 4 is of percept cases alone.
    assert math.isnan(first["scores"].pop("stage 4")["mean"]), "of nothing there is no mean"
    reached = {name: found["n"] for name, found in first["scores"].items()}
    assert reached == {"stage 1": 4, "stage 2": 4, "stage 3": 3, "stage 8": 3}
    assert math.isnan(first["samples"]["talk"]["stage 3"])
    rows = open_run(folder / "run-0").rows()
    of_case = [
        [row.score for row in rows if row.case == case.id and row.stage == 2 and row.state == "answered"]
        for case in TREK
    ]
    assert first["scores"]["stage 2"]["mean"] == pytest.approx(
        sum(sum(one) / len(one) for one in of_case) / 4
    )


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_stage_has_the_value_that_the_report_gives_it(evaluated, tmp_path, number):
    """Also where a step failed, where a case stopped at an error, and where two paths are opposed."""
    folder, logs, _ = evaluated
    results = report(folder / f"run-{number}", tmp_path, cases=0).to_frame()
    expected = {
        f"stage {stage}": value
        for level in ("words", "stage")
        for stage, value in results.filter(level=level).select("stage", "estimate").iter_rows()
    }
    found = {name: of_stage["report_accuracy"] for name, of_stage in logs[number]["scores"].items()}
    known = {name: value for name, value in found.items() if not math.isnan(value)}
    assert known == pytest.approx({name: value for name, value in expected.items() if value is not None})
    # Percept's contour evaluation has one of two opposing paths here, so that neither gives a value.
    assert set(known) == ({"stage 1", "stage 3", "stage 4"} if number == 3 else set(expected))


def test_a_step_that_was_not_reached_counts_as_wrong(evaluated):
    """Case rr answers step 2 wrong and stops: nothing of its later stages was asked, as for the report."""
    _, (*_, stopped), _ = evaluated
    assert stopped["samples"]["rr"] == {"stage 1": 1, "stage 2": 0, "stage 3": 0, "stage 4": 0} | {
        name: value for name, value in stopped["samples"]["rr"].items() if name == "stage 8"
    }


def test_an_inspect_task_writes_a_run(evaluated):
    folder, _, _ = evaluated
    rows = open_run(folder / "run-0").rows()
    assert [row.case for row in rows] == [case.id for case in TREK for _ in case.steps]
    assert {(row.case, row.number): row.error for row in rows if row.error} == {("talk", 3): "HTTP 400: no"}
    assert [row.raw for row in rows if (row.case, row.number) == ("talk-0", 1)] == ["Yes."]
    info = read_info(folder / "run-0")
    assert (info.model, info.cases) == (MODEL, tuple(case.id for case in TREK))
    assert (info.sampling["temperature"], info.sampling["max_tokens"]) == (0.0, 2048)


def test_a_repeated_task_asks_only_open_questions(evaluated):
    folder, (_, second, *_), scripted = evaluated
    assert {row.state for row in open_run(folder / "run-1").rows()} == {"answered"}
    assert second["scores"]["stage 3"]["n"] == 4
    # Once for the first two together, once for the third, which keeps nothing.
    answered = {place: count for place, count in scripted.answered.items() if place[0].startswith("talk")}
    assert answered == {(case.id, number): 2 for case in TREK for number in range(len(case.steps))}


def test_a_task_takes_the_prompts_of_a_user(evaluated):
    added = style_text("trek", "answer")
    asked = [one.body["messages"] for one in evaluated[2].service.asked]
    asked = [one for one in asked if one[0]["content"].startswith(system_prompt("trek"))]
    own = [one for one in asked if one[0]["content"].endswith(added)]
    assert 0 < len(own) < len(asked)
    for messages in asked:
        kinds = [part["type"] for part in messages[1]["content"]]
        assert kinds == (["text", "image_url"] if messages in own else ["image_url", "text"])
        (image,) = [part["image_url"] for part in messages[1]["content"] if part["type"] == "image_url"]
        assert image["detail"] == ("low" if messages in own else "auto")


def test_images_are_logged_only_on_request(evaluated):
    _, (_, without, within, _), _ = evaluated
    assert b"iVBORw0KGgo" not in everything(without["location"])
    assert b"[image, SHA-256 " in everything(without["location"])
    assert b"iVBORw0KGgo" in everything(within["location"])
    assert without["roles"] == within["roles"] == ["system", *["user", "assistant"] * 5]


def everything(location):
    with zipfile.ZipFile(location) as log:
        return b"".join(log.read(name) for name in log.namelist())


def test_a_call_records_address_and_versions(evaluated):
    folder, _, scripted = evaluated
    info = read_info(folder / "run-1")
    assert [call.base_url for call in info.calls] == [scripted.service.url] * 2
    assert all(call.ended is not None for call in info.calls)
    assert set(info.calls[0].versions) == {"carina", "inspect-ai"}


def test_carina_run_extends_the_run_of_a_task(bench, evaluated, tmp_path):
    out = shutil.copytree(evaluated[0] / "run-1", tmp_path / "run")
    notices = []
    with serving_model(NAMES) as scripted:
        options = RunOptions(base_url=scripted.service.url, retries=0, first_request=False)
        result = run_model(bench.directory, MODEL, out, options, notify=notices.append)
    assert notices == [f"{out}: extended from 4 to 12 cases"]
    assert (result.counts.cases, result.counts.complete) == (12, 12)
    assert {case for case, _ in scripted.answered} == {case.id for case in CASES if case.protocol != "trek"}


def test_tasks_are_registered_and_refuse_wrong_options(bench):
    from inspect_ai._util.registry import registry_info

    from carina.runs.inspect_task import ground, percept, trek

    assert [registry_info(one).name for one in (percept, trek, ground)] == [
        "carina/percept",
        "carina/trek",
        "carina/ground",
    ]
    with pytest.raises(CarinaError, match=r"the policy is wrong: .*history"):
        percept(bench=str(bench.directory), history="guess")
    with pytest.raises(CarinaError, match="no cases of the protocol ground"):
        ground(bench=str(bench.directory))
